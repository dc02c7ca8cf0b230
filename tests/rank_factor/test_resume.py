"""Fits that are stopped or interrupted go on from their file and end as if they had not been."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from nongauss import RankFactorAnalysis, RankFactorClassifier
from nongauss.core.errors import InputError
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.rank_factor import fit, trained_factors
from rank_factor.small import table

X, Y = table(50)
X[3, 2] = np.nan
QUICK = {"n_factors": 2, "random_state": 0}
FITS = {  # model, target, the call of the callback that stops it
    "vb": (RankFactorAnalysis(tol=1e-5, max_iter=12, **QUICK), None, 5),
    "values": (RankFactorAnalysis(observation="gaussian", tol=1e-5, max_iter=12, **QUICK), None, 5),
    "pairs": (RankFactorAnalysis(neighbours="pairwise", tol=1e-9, max_iter=4, **QUICK), None, 2),
    "mixture": (
        RankFactorClassifier(classifier="mixture", n_experts=3, tol=1e-5, max_iter=12, **QUICK),
        Y,
        5,
    ),
    "gibbs_first_chain": (RankFactorClassifier(inference="gibbs", max_iter=8, n_draws=6, **QUICK), Y, 7),
    "gibbs_second_chain": (
        RankFactorClassifier(inference="gibbs", classifier="mixture", n_experts=3, max_iter=8, **QUICK),
        Y,
        14,
    ),
    "gibbs_pairs": (
        RankFactorAnalysis(inference="gibbs", neighbours="pairwise", max_iter=6, **QUICK),
        None,
        4,
    ),
    "predictive": (RankFactorClassifier(inference="predictive", max_iter=40, **QUICK), Y, 1),
}
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*largest number of iterations"),
    pytest.mark.filterwarnings("ignore:.*Stopped on request"),
    pytest.mark.filterwarnings("ignore:.*chains:sklearn.exceptions.ConvergenceWarning"),
]


def stopper(last: int | None, heard: list[int]):
    """A callback that hears of iterations, and stops the fit at its call number `last`."""

    def hear(progress) -> bool:
        heard.append(progress.iteration)
        return len(heard) == last

    return hear


def assert_same(model, other):
    assert_array_equal(model.trace_["bound"], other.trace_["bound"])
    assert model.stop_reason_ == other.stop_reason_
    assert_array_equal(model.transform(X), other.transform(X))
    assert_array_equal(model.watched_, other.watched_)
    assert len(model.draws_) == len(other.draws_)
    for mine, its in zip(model.draws_, other.draws_, strict=True):
        assert_array_equal(mine.A, its.A)
        assert mine.A.dtype == its.A.dtype
        assert (mine.gate is None) == (its.gate is None)
    if hasattr(model, "predict_proba"):
        assert_array_equal(model.predict_proba(X), other.predict_proba(X))


LONG = {"predictive": pytest.mark.gate, "gibbs_second_chain": pytest.mark.gate}


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG.get(name, ())) for name in FITS])
def test_a_fit_that_was_stopped_goes_on_to_the_same_bits(name, tmp_path):
    model, target, last = FITS[name]
    path, everything, rest = tmp_path / "fit", [], []
    whole = clone(model).set_params(callbacks=[stopper(None, everything)]).fit(X, target)
    clone(model).set_params(callbacks=[stopper(last, [])], checkpoint=path).fit(X, target)
    assert path.exists()
    resumed = clone(model).set_params(callbacks=[stopper(None, rest)], checkpoint=path).fit(X, target)
    assert_same(resumed, whole)
    if name != "predictive":  # whose chunks are cut by time
        assert rest == everything[last:]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.gate
def test_what_was_trained_is_not_trained_again_where_calibration_was_interrupted(tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    model = RankFactorClassifier(inference="predictive", max_iter=40, **QUICK)
    whole, path, heard = clone(model).fit(X, Y), tmp_path / "fit", []

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(trained_factors, "calibrate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            clone(model).set_params(checkpoint=path).fit(X, Y)
    resumed = clone(model).set_params(checkpoint=path, callbacks=[stopper(None, heard)]).fit(X, Y)
    assert heard == []
    assert_same(resumed, whole)
    assert not path.exists()


def test_a_file_of_other_rows_or_settings_is_refused(tmp_path):
    model = RankFactorAnalysis(tol=1e-5, max_iter=12, checkpoint=tmp_path / "fit", **QUICK)
    clone(model).set_params(callbacks=[stopper(2, [])]).fit(X)
    for other, rows in (
        (model, X[::-1] ** 3 + np.arange(50)[:, None]),
        (clone(model).set_params(tol=0.1), X),
    ):
        with pytest.raises(InputError, match="other data or parameters"):
            clone(other).fit(rows)


@pytest.mark.parametrize("n_drawn", [0, 1, 7])
def test_a_generator_goes_on_from_its_words(n_drawn):
    rng = np.random.default_rng([5, 1])
    rng.integers(0, 9, n_drawn, dtype=np.uint32)  # after an odd number half a word is left
    again = fit._generator(fit._words(rng))
    assert_array_equal(
        again.integers(0, 2**31, 5, dtype=np.uint32), rng.integers(0, 2**31, 5, dtype=np.uint32)
    )
    assert_array_equal(again.standard_normal(5), rng.standard_normal(5))
