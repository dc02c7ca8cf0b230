"""The law of one output by the saddlepoint, tabulated: density, distribution function, quantiles and draws.

Along the saddlepoint t the place y = K'(t), the density and the distribution function are all closed, so a
table over t needs no equation to be solved. Between its points log densities are Hermite cubics in y with
their exact slope -t - K''' / (2 K''^2). The distribution function is that of Lugannani and Rice (Advances in
Applied Probability 1980) as Barndorff-Nielsen writes it, a normal one of

    r*(t) = z + log(u / z) / z,    z = sign(t) sqrt(2 (t K' - K)),    u = t sqrt(K''),

which stays between 0 and 1; at t = 0, r* = K''' / (6 K''^(3/2)). The density is divided by its integral over
the table, row by row. `tests/tggm/test_exact_law.py` has what is left beside the Fourier integral of
exp K(iu).
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import partial
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import Array, Float, Float64
from scipy.special import logsumexp, ndtr

from nongauss.core.seeds import key_seed
from nongauss.predictive.distribution import FloatArray, PredictiveDistribution, checked_count
from nongauss.predictive.mixture import GaussianMixtureDistribution
from nongauss.predictive.rowwise import RowwiseDistribution
from nongauss.prob.normal import HALF_LOG_2PI
from nongauss.prob.normal_table import cut_moments, located, log_mills_difference
from nongauss.tggm import predict, saddlepoint
from nongauss.tggm.blocks import in_blocks
from nongauss.tggm.data import filled
from nongauss.tggm.objective import last_layer
from nongauss.tggm.params import NetworkParams

_SPACING, _A_SIDE = 0.45, 20
"""Points of the table lie so far apart in z, so many on each side of the mean: it reaches 9."""

_ROWS, _KEPT_ROWS = 128, 4096
"""Rows that are tabulated at once, and whose tables are kept at once."""


FARTHEST = 1e9
"""Standard deviations of a column beyond which the places of a law are no longer told apart."""


class SaddlepointTable(NamedTuple):
    """Laws of deviations y - E[y] at T places, in increasing order.

    `place` (..., T); `log_density` (..., T) and its derivative `slope`; `normal` (..., T): r*, the normal
    quantile of the distribution function. Made on the device, read on the host.
    """

    place: Any
    log_density: Any
    slope: Any
    normal: Any


def tables(
    ensemble: predict.Ensemble, X: Float[np.ndarray, "N D"], skewness: float
) -> tuple[Float64[np.ndarray, "E N"], Float64[np.ndarray, "E N"], SaddlepointTable]:
    """Mean and variance (E, N) of each member at each row, standardised scale, and its table (E, N, T)."""
    kept = np.array([float(ensemble.inflation[0]), skewness])
    compute = partial(_tabulated, prior=ensemble.config.prior, kept=kept)
    mean, variance, *table = in_blocks(compute, _ROWS, ensemble.params, X)
    return mean, variance, SaddlepointTable(*table)


def _tabulated(member: NetworkParams, X: Any, prior: str, kept: Float64[np.ndarray, " 2"]) -> tuple[Any, ...]:
    """Mean, variance and table of one member at each row; `kept`: the inflation, the share of skewness."""
    on_host = isinstance(X, np.ndarray)
    found: tuple[Any, ...] = (_on_host if on_host else _compiled)(member, X, prior, kept)
    return found


@partial(jax.jit, static_argnames="prior")
def _compiled(
    member: NetworkParams, X: Any, prior: str, kept: Float[Array, " 2"]
) -> tuple[Float[Array, "N ..."], ...]:
    """`_tabulated` of rows on the device."""

    def row(x: Float[Array, " D"]) -> tuple[Array, ...]:
        location, sd = last_layer(member, prior, x)
        constant = member.at(x).b1[0]
        terms = saddlepoint.CumulantTerms(
            location / sd, member.W1[0] * sd, constant, jnp.exp(2.0 * member.log_sd1[0])
        )
        first, second, _ = saddlepoint.slopes(terms, jnp.zeros(()))
        mean = terms.constant + first
        # the part 1 - k of the hidden variance becomes Gaussian; all of it is inflated
        hidden = second - terms.noise
        terms = terms._replace(
            q=jnp.sqrt(kept[0] * kept[1]) * terms.q,
            noise=kept[0] * (terms.noise + (1.0 - kept[1]) * hidden),
        )
        return mean, kept[0] * second, *_table_of(terms)

    return jax.vmap(row)(filled(X, member.W0.shape[-1]))


def _table_of(terms: saddlepoint.CumulantTerms) -> SaddlepointTable:
    """The table of one law: places about `_SPACING` apart in z, found by walking from t = 0 both ways."""
    middle = saddlepoint.slopes(terms, jnp.zeros(()))

    def point(t: Float[Array, ""]) -> tuple[Array, Array, Array, Array, Array]:
        first, second, third = saddlepoint.slopes(terms, t)
        exponent = saddlepoint.cumulant(terms, t) - t * first
        return first - middle[0], second, third, exponent, jnp.sqrt(-2.0 * jnp.minimum(exponent, -1e-20))

    def walk(way: Float[Array, ""]) -> tuple[Array, ...]:
        def onwards(carry: tuple[Array, Array, Array], number: Array) -> tuple[Any, Any]:
            t, z, rate = carry  # rate: dt / dz = z / (t K''), at 0 it is 1 / sqrt(K'')
            t = t + way * rate * jnp.maximum(number * _SPACING - z, 0.3 * _SPACING)
            there = point(t)
            return (t, there[-1], there[-1] / (way * t * there[1])), (t, *there)

        start = (jnp.zeros(()), jnp.zeros(()), 1.0 / jnp.sqrt(middle[1]))
        return jax.lax.scan(onwards, start, 1.0 + jnp.arange(_A_SIDE))[1]  # type: ignore[no-any-return]

    ways = jax.vmap(walk)(jnp.array([-1.0, 1.0]))  # compiled once for both
    below, above = (jax.tree.map(lambda part, i=i: part[i], ways) for i in (0, 1))
    zero = (jnp.zeros(()), *point(jnp.zeros(())))
    t, place, second, third, exponent, z = (
        jnp.concatenate([left[::-1], at[None], right])
        for left, at, right in zip(below, zero, above, strict=True)
    )
    return _assembled(jnp, SaddlepointPoints(t, place, second, third, exponent, z))


def _on_host(
    member: NetworkParams, X: Float64[np.ndarray, "N D"], prior: str, kept: Float64[np.ndarray, " 2"]
) -> tuple[FloatArray, ...]:
    """`_tabulated` on the host, with one hidden layer: as `_compiled` and `_table_of`, all rows at once."""
    location, sd, m, v, constant = predict.hidden(member, X, prior)
    at, q, noise = located(location / sd), member.W1[0] * sd[0], np.exp(2.0 * member.log_sd1[0])
    first, spread = m / sd @ q, v / sd**2 @ q**2
    mean, variance = constant[:, 0] + first, kept[0] * (spread + noise)
    noise = kept[0] * (noise + (1.0 - kept[1]) * spread)  # as in `_compiled`
    q = np.sqrt(kept[0] * kept[1]) * q
    middle = m / sd @ q

    def point(t: FloatArray) -> SaddlepointPoints:
        step = t[:, None] * q
        there = located(at.a + step)
        m, v, third = cut_moments(there)
        first = noise * t + m @ q
        exponent = 0.5 * noise * t * t + log_mills_difference(at, there, step).sum(axis=1) - t * first
        z = np.sqrt(-2.0 * np.minimum(exponent, -1e-20))
        return SaddlepointPoints(t, first - middle, noise + v @ q**2, third @ q**3, exponent, z)

    start = point(np.zeros(len(X)))
    points = [start]
    for way in (-1.0, 1.0):
        last, rate = start._replace(z=np.zeros(len(X))), 1.0 / np.sqrt(start.second)
        for number in range(1, _A_SIDE + 1):
            last = point(last.t + way * rate * np.maximum(number * _SPACING - last.z, 0.3 * _SPACING))
            rate = last.z / (way * last.t * last.second)
            points = [last, *points] if way < 0.0 else [*points, last]
    every = SaddlepointPoints(*(np.stack(parts, axis=1) for parts in zip(*points, strict=True)))
    return mean, variance, *_assembled(np, every)


class SaddlepointPoints(NamedTuple):
    """The points (..., T) of a table, in increasing order of the saddlepoint `t`, 0 at the middle one.

    `place`: the deviation from the mean; `second`, `third`: derivatives of K; `exponent`: K - t K'; `z`: |z|.
    """

    t: Any
    place: Any
    second: Any
    third: Any
    exponent: Any
    z: Any


def _assembled(xp: Any, points: SaddlepointPoints) -> SaddlepointTable:
    """The table at these points, by the functions of NumPy or of JAX."""
    t, place, second, third, exponent, z = points
    log_density = exponent - 0.5 * xp.log(second) - HALF_LOG_2PI
    slope = -t - 0.5 * third / second**2
    is_middle = xp.arange(t.shape[-1]) == _A_SIDE
    safe = xp.where(is_middle, 1.0, xp.sign(t) * z)
    u = xp.where(is_middle, 1.0, t * xp.sqrt(second))
    normal = xp.where(is_middle, third / (6.0 * second**1.5), safe + xp.log(u / safe) / safe)
    log_mass = _log_mass(xp, place, log_density, slope)
    return SaddlepointTable(place, log_density - log_mass[..., None], slope, normal)


def _log_mass(xp: Any, place: Any, log_density: Any, slope: Any) -> Any:
    """log of the integral of the density by h (f_0 + f_1) / 2 + h^2 (f_0' - f_1') / 12 in each interval."""
    density = xp.exp(log_density)
    change = density * slope
    width = place[..., 1:] - place[..., :-1]
    areas = 0.5 * width * (density[..., 1:] + density[..., :-1])
    areas += width**2 * (change[..., :-1] - change[..., 1:]) / 12.0
    return xp.log(areas.sum(axis=-1))


def _interval(knots: FloatArray, at: FloatArray) -> npt.NDArray[np.intp]:
    """The interval of the knots (*L, T) that each place (*L, Q) lies in; beyond the ends the outer one."""
    found = (knots[..., None, :] <= at[..., None]).sum(axis=-1) - 1
    out: npt.NDArray[np.intp] = np.clip(found, 0, knots.shape[-1] - 2)
    return out


def _cubic(knots: FloatArray, values: FloatArray, slopes: FloatArray, at: FloatArray) -> FloatArray:
    """Hermite's cubic of values and slopes at knots (*L, T), at places (*L, Q); straight on beyond them."""
    j = _interval(knots, at)
    x0, x1, f0, f1, g0, g1 = (
        np.take_along_axis(array, j + i, axis=-1) for array in (knots, values, slopes) for i in (0, 1)
    )
    width = x1 - x0
    s = np.clip((at - x0) / width, 0.0, 1.0)
    inner = f0 + s * (
        width * g0
        + s * (3.0 * (f1 - f0) - width * (2.0 * g0 + g1) + s * (2.0 * (f0 - f1) + width * (g0 + g1)))
    )
    out: FloatArray = inner + np.maximum(at - x1, 0.0) * g1 + np.minimum(at - x0, 0.0) * g0
    return out


def log_density_at(table: SaddlepointTable, at: Float64[np.ndarray, "*L Q"]) -> Float64[np.ndarray, "*L Q"]:
    """Log density at deviations; beyond the table a Gaussian goes on, of the bend between its last points."""
    inner = _cubic(table.place, table.log_density, table.slope, at)
    for beyond, last, before in ((at - table.place[..., -1:], -1, -2), (at - table.place[..., :1], 0, 1)):
        bend = (table.slope[..., last] - table.slope[..., before]) / (
            table.place[..., last] - table.place[..., before]
        )
        outside = beyond > 0.0 if last else beyond < 0.0
        inner = np.where(outside, inner + 0.5 * np.minimum(bend, 0.0)[..., None] * beyond**2, inner)
    return inner


def _parabola_slopes(knots: FloatArray, values: FloatArray) -> FloatArray:
    """Slopes at knots (*L, T) of the parabolas through three neighbours; at the ends of the secants."""
    secant = np.diff(values) / np.diff(knots)
    left, right = knots[..., 1:-1] - knots[..., :-2], knots[..., 2:] - knots[..., 1:-1]
    inner = (right * secant[..., :-1] + left * secant[..., 1:]) / (left + right)
    out: FloatArray = np.concatenate([secant[..., :1], inner, secant[..., -1:]], axis=-1)
    return out


def normal_at(table: SaddlepointTable, at: Float64[np.ndarray, "*L Q"]) -> Float64[np.ndarray, "*L Q"]:
    """r* at deviations: their distribution function is Phi(r*)."""
    return _cubic(table.place, table.normal, _parabola_slopes(table.place, table.normal), at)


def place_at(table: SaddlepointTable, normal: Float64[np.ndarray, "*L Q"]) -> Float64[np.ndarray, "*L Q"]:
    """The deviation at which r* has this value."""
    return _cubic(table.normal, table.place, _parabola_slopes(table.normal, table.place), normal)


def row_density(ensemble: predict.Ensemble, X: Float64[np.ndarray, "E V D"]) -> Any:
    """Log density of each member at its own rows, a function of the share of skewness and of deviations."""

    def density(share: float, error: Float64[np.ndarray, "E V P"]) -> Float64[np.ndarray, "E V"]:
        if share not in kept:
            kept.clear()
            found = [tables(ensemble.alone(e), rows, share)[2] for e, rows in enumerate(X)]
            kept[share] = SaddlepointTable(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
        return log_density_at(kept[share], error)[..., 0]

    kept: dict[float, SaddlepointTable] = {}
    return density


@final
class SaddlepointDistribution(RowwiseDistribution):
    """The mixture of the members' laws of one output, each with the ensemble's tails.

    Parameters
    ----------
    ensemble : fitted members of one output. X : (N, D) standardised rows.
    """

    def __init__(self, ensemble: predict.Ensemble, X: Float[np.ndarray, "N D"]) -> None:
        mean, variance = predict.member_moments_of(ensemble.params, ensemble.config, X)
        centre, scale = float(ensemble.centre[0]), float(ensemble.scale[0])
        inflated = ensemble.inflation[0] * variance[..., 0]
        mean = ensemble.drawn_together(mean[..., 0])
        super().__init__(mean, inflated, "real", centre=centre, scale=scale)
        self._ensemble, self._X = ensemble, X
        self._known: tuple[int, SaddlepointTable] | None = None

    def _take(self, rows: npt.NDArray[np.intp]) -> SaddlepointDistribution:
        """The laws of the rows of these numbers, with their moments."""
        out = copy(self)
        out._m, out._v, out._X, out._known = self._m[:, rows], self._v[:, rows], self._X[rows], None
        return out

    def _blocks(self) -> Iterator[npt.NDArray[np.intp]]:
        for first in range(0, len(self), _KEPT_ROWS):
            yield np.arange(first, min(first + _KEPT_ROWS, len(self)))

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        return self._m, self._v

    def _table(self, rows: npt.NDArray[np.intp]) -> SaddlepointTable:
        """The table (n, E, T) of these rows, which are of one block."""
        first = int(rows[0]) // _KEPT_ROWS * _KEPT_ROWS
        if self._known is None or self._known[0] != first:
            block = self._X[first : first + _KEPT_ROWS]
            distinct, place = np.unique(block, axis=0, return_inverse=True)  # rows are asked at many points
            found = tables(self._ensemble, distinct, self._ensemble.skewness)[2]
            every = (np.moveaxis(part, 0, 1)[place.ravel()] for part in found)
            self._known = first, SaddlepointTable(*every)
        return SaddlepointTable(*(part[rows - first] for part in self._known[1]))

    def _deviations(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        """(y - E[y]) / sqrt(g) for each member and value of the tails' factor: (n, E, Q)."""
        off: FloatArray = (y - self._m[:, rows]).T[..., None] / np.sqrt(self._ensemble.tails.variances)
        return off

    def _row_log_prob(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        tails = self._ensemble.tails
        terms = log_density_at(self._table(rows), self._deviations(y, rows))
        terms += np.log(tails.weights) - 0.5 * np.log(tails.variances)
        out: FloatArray = logsumexp(terms, axis=(1, 2)) - np.log(len(self._m))
        return out

    def _row_cdf(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        below = ndtr(normal_at(self._table(rows), self._deviations(y, rows)))
        out: FloatArray = (below @ self._ensemble.tails.weights).mean(axis=1)
        return out

    def _inner_quantiles(self, levels: FloatArray) -> FloatArray:
        """All levels of a block of rows while its tables are at hand."""
        out = np.empty((len(self), levels.size))
        for rows in self._blocks():
            for j, level in enumerate(map(float, levels)):
                is_end = level in (0.0, 1.0)
                out[rows, j] = np.inf * (level - 0.5) if is_end else self._smooth_quantile(level, rows)
        return out

    def _draw(self, f: FloatArray, rows: npt.NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
        raise AssertionError("Draws are made by `sample`: a member's own mean is no latent draw.")

    def sample(self, n: int = 1, random_state: Any = None) -> FloatArray:
        """`n` draws for each row: (N, n). Equal `random_state`, equal draws."""
        rng = np.random.default_rng(key_seed(random_state))
        shape, tails = (len(self), checked_count(n)), self._ensemble.tails
        member = rng.integers(0, len(self._m), shape)
        factor = rng.choice(tails.variances, shape, p=tails.weights)
        normal = rng.standard_normal(shape)
        out = np.take_along_axis(self._m.T, member, axis=1)
        for rows in self._blocks():
            every = place_at(self._table(rows), np.repeat(normal[rows][:, None], len(self._m), axis=1))
            own = np.take_along_axis(every, member[rows][:, None], axis=1)[:, 0]
            out[rows] += np.sqrt(factor[rows]) * own
        return self._centre + self._scale * out


def law_of(
    ensemble: predict.Ensemble, encoded: Float[np.ndarray, "N D"], *, squeeze: bool
) -> PredictiveDistribution:
    """The law of y at standardised rows: by the saddlepoint if the members were fitted by it, else a mixture.

    `squeeze` drops the axis of a single output, which the saddlepoint's never has. Rows farther than
    `FARTHEST` have the saddlepoint's law of rows there.
    """
    X = ensemble.splines.joined(encoded)
    if ensemble.is_exact:
        near = np.clip(X, -FARTHEST, FARTHEST) if isinstance(X, np.ndarray) else X
        return SaddlepointDistribution(ensemble, near)
    mean, variance = ensemble.moments(X)
    return GaussianMixtureDistribution(
        mean,
        variance,
        lambda rows: ensemble.components(X[rows]),
        squeeze=squeeze,
        n_components=ensemble.n_components,
    )
