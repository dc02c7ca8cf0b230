"""Rows that are few, or that come again: what they say of a candidate, and what the choice makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from nongauss import AutoClassifier, AutoRegressor
from nongauss.auto.calibration import fit_labels, fit_scores
from nongauss.auto.candidates import REGISTRY, candidates_for
from nongauss.auto.contenders import FEW_ROWS, Contender, flattery, give_shares, weight_left_out
from nongauss.auto.forest import grow
from nongauss.auto.local_law import fit_local
from nongauss.auto.parts import as_counts
from nongauss.auto.stacking import posterior_share
from nongauss.core.errors import InputError
from nongauss.predictive.mixture import GaussianMixtureDistribution

pytestmark = pytest.mark.usefixtures("few_trees")


def gaussian(mean, sd):
    def components(rows):
        return np.zeros((len(rows), 1)), mean[rows, None, None], sd[rows, None, None]

    return GaussianMixtureDistribution(
        mean[:, None], sd[:, None] ** 2, components, squeeze=True, n_components=1
    )


def test_equal_rows_are_copies_unless_inputs_come_with_other_targets():
    X = np.repeat(np.arange(4.0), 2)[:, None]
    y = np.tile([0.0, 1.0], 4)
    weight = np.full(8, 3.0)
    assert_array_equal(weight_left_out(X, y, weight), np.ones(8))
    assert_array_equal(weight_left_out(np.arange(8.0)[:, None], y, weight), weight)
    assert_array_equal(weight_left_out(X, y, np.ones(8)), np.ones(8))


def test_a_forest_without_one_of_equal_rows_is_that_of_rows_one_by_one():
    """Equal rows of a weight, and the same rows one by one, are left out alike in the mean over trees."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = X[:, :1] + rng.normal(size=(30, 1))
    weight = np.full(30, 3.0)
    _, together = grow(X, y, weight, 1, 0, n_trees=600, left_out=np.ones(30))
    again = np.repeat(np.arange(30), 3)
    _, apart = grow(X[again], y[again], np.ones(90), 1, 1, n_trees=600)
    summed = apart.toarray().reshape(30, 3, 30, 3).sum(axis=3).mean(axis=1)
    assert np.abs(together.toarray() - summed).mean() < 0.004
    assert np.diag(together.toarray()).mean() > 0.3


def test_labels_of_few_inputs_are_predicted_by_their_shares():
    """Of six cells with their own probabilities no row may be judged as if its whole cell were not there."""
    rng = np.random.default_rng(1)
    cell, truth = rng.integers(0, 6, 900), np.array([0.1, 0.9, 0.3, 0.7, 0.2, 0.8])
    y = (rng.random(900) < truth[cell]).astype(int)
    X = np.column_stack([cell // 3, cell % 3]).astype(float)
    model = AutoClassifier(random_state=0).fit(X, y)
    cells = np.column_stack([np.arange(6) // 3, np.arange(6) % 3]).astype(float)
    assert_allclose(model.predict_proba(cells)[:, 1], truth, atol=0.12)
    board = model.leaderboard_.set_index("candidate")["log_density"]
    best = np.mean(np.log(np.where(y == 1, truth[cell], 1 - truth[cell])))
    assert abs(board["gp labels"] - best) < 0.03


def test_one_length_scale_for_all_columns_where_these_are_many():
    names = [c.name for c in candidates_for("labels", 150, 60)]
    assert {"gp labels, one scale", "linear labels, one scale"} <= set(names)
    assert "gp labels, one scale" not in [c.name for c in candidates_for("labels", 600, 4)]
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100, 30))
    y = (np.abs(X[:, :3]).sum(axis=1) + X[:, 3:].sum(axis=1) / 3 > 2.4).astype(int)
    model = REGISTRY["gp labels, one scale"].build(0, 100).fit(X, y)
    assert list(model.lengthscales_) == ["all columns"]
    assert REGISTRY["gp labels, one scale"].n_parameters(model) == 2


def test_rows_flatter_more_where_they_are_few_for_what_they_chose():
    assert flattery(2.0, 1e6) == pytest.approx(2e-6, rel=1e-3)
    assert flattery(4.0, 30.0) == pytest.approx(4.0 / 30.0 * 30.0 / 25.0)
    assert flattery(30.0, 20.0) == pytest.approx(1.5 * 30.0 / 20.0)


def judged(name, density):
    return Contender(name, REGISTRY[name], log_density=density)


def test_the_law_without_columns_predicts_alone_unless_another_is_well_ahead():
    plain = np.full(500, -1.0)
    for ahead, expected in ((0.003, [1.0, 0.0]), (0.1, [0.0, 1.0])):
        pair = [judged("constant", plain), judged("gp", plain + ahead)]
        give_shares(pair, np.ones(500))
        assert_allclose([c.share for c in pair], expected, atol=1e-6)


def test_few_rows_leave_a_share_to_the_law_without_columns():
    """Where either law is impossible at each row, shares are those of a coin: (k + 1) / (n + 2)."""
    possible = np.array([0.0] * 9 + [-np.inf] * 3)
    own = [possible, np.where(possible == 0.0, -np.inf, 0.0)]
    assert_allclose(posterior_share(*own, np.ones(12)), 10.0 / 14.0, rtol=1e-4)
    assert_allclose(posterior_share(*own, np.full(12, 2.0)), 19.0 / 26.0, rtol=1e-4)
    equal = np.full(20, -1.0)
    assert_allclose(posterior_share(equal, equal, np.ones(20)), 0.5)
    trio = [judged("constant", equal), judged("gp", equal + 0.4), judged("linear", equal - 0.4)]
    give_shares(trio, np.ones(20))
    s = np.linspace(0.0, 1.0, 100_001)
    posterior = (s * np.exp(0.4) + 1.0 - s) ** 20
    expected = (posterior @ s) / posterior.sum()
    kept = (1.0 - expected) * (1.0 - 20 / FEW_ROWS)
    assert_allclose([c.share for c in trio], [kept, 1.0 - kept, 0.0], atol=1e-4)


def test_coin_flips_are_not_predicted_with_confidence():
    losses = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(14, 3)), rng.permutation(np.tile([0, 1], 7))
        model = AutoClassifier(random_state=0).fit(X, y)
        shares = model.predict_proba(rng.normal(size=(200, 3)))
        losses.append(-0.5 * np.log(shares).sum(axis=1).mean() - np.log(2.0))
    assert max(losses) < 0.7
    assert np.mean(losses) < 0.1


def test_few_labels_ask_for_no_calibration():
    codes = np.tile([0, 1], 6)
    shares = np.where(codes[:, None] == [0, 1], 0.6, 0.4)
    assert fit_labels(shares, codes, np.ones(12)).form == "none"
    again = np.tile(codes, 20)
    assert fit_labels(np.tile(shares, (20, 1)), again, np.ones(240)).temperature < 0.2


def test_counts_without_a_relation_have_a_law_without_columns():
    rng = np.random.default_rng(3)
    model = AutoRegressor(random_state=0).fit(rng.normal(size=(30, 2)), rng.poisson(2.0, 30))
    assert model.target_kind_ == "count"
    assert "constant count" in model.weights_


def test_a_base_that_is_next_to_constant_tells_no_targets():
    """Its mean without a row is the lower the higher the row's target is, also where inputs differ."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    left_out = (y.sum() - y) / 199.0
    found = fit_local(X, gaussian(left_out, np.ones(200)), y, np.ones(200), 0)
    assert not found.local.with_base
    assert found.log_density.mean() < norm.logpdf(y).mean() + 0.03


def test_a_local_law_is_grown_on_more_rows_than_judge_it():
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(600, 1))
    y = np.sign(np.sin(20 * X[:, 0])) + 0.1 * rng.normal(size=600)
    base = gaussian(np.zeros(600), np.ones(600))
    few = fit_local(X[:100], base[:100], y[:100], np.ones(100), 0, with_base=False)
    more = fit_local(X, base, y, np.ones(600), 0, with_base=False, n_judged=100)
    assert len(more.log_density) == len(more.left_out) == 100
    assert len(more.local.scores) == 600
    assert more.log_density.mean() > few.log_density.mean() + 0.1
    assert_allclose(more.left_out.log_prob(y[:100]), more.log_density, atol=1e-6)


def test_weights_that_are_no_counts_sum_to_the_rows_that_tell_as_much():
    """A mean with weights w has the variance sum w^2 / (sum w)^2 of one row's: that of so many equal rows."""
    rng = np.random.default_rng(3)
    weight = rng.gamma(2.0, size=40)
    variance = np.square(weight / weight.sum()).sum()
    assert_allclose(as_counts(weight).sum(), 1.0 / variance)
    assert_allclose(as_counts(weight), as_counts(weight / weight.sum()))
    assert_allclose(as_counts(np.full(40, 1 / 40)), np.ones(40))
    counts = rng.integers(0, 4, 40).astype(float)
    assert as_counts(counts) is counts
    for unit in (1e16, 1e90):  # every number so large is whole
        assert_allclose(as_counts(weight * unit), as_counts(weight), rtol=1e-9)


@pytest.mark.parametrize("made", [AutoClassifier, AutoRegressor])
def test_weights_that_sum_to_1_choose_as_rows_without_weights(made):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=60)
    names = ["linear", "constant"]
    if made is AutoClassifier:
        y, names = (y > 0.0).astype(int), [f"{name} labels" for name in names]
    plain = made(candidates=names, random_state=0).fit(X, y)
    shares = made(candidates=names, random_state=0).fit(X, y, np.full(60, 1 / 60))
    assert shares.weights_ == pytest.approx(plain.weights_)
    assert max(plain.weights_, key=plain.weights_.get) == names[0]


def test_as_many_rows_calibrate_numbers_as_labels():
    """Thirty rows of weight 2 are sixty: a spread that is a third of what the scores say is mended."""
    rng = np.random.default_rng(5)
    y, law = 3.0 * rng.normal(size=30), gaussian(np.zeros(30), np.ones(30))
    assert fit_scores(law, y, np.full(30, 2.0)) is not None
    assert fit_scores(law, y, np.ones(30)) is None
    certain, codes = np.tile([0.99, 0.01], (30, 1)), np.arange(30) % 2
    assert fit_labels(certain, codes, np.full(30, 2.0)).form != "none"
    assert fit_labels(certain, codes, np.ones(30)).form == "none"


@pytest.mark.parametrize("n", [1, 5])
def test_one_row_once_or_repeated_is_too_little_and_the_error_says_so(n):
    with pytest.raises(InputError, match="two distinct rows at least, got 1"):
        AutoRegressor().fit(np.ones((n, 2)), np.full(n, 3.0))
