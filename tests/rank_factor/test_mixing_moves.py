"""Moves of one number: what they leave as it is, and their densities by finite differences and quadrature."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.linalg import null_space

from nongauss.rank_factor.config import RankConfig, ShrinkagePrior
from nongauss.rank_factor.mixing_moves import (
    FactorMix,
    mixed_factors,
    scale_density,
    scaled,
    scaled_columns,
    scaled_hierarchy,
    scaled_loadings,
    shear_density,
    sheared,
)
from nongauss.rank_factor.params import Normal, Shrinkage
from nongauss.rank_factor.rank_likelihood import level_scores, mean_by_level
from rank_factor.test_level_density import gaps, rows_of

N, D, K, SLAB = 3, 2, 2, 0.8


def a_mix(seed: int = 0) -> FactorMix:
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((N, K))
    z /= np.sqrt((z**2).mean())
    positive = [rng.uniform(0.5, 2.0, shape) for shape in ((D, K), (D, K), (K,))]
    return FactorMix(
        rng.standard_normal((D, K)),
        z,
        Shrinkage(*positive, 1.3),
        rng.standard_normal((1, K)),
        rng.uniform(0.5, 2.0, (1, K)),
    )


def packed(now: FactorMix) -> np.ndarray:
    """Factors, loadings, variances, their rates, scales and slopes in one vector."""
    shrink = now.shrink
    parts = (now.z, now.A, 1.0 / shrink.precision, shrink.rate, shrink.scale, now.slopes)
    return np.concatenate([np.ravel(part) for part in parts])


def unpacked(x: np.ndarray, like: FactorMix) -> FactorMix:
    z, A, xi, eta, phi, slopes = np.split(x, np.cumsum([N * K, D * K, D * K, D * K, K]))
    shrink = Shrinkage(1.0 / xi.reshape(D, K), eta.reshape(D, K), phi, like.shrink.hyper)
    return like._replace(A=A.reshape(D, K), z=z.reshape(N, K), shrink=shrink, slopes=slopes.reshape(1, K))


def log_prior(now: FactorMix) -> float:
    """The horseshoe as it is written, the second prior of loadings, and the prior of slopes."""
    shrink = now.shrink
    xi, eta, phi = 1.0 / shrink.precision, shrink.rate, shrink.scale
    terms = -0.5 * now.A**2 / xi - 0.5 * np.log(xi) - 0.5 * SLAB * now.A**2
    terms += -0.5 * np.log(xi) + 0.5 * np.log(eta) - eta * xi  # xi ~ Ga(1/2, eta)
    terms += -0.5 * np.log(eta) + 0.5 * np.log(phi) - phi * eta  # eta ~ Ga(1/2, phi)
    own = -0.5 * np.log(phi) - shrink.hyper * phi  # phi ~ Ga(1/2, t)
    return float(terms.sum() + own.sum() - 0.5 * (now.own * now.slopes**2).sum())


def log_volume(move, now: FactorMix, h: float = 1e-5) -> float:
    """Log volume of a map of factors on their sphere, and of all else, by finite differences."""
    x, n = packed(now), N * K

    def at(v: np.ndarray) -> np.ndarray:
        back = v.copy()
        back[:n] *= np.sqrt(n / (v[:n] ** 2).sum())
        return packed(move(unpacked(back, now)))

    def tangents(z: np.ndarray) -> np.ndarray:
        """A basis of the directions on the sphere at z, and of all others."""
        basis = np.eye(len(x))
        return np.hstack([np.vstack([null_space(z[None]), np.zeros((len(x) - n, n - 1))]), basis[:, n:]])

    before, after = tangents(x[:n]), tangents(at(x)[:n])
    change = np.stack([(at(x + h * d) - at(x - h * d)) / (2 * h) for d in before.T], axis=1)
    return float(np.linalg.slogdet(after.T @ change)[1])


@pytest.mark.parametrize("t", [0.3, -0.7])
def test_densities_of_moves_are_the_prior_times_the_volume(t):
    now = a_mix()
    moves = {
        "scale": (
            lambda m: scaled(m, 1, t),
            scale_density(now, 1, SLAB, t) - scale_density(now, 1, SLAB, 0.0),
        ),
        "shear": (
            lambda m: sheared(m, 0, 1, t),
            shear_density(now, 0, 1, SLAB)(t) - shear_density(now, 0, 1, SLAB)(0.0),
        ),
    }
    for move, found in moves.values():
        expected = log_prior(move(now)) - log_prior(now) + log_volume(move, now)
        assert_allclose(found, expected, atol=1e-5)


def test_moves_of_factors_leave_scores_decisions_and_their_mean_square():
    now = a_mix()
    moved = mixed_factors(np.random.default_rng(1), now, SLAB)
    assert np.abs(moved.A - now.A).max() > 0.01
    assert_allclose(moved.z @ moved.A.T, now.z @ now.A.T)
    assert_allclose(moved.z @ moved.slopes.T, now.z @ now.slopes.T)
    assert_allclose((moved.z**2).mean(), 1.0)


def test_columns_are_scaled_by_the_density_of_their_hinges():
    """Of many equal columns the mean of t is that of quadrature."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (20, 1)).astype(np.uint8)
    z, a, prior, eps = rng.standard_normal((20, 2)), np.array([[0.4, -0.3]]), np.array([[1.5, 0.5]]), 1.0
    t = np.linspace(-4.0, 3.0, 4000)
    log_p = np.array(
        [
            2.0 * s
            - 2.0 * sum(max(u, 0.0) for *_, u in gaps(z, codes, a * np.exp(s), eps))
            - 0.5 * (prior * a * a).sum() * np.exp(2.0 * s)
            for s in t
        ]
    )
    p = np.exp(log_p - log_p.max())
    mean = (p @ t) / p.sum()
    sd = np.sqrt((p @ (t - mean) ** 2) / p.sum())
    n = 400
    A, rows = np.tile(a, (n, 1)), rows_of(np.tile(codes, (1, n)))
    scale = level_scores(Normal(A, None), mean_by_level(rows.codes, z, np.ones(20), 4))
    drawn = []
    for _ in range(12):  # the scale is that of the start: chains settle
        A = scaled_columns(rng, A, z, rows, scale, np.tile(prior, (n, 1)), eps)
        scale = level_scores(Normal(A, None), scale.means)
        drawn.append(np.log(A[:, 0] / a[0, 0]))
    last = np.concatenate(drawn[6:])
    assert_allclose(last.mean(), mean, atol=0.1 * sd)
    assert_allclose(last.std(), sd, rtol=0.1)


def test_all_loadings_are_scaled_by_their_hinges_and_priors():
    """Along its one direction the move has the posterior, times the volume, by quadrature."""
    rng = np.random.default_rng(0)
    now, n_rows, eps = a_mix(), 12, 1.0
    codes, z = rng.integers(0, 3, (n_rows, D)).astype(np.uint8), rng.standard_normal((n_rows, K))
    config = RankConfig(K, eps=eps, prior=ShrinkagePrior(slab=SLAB))

    def at(t: float) -> FactorMix:
        c2 = np.exp(2.0 * t)
        old = now.shrink
        shrink = Shrinkage(old.precision / c2, old.rate / c2, old.scale * c2, old.hyper)
        return now._replace(A=now.A * np.exp(t), shrink=shrink)

    def log_p(t: float) -> float:
        """Hinges and priors, and the volume: of A, its variances and scales it grows, of rates it falls."""
        loss = sum(max(u, 0.0) for *_, u in gaps(z, codes, at(t).A, eps))
        return log_prior(at(t)) - 2.0 * loss + (D * K + 2 * D * K - 2 * D * K + 2 * K) * t

    grid = np.linspace(-6.0, 4.0, 4000)
    log_density = np.array([log_p(t) for t in grid])
    p = np.exp(log_density - log_density.max())
    mean = (p @ grid) / p.sum()
    sd = np.sqrt((p @ (grid - mean) ** 2) / p.sum())
    rows = rows_of(codes)
    means = mean_by_level(rows.codes, z, np.ones(n_rows), 3)
    A, shrink, drawn = now.A, now.shrink, []
    for _ in range(3000):
        A, shrink = scaled_loadings(rng, A, z, rows, level_scores(Normal(A, None), means), shrink, config)
        drawn.append(np.log(A[0, 0] / now.A[0, 0]))
    assert_allclose(np.mean(drawn), mean, atol=0.08 * sd)
    assert_allclose(np.std(drawn), sd, rtol=0.08)
    assert_allclose(shrink.scale, at(drawn[-1]).shrink.scale)


def test_columns_and_their_variances_are_scaled_by_hinges_and_the_prior_without_rates():
    """Of many equal columns t has the moments of quadrature, the rates' among it by quadrature, too."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (12, 1)).astype(np.uint8)
    z, a, eps = rng.standard_normal((12, 2)), np.array([[0.6, -0.4]]), 1.0
    precision, phi = np.array([[2.0, 0.7]]), np.array([0.4, 1.5])
    config = RankConfig(2, eps=eps, prior=ShrinkagePrior(slab=SLAB))

    def log_variance(xi: float, scale: float) -> float:
        """xi ~ Ga(1/2, eta), eta ~ Ga(1/2, phi), up to a constant."""
        return np.log(
            quad(lambda eta: np.sqrt(eta / xi) * np.exp(-eta * (xi + scale)) / np.sqrt(eta), 0, np.inf)[0]
        )

    t = np.linspace(-5.0, 3.0, 400)
    log_p = np.array(
        [
            2.0 * s
            + sum(log_variance(np.exp(2.0 * s) / p, f) + s for p, f in zip(precision[0], phi, strict=True))
            - 2.0 * sum(max(u, 0.0) for *_, u in gaps(z, codes, a * np.exp(s), eps))
            - 0.5 * SLAB * (a**2).sum() * np.exp(2.0 * s)
            for s in t
        ]
    )
    p = np.exp(log_p - log_p.max())
    mean = (p @ t) / p.sum()
    sd = np.sqrt((p @ (t - mean) ** 2) / p.sum())
    n = 400
    A, rows = np.tile(a, (n, 1)), rows_of(np.tile(codes, (1, n)))
    shrink = Shrinkage(np.tile(precision, (n, 1)), np.ones((n, 2)), phi, 1.0)
    scale = level_scores(Normal(A, None), mean_by_level(rows.codes, z, np.ones(12), 3))
    drawn = []
    for _ in range(12):
        A, shrink = scaled_hierarchy(rng, A, z, rows, scale, shrink, config)
        scale = level_scores(Normal(A, None), scale.means)
        drawn.append(np.log(A[:, 0] / a[0, 0]))
    last = np.concatenate(drawn[6:])
    assert_allclose(last.mean(), mean, atol=0.1 * sd)
    assert_allclose(last.std(), sd, rtol=0.1)
    assert_allclose(shrink.precision * A**2, precision * a**2 * np.ones((n, 1)))
