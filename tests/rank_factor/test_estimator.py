import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from nongauss import RankFactorAnalysis, RankFactorClassifier
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.rank_factor import data, predict, start
from nongauss.rank_factor.data import one_against_rest
from rank_factor.small import table

SHORT_CHAINS = "ignore:.*chains:sklearn.exceptions.ConvergenceWarning"
pytestmark = pytest.mark.filterwarnings(SHORT_CHAINS)


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
    pytest.param({"inference": "predictive", "max_iter": 25}, marks=pytest.mark.gate),
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
    model = RankFactorAnalysis(2, inference="gibbs", max_iter=40, n_draws=6, random_state=0)
    with pytest.warns(
        ConvergenceWarning, match=r"not mixed: R-hat of the .* is \d+\.\d\d .* `max_iter` \(now 40\)"
    ):
        model.fit(X)
    assert not model.converged_
    assert "not mixed" in model.stop_reason_
    model.set_params(max_iter=6)
    with pytest.warns(ConvergenceWarning, match="too short"):
        model.fit(X)
    model.set_params(max_iter=40).fit(X)
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


def test_labels_one_against_the_rest():
    assert_array_equal(one_against_rest(np.array([0, 1.0]), 1), [[-1], [1]])
    assert_array_equal(one_against_rest(np.array([0, 2.0]), 3), [[1, -1, -1], [-1, -1, 1]])


@pytest.mark.parametrize(
    ("settings", "match"),
    [({"shrinkage": (0.5,)}, "shrinkage"), ({"n_levels": 1}, "n_levels"), ({"epsilon": 0.0}, "epsilon")],
)
def test_impossible_parameters_are_named(settings, match):
    with pytest.raises(ValueError, match=match):
        RankFactorAnalysis(**settings).fit(np.eye(4))


def test_pairs_need_whole_weights_and_extremes_warn():
    X = np.random.default_rng(0).standard_normal((12, 3))
    with pytest.raises(InputError, match="whole"):
        RankFactorAnalysis(neighbours="pairwise").fit(X, sample_weight=np.full(12, 0.5))
    with pytest.raises(InputError, match="1,000,000"):
        RankFactorAnalysis(inference="gibbs").fit(X, sample_weight=np.full(12, 1e12))
    with pytest.warns(NongaussWarning, match="diverge"):
        RankFactorAnalysis(n_factors=1, neighbours="extremes", max_iter=2, tol=1.0).fit(X)


def test_a_table_that_says_nothing_is_legal():
    model = RankFactorAnalysis(n_factors=2, random_state=0).fit(np.ones((10, 2)))
    assert_allclose(model.transform(np.ones((3, 2))), 0.0, atol=1e-9)


def test_a_column_that_rises_with_a_factor_has_a_positive_loading_however_it_is_skewed():
    rng = np.random.default_rng(0)
    f = rng.standard_normal(300)
    X = np.stack([np.exp(f), -np.exp(-f), f], axis=1) + 0.3 * rng.standard_normal((300, 3))
    for observation in ("rank", "gaussian"):
        loadings = RankFactorAnalysis(1, observation=observation, random_state=0).fit(X).loadings_.to_numpy()
        assert (loadings > 0).all() or (loadings < 0).all()


def test_draws_of_equal_rows_are_as_many_as_the_rows():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((15, 3)) @ rng.standard_normal((3, 3)), 8, axis=0)
    settings = {"observation": "gaussian", "inference": "gibbs", "max_iter": 200, "n_draws": 100}
    spread = [
        np.std(
            [draw.A for draw in RankFactorAnalysis(1, random_state=0, **settings).fit(table).draws_], axis=0
        )
        for table in (X, X + 1e-3 * rng.standard_normal(X.shape))
    ]
    assert_allclose(spread[0].mean(), spread[1].mean(), rtol=0.5)


def small_classifier(**settings) -> tuple[RankFactorClassifier, np.ndarray]:
    """A classifier of 60 rows, and the rows."""
    X, y = table()
    return RankFactorClassifier(4, random_state=0, **settings).fit(X, y), X


def test_30_memory_of_a_prediction_does_not_grow_with_draws_and_rows(monkeypatch):
    model, X = small_classifier(inference="gibbs", n_draws=4, max_iter=6)
    monkeypatch.setattr(predict, "N_STEPS", 1)
    monkeypatch.setattr(data, "BLOCK", 20_000)
    peaks = []
    for times in (100, 500):  # so many that what other tests' clusters do meanwhile is little
        many = np.tile(X, (times, 1))
        tracemalloc.start()
        model.predict_proba(many)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # The table, as read and as a matrix, and the probabilities: as many numbers as one draw's 4 x 4.
    assert peaks[1] - peaks[0] < 400 * 60 * 8 * (2 * X.shape[1] + 4)


@pytest.mark.parametrize("fitted_in", ["float64", "float32"])
def test_a_prediction_is_as_precise_as_the_fit_whatever_rows_are_beside(monkeypatch, fitted_in):
    monkeypatch.setattr(start, "LARGE", 100 if fitted_in == "float32" else 500)
    model, X = small_classifier(tol=1.0)
    assert model._cell_type == fitted_in
    many = np.tile(X, (5, 1))
    assert_array_equal(model.predict_proba(many)[:3], model.predict_proba(X[:3]))


@pytest.mark.parametrize(
    ("settings", "said"),
    [({}, False), ({"neighbours": "pairwise"}, True), ({"observation": "gaussian"}, False)],
)
def test_it_is_said_whether_the_model_holds_cells_of_a_row(settings, said):
    X, _ = table(40)
    settings = {"n_factors": 1, "max_iter": 2, "tol": 1e9, **settings}
    assert RankFactorAnalysis(**settings).fit(X).holds_training_rows_ is said
    lone = np.append(X, np.where(np.arange(40) == 3, 1.0, 0.0)[:, None], axis=1)
    says = RankFactorAnalysis(**settings).fit(lone).holds_training_rows_
    assert says is (settings.get("observation") != "gaussian")


@pytest.mark.parametrize(
    "use", [lambda m: m.loadings_, lambda m: m.top_columns(0), lambda m: m.inverse_transform([[0.0]])]
)
def test_before_fit_it_is_not_fitted(use):
    with pytest.raises(NotFittedError, match="not fitted"):
        use(RankFactorClassifier())


def test_factors_go_by_number_or_name_and_mistakes_are_named():
    model, X = small_classifier(tol=1.0)
    assert model.top_columns("factor1", 2).equals(model.top_columns(1, 2))
    for wrong in ("factor9", 4, -1, 1.5):
        with pytest.raises(InputError, match=r"factor must be a number from 0 to 3"):
            model.top_columns(wrong)
    with pytest.raises(InputError, match="n must be a whole number"):
        model.top_columns(0, -1)
    back = model.inverse_transform(model.transform(X))
    assert np.corrcoef(back[:, 0], X[:, 0])[0, 1] > 0.7


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sweeps_whose_bound_is_highest_at_the_start_converge_to_where_they_settle():
    rng = np.random.default_rng(1)
    zeros_and_ones = (rng.normal(size=(80, 1)) + rng.normal(size=(80, 6)) > 1).astype(float)
    short, long = (
        RankFactorAnalysis(2, max_iter=most, random_state=0).fit(zeros_and_ones) for most in (60, 300)
    )
    assert short.converged_
    assert short.trace_["bound"].iloc[-1] < short.trace_["bound"].max()
    assert short.n_iter_ == long.n_iter_ == len(short.trace_)
    before, first = (
        RankFactorAnalysis(2, max_iter=sweeps, random_state=0, tol=0).fit(zeros_and_ones).loadings_
        for sweeps in (short.n_iter_ - 1, 1)
    )
    size = np.abs(short.loadings_).to_numpy().max()
    assert np.abs(short.loadings_ - before).to_numpy().max() < 0.05 * size
    assert np.abs(short.loadings_ - first).to_numpy().max() > 0.5 * size


@pytest.mark.parametrize("stop_at", [21, 25, 31])
def test_a_stop_in_any_half_of_a_later_chain_keeps_the_draws_of_the_first(stop_at):
    seen = []
    model = RankFactorAnalysis(
        2,
        inference="gibbs",
        max_iter=20,
        n_draws=10,
        random_state=0,
        callbacks=[lambda progress: seen.append(progress) or len(seen) == stop_at],
    )
    with pytest.warns(NongaussWarning, match="Stopped on request"):
        model.fit(np.random.default_rng(0).normal(size=(40, 3)))
    assert len(model.draws_) >= 2
    assert np.isfinite(model.transform(np.zeros((2, 3)))).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("observation", ["rank", "gaussian"])
def test_weights_of_any_size_leave_the_heavy_rows_their_say(observation):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 4)) + np.repeat([[0.0], [3.0], [0.0]], 20, axis=0)
    y = np.repeat([0, 1, 1], 20)
    weight = np.r_[np.full(40, 1e98), 10.0 ** rng.uniform(-290, 40, 20)]
    model = RankFactorClassifier(2, observation=observation, max_iter=15, random_state=0).fit(X, y, weight)
    assert np.array_equal(model.predict(X[:40]), y[:40])
    np.testing.assert_array_equal(model.predict(X[40:]), 0)  # labels of next to no weight say nothing


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_priors_are_those_that_are_given():
    X, y = table(60)
    firm = {"n_factors": 2, "max_iter": 10, "random_state": 0}
    noise = (
        RankFactorAnalysis(observation="gaussian", noise_prior=(1e7, 2.5e6), **firm).fit(X).draws_[0].noise
    )
    assert_allclose(noise, 0.25, rtol=1e-4)
    wide, narrow = (RankFactorAnalysis(slab=slab, **firm).fit(X).draws_[0].A for slab in (1.0, 1e6))
    assert np.abs(narrow).max() < 0.01 * np.abs(wide).max()
    model = RankFactorClassifier(offset_precision=1e9, **firm).fit(X, y)
    assert abs(model.intercept_[0]) < 1e-4
    with pytest.raises(InputError, match="noise_prior must be two positive"):
        RankFactorAnalysis(noise_prior=(1.0,)).fit(X)


@pytest.mark.filterwarnings("ignore:.*so far from all other values")
def test_far_cells_leave_the_predictions_by_values_as_they_are():
    X, y = load_wine(return_X_y=True)
    dirty = X[::2].copy()
    dirty[0, :3] = 1e9
    fits = [
        RankFactorClassifier(observation="gaussian", random_state=0).fit(rows, y[::2])
        for rows in (X[::2], dirty)
    ]
    clean, beside = (log_loss(y[1::2], fit.predict_proba(X[1::2])) for fit in fits)
    assert beside < clean + 0.05
