"""The order of a fit: start, sweeps or training for prediction, calibration, factors in one order."""

from __future__ import annotations

from collections.abc import ItemsView
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from nongauss.core.records import leaves_of, rebuilt
from nongauss.optimise import loop
from nongauss.optimise.course import FitResult, Rule, Run, Status
from nongauss.rank_factor.calibration import calibrate, chosen_rows, judged
from nongauss.rank_factor.chains import watched_numbers
from nongauss.rank_factor.config import RankConfig, RankRecipe
from nongauss.rank_factor.data import CodedTable, FloatArray, n_levels_of
from nongauss.rank_factor.inference import Gibbs, VariationalBayes
from nongauss.rank_factor.params import (
    RankState,
    varimax,
)
from nongauss.rank_factor.predict import (
    FittedFactors,
    OutputCalibration,
    PosteriorDraw,
    canonical_order,
    in_order,
    rotated,
    rotation_to,
)
from nongauss.rank_factor.rank_likelihood import level_scores, mean_by_level
from nongauss.rank_factor.start import (
    FactorOutcome,
    Problem,
    cell_type,
    first_state,
    problem_of,
    settled,
    sweep_of,
    warm,
)

WORD = (1 << 64) - 1


class GibbsChain(NamedTuple):
    """Where a chain stands, all that a sweep depends on: the model, the generator's words, what was kept.

    draws: the leaves of kept draws by their path in a `PosteriorDraw`, (S, ...) each; watched (T, n): a few
    numbers of every sweep after the first half.
    """

    model: RankState
    random: NDArray[np.uint64]
    draws: dict[str, np.ndarray]
    watched: FloatArray


def fit(
    table: CodedTable, config: RankConfig, recipe: RankRecipe, run: Run
) -> tuple[FitResult, FittedFactors]:
    """Fit to coded rows in canonical order."""
    problem = problem_of(table, config, recipe)
    curve: OutputCalibration | None = None
    if recipe.inference == "predictive":
        from nongauss.rank_factor import trained_factors  # which loads JAX

        found, curve = trained_factors.fit(problem, run)
    else:
        found = (variational if recipe.inference == "vb" else _gibbs)(problem, run)
        curve = calibrated(found, problem) if config.n_outputs else None
    kept = found.draws if recipe.inference == "gibbs" else [in_order(draw) for draw in found.draws]
    cells = np.dtype(cell_type(table.rows)).name
    fitted = FittedFactors(table.coding, config, tuple(kept), found.chain, found.watched, curve, cells)
    return found.result, fitted


def calibrated(found: FactorOutcome, problem: Problem) -> OutputCalibration:
    """The classifier's curves, by rows held out."""
    rows, labels, config, recipe = problem
    chosen = chosen_rows(len(labels.weight), recipe.seed)
    f = judged(found.result.state, found.draws, rows, labels, config, cell_type(rows), chosen)
    return calibrate(f, labels.y[chosen], labels.weight[chosen])


def _compared(state: RankState, problem: Problem) -> RankState:
    """The state with what new rows are compared with: of pairs, mean factors of groups of equal values."""
    rows, labels, config, _ = problem
    if not config.is_pairwise:
        return state
    assert rows.codes is not None
    means = mean_by_level(rows.codes, state.z.mean, labels.weight, n_levels_of(rows.codes))
    return state._replace(scale=level_scores(state.A, means))


def summary(state: RankState) -> PosteriorDraw:
    """The variational posterior, as a prediction needs it."""
    A, scale, beta = state.A, state.scale, state.experts.beta
    levels = scale.lower, scale.upper, scale.noise, scale.means
    return PosteriorDraw(A.mean, A.covariance, *levels, beta.mean, beta.covariance, state.experts.gate)


def drawn(state: RankState) -> PosteriorDraw:
    """A draw of the posterior, its loadings in 32 bits: there are many of them."""
    scale = state.scale
    A, lower, upper = (part.astype(np.float32) for part in (state.A.mean, scale.lower, scale.upper))
    beta, gate = state.experts.beta.mean, state.experts.gate
    return PosteriorDraw(A, None, lower, upper, scale.noise, None, beta, None, gate)


def variational(problem: Problem, run: Run) -> FactorOutcome:
    """Variational Bayes to convergence."""
    rows, labels, config, recipe = problem
    one_sweep, inference = sweep_of(problem), VariationalBayes(cell_type(rows))
    result = loop.run(
        lambda number, state: one_sweep(state, inference),
        first_state(np.random.default_rng(recipe.seed), rows, labels, config),
        run,
        # The sweeps draw hinge and ranks in turn: their bound settles, and need not rise on the way.
        Rule(recipe.max_iter, lambda bound: recipe.tol * max(1.0, abs(bound)), climbs=False),
        name="variational Bayes",
    )
    result = replace(result, state=_compared(result.state, problem))
    return FactorOutcome(result, [summary(result.state)])


def _gibbs(problem: Problem, run: Run) -> FactorOutcome:
    """Several chains, each from a start of its own; the second half of each is kept, thinned.

    They run on whatever backend joblib was told, all at once, with the same result; by default, and where
    somebody watches or the fit is kept in a file, one after the other.
    """
    reference = _reference(problem)
    alone = bool(run.callbacks) or run.checkpoint is not None
    chains = Parallel(n_jobs=1 if alone else None, return_as="generator")(
        delayed(_chain)(number, problem, reference, run) for number in range(problem.recipe.n_chains)
    )
    draws: list[PosteriorDraw] = []
    chain: list[int] = []
    trace: list[dict[str, float]] = []
    watched = []
    result: FitResult | None = None
    for number, (result, kept, numbers) in enumerate(chains):
        draws += kept
        chain += [number] * len(kept)
        watched.append(numbers)
        before = trace[-1]["seconds"] if trace else 0.0
        trace += [row | {"seconds": before + row["seconds"]} for row in result.trace]
        if result.status is not Status.COMPLETED:
            break
    assert result is not None
    shortest = min(len(each) for each in watched)
    numbers_kept = np.array([each[:shortest] for each in watched]) if shortest else np.zeros((0, 0, 0))
    return FactorOutcome(replace(result, trace=trace), draws, np.array(chain), numbers_kept)


def _reference(problem: Problem) -> FloatArray:
    """Loadings (D, K) to which draws of all chains are turned: a few sweeps of vb, then varimax."""
    rows, labels, config, recipe = problem
    state = first_state(np.random.default_rng(recipe.seed), rows, labels, config)
    A = settled(sweep_of(problem), state, cell_type(rows)).A.mean
    simple = A @ varimax(A)
    order, sign = canonical_order(simple)
    found: FloatArray = simple[:, order] * sign
    return found


def _chain(
    number: int, problem: Problem, reference: FloatArray, run: Run
) -> tuple[FitResult, list[PosteriorDraw], FloatArray]:
    """One chain, its iterations counted after those of the chains before it: draws, numbers to watch."""
    rows, labels, config, recipe = problem
    one_sweep, before = sweep_of(problem), number * recipe.max_iter
    rng = np.random.default_rng([recipe.seed, number])
    model = warm(rng, one_sweep, first_state(rng, rows, labels, config), cell_type(rows))
    like = _compared(model, problem)
    none = {path: np.zeros((0, *np.shape(leaf)), np.asarray(leaf).dtype) for path, leaf in _leaves(like)}

    def step(sweeps: int, chain: GibbsChain) -> tuple[GibbsChain, dict[str, float]]:
        """One sweep; `sweeps` counts those of all chains before it."""
        rng = _generator(chain.random)
        model, info = one_sweep(chain.model, Gibbs(rng, cell_type(rows)))
        moved = chain._replace(model=model, random=_words(rng))
        return _kept(moved, info["bound"], sweeps - before + 1, problem, reference), info

    result = loop.run(
        step,
        GibbsChain(model, _words(rng), none, np.zeros((0, 0))),
        run,
        Rule(recipe.max_iter),
        name=f"chain {number}",
        former=FitResult(None, [], Status.COMPLETED, before),
        expected=recipe.n_chains * recipe.max_iter,
    )
    end: GibbsChain = result.state
    model = _compared(end.model, problem)
    kept = [
        rebuilt(drawn(model), {path: leaf[s][()] for path, leaf in end.draws.items()})
        for s in range(len(end.draws[".A"]))
    ]
    return replace(result, state=model), kept or [drawn(model)], end.watched


def _kept(chain: GibbsChain, bound: float, done: int, problem: Problem, reference: FloatArray) -> GibbsChain:
    """The chain after `done` sweeps with what is kept of the last one: nothing in its first half.

    Chains turn their factors, which the likelihood does not tell apart. What is kept is turned to lie next to
    a reference that is the same for all chains (Assmann, Boysen-Hogrefe and Pape 2016).
    """
    recipe, model = problem.recipe, chain.model
    n_burn = recipe.max_iter // 2
    if done <= n_burn:
        return chain
    rotation = rotation_to(model.A.mean, reference)
    numbers = watched_numbers(model, rotation, bound)
    watched = np.concatenate([chain.watched, numbers]) if len(chain.watched) else numbers
    past, total = done - n_burn, recipe.max_iter - n_burn
    n_kept = min(total, -(-recipe.n_draws // recipe.n_chains))
    draws = chain.draws
    if past * n_kept // total > (past - 1) * n_kept // total:
        leaves = leaves_of(rotated(drawn(_compared(model, problem)), rotation)).items()
        draws = {path: np.concatenate([draws[path], np.asarray(leaf)[None]]) for path, leaf in leaves}
    return chain._replace(draws=draws, watched=watched)


def _leaves(model: RankState) -> ItemsView[str, Any]:
    """The arrays and numbers of the draw that a model is, by their path."""
    return leaves_of(drawn(model)).items()


def _words(rng: np.random.Generator) -> NDArray[np.uint64]:
    """The state of a PCG64 generator as six words: state and increment (128 bits each), half a word left."""
    now = rng.bit_generator.state
    long = [now["state"][name] >> shift & WORD for name in ("state", "inc") for shift in (64, 0)]
    return np.array([*long, now["has_uint32"], now["uinteger"]], np.uint64)


def _generator(words: NDArray[np.uint64]) -> np.random.Generator:
    """The generator with that state."""
    high, low, high_step, low_step, has_half, half = map(int, words)
    bits = np.random.PCG64(0)
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": high_step << 64 | low_step},
        "has_uint32": has_half,
        "uinteger": half,
    }
    return np.random.Generator(bits)
