"""Computes the minimax piecewise bounds of log(1 + e^x) and writes src/nongauss/prob/piecewise.json.

log(1 + e^x) = x/2 + H(x) with H(x) = log(2 cosh(x/2)) even, so the pieces are symmetric. The outer two are
the lines e and x + e, whose error tends to e = log(1 + e^-t) at infinity and is 0 at -t and t. Each inner
piece is the best approximation of H on its interval (Remez exchange), raised by its error E, so doubled.
Pieces are laid from the middle outwards, each as long as 2 E = e allows; e is such that they end at t.

    python tests/reference/make_piecewise.py
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

TARGET = Path(__file__).parents[2] / "src" / "nongauss" / "prob" / "piecewise.json"


def H(x):
    return np.logaddexp(0.5 * x, -0.5 * x)


def slope(x):
    return 0.5 * np.tanh(0.5 * x)


def best_fit(low, high, degree, even):
    """Coefficients (a, b, c) of the best approximation of H on [low, high], and its largest error."""
    powers = [2, 0] if even and degree == 2 else [0] if even else list(range(degree, -1, -1))
    size = len(powers) + 1
    points = 0.5 * (low + high) - 0.5 * (high - low) * np.cos(np.pi * np.arange(size) / (size - 1))
    for _ in range(60):
        signs = (-1.0) ** np.arange(size)
        system = np.stack([points**p for p in powers] + [signs], axis=1)
        solution = np.linalg.solve(system, H(points))
        a, b, c = (dict(zip(powers, solution[:-1], strict=True)).get(p, 0.0) for p in (2, 1, 0))
        grid = np.linspace(low, high, 2001)
        wrong = H(grid) - (a * grid + b) * grid - c
        turn = np.flatnonzero(np.diff(np.sign(slope(grid) - 2 * a * grid - b)) != 0)
        inner = [
            brentq(lambda x, a=a, b=b: slope(x) - 2 * a * x - b, grid[i], grid[i + 1], xtol=1e-15)
            for i in turn
        ]
        inner = [x for x in inner if low + 1e-9 < x < high - 1e-9]
        new = np.array([low, *inner, high])
        if len(new) != size or np.abs(new - points).max() < 1e-13:
            break
        points = new
    return (a, b, c), max(abs(solution[-1]), np.abs(wrong).max())


def reach(low, e, degree, even):
    """The largest end of a piece from `low` (or about 0, if even) whose error is e / 2."""

    def excess(high):
        return best_fit(low, high, degree, even)[1] - 0.5 * e

    high = low + 0.05
    while excess(high) < 0 and high < 60:
        high = low + 1.5 * (high - low)
    if excess(high) < 0:  # H is nearly straight out there: one piece goes on for ever
        return high
    return brentq(excess, low + 1e-6, high, xtol=1e-14, rtol=1e-14)


def lay(n_pieces, e, degree):
    """Positive breakpoints of the inner pieces: from 0 for even R, from -b to b and on for odd R."""
    odd = n_pieces % 2
    edges = [reach(0.0, e, degree, even=True)] if odd else [0.0]
    for _ in range((n_pieces - 3) // 2 if odd else (n_pieces - 2) // 2):
        edges.append(reach(edges[-1], e, degree, even=False))
    return edges


def end(e):
    return -np.log(np.expm1(e))


def solve(n_pieces, degree):
    if n_pieces == 2:
        edges, e = [0.0], np.log(2.0)
    else:
        e = np.exp(
            brentq(
                lambda log_e: lay(n_pieces, np.exp(log_e), degree)[-1] - end(np.exp(log_e)),
                np.log(1e-5),
                np.log(0.6),
                xtol=1e-13,
            )
        )
        edges = lay(n_pieces, e, degree)
    pieces = []
    if n_pieces % 2:
        pieces.append((-edges[0], edges[0], *raised(*best_fit(0.0, edges[0], degree, True), 0.0, edges[0])))
    for low, high in pairwise(edges):
        pieces.append((low, high, *raised(*best_fit(low, high, degree, False), low, high)))
    right = [(low, high, a, b + 0.5, c) for low, high, a, b, c in pieces]
    outer = float(np.nextafter(max(e, np.log1p(np.exp(-edges[-1]))), 1.0))
    right.append((edges[-1], np.inf, 0.0, 1.0, outer))
    left = [(-h, -l, a, 1.0 - b, c) for l, h, a, b, c in reversed(right[1 if n_pieces % 2 else 0 :])]
    every = left + right
    return {
        "error": outer,
        "breakpoints": [piece[1] for piece in every[:-1]],
        "coefficients": [piece[2:] for piece in every],
    }


def raised(coefficients, error, low, high):
    """The fit moved up until it lies above H at every point of a grid, finer about the worst one."""
    a, b, c = coefficients
    grid = np.linspace(low, high, 20001)
    for _ in range(2):
        gap = H(grid) - (a * grid + b) * grid - c
        worst, step = grid[gap.argmax()], grid[1] - grid[0]
        grid = np.linspace(max(low, worst - step), min(high, worst + step), 2001)
    return a, b, c + float(gap.max()) + 1e-15


if __name__ == "__main__":
    table = {f"{degree}:{r}": solve(r, degree) for degree in (1, 2) for r in range(2, 21)}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(bound)}" for name, bound in table.items())
    TARGET.write_text("{\n" + lines + "\n}\n")
