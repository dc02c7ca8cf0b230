import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from nongauss import TGGMClassifier, TGGMRegressor
from nongauss.core.errors import NongaussWarning
from nongauss.optimise.course import Status
from nongauss.tggm.constant import outputs_of_shares


def table(n_rows=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n_rows)


@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate": 1e6},
        {"learning_rate": 1e6, "early_stopping": False},
        {"learning_rate": 1e6, "n_heads": 3},
        {"learning_rate": 1e6, "posterior": "exact"},
        {"learning_rate": 1e-9, "hidden_layer_sizes": (300,), "hidden_variance": 100.0},
    ],
)
def test_a_fit_that_went_astray_says_so_and_keeps_the_law_of_all_rows(settings):
    X, y = table()
    weight = np.where(np.arange(len(y)) < 150, 1.0, 2.0)
    model = TGGMRegressor(max_epochs=10, random_state=0, **settings)
    with pytest.warns(NongaussWarning, match="same distribution for all rows"):
        model.fit(X, 100.0 + 10.0 * y, weight)
    assert not model.converged_
    assert model.stop_reason_ == Status.NO_BETTER.value
    mean = np.average(100.0 + 10.0 * y, weights=weight)
    sd = np.sqrt(np.average((100.0 + 10.0 * y - mean) ** 2, weights=weight))
    law = model.predict_distribution(10.0 * X[:7])
    assert_allclose(law.mean, mean, rtol=1e-6)
    assert_allclose(law.variance, sd**2, rtol=1e-5)
    at = mean + sd * np.linspace(-2.0, 2.0, 7)
    assert_allclose(law.log_prob(at), norm.logpdf(at, mean, sd), atol=1e-3)


@pytest.mark.parametrize("early_stopping", [True, False])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_so_does_one_of_labels(n_classes, early_stopping):
    X, y = table()
    labels = np.digitize(y, [0.4] if n_classes == 2 else [-0.8, 0.1, 0.5])
    settings = {"learning_rate": 1e6, "max_epochs": 5, "early_stopping": early_stopping, "random_state": 0}
    with pytest.warns(NongaussWarning, match="same distribution for all rows"):
        model = TGGMClassifier(**settings).fit(X, labels)
    shares = np.bincount(labels) / len(labels)
    assert_allclose(model.predict_proba(X[:3]), np.tile(shares, (3, 1)), atol=1e-4)


def test_noise_in_many_columns_is_no_relation():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(100, 20)), rng.normal(size=100)
    with pytest.warns(NongaussWarning, match="the inputs may say nothing"):
        model = TGGMRegressor(random_state=0).fit(X, y)
    assert np.ptp(model.predict(X)) < 1e-9


@pytest.mark.parametrize("settings", [{}, {"max_epochs": 20, "early_stopping": False}])
def test_fits_that_learn_are_left_as_they_are(settings):
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TGGMRegressor(**settings, random_state=0).fit(X, y)
        labels = TGGMClassifier(batch_size=1, max_epochs=10, random_state=0).fit(X, y > 0.0)
    assert model.converged_
    assert model.score(X, y) > 0.5
    assert labels.score(X, y > 0.0) > 0.8  # members alone are worse than a constant, their average is not


def test_a_fit_that_was_stopped_keeps_its_last_state():
    X, y = table()
    stop = TGGMRegressor(learning_rate=1e6, callbacks=[lambda progress: True], random_state=0)
    with pytest.warns(NongaussWarning, match="Stopped on request"):
        stop.fit(X, y)


def test_means_of_outputs_give_classes_their_shares():
    shares = np.array([0.6, 0.25, 0.1, 0.05])
    rng = np.random.default_rng(0)
    z = outputs_of_shares(shares) + rng.standard_normal((400_000, 4))
    assert_allclose(np.bincount(z.argmax(1)) / len(z), shares, atol=0.003)
    assert_allclose(norm.cdf(outputs_of_shares(np.array([0.7, 0.3]))), 0.3, rtol=1e-12)
