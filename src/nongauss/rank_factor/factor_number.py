"""How many factors a table holds: tests of factor models of the columns' normal scores.

Only ranks count, so an increasing map of a column changes nothing. A model of k factors says that the
correlations of the scores are A A' + diag(psi), A (P, k). It is refused while its likelihood ratio against
all correlations is too large for chance (Bartlett 1951; Lawley and Maxwell 1971, section 4.4), which sees
factors that stronger ones hide from an analysis of eigenvalues alone, or that against k + 1 factors, which
sees weak ones. Where cells are missing or values tied, chance is what tables made from the model show, with
the same gaps and ties. Of tables too wide for that the number is Horn's: eigenvalues above those of shuffled
columns (Horn 1965).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtri
from scipy.stats import chi2, gamma

from nongauss.rank_factor.data import FloatArray
from nongauss.tables.encoder import TableEncoder

MOST_ROWS = 3000
"""Rows by which the number is found, the first in canonical order."""
MOST_COLUMNS, ROWS_A_COLUMN = 120, 4
"""Columns up to which likelihood ratios are taken, and rows that each of them needs."""
MOST_CONTRASTS = 9
"""A label column counts by so many contrasts at most; with more it is left out."""
LEVEL = 0.01
"""Chance to find a factor too many, shared by two tests."""
N_MADE, FEW_MADE, N_SHUFFLED = 24, 6, 20
"""Tables made from a model with its gaps and ties, those that clear cases need, and shuffled tables."""
MADE_STEPS = 12
"""Steps to the model of such a table, from the one that it was made from."""
SOUGHT = 1.5
"""The mean gain of one factor too many, in units of P - k: 1.5 to 1.6 in made tables."""
CLEAR = 5.0
"""So many times as far as such tables is too far without more of them."""
LEAST_NOISE = 0.01
"""Smallest share of a score's variance that factors leave; correlations are lessened by as much."""


class FactorModel(NamedTuple):
    """Loadings A (P, k) and noise variances psi (P,) of the most likely model, and its likelihood ratio.

    `distance` is tr(C R^-1) - log |C R^-1| - P for its correlations R and those of the table, C.
    """

    loadings: FloatArray
    noise: FloatArray
    distance: float


class _Scores(NamedTuple):
    """Normal scores (N, P), 0 where missing; which are there (N, P); weights (N,); neither gaps nor ties?"""

    values: FloatArray
    known: FloatArray
    weight: FloatArray
    is_plain: bool

    @property
    def n_rows(self) -> float:
        """Rows a correlation rests on, on average over the pairs of columns."""
        both = (self.known.T * self.weight) @ self.known
        return float(both[np.triu_indices(len(both), 1)].mean())

    def correlations(self, values: FloatArray) -> FloatArray:
        """Correlations (P, P) of values (N, P) over rows where both cells are there; positive definite."""
        weighted = self.known.T * self.weight
        both = np.maximum(weighted @ self.known, 1e-12)
        held = values * self.known
        spread = np.sqrt((held.T**2 * self.weight) @ self.known / both)
        covariance = (held.T * self.weight) @ held / both
        found = (1.0 - LEAST_NOISE) * covariance / np.maximum(spread * spread.T, 1e-12)
        return _positive(found)


def number_of_factors(cells: FloatArray, weight: FloatArray, blocks: list[int], most: int, seed: int) -> int:
    """The number of factors, from 0 to `most`, that the normal scores of cells (N, P) call for.

    `cells` have NaN for gaps and are in an order that does not depend on the user's; `blocks` are the widths
    of the columns' blocks, 1 for a number and more for the 0/1 columns of labels.
    """
    rows = np.flatnonzero(weight > 0)[:MOST_ROWS]
    scores = _scores(cells[rows], weight[rows], blocks)
    n_columns = scores.values.shape[1]
    if n_columns < 2 or len(rows) < ROWS_A_COLUMN:
        return 0
    rng = np.random.default_rng(seed)
    if n_columns > MOST_COLUMNS or scores.n_rows < ROWS_A_COLUMN * n_columns:
        return min(most, _by_shuffling(rng, scores))
    most = min(most, _most_identified(n_columns))
    correlations = scores.correlations(scores.values)
    noise = None
    for k in range(most):
        model = most_likely(correlations, k, noise)
        if not _is_refused(rng, model, scores) and not _gains(rng, model, correlations, scores, most):
            return k
        noise = model.noise
    return most


def blocks_of(encoder: TableEncoder, view: str) -> list[int]:
    """Widths of the blocks of a view's columns ("rank_names", "one_hot_names"); 1 where there is none."""
    widths = [len(getattr(code, view)) for code in encoder.columns]
    return [width for width in widths if width] or [1]


def normal_scores(column: FloatArray, weight: FloatArray) -> FloatArray:
    """Phi^-1 of the middle of each cell's share of the weight, of variance 1: (N,); 0 where missing."""
    out = np.zeros(len(column))
    present = ~np.isnan(column)
    if not present.any():
        return out
    values, group = np.unique(column[present], return_inverse=True)
    mass = np.bincount(group, weights=weight[present])
    middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    score = ndtri(np.clip(middle, np.finfo(np.float64).tiny, 1.0 - np.finfo(np.float64).epsneg))
    share = mass / mass.sum()
    score = score - share @ score
    spread = np.sqrt(share @ score**2)
    out[present] = (score / spread if spread > 0 else score)[group] if len(values) > 1 else 0.0
    return out


def most_likely(
    correlations: FloatArray, k: int, noise: FloatArray | None = None, steps: int = 80
) -> FactorModel:
    """The factor model of k factors that is nearest to correlations C (P, P) by likelihood.

    With the noise psi given, the loadings follow from the eigenvalues theta_m of psi^-1/2 C psi^-1/2, and the
    distance is the sum over the P - k smallest of theta - log theta - 1, whose derivative by log psi_i is
    sum_m (1 - theta_m) omega_im^2 (Joreskog 1967). `noise`: where the search begins.
    """
    n_columns = len(correlations)
    if noise is None:
        inverse = np.linalg.inv(correlations + 0.01 * np.eye(n_columns))
        noise = np.clip(0.5 / np.diag(inverse), 2.0 * LEAST_NOISE, 0.99)
    if not k:
        return FactorModel(
            np.zeros((n_columns, 0)), np.ones(n_columns), -float(np.linalg.slogdet(correlations)[1])
        )
    n_left = n_columns - k

    def distance(log_noise: FloatArray) -> tuple[float, FloatArray]:
        """The distance and its gradient."""
        root = np.exp(-0.5 * log_noise)
        theta, omega = np.linalg.eigh(correlations * root * root[:, None])
        left = np.maximum(theta[:n_left], 1e-12)
        value = float((left - np.log(left) - 1.0).sum())
        return value, (omega[:, :n_left] ** 2) @ (1.0 - left)

    bounds = [(np.log(LEAST_NOISE), 0.0)] * n_columns
    found = minimize(
        distance, np.log(noise), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps}
    )
    root = np.exp(-0.5 * found.x)
    theta, omega = np.linalg.eigh(correlations * root * root[:, None])
    size = np.sqrt(np.maximum(theta[n_left:][::-1] - 1.0, 0.0))
    return FactorModel(omega[:, n_left:][:, ::-1] * size / root[:, None], np.exp(found.x), float(found.fun))


def _is_refused(rng: np.random.Generator, model: FactorModel, scores: _Scores) -> bool:
    """Is the model too far from the table for chance?

    (n - 1 - (2 P + 5) / 6 - 2 k / 3) times its distance is chi^2 with ((P - k)^2 - P - k) / 2 degrees of
    freedom (Bartlett). With gaps or ties tables made from the model tell its mean, and how much wider it is:
    correlations of pairs that are nearly singular have a long tail.
    """
    n_columns, k = model.loadings.shape
    freedom = 0.5 * ((n_columns - k) ** 2 - n_columns - k)
    rows = max(scores.n_rows - 1.0 - (2.0 * n_columns + 5.0) / 6.0 - 2.0 * k / 3.0, 1.0)
    found = rows * model.distance
    if scores.is_plain:
        return bool(found > chi2.ppf(1.0 - 0.5 * LEVEL, freedom))
    made = [rows * _made_distance(rng, model, scores) for _ in range(FEW_MADE)]
    if found > CLEAR * np.mean(made):
        return True
    made += [rows * _made_distance(rng, model, scores) for _ in range(N_MADE - FEW_MADE)]
    return bool(found > _bound(made, 0.5 * freedom))


def _gains(
    rng: np.random.Generator, model: FactorModel, correlations: FloatArray, scores: _Scores, most: int
) -> bool:
    """Does one factor more bring the model nearer to the table than chance would?

    A test against all correlations spreads over its many degrees of freedom what one weak factor tells. The
    best of all directions is sought, so the gain is no chi^2 with P - k degrees of freedom: tables made from
    the model show about a gamma of shape `SOUGHT` (P - k), whose mean they tell.
    """
    n_columns, k = model.loadings.shape
    if k + 1 > most:
        return False
    gain = model.distance - most_likely(correlations, k + 1, model.noise).distance
    made = []
    for _ in range(N_MADE):
        own = _made_correlations(rng, model, scores)
        own_noise = most_likely(own, k, model.noise, MADE_STEPS)
        made.append(own_noise.distance - most_likely(own, k + 1, own_noise.noise, MADE_STEPS).distance)
    return bool(gain > _bound(made, SOUGHT * (n_columns - k)))


def _bound(made: list[float], shape: float) -> float:
    """What chance exceeds with half of `LEVEL`: of a gamma of this shape at most, by made tables' moments."""
    mean = float(np.mean(made))
    shape = min(shape, mean**2 / max(float(np.var(made, ddof=1)), 1e-300))
    return mean * float(gamma.ppf(1.0 - 0.5 * LEVEL, shape)) / shape


def _made_distance(rng: np.random.Generator, model: FactorModel, scores: _Scores) -> float:
    """How far the model of as many factors is from a table made from `model` with the same gaps and ties."""
    correlations = _made_correlations(rng, model, scores)
    return most_likely(correlations, model.loadings.shape[1], model.noise, MADE_STEPS).distance


def _made_correlations(rng: np.random.Generator, model: FactorModel, scores: _Scores) -> FloatArray:
    """Correlations (P, P) of a table made from `model` with the same gaps and ties."""
    n_rows, n_columns = scores.values.shape
    k = model.loadings.shape[1]
    made = rng.standard_normal((n_rows, k)) @ model.loadings.T
    made += np.sqrt(model.noise) * rng.standard_normal((n_rows, n_columns))
    for j in range(n_columns):
        own = scores.known[:, j] > 0
        made[own, j] = np.sort(scores.values[own, j])[np.argsort(np.argsort(made[own, j]))]
    return scores.correlations(made)


def _most_identified(n_columns: int) -> int:
    """The most factors of P columns whose test has a degree of freedom: (P - k)^2 > P + k."""
    k = np.arange(n_columns)
    return int(((n_columns - k) ** 2 > n_columns + k).sum())


def _by_shuffling(rng: np.random.Generator, scores: _Scores) -> int:
    """Leading eigenvalues above nearly all those of tables whose columns are shuffled by themselves."""
    values = np.linalg.svd(scores.values, compute_uv=False) ** 2
    made = []
    for _ in range(N_SHUFFLED):
        shuffled = rng.permuted(scores.values, axis=0)
        made.append(np.linalg.svd(shuffled, compute_uv=False) ** 2)
    bound = np.quantile(made, 0.95, axis=0)
    return int(np.cumprod(values > bound).sum())


def _scores(cells: FloatArray, weight: FloatArray, blocks: list[int]) -> _Scores:
    """Normal scores of numbers and of two labels; of more labels uncorrelated contrasts."""
    values, known, at = [], [], 0
    is_plain = True
    for width in blocks:
        own = cells[:, at : at + width]
        at += width
        present = ~np.isnan(own[:, 0])
        if width == 1:
            score = normal_scores(own[:, 0], weight)
            is_tied = len(np.unique(own[present, 0])) < 0.8 * present.sum()
            columns = score[:, None] if score.any() else score[:, None][:, :0]
        elif width <= MOST_CONTRASTS + 1:
            columns, is_tied = _contrasts(own, present, weight), True
        else:
            continue
        values.append(columns)
        known.append(np.repeat(present[:, None], columns.shape[1], axis=1))
        is_plain &= bool(present.all()) and not is_tied
    if not values:
        return _Scores(np.zeros((len(cells), 0)), np.zeros((len(cells), 0)), weight, True)
    return _Scores(np.hstack(values), np.hstack(known).astype(np.float64), weight, is_plain)


def _contrasts(own: FloatArray, present: FloatArray, weight: FloatArray) -> FloatArray:
    """0/1 columns of labels (N, L) as uncorrelated columns of variance 1, L - 1 at most; 0 where missing."""
    share = np.where(present, weight, 0.0)
    share = share / max(share.sum(), 1e-300)
    filled = np.nan_to_num(own)
    centred = np.where(present[:, None], filled - share @ filled, 0.0)
    size, axes = np.linalg.eigh((centred * share[:, None]).T @ centred)
    kept = size > 1e-9
    found: FloatArray = centred @ (axes[:, kept] / np.sqrt(size[kept]))
    return found


def _positive(correlations: FloatArray) -> FloatArray:
    """Correlations (P, P) of pairs, which need not be those of any table, made positive definite."""
    np.fill_diagonal(correlations, 1.0)
    size, axes = np.linalg.eigh(correlations)
    if size[0] >= 1e-4:
        return correlations
    found = (axes * np.maximum(size, 1e-4)) @ axes.T
    root = np.sqrt(np.diag(found))
    scaled: FloatArray = found / root / root[:, None]
    return scaled
