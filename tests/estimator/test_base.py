import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.core.seeds import key_seed
from nongauss.estimator.base import DistributionRegressorMixin, NongaussEstimator, trace_table
from nongauss.optimise.course import FitResult, Status
from nongauss.predictive.mixture import GaussianMixtureDistribution

EXPECTED_WARNING = {
    Status.CONVERGED: None,
    Status.EARLY_STOPPED: None,
    Status.COMPLETED: None,
    Status.MAX_ITER: ConvergenceWarning,
    Status.NONFINITE: NongaussWarning,
    Status.BOUND_DECREASED: NongaussWarning,
    Status.STALLED: NongaussWarning,
    Status.NO_BETTER: NongaussWarning,
    Status.STOPPED: NongaussWarning,
}


class Recorded(NongaussEstimator):
    def __init__(self, status=Status.CONVERGED):
        self.status = status

    def fit(self):
        trace = [
            {"iteration": 1, "bound": -9.5, "seconds": 0.25},
            {"iteration": 2, "bound": -8.0, "seconds": 0.5, "gradient": 0.1},
        ]
        self._record_fit(FitResult(state=None, trace=trace, status=self.status, n_iter=2))
        return self


@pytest.mark.parametrize("status", Status)
def test_the_end_of_a_fit_is_recorded_and_a_bad_end_warns_at_the_caller(status):
    here = test_the_end_of_a_fit_is_recorded_and_a_bad_end_warns_at_the_caller.__code__.co_firstlineno
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = Recorded(status).fit()
    assert model.n_iter_ == 2
    assert model.stop_reason_ == status.value
    assert model.converged_ is (EXPECTED_WARNING[status] is None)
    category = EXPECTED_WARNING[status]
    assert [w.category for w in caught] == ([] if category is None else [category])
    for warning in caught:
        assert status.value in str(warning.message)
        assert warning.filename == __file__
        assert warning.lineno > here  # where fit was called, not where fit warns


def test_the_trace_is_a_table_with_the_four_common_columns_first():
    table = Recorded().fit().trace_
    assert list(table.columns) == ["iteration", "bound", "objective", "seconds", "gradient"]
    assert table["iteration"].dtype == np.int64
    assert table["bound"].tolist() == [-9.5, -8.0]
    assert np.isnan(table["gradient"][0])
    assert trace_table([]).shape == (0, 4)


def test_a_seed_is_repeatable_and_a_generator_moves_on():
    assert [key_seed(s) for s in (0, np.int64(7), 2**32 - 1)] == [0, 7, 2**32 - 1]
    for make in (np.random.RandomState, np.random.default_rng):
        source = make(3)
        first, second = key_seed(source), key_seed(source)
        assert first != second
        assert key_seed(make(3)) == first
    state = np.random.get_state()
    try:
        np.random.seed(5)
        drawn = key_seed(None)
        np.random.seed(5)
        assert key_seed(None) == drawn
    finally:
        np.random.set_state(state)


@pytest.mark.parametrize("bad", [-1, 2**32, 1.0, True, "seed"])
def test_what_is_no_seed_is_refused(bad):
    with pytest.raises(InputError, match="random_state cannot be used"):
        NongaussEstimator._key_seed(bad)


class Regressor(DistributionRegressorMixin):
    def __init__(self, n_outputs, squeeze):
        self.n_outputs, self.squeeze = n_outputs, squeeze

    def predict_distribution(self, X):
        mean = np.repeat(X, self.n_outputs, axis=1)

        def components(rows):
            part = mean[rows, None, :]
            return np.zeros(part.shape[:2]), part, np.full(part.shape, 2.0)

        return GaussianMixtureDistribution(mean, np.full(mean.shape, 4.0), components, squeeze=self.squeeze)


def test_the_shorthands_are_the_distribution_s_own_results():
    X = np.arange(5.0)[:, None]
    flat, wide = Regressor(1, True), Regressor(3, False)
    distribution = flat.predict_distribution(X)
    np.testing.assert_array_equal(flat.predict_interval(X, coverage=0.5), distribution.interval(0.5))
    np.testing.assert_array_equal(flat.predict_quantiles(X, [0.1, 0.6]), distribution.quantile([0.1, 0.6]))
    np.testing.assert_array_equal(flat.log_density(X, X[:, 0]), distribution.log_prob(X[:, 0]))
    np.testing.assert_array_equal(flat.sample_y(X, 4, random_state=1), distribution.sample(4, 1))
    assert flat.predict_interval(X).shape == (5, 2)
    assert flat.sample_y(X).shape == (5, 1)
    assert wide.predict_interval(X).shape == (5, 2, 3)
    assert wide.predict_quantiles(X, [0.1, 0.2, 0.3, 0.4]).shape == (5, 4, 3)
    assert wide.sample_y(X, n=2, random_state=0).shape == (5, 2, 3)
    assert wide.log_density(X, np.zeros((5, 3))).shape == (5,)
