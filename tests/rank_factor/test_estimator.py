import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from nongauss import RankFactorAnalysis, RankFactorClassifier
from nongauss.core.errors import InputError


def cancer(n_columns: int = 12):
    X, y = load_breast_cancer(return_X_y=True)
    return train_test_split(X[::2, :n_columns], y[::2], random_state=0)


def distorted(X: np.ndarray) -> np.ndarray:
    """Another increasing function for each column."""
    scaled = X / load_breast_cancer().data[:, : X.shape[1]].max(axis=0)
    return np.stack([[np.exp, np.sqrt, np.cbrt][i % 3](5 * c) for i, c in enumerate(scaled.T)], axis=1)


WAYS = [
    {},
    {"classifier": "mixture", "n_experts": 3},
    {"inference": "gibbs", "max_iter": 20},
    {"inference": "predictive", "max_iter": 25},
]


@pytest.mark.parametrize("settings", WAYS, ids=str)
def test_increasing_transforms_change_no_bit_and_labels_are_found(settings):
    X, X_test, y, y_test = cancer()
    model = RankFactorClassifier(4, random_state=0, **settings).fit(X, y)
    other = RankFactorClassifier(4, random_state=0, **settings).fit(distorted(X), y)
    assert_array_equal(other.predict_proba(distorted(X_test)), model.predict_proba(X_test))
    assert model.score(X_test, y_test) > 0.8


def test_values_suffer_from_a_distortion_that_ranks_do_not_see():
    X, X_test, y, y_test = cancer()
    low, high = X.mean(axis=0), X.std(axis=0)
    scores = {
        kind: RankFactorClassifier(4, observation=kind, random_state=0)
        .fit(np.exp(4 * (X - low) / high), y)
        .score(np.exp(4 * (X_test - low) / high), y_test)
        for kind in ("rank", "gaussian")
    }
    assert scores["rank"] > scores["gaussian"] + 0.02


def test_several_classes_share_factors():
    X, y = load_iris(return_X_y=True)
    model = RankFactorClassifier(3, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85
    assert model.coef_.shape == (3, 3)
    assert list(model.coefficients().columns) == ["mean", "lower", "upper"]
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, atol=1e-12)


def test_missing_cells_drop_out():
    X, X_test, y, y_test = cancer()
    holes = np.random.default_rng(0).random(X.shape) < 0.1
    model = RankFactorClassifier(4, random_state=0).fit(np.where(holes, np.nan, X), y)
    assert model.score(X_test, y_test) > 0.8
    empty = model.predict_proba(np.full((1, X.shape[1]), np.nan))
    assert np.isfinite(empty).all()


def test_results_can_be_read():
    frame = load_breast_cancer(as_frame=True).data.iloc[:120, :6]
    model = RankFactorAnalysis(2, random_state=0).fit(frame)
    assert list(model.loadings_.index) == list(frame.columns)
    top = model.top_columns(0, 3)
    assert (top.abs().diff().dropna() <= 0).all()
    low, high = np.moveaxis(model.loading_intervals(), -1, 0)
    assert ((low < model.loadings_) & (model.loadings_ < high)).all(axis=None)
    assert 1 <= model.n_active_ <= 2
    back = model.inverse_transform(model.transform(frame))
    assert np.corrcoef(back[:, 0], frame.iloc[:, 0])[0, 1] > 0.8
    with pytest.raises(InputError, match="factor"):
        model.top_columns(7)
    with pytest.raises(InputError, match="shape"):
        model.inverse_transform(np.ones((2, 5)))


def test_a_sampler_reports_how_it_mixed():
    X, _ = load_iris(return_X_y=True)
    model = RankFactorAnalysis(2, inference="gibbs", max_iter=40, n_draws=6, random_state=0).fit(X)
    assert len(model.draws_) == len(model.chain_) == 6
    assert np.isfinite(model.r_hat_).all()
    assert (model.effective_draws_ > 1).all()
    assert model.loading_intervals(0.5).shape == (4, 2, 2)


@pytest.mark.parametrize("settings", WAYS, ids=str)
def test_labels_that_are_noise_are_not_predicted_with_confidence(settings):
    rng = np.random.default_rng(1)
    n = len(cancer()[0])  # of which other tests have compiled
    X, y = rng.standard_normal((2 * n, 12)), rng.integers(0, 2, 2 * n)
    proba = RankFactorClassifier(4, random_state=0, **settings).fit(X[:n], y[:n]).predict_proba(X[n:])
    assert log_loss(y[n:], proba) < 0.8


def test_training_for_prediction_has_no_intervals():
    X, _, y, _ = cancer()
    model = RankFactorClassifier(4, inference="predictive", max_iter=2, random_state=0).fit(X, y)
    with pytest.raises(InputError, match="no posterior"):
        model.coefficients()
    with pytest.raises(InputError, match="no posterior"):
        model.loading_intervals()
