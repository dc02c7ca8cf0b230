"""Scores of laws, quantiles and intervals: closed forms, weights, and scikit-learn's searches."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.catalogue import diabetes_part
from tests.predictive.test_combined import gaussians
from tests.predictive.test_every_law import made

import nongauss
from nongauss import metrics
from nongauss.core.errors import InputError

Y = np.array([0.2, -1.0, 3.0])
MEAN, SD = np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.5, 2.0])
WEIGHT = np.array([1.0, 2.0, 0.0])


def normal():
    return gaussians(MEAN[:, None], SD[:, None])


def gaussian_crps(y, mean, sd):
    """Gneiting, Raftery, Westveld and Goldman, Monthly Weather Review 133 (2005), eq. 5."""
    z = (y - mean) / sd
    return sd * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))


def test_scores_of_a_gaussian_are_the_closed_ones():
    law = normal()
    assert_allclose(metrics.crps(Y, law, mean=False), gaussian_crps(Y, MEAN, SD), rtol=1e-12)
    assert_allclose(metrics.log_score(Y, law), stats.norm.logpdf(Y, MEAN, SD).mean())
    low, high = stats.norm.interval(0.8, MEAN, SD)
    outside = np.maximum(low - Y, 0) + np.maximum(Y - high, 0)
    assert_allclose(metrics.interval_score(Y, law, 0.8, mean=False), high - low + 10.0 * outside)
    for interval in ((low, high), np.stack([low, high], axis=1)):
        assert_allclose(metrics.interval_score(Y, interval, 0.8), metrics.interval_score(Y, law, 0.8))
        assert metrics.coverage(Y, interval, 0.8) == metrics.coverage(Y, law, 0.8) == 2 / 3
    levels = np.array([0.1, 0.5, 0.7])
    x = stats.norm.ppf(levels, MEAN[:, None], SD[:, None])
    peer = [mean_pinball_loss(Y, x[:, j], alpha=level) for j, level in enumerate(levels)]
    assert_allclose(metrics.pinball(Y, law, levels), np.mean(peer))
    assert_allclose(metrics.pinball(Y, x[:, 1], 0.5), peer[1])
    assert metrics.pinball(Y, x, levels, mean=False).shape == (3, 3)


@pytest.mark.parametrize("name", ["gaussian", "poisson", "gamma", "hurdle gamma", "rounded", "two outputs"])
def test_crps_is_twice_the_pinball_loss_over_all_levels(name):
    law = made(name)[[1]]
    y = law.mean + 0.4
    n = 60
    nodes, weights = np.polynomial.legendre.leggauss(n)
    levels = 0.5 * (nodes + 1)
    loss = metrics.pinball(y, law, levels, mean=False).reshape(n, -1)[:, 0]
    spread = float(law.std.ravel()[0]) + 1e-9
    assert_allclose(np.ravel(metrics.crps(y, law, mean=False))[0], weights @ loss, atol=0.02 * spread)


def test_weights_count_rows():
    law = normal()
    twice = law[[0, 1, 1]]
    y = Y[[0, 1, 1]]
    low, high = np.array([-1.0, -2.0, 5.0]), np.array([1.0, -1.5, 6.0])
    for score in (metrics.crps, metrics.log_score, metrics.interval_score, metrics.pinball, metrics.coverage):
        assert_allclose(score(Y, law, sample_weight=WEIGHT), score(y, twice))
    assert metrics.coverage(Y, (low, high), sample_weight=WEIGHT) == pytest.approx(1 / 3)
    impossible = made("gamma")
    assert metrics.log_score([1.0, -1.0, 2.0], impossible) == -np.inf
    assert np.isfinite(metrics.log_score([1.0, 2.0, -1.0], impossible, sample_weight=WEIGHT))


def test_ends_count_where_single_values_have_a_probability():
    law = made("poisson")
    y = law.interval(0.5)[:, 1]
    assert metrics.coverage(y, law, 0.5) == 1.0


def test_several_outputs_count_equally():
    law = made("two outputs")
    y = law.mean + 0.1
    assert metrics.crps(y, law, mean=False).shape == metrics.coverage(y, law, mean=False).shape == (3, 2)
    assert_allclose(metrics.crps(y, law), np.mean([gaussian_crps(0.1, 0.0, 0.7)]))
    assert metrics.pinball(y, law, [0.2, 0.9], mean=False).shape == (3, 2, 2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scorers_drive_scikit_learn():
    X, y = diabetes_part(60)
    model = nongauss.SparseGPRegressor(n_inducing=5, max_iter=5, random_state=0)
    found = cross_val_score(model, X, y, scoring=metrics.crps_scorer, cv=2, error_score="raise")
    fitted = model.fit(X[30:], y[30:])
    assert found[0] == pytest.approx(-metrics.crps(y[:30], fitted.predict_distribution(X[:30])))
    search = GridSearchCV(
        model, {"likelihood": ["gaussian", "gamma"]}, scoring=metrics.log_score_scorer, cv=2
    )
    assert search.fit(X, y).best_params_["likelihood"] in ("gaussian", "gamma")
    for scorer in (
        metrics.interval_score_scorer,
        metrics.pinball_scorer,
        metrics.Scorer("interval_score", coverage=0.5),
    ):
        assert scorer(fitted, X, y) < 0
        assert pickle.loads(pickle.dumps(scorer))(fitted, X, y) == scorer(fitted, X, y)
    share = metrics.coverage(y, fitted.predict_distribution(X))
    assert metrics.coverage_scorer(fitted, X, y) == pytest.approx(-abs(share - 0.9))
    assert repr(metrics.Scorer("interval_score", coverage=0.5)) == "Scorer('interval_score', coverage=0.5)"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scorers_score_pipelines_and_searches():
    X, y = diabetes_part(60)
    model = nongauss.SparseGPRegressor(n_inducing=5, max_iter=5, random_state=0)
    pipeline = make_pipeline(StandardScaler(), PCA(2), model)
    search = GridSearchCV(pipeline, {"pca__n_components": [1, 2]}, scoring=metrics.crps_scorer, cv=2)
    fitted = search.fit(X, y).best_estimator_
    rows = fitted["pca"].transform(fitted["standardscaler"].transform(X))
    expected = -metrics.crps(y, fitted[-1].predict_distribution(rows))
    assert metrics.crps_scorer(fitted, X, y) == metrics.crps_scorer(search, X, y) == pytest.approx(expected)
    alone = make_pipeline(model).fit(X, y)
    assert metrics.crps_scorer(alone, X, y) == metrics.crps_scorer(alone[0], X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_are_routed_to_scorers_or_refused():
    X, y = diabetes_part(60)
    weight = np.arange(60) % 3.0
    with config_context(enable_metadata_routing=True):
        model = nongauss.SparseGPRegressor(n_inducing=5, max_iter=5, random_state=0)
        model.set_fit_request(sample_weight=True)
        given = {"params": {"sample_weight": weight}, "cv": 2, "error_score": "raise"}
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            cross_val_score(model, X, y, scoring=metrics.crps_scorer, **given)
        weighted = cross_val_score(model, X, y, scoring=metrics.crps_scorer.set_score_request(), **given)
        plain = cross_val_score(
            model, X, y, scoring=metrics.crps_scorer.set_score_request(sample_weight=False), **given
        )
    law = model.fit(X[30:], y[30:], sample_weight=weight[30:]).predict_distribution(X[:30])
    assert weighted[0] == pytest.approx(-metrics.crps(y[:30], law, sample_weight=weight[:30]))
    assert plain[0] == pytest.approx(-metrics.crps(y[:30], law))


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: metrics.crps(Y, MEAN), "a score of a predictive distribution: got ndarray"),
        (lambda: metrics.interval_score(Y, (MEAN[:2], MEAN[:2])), r"ends of the shape of `y_true`, \(3,\)"),
        (lambda: metrics.interval_score(Y, (MEAN + 1, MEAN)), "lower end above the upper one in row 0"),
        (lambda: metrics.coverage(Y, normal(), 90), "coverage must be a number between 0 and 1"),
        (lambda: metrics.pinball(Y, np.zeros((3, 2)), [0.1, 0.5, 0.9]), r"must have shape \(3, 3\)"),
        (lambda: metrics.pinball([1.0, np.nan], [1.0, 1.0], 0.5), "missing value in row 1"),
        (lambda: metrics.crps(Y, normal(), sample_weight=[1.0, 2.0]), "`sample_weight` must have shape"),
        (lambda: metrics.crps_scorer(LinearRegression(), MEAN[:, None], Y), "has no predict_distribution"),
        (lambda: metrics.Scorer("rmse"), "no score 'rmse'; there are crps, log_score"),
    ],
)
def test_bad_questions_say_what_was_got(ask, says):
    with pytest.raises(InputError, match=says):
        ask()
