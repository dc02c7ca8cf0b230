import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nongauss.optimise.course import Run, Status
from nongauss.rank_factor import fit, start
from nongauss.rank_factor.config import RankRecipe
from rank_factor.small import coded, problem


@pytest.mark.parametrize("neighbours", ["level", "pairwise"])
def test_chains_keep_the_second_half_thinned(neighbours):
    _, rows, labels, config = problem(4, 20, neighbours=neighbours, n_outputs=1)
    result, fitted = fit.fit(coded(rows, labels), config, RankRecipe("gibbs", 12, 0.0, 0, 2, 4, 0.01), Run())
    assert result.status is Status.COMPLETED
    assert result.n_iter == 24
    assert_array_equal(fitted.chain, [0, 0, 1, 1])
    assert fitted.watched.shape[:2] == (2, 6)
    assert not np.array_equal(fitted.draws[0].A, fitted.draws[2].A)


def test_variational_bayes_converges_and_a_callback_stops_it():
    _, rows, labels, config = problem()
    recipe = RankRecipe("vb", 100, 3e-3, 0, 1, 1, 0.01)
    result, fitted = fit.fit(coded(rows, labels), config, recipe, Run())
    assert result.status is Status.CONVERGED
    assert fitted.calibration is None
    stopped, _ = fit.fit(
        coded(rows, labels), config, recipe, Run((lambda progress: progress.iteration == 3,))
    )
    assert stopped.status is Status.STOPPED
    assert stopped.n_iter == 3


def test_cells_of_large_tables_are_held_in_32_bits_with_the_same_answer(monkeypatch):
    _, rows, labels, config = problem(n_outputs=1)
    recipe = RankRecipe("vb", 10, 0.0, 0, 1, 1, 0.01)
    _, double = fit.fit(coded(rows, labels), config, recipe, Run())
    monkeypatch.setattr(start, "LARGE", 1)
    _, single = fit.fit(coded(rows, labels), config, recipe, Run())
    assert np.abs(double.draws[0].A - single.draws[0].A).max() < 1e-3
