"""Rank factors of a table in parts: levels that all rows tell, and sweeps that are sums over its parts.

The rank of a cell depends on all others of its column, but only through the levels. A random sample of the
rows cuts each column into many fine cells; one pass tells how much weight each of them has in the whole
table, its least and its largest value, which add up over parts; fine cells make levels as values do in
memory.

Variational Bayes then starts from the fit to the sample. In a pass each part gives, as a function of loadings
and levels alone, its rows' factors at their fixed point and the sums (`CellSums`) that loadings follow from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray

from nongauss.optimise import loop
from nongauss.optimise.course import FitResult, Rule, Run, Status
from nongauss.rank_factor import svm_mixture
from nongauss.rank_factor.config import RankConfig, RankRecipe, ShrinkagePrior
from nongauss.rank_factor.data import (
    CellCoding,
    CodedTable,
    FloatArray,
    Levels,
    RankRows,
    grouped,
    neighbours_of,
    one_against_rest,
)
from nongauss.rank_factor.fit import calibrated, summary, variational
from nongauss.rank_factor.inference import VariationalBayes
from nongauss.rank_factor.objective import factor_divergence
from nongauss.rank_factor.params import (
    Experts,
    NeighbourScores,
    Normal,
    RankState,
    Shrinkage,
    System,
    solve,
)
from nongauss.rank_factor.predict import N_STEPS, FittedFactors, in_order
from nongauss.rank_factor.rank_likelihood import (
    CellSums,
    LoadingMoments,
    cell_sums,
    expected_quadratics,
    with_prior,
    z_system,
)
from nongauss.rank_factor.reading import PartRows
from nongauss.rank_factor.start import cell_type, problem_of
from nongauss.rank_factor.updates import (
    coefficient_shrinkage,
    label_system,
    level_loadings,
)
from nongauss.tables.source import Source, added

PASSES = 3
"""Passes over all rows after the fit to the sample.

The level rule is no density: sweeps end where their bound settles, and more of them take loadings away from
the truth, in memory too.
"""

FINE = 256
"""Values of the sample that a column is cut at; each level is of equal weight to within half a fine cell."""


# ------------------------------------------------------------- levels of all rows


@dataclass(frozen=True, eq=False)
class FineCells:
    """Weight, least and largest value of each fine cell of a column, (D, 2 F + 1) each. They add up.

    Cell 2 j is between the cuts j - 1 and j, cell 2 j + 1 is the value of cut j.
    """

    mass: Float64[np.ndarray, "D cells"]
    low: Float64[np.ndarray, "D cells"]
    high: Float64[np.ndarray, "D cells"]

    def __add__(self, other: FineCells) -> FineCells:
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return FineCells(self.mass + other.mass, low, high)


def fine_cuts(cells: FloatArray) -> list[FloatArray]:
    """Values of each column of a sample (n, D) at which it is cut: all of them, or F quantiles."""
    cuts = []
    for column in cells.T:
        values = np.unique(column[~np.isnan(column)])
        if len(values) > FINE:
            present, levels = column[~np.isnan(column)], (np.arange(FINE) + 0.5) / FINE
            values = np.unique(np.quantile(present, levels, method="lower"))
        cuts.append(values)
    return cuts


def fine_cells(part: PartRows, cuts: list[FloatArray]) -> FineCells:
    """The fine cells of a part."""
    D, size = len(cuts), 2 * max(map(len, cuts)) + 1
    mass, low, high = np.zeros((D, size)), np.full((D, size), np.inf), np.full((D, size), -np.inf)
    for i, cut in enumerate(cuts):
        x = part.cells[:, i]
        present = ~np.isnan(x)
        x, weight = x[present], part.weight[present]
        at = np.searchsorted(cut, x)
        is_cut = (at < len(cut)) & (cut[np.minimum(at, len(cut) - 1)] == x) if len(cut) else at > 0
        place = 2 * at + is_cut
        mass[i] = np.bincount(place, weights=weight, minlength=size)
        np.minimum.at(low[i], place, x)
        np.maximum.at(high[i], place, x)
    return FineCells(mass, low, high)


def levels_of_parts(parts: Source, sample: FloatArray, n_levels: int) -> Levels:
    """Levels of about equal weight in all rows, from a sample's cells (n, D) and one pass."""
    found: FineCells = parts.sum(fine_cells, fine_cuts(sample))
    ends = []
    for mass, low, high in zip(found.mass, found.low, found.high, strict=True):
        there = mass > 0
        ends.append(grouped(low[there], high[there], mass[there], n_levels))
    return Levels.of_ends(ends)


# ------------------------------------------------------------- sweeps over parts


class PartedState(NamedTuple):
    """Where the passes stand: all that the factors of a row depend on.

    `factor`: what makes their mean square 1, as in a sweep; half its step in logs, or it swings.
    """

    A: Normal
    shrink: Shrinkage
    scale: NeighbourScores
    experts: Experts
    factor: float


class PassSums(NamedTuple):
    """Sums over rows: of cells at factors that know the labels, of z'z / K and the weight, the loss (B1) of
    cells, the divergence (B2) of factors, and the system of the coefficients without its prior."""

    cells: CellSums
    square: float
    weight: float
    loss: float
    divergence: float
    beta: tuple[FloatArray, FloatArray]


def settled_factors(
    rows: RankRows, loadings: LoadingMoments, config: RankConfig, factor: float
) -> tuple[Normal, Any, System]:
    """q(z) of rows at the fixed point of a sweep, whose cells see factors `factor` times as large: (B, K).

    Also the cells' quadratics, and the rows' systems, by which it was found.
    """
    n_rows, K = rows.shape[0], config.n_factors
    z = Normal(np.zeros((n_rows, K)), np.tile(np.eye(K), (n_rows, 1, 1)))
    prior = np.ones(n_rows), np.zeros((n_rows, K))
    for _ in range(N_STEPS):
        at = expected_quadratics(_times(z, factor), loadings, rows, config)
        system = with_prior(z_system(at, loadings), prior)
        z = solve(*system)
    return z, at, system


def _times(z: Normal, factor: float) -> Normal:
    """Factors on another scale."""
    return Normal(z.mean * factor, z.covariance * factor**2)


def pass_sums(
    part: PartRows,
    state: PartedState,
    levels: Levels,
    loadings: LoadingMoments,
    config: RankConfig,
    prior: ShrinkagePrior,
) -> PassSums | None:
    """What the rows of a part say of the next loadings; None of a part without rows."""
    found: PassSums | None = None
    inference = VariationalBayes(loadings.mean.dtype)
    codes = levels.codes(part.cells)
    rows = RankRows(neighbours_of(codes, levels.counts), None, codes)
    for at_once in rows.blocks():
        block, weight = rows.take(at_once), part.weight[at_once]
        if not len(weight):
            continue
        free, at, system = settled_factors(block, loadings, config, state.factor)
        seen = _times(free, state.factor)
        joint, beta = free, (np.zeros(0), np.zeros(0))
        if config.n_outputs:
            y = one_against_rest(part.numbers[at_once], config.n_outputs)
            one = np.ones((len(weight), 1))
            told = label_system(state.experts, seen, y, one, inference)
            joint = solve(system[0] + told[0], system[1] + told[1])
            g = inference.label_weights(*svm_mixture.margins(state.experts, seen, y))
            beta = svm_mixture.beta_sums(seen, g, one, y, weight)
        own = PassSums(
            cell_sums(at, joint, block, weight, state.scale.lower.shape[1]),
            float((weight @ free.squares).mean()),
            float(weight.sum()),
            float(weight @ at.loss),
            factor_divergence(seen, weight),
            beta,
        )
        found = added(found, own)
    return found


def next_state(
    state: PartedState, sums: PassSums, config: RankConfig, dtype: Any
) -> tuple[PartedState, dict[str, float]]:
    """The state after a pass: loadings and levels' scores, their shrinkage, coefficients."""
    inference = VariationalBayes(dtype)
    factor = float(np.sqrt(sums.weight / sums.square))
    A, scale = level_loadings(sums.cells.rescaled(factor), state.shrink.precision, config, inference)
    shrink = inference.shrink(state.shrink, A, config.prior)
    experts = state.experts
    if config.n_outputs:
        beta = inference.normal(svm_mixture.with_coefficient_prior(sums.beta, experts, config.prior))
        shrink_of_beta = coefficient_shrinkage(inference, experts, beta, config.prior)
        experts = Experts(beta, shrink_of_beta, None)
    bound = -sums.loss - sums.divergence
    info = {"bound": bound, "scale": float(np.abs(A.mean).mean())}
    return PartedState(A, shrink, scale, experts, float(np.sqrt(factor * state.factor))), info


def fit_parts(
    table: CodedTable, parts: Source, config: RankConfig, recipe: RankRecipe, run: Run
) -> tuple[FitResult, FittedFactors]:
    """Fit to a sample, then passes over all rows from there.

    `table`: the sample, coded by the levels of all rows.
    """
    problem = problem_of(table, config, recipe)
    found = variational(problem, Run(checkpoint=run.checkpoint, verbose=run.verbose))
    if found.result.status is Status.STOPPED:
        raise KeyboardInterrupt
    curve = calibrated(found, problem) if config.n_outputs else None
    levels, dtype = table.coding.levels, cell_type(table.rows)
    assert levels is not None
    first: RankState = found.result.state
    state = PartedState(first.A, first.shrink, first.scale, first.experts, 1.0)

    def step(number: int, now: PartedState) -> tuple[PartedState, dict[str, float]]:
        """One pass over all rows."""
        loadings = VariationalBayes(dtype).loading_moments(now.A, now.scale)
        sums: PassSums = parts.sum(pass_sums, now, levels, loadings, config, config.prior)
        return next_state(now, sums, config, dtype)

    result = loop.run(
        step,
        state,
        run,
        Rule(PASSES),
        name="variational Bayes of all rows",
    )
    end: PartedState = result.state
    draw = summary(RankState(end.A, end.shrink, first.z, end.scale, end.experts))
    cells = np.dtype(dtype).name
    draws = (in_order(draw),)
    coding: CellCoding = table.coding
    none: NDArray[np.float64] = np.zeros((0, 0, 0))
    fitted = FittedFactors(coding, config, draws, np.zeros(1, np.intp), none, curve, cells)
    return replace(result, state=None), fitted
