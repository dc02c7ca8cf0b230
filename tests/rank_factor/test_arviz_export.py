import importlib.util
import sys
import types

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nongauss import RankFactorClassifier
from nongauss.core.errors import InputError
from nongauss.rank_factor import arviz_export
from nongauss.rank_factor.fit import drawn
from rank_factor.small import problem, table


def test_draws_by_chain_have_named_axes():
    state, *_ = problem(n_outputs=1)
    draws = [drawn(state)] * 5
    variables, dims = arviz_export.by_chain(draws, np.array([0, 0, 0, 1, 1]))
    assert variables["loadings"].shape == (2, 2, 6, 2)
    assert variables["coefficients"].shape == (2, 2, 1, 1, 2)
    for name, array in variables.items():
        assert array.ndim == 2 + len(dims[name])


def test_a_variational_fit_gives_draws_with_the_spread_of_its_normals():
    X, y = table(40)
    model = RankFactorClassifier(2, tol=1.0, random_state=0).fit(X, y)
    draws = arviz_export.sampled(np.random.default_rng(0), model.draws_[0])
    assert len(draws) == 500
    for values, mean, covariance in (
        ([draw.A for draw in draws], model.draws_[0].A, model.draws_[0].covariance),
        ([draw.beta for draw in draws], model.draws_[0].beta, model.draws_[0].beta_covariance),
    ):
        sd = np.sqrt(np.einsum("...kk->...k", covariance))
        assert_allclose((np.mean(values, axis=0) - mean) / sd, 0.0, atol=0.2)
        assert_allclose(np.std(values, axis=0) / sd, 1.0, atol=0.15)


@pytest.mark.parametrize(
    ("labels", "outputs"), [(["no", "yes"], ["yes"]), (["a", "b", "c"], ["a", "b", "c"])], ids=str
)
def test_what_is_handed_to_arviz_repeats_and_names_the_classes(monkeypatch, labels, outputs):
    seen: list[dict] = []
    monkeypatch.setitem(
        sys.modules, "arviz", types.SimpleNamespace(from_dict=lambda **parts: seen.append(parts))
    )
    X, _ = table(40)
    model = RankFactorClassifier(2, tol=1.0, random_state=0).fit(X, np.resize(labels, 40))
    model.to_arviz()
    model.to_arviz()
    first, second = seen
    assert first["coords"]["output"] == outputs
    assert first["posterior"]["loadings"].shape == (1, 500, 6, 2)
    assert_array_equal(first["posterior"]["coefficients"], second["posterior"]["coefficients"])
    model.draws_ = (model.draws_[0]._replace(steps=4, covariance=None),)  # as of the predictive fit
    with pytest.raises(InputError, match="no posterior"):
        model.to_arviz()


def test_it_is_said_which_package_is_needed():
    if importlib.util.find_spec("arviz") is None:
        state, *_ = problem()
        with pytest.raises(InputError, match="arviz"):
            arviz_export.inference_data([drawn(state)], np.zeros(1), {})
