"""Where chains begin: of wide tables where a chain over some of the columns has come."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss import RankFactorAnalysis
from nongauss.rank_factor import start
from nongauss.rank_factor.config import MARGIN, MOST_COUNTED, RankConfig, RankRecipe
from nongauss.rank_factor.params import WeightedLabels
from nongauss.rank_factor.rank_likelihood import level_scores, mean_by_level
from nongauss.rank_factor.start import Problem, chain_start, warm
from rank_factor.small import ranked


def wide_problem(n_columns: int = 24) -> tuple[Problem, np.ndarray]:
    """Columns of two factors each, and the factors."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((30, 2))
    X = z @ rng.standard_normal((2, n_columns)) + 0.3 * rng.standard_normal((30, n_columns))
    labels = WeightedLabels(np.zeros((30, 0)), np.ones(30))
    return Problem(ranked(X), labels, RankConfig(2, eps=0.3), RankRecipe("gibbs", 10, 0.0, 0, 2, 4)), z


def test_a_chain_of_a_wide_table_begins_with_the_factors_of_some_columns(monkeypatch):
    problem, truth = wide_problem()
    monkeypatch.setattr(start, "MOST_COUNTED", 8)
    state = chain_start(np.random.default_rng(0), problem)
    z, A = state.z.mean, state.A.mean
    assert A.shape == (24, 2)
    assert_allclose((z**2).mean(), 1.0)
    explained = np.linalg.lstsq(z, truth, rcond=None)[0]
    assert (
        1.0 - ((truth - z @ explained) ** 2).sum() / (truth**2).sum() > 0.6
    )  # of a draw by 8 columns; of any two, .07
    means = mean_by_level(problem.rows.codes, z, problem.labels.weight, 5)
    assert_allclose(state.scale.lower, level_scores(state.A, means).lower)
    ranks = problem.rows.codes.astype(float)
    assert np.median([abs(np.corrcoef(ranks[:, i], z @ A[i])[0, 1]) for i in range(24)]) > 0.7


def test_other_chains_begin_after_sweeps_of_variational_bayes():
    problem, _ = wide_problem()
    found, expected = (begin(np.random.default_rng(0), problem) for begin in (chain_start, warm))
    assert_allclose(found.A.mean, expected.A.mean)


@pytest.mark.parametrize("inference", ["gibbs", "vb"])
def test_the_margin_of_chains_over_many_columns_is_smaller(inference):
    model = RankFactorAnalysis(2, inference=inference)
    for n_columns, margin in ((MOST_COUNTED, MARGIN), (3 * MOST_COUNTED, MARGIN / 3)):
        expected = margin if inference == "gibbs" else MARGIN
        assert_allclose(model._config_of((40, n_columns), 2, {}).eps, expected)
    assert model.set_params(epsilon=2.0)._config_of((40, 3000), 2, {}).eps == 2.0
