"""Every solver and every way in which a run can end: one loop, so one table."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.optimize import rosen, rosen_der

from nongauss.core.device import key_from_seed, record, replace
from nongauss.core.records import value
from nongauss.core.seeds import generator_at, generator_state
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.compiled import compiled
from nongauss.optimise.course import NOBODY, Rule, Run, Status
from nongauss.optimise.lbfgs import lbfgs
from nongauss.optimise.loop import in_place, run
from nongauss.optimise.minibatch import Batch, Epoch, minibatch
from nongauss.tables.source import Stream

TARGET = np.array([1.0, -2.0, 3.0], np.float32)


@value
class Flaws:
    """The iteration (1, 2, ...) whose bound is no number, and the one whose bound falls."""

    nan_at: int = -1
    fall_at: int = -1

    def spoil(self, bound, number):
        """The bound of an iteration, spoilt if it is one of these."""
        xp = jnp if isinstance(bound, jax.Array) else np
        return xp.where(number == self.nan_at, xp.nan, xp.where(number == self.fall_at, -1e3, bound))


def on_host(flaws):
    def step(number, state):
        x = 0.5 * (state + TARGET)
        return x, {"bound": float(flaws.spoil(-np.sum((x - TARGET) ** 2), number + 1)), "first": float(x[0])}

    return step


class Walk:
    """A model that changes in place, and draws at random beside its climb."""

    def __init__(self, flaws):
        self.flaws, self.x, self.rng = flaws, np.zeros(3), np.random.default_rng(0)

    def epoch(self, number):
        self.x += 0.5 * (TARGET - self.x)
        bound = self.flaws.spoil(-np.sum((self.x - TARGET) ** 2), number + 1)
        return {"bound": float(bound), "draw": self.rng.normal()}

    def snapshot(self):
        return {"x": self.x.copy(), "rng": generator_state(self.rng)}

    def restore(self, at):
        self.x, self.rng = at["x"].copy(), generator_at(at["rng"])


@value
class Descent:
    """A compiled step that draws at random beside its climb, by the loop's key and by one in its state."""

    flaws: Flaws

    def __call__(self, key, state, rows):
        x, walk = 0.5 * (state["x"] + rows), jax.random.split(state["walk"], 1)[0]
        bound = self.flaws.spoil(-jnp.sum((x - rows) ** 2), state["count"] + 1)
        info = {"bound": bound, "draw": jax.random.normal(key), "other": jax.random.normal(walk)}
        return {"x": x, "count": state["count"] + 1, "walk": walk}, info


@record
class Learned:
    """What mini-batches change."""

    params: Any


@value
class Local:
    """Sums over rows of the distance to the rows, whose centre is found."""

    flaws: Flaws

    def __call__(self, key, params, batch):
        off = batch.data[0] - params["x"][None]
        bound = self.flaws.spoil(-jnp.sum(batch.weight[:, None] * off**2), params["count"] + 1)
        return {"bound": bound, "gradient": batch.weight @ off}


def towards(state, stats, scale):
    x = state.params["x"] + 0.5 * scale * stats["gradient"] / 40
    return replace(state, params={"x": x, "count": state.params["count"] + 1}), {"size": jnp.sum(x**2)}


def over_parts(flaws):
    rows = TARGET + np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    parts = [Batch((rows[a : a + 20],), np.ones(20, np.float32)) for a in (0, 20)]
    return minibatch(Epoch(Local(flaws), towards, None), Stream(parts), 40)


def hill(x):
    return -rosen(x), -rosen_der(x), 7.0 - rosen(x)


class Solver(NamedTuple):
    """How to make a fresh step or adapter with flaws, the state to begin with, and the key."""

    make: Callable[[Flaws], Any]
    state: Any
    key: Any = None


KEY = key_from_seed(0)
SOLVERS = {
    "on_host": Solver(on_host, np.zeros(3)),
    "in_place": Solver(lambda flaws: in_place(Walk(flaws)), None),
    "compiled": Solver(
        lambda flaws: compiled(Descent(flaws), TARGET, air_seconds=0.0),
        {"x": np.zeros(3, np.float32), "count": np.int32(0), "walk": key_from_seed(5)},
        KEY,
    ),
    "compiled_chunks": Solver(
        lambda flaws: compiled(Descent(flaws), TARGET, air_seconds=100.0),
        {"x": np.zeros(3, np.float32), "count": np.int32(0), "walk": key_from_seed(5)},
        KEY,
    ),
    "minibatch": Solver(over_parts, Learned({"x": np.zeros(3, np.float32), "count": np.int32(0)}), KEY),
    "lbfgs": Solver(lambda flaws: lbfgs(hill, [(None, None)] * 2), np.array([-1.2, 1.0])),
}
ALL = pytest.mark.parametrize("name", SOLVERS)
FLAWED = pytest.mark.parametrize("name", [name for name in SOLVERS if name != "lbfgs"])
EACH = pytest.mark.parametrize("name", [name for name in SOLVERS if name != "compiled_chunks"])
"""Solvers that come up for air after each iteration."""


SOUND = Flaws()


def fit(name, rule, flaws=SOUND, watching=NOBODY, former=None):
    solver = SOLVERS[name]
    state = solver.state if former is None else former.state
    return run(solver.make(flaws), state, watching, rule, name="climb", key=solver.key, former=former)


def rising(most=200):
    return Rule(most, lambda objective: 1e-5)


def leaves(state):
    keys = lambda leaf: hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)  # noqa: E731
    return [np.asarray(jax.random.key_data(leaf) if keys(leaf) else leaf) for leaf in jax.tree.leaves(state)]


def figures(result):
    return [{name: number for name, number in row.items() if name != "seconds"} for row in result.trace]


def assert_same(one, other):
    """The same state, trace and end, to the bit."""
    assert (one.status, one.n_iter) == (other.status, other.n_iter)
    assert figures(one) == figures(other)
    for mine, its in zip(leaves(one.state), leaves(other.state), strict=True):
        assert_array_equal(mine, its)


def at(iteration, what):
    """A callback that does something at one iteration, and hears of all of them."""

    def callback(progress):
        callback.heard.append(progress.iteration)
        return what() if progress.iteration == iteration else None

    callback.heard = []
    return callback


def interrupt():
    raise KeyboardInterrupt


def crash():
    raise RuntimeError("The process is gone.")


@ALL
def test_it_converges_at_the_first_iteration_that_gains_too_little(name):
    result = fit(name, rising())
    objectives = [row["objective"] for row in result.trace]
    assert result.status is Status.CONVERGED
    assert [row["iteration"] for row in result.trace] == list(range(1, result.n_iter + 1))
    assert (np.diff(objectives)[:-1] > 1e-5).all() or name == "lbfgs"
    assert 0.0 <= objectives[-1] - objectives[-2] <= 1e-5
    assert (np.diff([row["seconds"] for row in result.trace]) >= 0.0).all()


@FLAWED
def test_patience_takes_the_gain_of_several_iterations_together(name):
    short, long = fit(name, rising()), fit(name, Rule(200, lambda _: 1e-5, 6))
    objectives = [row["objective"] for row in long.trace]
    assert long.status is Status.CONVERGED
    assert long.n_iter > short.n_iter
    assert objectives[-1] - objectives[-7] <= 1e-5 < objectives[-2] - objectives[-8]


@ALL
def test_a_schedule_is_completed_and_a_rule_that_runs_out_is_not(name):
    assert (fit(name, Rule(5)).status, fit(name, Rule(5)).n_iter) == (Status.COMPLETED, 5)
    result = fit(name, rising(5))
    assert (result.status, result.n_iter, len(result.trace)) == (Status.MAX_ITER, 5, 5)


@FLAWED
@pytest.mark.parametrize("number", [1, 2, 6])
def test_an_iteration_that_is_not_finite_is_not_kept(name, number):
    result = fit(name, Rule(9), Flaws(nan_at=number))
    assert result.status is Status.NONFINITE
    assert result.n_iter == len(result.trace) == number - 1
    if number > 1:
        before = fit(name, Rule(number - 1))
        for mine, its in zip(leaves(result.state), leaves(before.state), strict=True):
            assert_array_equal(mine, its)


@FLAWED
def test_an_objective_that_cannot_fall_ends_the_run_at_the_state_before(name):
    result, before = fit(name, Rule(9, rises=True), Flaws(fall_at=6)), fit(name, Rule(5))
    assert (result.status, result.n_iter) == (Status.BOUND_DECREASED, 5)
    assert_same(result, dataclasses.replace(before, status=result.status))


@FLAWED
def test_after_a_fall_nothing_is_converged_and_the_best_state_is_the_result(name):
    result, best = fit(name, rising(6), Flaws(fall_at=6)), fit(name, Rule(5))
    assert (result.status, result.n_iter) == (Status.MAX_ITER, 6)
    for mine, its in zip(leaves(result.state), leaves(best.state), strict=True):
        assert_array_equal(mine, its)
    last = fit(name, Rule(6), Flaws(fall_at=6))  # of a schedule the objective is a figure among others
    assert not all(map(np.array_equal, leaves(last.state), leaves(best.state)))


def test_an_objective_that_stays_where_it_fell_to_has_not_converged():
    bounds = [-9.0, -5.0, -7.0, -7.0, -7.0]
    result = run(
        lambda n, state: (n + 1, {"bound": bounds[n]}), 0, Run(), Rule(5, lambda _: 1.0), name="climb"
    )
    assert (result.status, result.state, result.n_iter) == (Status.MAX_ITER, 2, 5)


@EACH
@pytest.mark.parametrize("how", [lambda: True, interrupt], ids=["asked", "ctrl_c"])
@pytest.mark.parametrize("numbers", [(1, 6), pytest.param(range(1, 12), marks=pytest.mark.gate)])
def test_a_run_that_is_stopped_at_any_iteration_goes_on_to_the_same_bits(name, how, numbers, tmp_path):
    whole = fit(name, rising(12))
    for number in numbers:
        path, callback = tmp_path / f"{number}", at(number, how)
        stopped = fit(name, rising(12), watching=Run((callback,), Checkpoint(path, "a")))
        assert (stopped.status, stopped.n_iter) == (Status.STOPPED, number)
        assert figures(stopped) == figures(whole)[:number]
        listener = at(-1, interrupt)
        resumed = fit(name, rising(12), watching=Run((listener,), Checkpoint(path, "a")))
        assert_same(resumed, whole)
        assert callback.heard + listener.heard == list(range(1, 13))


@EACH
def test_a_run_that_was_killed_goes_on_to_the_same_bits(name, tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    whole, path = fit(name, rising(12)), tmp_path / "fit"
    with pytest.raises(RuntimeError):
        fit(name, rising(12), watching=Run((at(7, crash),), Checkpoint(path, "a")))
    listener = at(-1, interrupt)
    assert_same(fit(name, rising(12), watching=Run((listener,), Checkpoint(path, "a"))), whole)
    assert listener.heard == list(range(7, 13))


@ALL
def test_a_run_that_came_to_its_end_is_answered_from_the_file(name, tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    whole = fit(name, rising(), watching=Run((), Checkpoint(tmp_path / "fit", "a")))
    listener = at(-1, interrupt)
    again = fit(name, rising(), watching=Run((listener,), Checkpoint(tmp_path / "fit", "a")))
    assert_same(again, whole)
    assert listener.heard == []


@FLAWED
def test_the_best_state_is_kept_in_the_file_too(name, tmp_path):
    rule, flaws = rising(5), Flaws(fall_at=4)
    stop, path = at(4, lambda: True), tmp_path / "fit"
    if name != "compiled_chunks":
        stopped = fit(name, rule, flaws, Run((stop,), Checkpoint(path, "a")))
        assert_array_equal(leaves(stopped.state)[0], leaves(fit(name, Rule(3)).state)[0])
        assert_same(fit(name, rule, flaws, Run((), Checkpoint(path, "a"))), fit(name, rule, flaws))


@ALL
def test_ctrl_c_before_the_first_iteration_is_an_error(name, monkeypatch):
    solver = SOLVERS[name]
    step = solver.make(Flaws())
    if hasattr(step, "drive"):
        monkeypatch.setattr(step, "drive", lambda course: interrupt())
    else:
        step = lambda number, state: interrupt()  # noqa: E731
    with pytest.raises(KeyboardInterrupt):
        run(step, solver.state, Run(), Rule(3), name="climb", key=solver.key)


@ALL
def test_a_former_result_is_continued(name):
    if name == "lbfgs":  # whose memory of the curvature is a new one
        first = fit(name, rising(5))
        second = fit(name, rising(), former=first)
        assert second.trace[:5] == first.trace
        assert [row["iteration"] for row in second.trace] == list(range(1, second.n_iter + 1))
        return
    first = fit(name, Rule(5))
    second, whole = fit(name, Rule(4), former=first), fit(name, Rule(9))
    assert [row["iteration"] for row in second.trace] == list(range(1, 10))
    assert [row["bound"] for row in second.trace] == [row["bound"] for row in whole.trace]
    assert second.trace[4]["seconds"] <= second.trace[5]["seconds"]


@ALL
def test_everyone_is_told_even_where_the_first_asks_to_stop(name):
    first, second = at(3, lambda: True), at(-1, interrupt)
    if name == "compiled_chunks":
        first = at(1, lambda: True)
    result = fit(name, Rule(9), watching=Run((first, second)))
    assert result.status is Status.STOPPED
    assert first.heard == second.heard


@ALL
def test_a_callback_that_stops_the_last_iteration_leaves_nothing_to_go_on_with(name):
    n_iter = fit(name, rising()).n_iter
    assert fit(name, rising(), watching=Run((at(n_iter, lambda: True),))).status is Status.CONVERGED


@ALL
def test_verbose_says_how_it_ended(name, capsys):
    fit(name, Rule(3), watching=Run(verbose=1))
    assert capsys.readouterr().out.endswith(f"iteration 3: {Status.COMPLETED.value}\n")


def test_chunks_and_single_iterations_are_the_same_bits():
    for rule, flaws in [(rising(), Flaws()), (Rule(40), Flaws()), (Rule(40, rises=True), Flaws(fall_at=17))]:
        assert_same(fit("compiled", rule, flaws), fit("compiled_chunks", rule, flaws))


def test_a_number_beside_the_bound_must_be_finite_too():
    infos = [{"bound": 1.0}, {"bound": 2.0, "other": math.inf}]
    result = run(lambda n, state: (n + 1, infos[n]), 0, Run(), Rule(9), name="climb")
    assert (result.status, result.state, result.n_iter) == (Status.NONFINITE, 1, 1)
