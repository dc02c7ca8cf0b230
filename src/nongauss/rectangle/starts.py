"""Where the iterations begin: partitions by k-means, most of them bettered by Gaussian mixtures."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import logsumexp

from nongauss.rectangle.params import REACH, Boxes, BoxPrior, FloatArray, Rows, Structure
from nongauss.rectangle.structure import log_density, update

MIXTURE_STEPS = 30
"""EM iterations of the Gaussian mixtures that make starts."""

LLOYD_STEPS = 4
"""Iterations of k-means: cut short, so that starts differ."""

KINDS_OF_STARTS = ("diagonal", "full", "diagonal", "full", "k-means")
"""Taken in turn."""


def shares(rows: Rows, n_clusters: int, n_starts: int, seed: int) -> FloatArray:
    """Soft partitions (S, K, N) to start from."""
    seeds = np.random.default_rng(seed).integers(0, 2**31, n_starts)
    features = _features(rows)
    hard = np.stack([_k_means(features, rows.weight, n_clusters, int(s)) for s in seeds])
    share = (hard[:, None, :] == np.arange(n_clusters)[:, None]).astype(np.float64)
    kinds = np.array([KINDS_OF_STARTS[s % len(KINDS_OF_STARTS)] for s in range(n_starts)])
    for kind in ("diagonal", "full"):
        chosen = np.flatnonzero(kinds == kind)
        if len(chosen):
            share[chosen] = _mixture(rows, share[chosen], kind)
    return share


def shares_from_rules(
    rows: Rows, margins: FloatArray, n_clusters: int, n_starts: int, seed: int
) -> FloatArray:
    """Partitions (S, K, N) by rules that were stated for the first clusters; the rest by k-means of other
    rows.

    `margins` (N, J): how deep inside each stated rule a row is. Starts differ in the k-means partition, and
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


def boxes_around(rows: Rows, share: FloatArray, prior: BoxPrior) -> Boxes:
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
    stated = prior.precision > 1.0
    flat = np.where(stated, prior.centre, flat)
    return Boxes.of(np.clip(flat, -REACH, REACH), rows.X.shape[1])


def structure_of(rows: Rows, share: FloatArray, kind: str) -> Structure:
    """Moments of soft clusters, from a structure that knows nothing."""
    S, K, P = *share.shape[:2], rows.Y.shape[1]
    total = rows.weight.sum()
    present = ~np.isnan(rows.Y)
    Y = np.where(present, rows.Y, 0.0)
    mean = rows.weight @ Y / np.maximum(rows.weight @ present, 1e-12)
    blank = Structure(
        np.broadcast_to(mean, (S, K, P)).copy(),
        np.broadcast_to(np.eye(P), (S, K, P, P)).copy(),
        np.log(np.full((S, K, rows.Y_levels.shape[1]), 1.0 / max(total, 1.0))),
    )
    return update(rows, share * rows.weight, np.ones_like(share), blank, kind)


def _mixture(rows: Rows, share: FloatArray, kind: str) -> FloatArray:
    """A few EM iterations of a Gaussian mixture with weights, from these shares."""
    structure = structure_of(rows, share, kind)
    for _ in range(MIXTURE_STEPS):
        mass = (share @ rows.weight + 1.0) / (rows.weight.sum() + share.shape[1])
        score = log_density(rows, structure, kind)[0] + np.log(mass)[..., None]
        share = np.exp(score - logsumexp(score, axis=1, keepdims=True))
        structure = update(rows, share * rows.weight, np.ones_like(share), structure, kind)
    return share


def _features(rows: Rows) -> FloatArray:
    """Structure columns as k-means wants them: gaps at the mean, levels as 0/1 of a common scale."""
    numbers = np.where(np.isnan(rows.Y), 0.0, rows.Y)
    return np.hstack([numbers, rows.Y_levels])


def _k_means(features: FloatArray, weight: FloatArray, n_clusters: int, seed: int) -> np.ndarray:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    if n_clusters == 1:
        return np.zeros(len(weight), dtype=np.intp)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(n_clusters, n_init=1, max_iter=LLOYD_STEPS, random_state=seed).fit(
            features, sample_weight=weight
        )
    return np.asarray(model.labels_)
