"""Write truncnorm.json: reference values for the normal tail and the truncated normal, from mpmath.

    python tests/reference/make_truncnorm.py                  # the reference values
    python tests/reference/make_truncnorm.py --coefficients   # the polynomials of nongauss.prob.normal

Every a and u is exact in float32, so that one table serves both precisions. Working digits: 110, of which at
least 50 remain after the cancellations. The quantile is found by bisection of its defining equation.
"""

from __future__ import annotations

import json
import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import mpmath as mp

GRID = [-1e6, -1e5, -1e4, -1e3, -200.0, -100.0, -40.0, -39.0, -38.0, -20.0, -10.0, -5.0, -2.0, -1.0, -1e-3]
GRID += [0.0, 1e-3, 0.5, 1.0, 2.0, 3.5, 5.0, 8.0, 13.0, 30.0, 100.0, 1e4, 1e6]
QUANTILE_A = [-1e6, -1e4, -200.0, -40.0, -38.0, -5.0, -2.0, -1.0009765625, -1.0, -0.5, 0.0, 1.0, 4.0, 20.0]
QUANTILE_U = [1e-6, 1e-3, 0.05, 0.3, 0.5, 0.9, 0.999, 1 - 2**-20]
SHIFT = mp.mpf(7) / 2


def float32(value: float) -> float:
    """The nearest float32, as a float."""
    return struct.unpack("f", struct.pack("f", value))[0]


def upper(z: mp.mpf) -> mp.mpf:
    """P(X > z) for a standard normal X."""
    return mp.erfc(z / mp.sqrt(2)) / 2


def unit(a: mp.mpf) -> dict[str, mp.mpf]:
    """What the package computes for N(a, 1) truncated to [0, inf), from the textbook formulas."""
    partition = upper(-a)
    r = mp.npdf(a) / partition
    mean = a + r
    variance = 1 - r * mean
    return {
        "hazard": r,
        "mean": mean,
        "variance": variance,
        "third": r * mean**2 - r * variance,
        "mean_by_sd": r * (1 + a * mean),
        "log_cdf": mp.log1p(-upper(a)) if a > 0 else mp.log(partition),
        "entropy": mp.log(2 * mp.pi) / 2 + mp.log(partition) + (1 - a * r) / 2,
    }


def quantile(u: mp.mpf, a: mp.mpf) -> mp.mpf:
    """The x with P(X > x) = 1 - u, by bisection on the logarithm."""
    target = mp.log1p(-u) + mp.log(upper(-a))
    low, high = mp.mpf(0), abs(a) + 40
    while high - low > high * mp.mpf(10) ** -25:
        middle = (low + high) / 2
        low, high = (middle, high) if mp.log(upper(middle - a)) > target else (low, middle)
    return low


def chebyshev(function: Callable[[mp.mpf], mp.mpf], terms: int) -> list[mp.mpf]:
    """Chebyshev coefficients of a function on [-1, 1] from its values at the Chebyshev nodes."""
    angles = [mp.pi * (2 * k + 1) / (2 * terms) for k in range(terms)]
    values = [function(mp.cos(angle)) for angle in angles]
    return [
        (2 if j else 1) * mp.fsum(v * mp.cos(j * t) for v, t in zip(values, angles, strict=True)) / terms
        for j in range(terms)
    ]


def powers(coefficients: list[mp.mpf]) -> list[mp.mpf]:
    """The same polynomial in powers of s, highest first."""
    total = [mp.mpf(0)] * len(coefficients)
    before, now = [mp.mpf(0)], [mp.mpf(1)]
    for j, coefficient in enumerate(coefficients):
        for i, term in enumerate(now):
            total[i] += coefficient * term
        after = [mp.mpf(0)] + [(2 if j else 1) * term for term in now]
        for i, term in enumerate(before if j else []):
            after[i] -= term
        before, now = now, after
    return total[::-1]


def print_coefficients() -> None:
    """The tables of nongauss.prob.normal: P(s) = excess mean / u and Q(s) = excess variance / u^2."""

    def scaled(s: mp.mpf, name: str, power: int) -> mp.mpf:
        u = (1 - s) / (2 * SHIFT)
        return unit(SHIFT - 1 / u)[name] / u**power

    for table, power in (("mean", 1), ("variance", 2)):
        series = chebyshev(lambda s, table=table, power=power: scaled(s, table, power), 60)
        for bits, degree in ((32, 13 if power == 1 else 15), (64, 27 if power == 1 else 30)):
            digits = "{:.9e}" if bits == 32 else "{!r}"
            numbers = ", ".join(digits.format(float(c)) for c in powers(series[: degree + 1]))
            sys.stdout.write(f"_{table.upper()}_{bits} = ({numbers})\n")


def main() -> None:
    generator = random.Random(20)
    draws = [-(10 ** generator.uniform(-2, 5)) for _ in range(15)]
    draws += [generator.gauss(0, 3) for _ in range(15)]
    grid = sorted(float32(a) for a in GRID + draws)
    rows = [unit(mp.mpf(a)) for a in grid]
    levels = [float32(u) for u in QUANTILE_U]
    table: dict[str, object] = {"a": grid}
    table |= {name: [float(row[name]) for row in rows] for name in rows[0]}
    table["quantile"] = {
        "u": levels,
        "a": QUANTILE_A,
        "x": [[float(quantile(mp.mpf(u), mp.mpf(a))) for a in QUANTILE_A] for u in levels],
    }
    target = Path(__file__).with_name("truncnorm.json")
    target.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    mp.mp.dps = 110  # the textbook forms lose up to 36 digits at a = -1e6
    print_coefficients() if "--coefficients" in sys.argv[1:] else main()
