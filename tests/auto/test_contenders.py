from types import SimpleNamespace

import numpy as np
import pandas as pd

from nongauss import AutoRegressor
from nongauss.auto.candidate import Candidate
from nongauss.auto.candidates import REGISTRY
from nongauss.auto.clock import FIT_ENDS, SearchTime
from nongauss.auto.contenders import (
    Contender,
    TrainingRows,
    means_of_trials,
    of_other_families,
    past_screen,
    within_reach,
)
from nongauss.auto.inputs import column_of_groups
from nongauss.auto.local_laws import bases_of
from nongauss.auto.search import Search
from nongauss.tables.frame import read_input


def contender(name, family, mean):
    """A contender of a family, and its trial with log densities about `mean`."""
    candidate = Candidate(name, frozenset(["real"]), None, None, None, family=family)
    density = mean + 0.01 * np.sin(np.arange(100.0))
    return Contender(name, candidate), Contender(name, candidate, log_density=density)


def screened(*made):
    rivals = [own for own, _ in made]
    trials = {own.name: trial for own, trial in made}
    weight = np.ones(100)
    chosen = within_reach(rivals, trials, weight, 2)
    return chosen, chosen + of_other_families(chosen, rivals, trials, weight)


def test_the_best_of_another_family_is_kept_where_it_is_not_far_behind():
    chosen, whole = screened(
        contender("a", "one", 0.0),
        contender("b", "one", -0.05),
        contender("c", "two", -0.5),
        contender("d", "two", -0.4),
        contender("e", "three", -0.7),
    )
    assert [c.name for c in chosen] == ["a", "b"]
    assert [c.name for c in whole] == ["a", "b", "d"]
    assert not whole[-1].why_out


def test_a_family_that_is_among_the_chosen_gets_no_more():
    chosen, whole = screened(
        contender("a", "one", 0.0), contender("b", "two", -0.01), contender("c", "two", -0.3)
    )
    assert [c.name for c in whole] == [c.name for c in chosen] == ["a", "b"]


def test_normal_noise_is_fitted_whatever_the_screen_says_of_it():
    density = np.zeros(100)
    names = ["gp log_normal", "gp gamma", "gp", "gp, arcsinh inputs", "gp, group effects"]
    rivals = [Contender(name, REGISTRY[name]) for name in names]
    trials = {c.name: Contender(c.name, REGISTRY[c.name], log_density=density) for c in rivals}
    for name, behind in zip(names[2:], (2.0, 0.5, 1.0), strict=True):
        trials[name].log_density = density - behind
    chosen = within_reach(rivals, trials, np.ones(100))
    assert [c.name for c in chosen] == names[:2]
    more = past_screen(chosen, rivals, trials, np.ones(100))
    assert [c.name for c in more] == ["gp, arcsinh inputs"]  # the best of its three variants
    assert not more[0].why_out
    assert past_screen([rivals[2]], rivals, trials, np.ones(100)) == []
    assert past_screen(chosen, rivals, {}, np.ones(100)) == []  # without any trial, for want of time


def test_the_two_best_laws_and_the_best_mean_get_local_laws():
    X, y = np.zeros((100, 1)), np.zeros(100)
    rows = TrainingRows(read_input(X), X, y, y, np.ones(100), np.ones(100))
    told = {
        "gp": (-1.0, 1.0),
        "gp log_normal": (-0.9, 2.0),
        "gp laplace": (-1.2, 0.5),
        "gp gamma": (-1.1, 3.0),
    }
    fitted = [
        Contender(
            name,
            REGISTRY[name],
            left_out=SimpleNamespace(mean=rows.y + off, std=np.ones(100)),
            log_density=np.full(100, mean),
        )
        for name, (mean, off) in told.items()
    ]
    bases = [base.name for base, _ in bases_of(fitted, rows)]
    assert bases == ["gp log_normal", "gp", "gp laplace"]
    assert [base.name for base, _ in bases_of(fitted[:1], rows)] == ["gp"]


def grouped(seed=0, n=120):
    rng = np.random.default_rng(seed)
    shop = rng.integers(0, 15, n)
    x = rng.uniform(-2, 2, n)
    y = np.sin(2 * x) + rng.normal(0, 1.5, 15)[shop] + 0.3 * rng.normal(size=n)
    return pd.DataFrame({"price": x, "shop": [f"shop {i}" for i in shop]}), y


def test_groups_are_those_of_the_column_with_most_labels():
    table, _ = grouped()
    table["size"] = np.where(table["price"] > 0, "large", "small")
    table["id"] = [f"row {i}" for i in range(len(table))]
    assert column_of_groups(read_input(table)) == 1
    assert column_of_groups(read_input(table[["price", "size", "id"]])) is None


def test_effects_of_groups_are_chosen_where_there_are_some():
    table, y = grouped()
    names = ["gp", "gp, group effects", "constant"]
    model = AutoRegressor(candidates=names, random_state=0, calibrate=False).fit(table, y)
    assert model.weights_["gp, group effects"] > 0.7
    again = model.refit(table[:100], y[:100])
    assert again.weights_ == model.weights_
    plain, _ = grouped()
    alone = AutoRegressor(candidates=names, random_state=0, calibrate=False).fit(plain[["price"]], y)
    board = alone.leaderboard_.set_index("candidate")
    assert "no column has labels" in board.loc["gp, group effects", "why_left_out"]


def test_a_fit_that_was_cut_short_takes_no_place_of_a_better_trial():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 1)), rng.normal(size=80)
    table = read_input(X)
    rows = TrainingRows(table, X, y, y, np.ones(80), np.ones(80))
    search = Search(rows, judge=None, seed=0, clock=SearchTime(10.0))
    _, trial = contender("a", "one", -1.0)
    trial.log_density = trial.log_density[:30]
    _, cut = contender("a", "one", -1.5)
    _, whole = contender("a", "one", -0.5)
    assert search._says_less(cut, trial)
    assert not search._says_less(whole, trial)
    assert means_of_trials({"a": trial}, rows.weight)["a"] == trial.log_density.mean()


def test_the_last_larger_fit_that_could_be_made_is_kept(monkeypatch):
    X, y = np.zeros((8000, 1)), np.zeros(8000)
    rows = TrainingRows(read_input(X), X, y, y, np.ones(8000), np.ones(8000))
    search = Search(rows, judge=None, seed=0, clock=SearchTime(100.0))
    one, _ = contender("a", "one", -1.0)
    planned = iter([1000, 4000, 8000])
    monkeypatch.setattr(search.clock, "rows_in_time", lambda *_: next(planned))

    def fit(contender, rows):
        if len(rows) > 1000:
            contender.gain, contender.why_out = 7.0, "cannot be fitted: too large"
            return
        contender.model, contender.log_density, contender.seconds = "fit", -np.ones(len(rows)), 2.0

    monkeypatch.setattr(search, "_try", fit)
    search._fit_to_many(one, 1.0, 300)
    assert one.model == "fit"
    assert (one.is_in, one.why_out, one.gain) == (True, "", 0.0)
    assert (one.n_fitted, one.seconds) == (1000, 2.0)
    planned = iter([4000])
    none, _ = contender("a", "one", -1.0)
    search._fit_to_many(none, 1.0, 300)
    assert (none.is_in, none.why_out) == (False, "cannot be fitted: too large")


def test_more_rows_are_planned_only_into_time_that_a_fit_may_take():
    clock = SearchTime(10.0, figures=3.0, reserves=False)
    n = clock.rows_in_time(0.1, 300)  # for half of what is left for fits
    assert clock.expected(1.0, 0.1, n / 300) <= 0.5 * FIT_ENDS * clock.for_all
    assert clock.for_all == 7.0
