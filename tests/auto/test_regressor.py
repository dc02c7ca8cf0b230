"""`AutoRegressor`: what it weighs, keeps, says and stores."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from tests.auto.tables import humps

import nongauss
from nongauss import AutoClassifier, AutoRegressor, SparseGPRegressor
from nongauss.auto import search
from nongauss.auto.base import how_it_ended
from nongauss.auto.candidates import FEWEST_CELLS, MOST_JUDGED, REGISTRY, candidates_for
from nongauss.auto.clock import FROM_TRIAL, NO_TIME, SearchTime
from nongauss.auto.contenders import Contender, within_reach
from nongauss.auto.inputs import arcsinh_of_skewed
from nongauss.auto.kinds import target_kind
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.predictive.combined import mixture
from nongauss.tables.frame import read_input

pytestmark = pytest.mark.usefixtures("few_trees")


@pytest.fixture(scope="module")
def fitted():
    X, y = humps(160)
    return AutoRegressor(candidates=["constant", "linear"], random_state=0).fit(X, y), X, y


def test_the_leaderboard_says_all(fitted):
    model, _, _ = fitted
    board = model.leaderboard_.set_index("candidate")
    assert list(model.leaderboard_.columns) == [
        "candidate",
        "log_density",
        "standard_error",
        "crps",
        "coverage",
        "weight",
        "seconds",
        "why_left_out",
    ]
    assert set(board.index) == {"constant", "linear", "linear, local law", "forest"}
    assert board["weight"].sum() == pytest.approx(1.0)
    assert (board["why_left_out"] == "").equals(board["weight"] > 0)
    assert model.weights_ == board["weight"][board["weight"] > 0].to_dict()
    assert model.trace_["bound"].iloc[-1] == board["log_density"].max()  # the best so far
    assert all(repr(name) in model.why_ for name in model.weights_)
    assert board.loc["linear, local law", "log_density"] > board.loc["linear", "log_density"] + 0.3


def test_the_prediction_is_the_mixture_of_the_chosen(fitted):
    model, _, _ = fitted
    X, y = humps(60, seed=5)
    encoded = model._encode(X)
    parts = [
        m.local.law(encoded, model._models[m.model].predict_distribution(X))
        if m.local
        else model._models[m.model].predict_distribution(X)
        for m in model._members
    ]
    expected = mixture(parts, [m.share for m in model._members])
    assert_allclose(model.log_density(X, y), expected.log_prob(y))
    assert_allclose(model.predict(X), expected.mean)


def test_two_humps_are_told_from_one(fitted):
    model, X, y = fitted
    new, own = humps(300, seed=7)
    alone = SparseGPRegressor(random_state=0).fit(X, y).log_density(new, own).mean()
    x = new["a"].to_numpy()
    truth = np.log(0.5 * (norm.pdf(own, x + 1, 0.1) + norm.pdf(own, x - 1, 0.1))).mean()
    assert model.log_density(new, own).mean() > alone + 0.5 * (truth - alone)


def test_a_file_holds_it_all_and_says_that_residuals_are_in_it(fitted, tmp_path):
    model, X, y = fitted
    nongauss.save(model, tmp_path / "m")
    again = nongauss.load(tmp_path / "m")
    assert_array_equal(again.log_density(X, y), model.log_density(X, y))
    assert again.why_ == model.why_
    assert again.holds_residuals_
    assert again.leaderboard_.equals(model.leaderboard_)


def test_columns_may_come_in_another_order(fitted):
    model, X, _ = fitted
    assert_array_equal(model.predict(X[["b", "a"]]), model.predict(X))


def test_the_kind_follows_from_the_numbers_unless_candidates_say_more():
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.5, 300).astype(float)
    assert target_kind(counts) == "count"
    assert target_kind(counts, ["linear"]) == "real"
    assert target_kind(rng.gamma(2.0, size=300)) == "positive"
    assert target_kind(rng.normal(size=300)) == "real"
    assert (
        target_kind(np.where(rng.random(300) < 0.3, 0.0, rng.gamma(2.0, size=300))) == "positive with zeros"
    )


def test_counts_get_probabilities():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 1))
    y = rng.poisson(np.exp(0.5 + 0.5 * X[:, 0])).astype(float)
    model = AutoRegressor(candidates=["gp poisson", "gp negative_binomial"], random_state=0).fit(X, y)
    assert model.target_kind_ == "count"
    assert model.predict_distribution(X[:3]).is_discrete


def test_a_name_that_is_none_is_refused_with_those_there_are():
    X, y = humps(20)
    with pytest.raises(InputError, match=r"no candidate 'gb'.*linear"):
        AutoRegressor(candidates=["gb"]).fit(X, y)


def test_no_time_leaves_the_rest_out_and_says_so():
    X, y = humps(60)
    model = AutoRegressor(time_budget=1e-6, random_state=0).fit(X, y)
    board = model.leaderboard_.set_index("candidate")
    assert board.loc["gp", "why_left_out"] == "no time left for it"
    assert (board["weight"] > 0).sum() >= 1
    assert "not enough time" in model.why_


def test_a_callback_that_returns_true_ends_the_search():
    X, y = humps(40)
    seen = []
    model = AutoRegressor(
        callbacks=[lambda progress: seen.append(progress.iteration) or True], random_state=0
    )
    with pytest.warns(NongaussWarning, match="Stopped on request"):
        model.fit(X, y)
    assert seen == [1]
    assert not model.converged_
    assert np.isfinite(model.predict(X)).all()


def _interrupt(*args, **options):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "what", ["nongauss.auto.local_laws.fit_local", "nongauss.tggm.estimator.TGGMRegressor.fit"]
)
def test_ctrl_c_keeps_what_there_is(monkeypatch, what):
    X, y = humps(60)
    monkeypatch.setattr(what, _interrupt)
    model = AutoRegressor(candidates=["tggm", "linear", "constant"], random_state=0)
    if "tggm" not in what:
        model.set_params(candidates=["linear", "constant"])
    with pytest.warns(NongaussWarning, match="Stopped on request"):
        model.fit(X, y)
    assert "stopped (Ctrl-C)" in set(model.leaderboard_["why_left_out"])
    assert np.isfinite(model.predict(X)).all()


def test_a_constant_target_is_told():
    X, _ = humps(30)
    with pytest.warns(NongaussWarning, match="constant"):
        model = AutoRegressor(random_state=0).fit(X, np.full(30, 4.0))
    assert_allclose(model.predict(X), 4.0)


def test_skewed_columns_are_found_and_gaps_stay():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"n": rng.normal(size=200), "s": np.exp(2 * rng.normal(size=200)), "t": ["a", "b"] * 100}
    )
    frame.loc[3, "s"] = np.nan
    table = read_input(frame)
    change = arcsinh_of_skewed(table)
    assert change.places == (1,)
    values = change(table).column(1).values
    assert np.isnan(values[3])
    assert (np.argsort(values[4:]) == np.argsort(frame["s"].to_numpy()[4:])).all()
    assert arcsinh_of_skewed(read_input(frame[["n", "t"]])) is None


@pytest.mark.parametrize("size", [1e-310, 1.0, 1e200])
def test_a_column_far_out_is_seen_through_arcsinh_without_an_overflow(size):
    values = np.append(size * np.arange(30.0), 1e300)
    table = read_input(pd.DataFrame({"a": values}))
    change = arcsinh_of_skewed(table)
    assert change is not None
    seen = change(table).column(0).values
    assert np.isfinite(seen).all()
    assert (np.diff(seen) > 0).all()


def test_of_larger_tables_members_are_not_asked_which_rows_they_left_out():
    sizes = [(MOST_JUDGED, 9), (MOST_JUDGED + 1, 9), (FEWEST_CELLS // 10 - 1, 10), (39, FEWEST_CELLS)]
    names = [[c.name for c in candidates_for("real", *size)] for size in sizes]
    assert ["tggm" in own for own in names] == [True, False, False, False]


def test_what_is_near_the_best_of_the_screen_is_fitted():
    rng = np.random.default_rng(0)
    noise = 0.3 * rng.normal(size=60)
    behind = {
        "gp": 0.0,
        "gp, arcsinh inputs": 0.01,
        "gp laplace": 0.05,
        "gp student_t": 0.06,
        "gp weibull": 0.5,
    }
    rivals = [Contender(name, REGISTRY[name]) for name in behind]
    trials = {
        name: Contender(name, REGISTRY[name], log_density=noise - own + 0.01 * rng.normal(size=60))
        for name, own in behind.items()
    }
    kept = within_reach(rivals[::-1], trials, np.ones(60))
    assert [c.name for c in kept] == ["gp", "gp laplace", "gp student_t"]
    why = {c.name: c.why_out for c in rivals}
    assert why["gp weibull"].endswith("nats a row behind 'gp' on 60 rows")
    assert why["gp, arcsinh inputs"].endswith("nats a row behind 'gp' on 60 rows")  # the same model twice
    assert not why["gp"]


def test_the_gaussian_law_of_a_target_is_no_twin_of_that_of_its_logarithm():
    density = np.zeros(60)
    rivals = [Contender(name, REGISTRY[name]) for name in ("gp log_normal", "gp")]
    trials = {c.name: Contender(c.name, REGISTRY[c.name], log_density=density) for c in rivals}
    trials["gp"].log_density = density - 0.07
    assert [c.name for c in within_reach(rivals, trials, np.ones(60))] == ["gp log_normal", "gp"]


def test_intervals_with_a_guarantee_follow_at_once_and_exactly_from_rows_that_fit_has_not_seen(fitted):
    model, _, _ = fitted
    X, y = humps(200, seed=8)
    with pytest.warns(NongaussWarning, match=r"as far as one row changes a fit little.*conformalize"):
        found = model.predict_interval(X, 0.8, guarantee="conformal")
    assert 0.7 < ((found[:, 0] <= y) & (y <= found[:, 1])).mean() < 0.9
    kept = model._conformal_scores
    own = model.conformalize(X[:100], y[:100]).predict_interval(X[100:], 0.8, guarantee="conformal")
    assert 0.7 < ((own[:, 0] <= y[100:]) & (y[100:] <= own[:, 1])).mean() < 0.95
    model._conformal_scores = kept


def test_a_choice_is_fitted_to_other_rows_without_a_search(fitted):
    model, X, y = fitted
    more, own = humps(160, seed=3)
    again = model.refit(pd.concat([X, more]), np.concatenate([y, own]))
    assert again.weights_ == model.weights_
    assert (again.why_, again.target_kind_) == (model.why_, model.target_kind_)
    assert again.leaderboard_.equals(model.leaderboard_)
    assert len(again._members[0].local.scores) == 320
    new, truth = humps(300, seed=7)
    assert again.log_density(new, truth).mean() > model.log_density(new, truth).mean()
    same = model.refit(X, y)  # the hyper-parameters begin where they were
    assert_allclose(same.log_density(new, truth).mean(), model.log_density(new, truth).mean(), atol=0.02)


def test_what_was_weighed_is_told(fitted):
    text = fitted[0].describe()
    assert all(name in text for name in ("linear, local law", "nats a row", fitted[0].why_))
    assert fitted[0].stop_reason_ == "All candidates were compared."


def test_the_end_by_the_clock_is_told_without_words_of_epochs():
    late = [Contender("gp", why_out=NO_TIME), Contender("linear")]
    said = how_it_ended(SearchTime(60.0), late)
    assert said == (
        "The time budget of 60 s was not enough for all; 1 of 2 candidates was not tried: "
        "raise `time_budget`."
    )
    assert how_it_ended(SearchTime(60.0), late[1:]) == "All candidates were compared."
    assert how_it_ended(SearchTime(60.0, has_cut=True), late[1:]).startswith(
        "The time budget of 60 s was not enough for all; a fit was cut short"
    )
    assert how_it_ended(SearchTime(None, stopped=True), late).startswith("Stopped on request")


def test_what_a_fit_will_take_is_told_by_its_trial_and_by_fits_done():
    clock = SearchTime(100.0)
    assert clock.expected(2.0, None, 1.0) == 0.0  # nothing is known
    clock.took(1.0, 0.5, None, 1.0)
    assert clock.expected(2.0, None, 1.0) == pytest.approx(1.0)
    assert clock.expected(2.0, 0.5, 4.0) == pytest.approx(0.5 * FROM_TRIAL * 8.0)
    clock.took(1.0, 8.0, 0.5, 4.0)  # twice what its trial took, for as many rows
    assert clock.expected(2.0, 0.25, 4.0) == pytest.approx(4.0)
    assert clock.has(80.0)
    assert clock.for_fits == 90.0  # a tenth is for the end
    clock.law, clock.n_laws, clock.figures = 10.0, 2, 15.0
    assert (clock.for_all, clock.for_fits) == (85.0, 65.0)
    clock.law = 40.0
    assert clock.for_fits == 35.0  # two would take more than half
    clock.law = 300.0
    assert clock.for_fits == 85.0  # half is not enough for a forest of a quarter of the trees
    clock.law, clock.begin = 10.0, clock.begin - 70.0
    assert clock.is_over()
    assert clock.share_of_a_law() == 1.0
    clock.begin -= 11.0
    assert clock.share_of_a_law() == pytest.approx(0.4, abs=0.01)
    clock.begin -= 2.0
    assert clock.share_of_a_law() == 0.0
    assert not clock.is_late()
    clock.begin -= 3.0
    assert clock.is_late()


def test_without_time_for_all_rows_a_fit_has_as_many_as_there_is_time_for(monkeypatch):
    """Half of .95 of nine tenths of the budget, of which a trial of 60 rows is to take .13, growing by n^1.5.

    A budget so large that what this machine takes is no part of it to speak of.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(200, 2))
    y = np.sin(3.0 * X[:, 0]) + 0.1 * rng.normal(size=200)
    monkeypatch.setattr(search, "SCREEN_ROWS", 60)
    monkeypatch.setattr(SearchTime, "expected", lambda self, cost, trial, rows: 1.3e6 * rows**9)
    model = AutoRegressor(time_budget=1e7, random_state=0).fit(X, y)
    found = re.search(r"'gp' was fitted to (\d+) rows, on which all were compared", model.why_)
    assert int(found[1]) == int(60 * (0.5 * 0.95 * 0.9 * 1e7 / 1.3e6) ** (2.0 / 3.0))
    assert "not enough time" in model.why_
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("kind", ["numbers", "labels"])
def test_a_search_that_is_stopped_in_its_screen_keeps_the_best_of_it(kind, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(90, 2))
    y = np.sin(3.0 * X[:, 0]) + 0.1 * rng.normal(size=90)
    monkeypatch.setattr(search, "SCREEN_ROWS", 60)
    monkeypatch.setattr(search, "SCREEN_KEEPS", 1)
    floors = 2
    stop = [lambda progress: progress.iteration > floors]
    if kind == "numbers":
        model = AutoRegressor(callbacks=stop, random_state=0)
    else:
        model, y = AutoClassifier(callbacks=stop, random_state=0), (y > 0).astype(int)
    with pytest.warns(NongaussWarning, match="Stopped on request"):
        model.fit(X, y)
    board = model.leaderboard_.set_index("candidate")
    best = "gp" if kind == "numbers" else "gp labels"
    assert board["weight"].idxmax() == best
    assert f"'{best}' was fitted to 60 rows" in model.why_
    assert model.score(X, y) > 0.9


def test_a_search_that_was_stopped_goes_on_from_its_file(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(60, 2))
    y = np.sin(3.0 * X[:, 0]) + 0.1 * rng.normal(size=60)
    names = ["constant", "linear", "gp", "gp laplace"]
    alone = AutoRegressor(candidates=names, random_state=0).fit(X, y)
    path, other = tmp_path / "search", tmp_path / "search.notes"
    other.write_text("of a person")
    stop = [lambda progress: progress.iteration == 3]
    model = AutoRegressor(candidates=names, random_state=0, checkpoint=path, callbacks=stop)
    with pytest.warns(NongaussWarning, match="Stopped on request"):
        model.fit(X, y)
    assert path.exists()
    fits = []
    plain = SparseGPRegressor.fit
    monkeypatch.setattr(
        SparseGPRegressor, "fit", lambda self, *a, **k: fits.append(self) or plain(self, *a, **k)
    )
    model.set_params(callbacks=None).fit(X, y)
    assert [one.likelihood for one in fits] == ["laplace"]  # the others were read
    assert_array_equal(model.predict(X), alone.predict(X))
    assert model.weights_ == alone.weights_
    assert list(tmp_path.iterdir()) == [other]


def test_a_file_of_another_search_is_refused(tmp_path):
    X, y = humps(40)
    path = tmp_path / "search"
    stop = [lambda progress: True]
    model = AutoRegressor(candidates=["constant", "linear"], random_state=0, checkpoint=path, callbacks=stop)
    with pytest.warns(NongaussWarning, match="Stopped on request"):
        model.fit(X, y)
    with pytest.raises(InputError, match="other data or parameters"):
        model.set_params(callbacks=None).fit(X, y + 1.0)


@pytest.mark.parametrize("kind", ["numbers", "labels"])
def test_progress_ends_where_it_said(kind):
    """Two kept laws past the screen, a fourth fit, local laws and forests are all steps."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(40, 2))
    y = np.sin(3.0 * X[:, 0]) + 0.1 * rng.normal(size=40)
    seen = []
    watch = [lambda progress: seen.append((progress.iteration, progress.max_iter)) and None]
    if kind == "numbers":
        AutoRegressor(callbacks=watch, random_state=0).fit(X, y)
    else:
        AutoClassifier(callbacks=watch, random_state=0).fit(X, (y > 0).astype(int))
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert all(done <= total for done, total in seen)
    assert seen[-1] == (len(seen), len(seen))
