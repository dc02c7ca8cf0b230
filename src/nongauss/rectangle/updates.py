"""How it moves: where EM begins, one iteration of all starts, which lowers the objective of none."""

from __future__ import annotations

import warnings

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

from nongauss.rectangle.config import LIKELIHOOD
from nongauss.rectangle.data import FloatArray, IntArray, RectangleRows
from nongauss.rectangle.gaps import each_row, of_seen, row_blocks
from nongauss.rectangle.objective import (
    LEAST_VARIANCE,
    LEVEL_COUNT,
    EMProblem,
    expected,
    log_density,
    log_inside,
    penalised,
    posterior,
    prior_count,
    prior_variance,
)
from nongauss.rectangle.params import REACH, BoxPrior, ClusterStructure, RectangleParams, SoftBoxes


def update_structure(
    rows: RectangleRows,
    share: Float[np.ndarray, "S K N"],
    t_weight: Float[np.ndarray, "S K N"],
    former: ClusterStructure,
    kind: str,
) -> ClusterStructure:
    """The parameters that maximise the expected log density plus log prior, given shares of rows (S, K, N).

    `share` holds the rows' own weights, `t_weight` those of Student's t. `former` is where cells that are
    missing take their expectations from.
    """
    if kind == "diagonal":
        mean, scatter = _independent(rows, share, former)
        return ClusterStructure(
            mean, _regular(scatter, share.sum(axis=-1), rows.spread, kind), _levels(rows, share)
        )
    S, K, P = former.mean.shape
    # m = sum r u E[y] / sum r u
    # Sigma = (sum r u [(E[y]-m)(E[y]-m)' + A H A'] + sum r Cov[y_gone|y_seen] + v I) / (sum r + c), eq. 10
    # with the prior; H = diag(grain) of the row's columns seen, A takes these to all
    share_t = share * t_weight
    total = share_t.sum(axis=-1)
    first, second, spread = np.zeros((S, K, P)), np.zeros((S, K, P, P)), np.zeros((S, K, P, P))
    for seen, part, which in row_blocks(rows.gap_patterns, S * K):
        across, rest = _from_seen(former.scatter, seen)
        own, own_t = share[..., part], share_t[..., part]
        of_pattern = np.eye(len(seen))[which]
        if kind != LIKELIHOOD:
            grain = of_pattern.T @ (own_t[..., None] * (seen[which] * rows.grain[part]))
            within = (across * grain[..., None, :]) @ np.swapaxes(across, -1, -2)
            second += within.sum(axis=2)
        values = _filled(rows.Y[part], seen, which, across, former.mean)
        weighted = values * own_t[..., None]
        first += weighted.sum(axis=-2)
        second += np.swapaxes(weighted, -1, -2) @ values
        spread += np.einsum("skg,skgpq->skpq", own @ of_pattern, rest)
    mean = first / np.maximum(total, 1e-12)[..., None]
    scatter = second - total[..., None, None] * _outer(mean) + spread
    return ClusterStructure(
        mean, _regular(scatter, share.sum(axis=-1), rows.spread, kind), _levels(rows, share)
    )


def _independent(
    rows: RectangleRows, share: Float[np.ndarray, "S K N"], former: ClusterStructure
) -> tuple[Float[np.ndarray, "S K P"], Float[np.ndarray, "S K P P"]]:
    """Means of independent columns and sums of squares about them; gaps have the former mean and variance."""
    # m = (sum r seen y + g m') / sum r,  g = sum r (1 - seen)
    # sum r seen (y^2 + h) + g (m'^2 + v') - sum r m^2,  h = grain
    present = ~np.isnan(rows.Y)
    Y = np.where(present, rows.Y, 0.0)
    total = share.sum(axis=-1)[..., None]
    gone = total - share @ present
    variance = np.diagonal(former.scatter, axis1=-2, axis2=-1)
    mean = (share @ Y + gone * former.mean) / np.maximum(total, 1e-12)
    square = share @ (Y * Y + present * rows.grain) + gone * (former.mean**2 + variance)
    return mean, (square - total * mean**2)[..., None] * np.eye(Y.shape[1])


def _regular(
    scatter: Float[np.ndarray, "S K P P"],
    total: Float[np.ndarray, "S K"],
    spread: Float[np.ndarray, "P P"],
    kind: str,
) -> Float[np.ndarray, "S K P P"]:
    """Sums of squares (S, K, P, P) as scatter matrices, the prior included."""
    K, P = scatter.shape[1:3]
    count, own = prior_count(P, kind), prior_variance(K, P) * spread
    if kind == LIKELIHOOD:
        return _floored(scatter / np.maximum(total, 1e-12)[..., None, None])
    if kind == "diagonal":
        scatter, own = scatter * np.eye(P), own * np.eye(P)
    if kind == "shared":
        pooled = (scatter.sum(axis=1) + own) / (total.sum(axis=1) + count)[:, None, None]
        return np.broadcast_to(pooled[:, None], scatter.shape).copy()
    return (scatter + own) / (total + count)[..., None, None]


def _floored(scatter: Float[np.ndarray, "S K P P"]) -> Float[np.ndarray, "S K P P"]:
    """The likeliest covariances with no variance below `LEAST_VARIANCE` in any direction."""
    values, vectors = np.linalg.eigh(scatter)
    values = np.maximum(values, LEAST_VARIANCE)
    out: FloatArray = (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return out


def _levels(rows: RectangleRows, share: Float[np.ndarray, "S K N"]) -> Float[np.ndarray, "S K L"]:
    """Log probabilities of the levels of each label column (S, K, Ly)."""
    counts = share @ rows.Y_levels + LEVEL_COUNT
    for offset, n in zip(rows.Y_labels.offsets, rows.Y_labels.n_levels, strict=True):
        block = counts[..., offset : offset + n]
        block /= block.sum(axis=-1, keepdims=True)
    return np.log(counts)


def _from_seen(
    scatter: Float[np.ndarray, "S K P P"], seen: Bool[np.ndarray, "G P"]
) -> tuple[Float[np.ndarray, "S K G P P"], Float[np.ndarray, "S K G P P"]]:
    """For each pattern of gaps what takes the columns seen to all, and what is uncertain of the others."""
    # A = S_as S_ss^-1, a all columns, s those seen;  Cov[y|y_s] = S - A S
    P = seen.shape[1]
    if seen.all():
        return np.eye(P)[None, None, None], np.zeros((1, 1, 1, P, P))
    only = scatter[:, :, None] * seen[:, None]
    across = np.swapaxes(np.linalg.solve(of_seen(scatter, seen), np.swapaxes(only, -1, -2)), -1, -2)
    gone = ~seen
    rest = np.where(gone[:, :, None] & gone[:, None], scatter[:, :, None] - across @ scatter[:, :, None], 0.0)
    return across, rest


def _filled(
    Y: FloatArray, seen: NDArray[np.bool_], which: IntArray, across: FloatArray, mean: FloatArray
) -> FloatArray:
    """Rows with gaps at their conditional means, (S, K, n, P); (n, P) where there are no gaps."""
    # E[y|y_s] = m + A (y_s - m_s)
    if seen.all():
        return Y
    present = seen[which]
    off = np.where(present, Y - mean[..., None, :], 0.0)
    return np.where(present, Y, mean[..., None, :] + each_row(across, off, which))


def _outer(mean: FloatArray) -> FloatArray:
    """m m' of each cluster: (S, K, P, P)."""
    return mean[..., :, None] * mean[..., None, :]


BOX_STEPS = 12
"""L-BFGS iterations on the rectangles in each M-step; the next one goes on from there."""

MIXTURE_STEPS, TURNED = 30, 10
"""EM iterations of the Gaussian mixtures that make starts, and of full ones after those of variances."""

SETTLED = 1e-4
"""Nats a row in an iteration below which a mixture is taken as it is."""

LLOYD_STEPS = 4
"""Iterations of k-means: cut short, so that starts differ."""

KINDS_OF_STARTS = ("diagonal", "full", "across", "diagonal", "full", "k-means")
"""Taken in turn: what betters a partition by k-means; "across" is "full" after principal components of equal
variances."""


def iterate(problem: EMProblem, params: RectangleParams) -> tuple[RectangleParams, Float[np.ndarray, " S"]]:
    """E-step and M-step: the next parameters, and the objective of each start at those that were given."""
    rows = problem.rows
    log_G = log_inside(problem.powers, params.boxes)
    log_p, t_weight = log_density(rows, params.structure, problem.kind)
    value = penalised(problem, params, log_G, log_p)
    share = posterior(log_G, log_p)
    structure = update_structure(rows, share * rows.weight, t_weight, params.structure, problem.kind)
    return RectangleParams(move_boxes(problem, params.boxes, share), structure), value


def move_boxes(
    problem: EMProblem, boxes: SoftBoxes, share: Float[np.ndarray, "S K N"], steps: int = BOX_STEPS
) -> SoftBoxes:
    """M-step of the rectangles, eq. 7, by L-BFGS on all at once; one that lost keeps its place."""
    shape, D = boxes.flat().shape, boxes.lower.shape[-1]
    if not shape[-1]:
        return boxes
    before = expected(problem.powers, boxes, share, problem.prior)[0]

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = expected(problem.powers, SoftBoxes.of(flat.reshape(shape), D), share, problem.prior)
        return -float(value.sum()), -gradient.ravel()

    bounds = np.tile([-REACH, REACH], (int(np.prod(shape)), 1))
    start = np.clip(boxes.flat(), -REACH, REACH).ravel()
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps, "maxcor": 10}
    )
    moved = SoftBoxes.of(found.x.reshape(shape), D)
    gained = expected(problem.powers, moved, share, problem.prior)[0] >= before
    return SoftBoxes.of(np.where(gained[..., None], moved.flat(), boxes.flat()), D)


def starting_shares(
    rows: RectangleRows, n_clusters: int, n_starts: int, seed: int
) -> Float[np.ndarray, "S K N"]:
    """Partitions to start from: k-means cut short, most of them bettered by a Gaussian mixture."""
    kinds = np.array([KINDS_OF_STARTS[s % len(KINDS_OF_STARTS)] for s in range(n_starts)])
    share = np.empty((n_starts, n_clusters, len(rows)))
    for across in (False, True):
        chosen = np.flatnonzero((kinds == "across") == across)
        if len(chosen):
            share[chosen] = k_means_shares(rows, n_clusters, len(chosen), seed, across)
    kinds[kinds == "across"] = "full"
    for kind in ("diagonal", "full"):
        chosen = np.flatnonzero(kinds == kind)
        if len(chosen):
            share[chosen] = mixture(rows, share[chosen], kind, MIXTURE_STEPS)[0]
            if kind == "diagonal":
                share[chosen] = mixture(rows, share[chosen], "full", TURNED)[0]
    return share


def k_means_shares(
    rows: RectangleRows, n_clusters: int, n_starts: int, seed: int, across: bool = False
) -> Float[np.ndarray, "S K N"]:
    """Partitions by k-means cut short. `across`: of the principal components, each as wide as the others."""
    seeds = np.random.default_rng(seed).integers(0, 2**31, n_starts)
    features = _features(rows)
    if across:
        features = _as_wide(features, rows.weight)
    hard = np.stack([_k_means(features, rows.weight, n_clusters, int(s)) for s in seeds])
    share: FloatArray = (hard[:, None, :] == np.arange(n_clusters)[:, None]).astype(np.float64)
    return share


def shares_from_rules(
    rows: RectangleRows, margins: Float[np.ndarray, "N J"], n_clusters: int, n_starts: int, seed: int
) -> Float[np.ndarray, "S K N"]:
    """Partitions by rules that were stated for the first J clusters; the rest by k-means of other rows.

    `margins`: how deep inside each stated rule a row is. Starts differ in the k-means partition, and
    in how much is taken from the nearest stated rule where all clusters have one.
    """
    n_stated = margins.shape[1]
    others = n_clusters - n_stated
    rng = np.random.default_rng(seed)
    out = np.zeros((n_starts, n_clusters, len(rows)))
    nearest = np.eye(n_stated)[:, margins.argmax(axis=1)]
    outside = (margins.max(axis=1) < 0) if others else np.zeros(len(rows), dtype=np.bool_)
    for share in out:
        noise = rng.dirichlet(np.ones(n_stated), len(rows)).T
        share[:n_stated] = 0.8 * nearest + 0.2 * noise
        if others:
            k = min(others, int(outside.sum()))
            share[:, outside] = 0.0
            if k:
                part = rows.take(np.flatnonzero(outside))
                labels = _k_means(_features(part), part.weight, k, int(rng.integers(2**31)))
                share[n_stated + labels, np.flatnonzero(outside)] = 1.0
    return out


def boxes_around(rows: RectangleRows, share: Float[np.ndarray, "S K N"], prior: BoxPrior) -> SoftBoxes:
    """One standard deviation to both sides of each cluster's mean; stated bounds where they were stated."""
    w = share * rows.weight
    present = ~np.isnan(rows.X)
    X = np.where(present, rows.X, 0.0)
    total = np.maximum(w @ present, 1e-12)
    mean = (w @ X) / total
    sd = np.sqrt(np.maximum((w @ X**2) / total - mean**2, 0.0))
    levels = (w @ rows.X_levels) / np.maximum(w.sum(axis=-1, keepdims=True), 1e-12)
    overall = rows.weight @ rows.X_levels / rows.weight.sum()
    flat = np.concatenate([mean - sd, mean + sd, np.where(levels >= overall, 0.2, -0.2)], axis=-1)
    flat = np.where(prior.stated, prior.centre, flat)
    return SoftBoxes.of(np.clip(flat, -REACH, REACH), rows.X.shape[1])


def structure_around(rows: RectangleRows, share: Float[np.ndarray, "S K N"], kind: str) -> ClusterStructure:
    """Moments of soft clusters (S, K, N), gaps filled from the mean of all rows and the unit matrix."""
    S, K, P = *share.shape[:2], rows.Y.shape[1]
    total = rows.weight.sum()
    present = ~np.isnan(rows.Y)
    Y = np.where(present, rows.Y, 0.0)
    mean = rows.weight @ Y / np.maximum(rows.weight @ present, 1e-12)
    blank = ClusterStructure(
        np.broadcast_to(mean, (S, K, P)).copy(),
        np.broadcast_to(np.eye(P), (S, K, P, P)).copy(),
        np.log(np.full((S, K, rows.Y_levels.shape[1]), 1.0 / max(total, 1.0))),
    )
    return update_structure(rows, share * rows.weight, np.ones_like(share), blank, kind)


def mixture(
    rows: RectangleRows, share: Float[np.ndarray, "S K N"], kind: str, n_steps: int
) -> tuple[Float[np.ndarray, "S K N"], Float[np.ndarray, " S"]]:
    """A few EM iterations of a mixture with weights, without boxes, and the log likelihood of each start.

    A start that gains next to nothing is left as it is.
    """
    structure = structure_around(rows, share, kind)
    share, value = share.copy(), np.full(len(share), -np.inf)
    moving = np.arange(len(share))
    for _ in range(n_steps):
        mass = (share[moving] @ rows.weight + 1.0) / (rows.weight.sum() + share.shape[1])
        log_p, t_weight = log_density(rows, structure, kind)
        score = log_p + np.log(mass)[..., None]
        total = logsumexp(score, axis=1, keepdims=True)
        share[moving], after = np.exp(score - total), total[:, 0] @ rows.weight
        gains = after - value[moving] > SETTLED * rows.weight.sum()
        value[moving] = after
        if not gains.any():
            break
        moving = moving[gains]
        kept = ClusterStructure(*(part[gains] for part in structure))
        structure = update_structure(rows, share[moving] * rows.weight, t_weight[gains], kept, kind)
    return share, value


def _as_wide(features: FloatArray, weight: FloatArray) -> FloatArray:
    """Principal components (N, at most F) of variance 1: small directions of columns count as others do."""
    off = features - np.average(features, axis=0, weights=weight)
    values, vectors = np.linalg.eigh((off.T * weight) @ off / weight.sum())
    kept = values > 1e-6 * max(float(values.max(initial=0.0)), 1e-12)
    out: FloatArray = off @ vectors[:, kept] / np.sqrt(values[kept])
    return out


def _features(rows: RectangleRows) -> Float[np.ndarray, "N F"]:
    """Structure columns as k-means wants them: gaps at the mean, levels as 0/1 of a common scale."""
    numbers = np.where(np.isnan(rows.Y), 0.0, rows.Y)
    return np.hstack([numbers, rows.Y_levels])


def _k_means(
    features: Float[np.ndarray, "N F"], weight: Float[np.ndarray, " N"], n_clusters: int, seed: int
) -> IntArray:
    """Labels (N,) of one k-means cut short."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    if n_clusters == 1:
        return np.zeros(len(weight), dtype=np.intp)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(n_clusters, n_init=1, max_iter=LLOYD_STEPS, random_state=seed).fit(
            features, sample_weight=weight
        )
    return np.asarray(model.labels_, dtype=np.intp)
