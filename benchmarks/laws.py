"""Twelve simulated laws: how far the automatic regressor stays below the truth, nats a row, and its coverage.

Where single values have a probability a central interval holds more than its share; so coverage is that of
P(Y < y) + u P(Y = y), u uniform, between .05 and .95: 90 % for a law that is right, whatever its kind.

    python benchmarks/laws.py [--sizes 500 3000] [--draws 5] [--laws "two humps"]

Five columns, of which three matter; the truth of each row is known. Test rows: 2,000 of the same law.
Results are kept after each draw: `results/laws.json`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from common import hours_of_fits, keep_results, known_results, write_table
from scipy import stats
from scipy.special import ndtr

from nongauss import AutoRegressor
from nongauss.predictive.scores import score_interval

N_NEW = 2_000


class Law(NamedTuple):
    """Draws y given f (N,) and g (N,), two functions of the row, and gives log p(y) of a row."""

    draw: Callable[..., np.ndarray]
    log_prob: Callable[..., np.ndarray]


def mixed(rng: np.random.Generator, first: np.ndarray, a: Any, b: Any) -> np.ndarray:
    """`a` where `first`, else `b`."""
    return np.where(rng.random(len(first)) < first, a, b)


def log_mixed(share: np.ndarray, is_first: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Log of a mass `share` where `is_first`, else of what is left of it times a density."""
    return np.where(is_first, np.log(share), np.log1p(-share) + rest)


def unit(f: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-f))


def frozen(of: Callable[..., Any]) -> Law:
    """A law that SciPy has, from a function of f and g that gives it."""
    draw = lambda rng, f, g: of(f, g).rvs(random_state=rng)  # noqa: E731

    def log_prob(y: np.ndarray, f: np.ndarray, g: np.ndarray) -> np.ndarray:
        law = of(f, g)
        return law.logpdf(y) if hasattr(law.dist, "logpdf") else law.logpmf(y)

    return Law(draw, log_prob)


def humps_log_prob(y: np.ndarray, f: np.ndarray, g: np.ndarray) -> np.ndarray:
    share = unit(g)
    return np.log(share * stats.norm.pdf(y, f + 1.5, 0.3) + (1 - share) * stats.norm.pdf(y, f - 1.5, 0.3))


def ends_log_prob(y: np.ndarray, f: np.ndarray, g: np.ndarray) -> np.ndarray:
    inner = stats.beta(8 * unit(f), 8 * unit(-f)).logpdf(np.clip(y, 1e-9, 1 - 1e-9))
    at_0, at_1 = 0.15 * unit(g), 0.15 * unit(-g)
    return np.where(y == 0, np.log(at_0), np.where(y == 1, np.log(at_1), np.log1p(-at_0 - at_1) + inner))


def ends_draw(rng: np.random.Generator, f: np.ndarray, g: np.ndarray) -> np.ndarray:
    u, inner = rng.random(len(f)), stats.beta(8 * unit(f), 8 * unit(-f)).rvs(random_state=rng)
    at_0, at_1 = 0.15 * unit(g), 0.15 * unit(-g)
    return np.where(u < at_0, 0.0, np.where(u > 1 - at_1, 1.0, inner))


def top_log_prob(y: np.ndarray, f: np.ndarray, g: np.ndarray) -> np.ndarray:
    inner = stats.norm(f, 0.5)
    return np.where(y >= 1.0, inner.logsf(1.0), inner.logpdf(y))


def zip_log_prob(y: np.ndarray, f: np.ndarray, g: np.ndarray) -> np.ndarray:
    share, inner = 0.4 * unit(g), stats.poisson(np.exp(f))
    return np.where(y == 0, np.log(share + (1 - share) * inner.pmf(0)), np.log1p(-share) + inner.logpmf(y))


LAWS: dict[str, Law] = {
    "gaussian": frozen(lambda f, g: stats.norm(f, 0.5)),
    "student t": frozen(lambda f, g: stats.t(3, f, 0.4)),
    "sd tenfold": frozen(lambda f, g: stats.norm(f, 0.3 * np.exp(0.77 * g))),
    "two humps": Law(
        lambda rng, f, g: f + mixed(rng, unit(g), 1.5, -1.5) + 0.3 * rng.normal(size=len(f)), humps_log_prob
    ),
    "gamma": frozen(lambda f, g: stats.gamma(3.0, scale=np.exp(f) / 3.0)),
    "log-normal": frozen(lambda f, g: stats.lognorm(0.6, scale=np.exp(f))),
    "beta": frozen(lambda f, g: stats.beta(8 * unit(f), 8 * unit(-f))),
    "beta, 0 and 1": Law(ends_draw, ends_log_prob),
    "censored at the top": Law(
        lambda rng, f, g: np.minimum(f + 0.5 * rng.normal(size=len(f)), 1.0), top_log_prob
    ),
    "zeros and gamma": Law(
        lambda rng, f, g: mixed(rng, 0.6 * unit(g), 0.0, rng.gamma(3.0, np.exp(f) / 3.0)),
        lambda y, f, g: log_mixed(
            0.6 * unit(g), y == 0, stats.gamma(3.0, scale=np.exp(f) / 3.0).logpdf(np.maximum(y, 1e-12))
        ),
    ),
    "zeros and poisson": Law(
        lambda rng, f, g: mixed(rng, 0.4 * unit(g), 0.0, rng.poisson(np.exp(f))), zip_log_prob
    ),
    "negative binomial": frozen(lambda f, g: stats.nbinom(2.0, 2.0 / (2.0 + np.exp(f)))),
}


def table(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns (n, 5), f and g (n,): smooth functions of three of them, of spread about 1."""
    X = rng.uniform(-1, 1, size=(n, 5))
    f = np.sin(2.5 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 1]
    return X, f, 1.5 * X[:, 2]


def one(name: str, n: int, draw: int) -> dict[str, Any]:
    """Nats a row below the truth on new rows, coverage of the 90 % interval, seconds, weights."""
    rng = np.random.default_rng([n, draw])
    law = LAWS[name]
    X, f, g = table(rng, n + N_NEW)
    y = np.asarray(law.draw(rng, f, g), dtype=float)
    new = slice(n, None)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = AutoRegressor(random_state=draw).fit(X[:n], y[:n])
    seconds = time.process_time() - begin
    said = model.predict_distribution(X[new])
    at = score_interval(said, y[new])
    below, upto = ndtr(at.low), ndtr(at.high)
    drawn = below + rng.random(N_NEW) * (upto - below)
    gap = law.log_prob(y[new], f[new], g[new]) - said.log_prob(y[new])
    inside = (drawn >= 0.05) & (drawn <= 0.95)
    return {
        "below": float(gap.mean()),
        "coverage": float(inside.mean()),
        "seconds": seconds,
        "weights": model.weights_,
    }


def lines(known: dict[str, Any]) -> list[str]:
    """The table of all results that there are: a law a row, nats below the truth and coverage by size."""
    sizes = list(known)
    out = ["| law | " + " | ".join(f"below, {n} rows | held of 90 % | draws" for n in sizes) + " |"]
    out.append("|---" * (1 + 3 * len(sizes)) + "|")
    for name in LAWS:
        cells = []
        for n in sizes:
            found = list(known[n].get(name, {}).values())
            if not found:
                cells += ["", "", "0"]
                continue
            below, held = (float(np.mean([one[key] for one in found])) for key in ("below", "coverage"))
            cells += [f"{below:.3f}", f"{100 * held:.1f} %", str(len(found))]
        out.append(f"| {name} | " + " | ".join(cells) + " |")
    return out


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", nargs="+", type=int, default=[500, 3000])
    options.add_argument("--draws", type=int, default=5)
    options.add_argument("--laws", nargs="+", default=list(LAWS))
    chosen = options.parse_args()
    known = known_results("laws")
    for n in chosen.sizes:
        for name in chosen.laws:
            for draw in range(chosen.draws):
                place = known.setdefault(str(n), {}).setdefault(name, {})
                if str(draw) not in place:
                    place[str(draw)] = one(name, n, draw)
                    print(n, name, draw, place[str(draw)], flush=True)
                    keep_results("laws", known)
    write_table("laws", lines(known) + hours_of_fits(known))


if __name__ == "__main__":
    main()
