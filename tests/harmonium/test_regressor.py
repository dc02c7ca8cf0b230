import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog
from scipy.special import expit
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LinearRegression

from nongauss import HarmoniumClassifier, HarmoniumRegressor
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.harmonium.data import VisibleRows
from nongauss.harmonium.exponential_families import UnitBlock
from nongauss.harmonium.left_out import errors_of
from nongauss.harmonium.objective import tube


def made(n, seed=0):
    """Two groups of rows that twelve columns tell, a number that hangs on the group and on one column."""
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.5
    X = (rng.random((n, 12)) < np.where(group[:, None], 0.8, 0.15)).astype(float)
    y = 10.0 + 6.0 * group + 0.5 * rng.standard_t(3, n)
    return X, y


@pytest.fixture(scope="module")
def groups():
    return HarmoniumRegressor(1, random_state=0).fit(*made(500))


def test_a_number_that_hangs_on_a_hidden_group_is_told_with_intervals_that_hold(groups):
    X, y = made(2000, 1)
    log_odds = X @ np.full(12, np.log(0.8 / 0.15)) + (1.0 - X) @ np.full(12, np.log(0.2 / 0.85))
    best = np.mean((10.0 + 6.0 * expit(log_odds) - y) ** 2)  # by Bayes' rule
    law = groups.predict_distribution(X)
    assert np.mean((law.mean - y) ** 2) < 1.5 * best
    low, high = law.interval(0.9).T
    assert 0.86 < np.mean((y >= low) & (y <= high)) < 0.95
    assert law.log_prob(y).mean() > norm(law.mean, law.std).logpdf(y).mean()  # the tails are heavy


def test_the_law_of_errors_has_their_line_variance_and_skew():
    rng = np.random.default_rng(0)
    f = rng.normal(size=3000)
    e = rng.exponential(size=3000) - 1.0
    y = 0.3 + 1.4 * f + 0.5 * e
    found = errors_of(f, y, np.ones(3000))
    line = LinearRegression().fit(f[:, None], y)
    assert_allclose((found.slope, found.level), (line.coef_[0], line.intercept_), rtol=1e-9)
    left = y - line.predict(f[:, None])
    law = found.law(np.zeros(1), 5.0, -2.0)  # a mirrored target in other units
    assert_allclose(law.mean, 5.0 - 2.0 * found.level, atol=0.02)
    assert_allclose(law.variance, 4.0 * left.var(), rtol=0.05)
    high, low = 5.0 - 2.0 * (found.level + np.quantile(left, (0.05, 0.95)))
    assert_allclose(law.interval(0.9)[0], (low, high), atol=0.15)
    twice = errors_of(f, y, np.full(3000, 2.0))
    assert_allclose(twice.slope, found.slope)


def test_few_rows_or_a_target_of_one_value_leave_a_proper_law():
    nothing = errors_of(np.zeros(0), np.zeros(0), np.zeros(0)).law(np.zeros(1), 0.0, 1.0)
    assert_allclose((nothing.mean[0], nothing.std[0]), (0.0, 1.0))
    X, _ = made(30)
    with pytest.warns(NongaussWarning, match="constant"):
        model = HarmoniumRegressor(2, max_epochs=3, random_state=0).fit(X, np.full(30, 7.0))
    assert_allclose(model.predict(X[:3]), 7.0, atol=0.05)
    assert (model.predict(X[:3], return_std=True)[1] > 0).all()


def test_two_targets_at_once_are_refused():
    X, y = made(20)
    with pytest.raises(InputError, match="2 outputs, but HarmoniumRegressor takes one"):
        HarmoniumRegressor(2).fit(X, np.stack([y, y], axis=1))


@pytest.mark.filterwarnings("ignore:.*largest number of iterations")
def test_with_features_that_say_nothing_raw_votes_solve_the_tubes_linear_programme():
    """max |.| - epsilon loss of a line in the columns, by a linear programme: an independent optimum."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, -0.5, 0.0] + 0.3 * rng.standard_t(3, 80)
    model = HarmoniumRegressor(
        1, raw_features=True, method="lbfgs", C=3000.0, dropout=0.0, max_epochs=100, random_state=0
    ).fit(X, y)
    z, Z = (y - y.mean()) / y.std() * np.sign(((y - y.mean()) ** 3).sum()), model._encoded(X)[0].astype(float)
    ones = np.hstack([Z, np.ones((80, 1))])
    slack = -np.eye(80)
    programme = linprog(
        np.r_[np.zeros(4), np.ones(80)],
        A_ub=np.block([[ones, slack], [-ones, slack]]),
        b_ub=np.r_[z + 0.1, -z + 0.1],
        bounds=[(None, None)] * 4 + [(0, None)] * 80,
    )
    f = model.machine_.scores(model._encoded(X)[0])
    loss = tube(f, z, 0.1)[0].sum()
    assert 0.8 * programme.fun < loss < 1.06 * programme.fun  # a feature helps a little, softness costs


def test_columns_that_vote_beside_the_features_are_in_scores_files_and_gaps(tmp_path):
    import nongauss

    X, y = load_wine(return_X_y=True)
    model = HarmoniumClassifier(4, raw_features=True, max_epochs=30, random_state=0).fit(X, y)
    assert model.raw_votes_.shape == (3, 13)
    encoded = model._encoded(X)[0]
    by_hand = (model.transform(X) - 0.5) @ model.machine_.params.votes.T + model.machine_.params.intercept
    by_hand = by_hand + encoded @ (model.raw_votes_ * model._coder.directions).T
    assert_allclose(model.decision_function(X), by_hand, atol=1e-5)
    nongauss.save(model, tmp_path / "wine.nongauss")
    again = nongauss.load(tmp_path / "wine.nongauss")
    assert_allclose(again.decision_function(X), model.decision_function(X))
    gaps = X.copy()
    gaps[:, 3] = np.nan
    assert np.isfinite(model.predict_proba(gaps)).all()


def test_classes_that_single_columns_tell_are_told_with_a_feature_and_the_columns():
    """One feature cannot hold three independent columns; the columns' own votes can."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6))
    y = (X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 0)
    score = {}
    for raw in (False, True):
        model = HarmoniumClassifier(1, raw_features=raw, max_epochs=60, dropout=0.0, random_state=0)
        score[raw] = model.fit(X[:400], y[:400]).score(X[400:], y[400:])
    assert score[False] < 0.75
    assert score[True] > 0.9


@pytest.mark.gate
def test_skewed_readings_are_told_about_as_well_as_by_ridge_regression_or_better():
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, _ = load_breast_cancer(return_X_y=True)
    y, X = np.log(X[:, 13]), np.delete(X, 13, axis=1)
    train, test = np.arange(569) % 3 > 0, np.arange(569) % 3 == 0
    model = HarmoniumRegressor(20, raw_features=True, dropout=0.0, random_state=0).fit(X[train], y[train])
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))).fit(X[train], y[train])
    off, usual = (np.abs(m.predict(X[test]) - y[test]).mean() for m in (model, ridge))
    assert off < 1.1 * usual
    low, high = model.predict_interval(X[test]).T
    assert 0.84 < np.mean((y[test] >= low) & (y[test] <= high)) < 0.96


def test_left_out_rows_with_gaps_do_not_widen_the_law_of_complete_ones():
    from nongauss.harmonium.config import HarmoniumRecipe
    from nongauss.harmonium.left_out import left_out_errors
    from nongauss.harmonium.predict import NO_FILLER
    from nongauss.optimise.course import NOBODY

    rng = np.random.default_rng(0)
    X = rng.normal(size=(110, 2)).astype(np.float32)
    y = X[:, 0].astype(np.float32)
    missing = np.zeros(X.shape, bool)
    missing[:50, 0] = True
    filled = np.where(missing, np.float32(0), X)
    layout = (UnitBlock("all", "real", 0, 2),)
    rows, given = VisibleRows(filled, None, np.ones(110), y), VisibleRows(filled, missing, np.ones(110), y)
    recipe = HarmoniumRecipe(
        2, "binary", "cd", 12, 16, False, 1.0, "accurate", 0.0, 0, 1, 300.0, 1.0, 0.0, 0.1, True
    )
    spreads = [
        left_out_errors(layout, rows, seen, recipe, NO_FILLER, NOBODY).law(np.zeros(1), 0.0, 1.0).std[0]
        for seen in (given, rows)
    ]
    assert spreads[0] < 0.5 * spreads[1]
