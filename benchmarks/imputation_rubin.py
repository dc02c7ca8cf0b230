"""Do intervals by Rubin's rules hold the truth? Means, slopes and correlations of imputed made tables.

    python benchmarks/imputation_rubin.py [--tables 200] [--laws normal ...] [--gaps mcar mar]
    [--methods rank_factor ...]

Tables of 200 rows and four columns: x, and a, b, c that depend on it and on each other. In a, b and c 30 % of
the cells are missing, at random (mcar) or more often the larger x is (mar: with odds exp(2 x) times those at
x = 0). In "skewed" all columns but x are the exponentials of half of the normal ones; in "tight" all
correlations are .9. Twenty draws are analysed one by one: the mean of a, the slope of a on x by least squares
(with standard errors for unequal variances), the correlation of a and b (by Fisher's z); the results are
pooled (Rubin 1987, degrees of freedom of Barnard and Rubin 1999). Each line has the share of 95 % intervals
that hold the truth, the mean error in standard deviations of the estimate by whole tables, and the length of
intervals beside that by whole tables. Tables that are done are kept.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from common import known_results, parser, write_results, write_table
from scipy.special import expit
from scipy.stats import t as student_t

from nongauss import AutoImputer, Harmonium, RankFactorAnalysis
from nongauss.auto.normal_scores import NormalScores

N_ROWS, N_DRAWS, SHARE = 200, 20, 0.3
LOOSE = np.array([[1.0, 0.6, 0.5, 0.3], [0.6, 1.0, 0.5, 0.2], [0.5, 0.5, 1.0, 0.4], [0.3, 0.2, 0.4, 1.0]])
TIGHT = 0.9 * np.ones((4, 4)) + 0.1 * np.eye(4)
CORRELATIONS = {"normal": LOOSE, "skewed": LOOSE, "tight": TIGHT}
"""Correlations of the normal numbers of each law."""
QUANTITIES = ("mean", "slope", "correlation")


def methods() -> dict[str, Callable[[int], Any]]:
    """The estimators by name, made from a seed."""
    return {
        "normal scores": lambda seed: NormalScores(random_state=seed),
        "rank_factor": lambda seed: RankFactorAnalysis(random_state=seed),
        "harmonium": lambda seed: Harmonium(random_state=seed),
        "auto": lambda seed: AutoImputer(random_state=seed),
    }


def table(law: str, gaps: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A table (N, 4), and the same with gaps."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N_ROWS, 4)) @ np.linalg.cholesky(CORRELATIONS[law]).T
    if gaps == "mcar":
        chance = np.full((N_ROWS, 1), SHARE)
    else:
        grid = np.linspace(-8, 8, 4001)
        weight = np.exp(-0.5 * grid**2) / np.exp(-0.5 * grid**2).sum()
        levels = np.linspace(-6, 2, 801)
        level = levels[np.argmin(np.abs(expit(levels[:, None] + 2 * grid) @ weight - SHARE))]
        chance = expit(level + 2.0 * X[:, :1])
    gone = rng.random((N_ROWS, 3)) < chance
    if law == "skewed":
        X[:, 1:] = np.exp(0.5 * X[:, 1:])
    full = X.copy()
    X[:, 1:][gone] = np.nan
    return full, X


def truth(law: str) -> np.ndarray:
    """The mean of a, its slope on x, and the correlation of a and b in z, of all of the law."""
    C = CORRELATIONS[law]
    if law != "skewed":
        return np.array([0.0, C[0, 1], np.arctanh(C[1, 2])])
    s = 0.25  # E exp(w / 2) = exp(s / 2), E x exp(w / 2) = cov / 2 exp(s / 2)
    r = np.expm1(s * C[1, 2]) / np.expm1(s)
    return np.array([np.exp(s / 2), 0.5 * C[0, 1] * np.exp(s / 2), np.arctanh(r)])


def analysed(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Estimates of the quantities by a table without gaps, and their variances."""
    x, a, b = X[:, 0], X[:, 1], X[:, 2]
    n = len(X)
    z = x - x.mean()
    slope = z @ a / (z @ z)
    left = a - a.mean() - slope * z
    lever = 1.0 / n + z**2 / (z @ z)
    slope_variance = (z**2 * left**2 / (1.0 - lever)).sum() / (z @ z) ** 2
    r = np.corrcoef(a, b)[0, 1]
    za, zb = (a - a.mean()) / a.std(), (b - b.mean()) / b.std()
    influence = (za * zb - 0.5 * r * (za**2 + zb**2)) / (1.0 - r**2)
    estimate = np.array([a.mean(), slope, np.arctanh(r)])
    return estimate, np.array([a.var(ddof=1) / n, slope_variance, influence.var(ddof=1) / n])


def pooled(estimate: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Estimates (Q,) and half lengths (Q,) of 95 % intervals from those of m tables (m, Q)."""
    m, complete = len(estimate), N_ROWS - 2.0
    within, between = variance.mean(axis=0), estimate.var(axis=0, ddof=1)
    total = within + (1.0 + 1.0 / m) * between
    lost = np.maximum((1.0 + 1.0 / m) * between / total, 1e-9)
    old, seen = (m - 1.0) / lost**2, (complete + 1.0) / (complete + 3.0) * complete * (1.0 - lost)
    df = 1.0 / (1.0 / old + 1.0 / seen)
    return estimate.mean(axis=0), student_t.ppf(0.975, df) * np.sqrt(total)


def one(make: Callable[[int], Any], law: str, gaps: str, seed: int) -> dict[str, list[float]]:
    """Errors, half lengths, and both by the whole table."""
    full, gappy = table(law, gaps, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        model = make(seed).fit(gappy)
        drawn = model.sample_missing(gappy, N_DRAWS)
        seconds = time.process_time() - began
    estimate, half = pooled(*(np.stack(part) for part in zip(*map(analysed, drawn), strict=True)))
    whole, variance = analysed(full)
    whole_half = student_t.ppf(0.975, N_ROWS - 2) * np.sqrt(variance)
    return {
        "error": (estimate - truth(law)).round(5).tolist(),
        "half": half.round(5).tolist(),
        "whole_error": (whole - truth(law)).round(5).tolist(),
        "whole_half": whole_half.round(5).tolist(),
        "seconds": [round(seconds, 2)],
    }


def figures(each: list[dict[str, list[float]]]) -> dict[str, np.ndarray]:
    """Coverage, that with whole tables, bias in standard errors of whole tables, relative length."""
    error, half, whole_error, whole_half = (
        np.array([own[name] for own in each]) for name in ("error", "half", "whole_error", "whole_half")
    )
    return {
        "held": (np.abs(error) <= half).mean(axis=0),
        "whole": (np.abs(whole_error) <= whole_half).mean(axis=0),
        "bias": error.mean(axis=0) / whole_error.std(axis=0),
        "error": error.std(axis=0) / whole_error.std(axis=0),
        "length": half.mean(axis=0) / whole_half.mean(axis=0),
    }


def summary(results: dict[str, Any]) -> list[str]:
    """The table of the page."""
    names = [f"{name} {what}" for name in QUANTITIES for what in ("held", "bias", "length")]
    lines = [
        "| law | gaps | method | tables | " + " | ".join(names) + " | s |",
        "|" + "---|" * (5 + len(names)),
    ]
    for key, each in sorted(results.items()):
        law, gaps, method = key.split("|")
        found = figures([*each.values()])
        own = [
            f"{found[what][q]:.{3 if what == 'held' else 2}f}"
            for q in range(len(QUANTITIES))
            for what in ("held", "bias", "length")
        ]
        seconds = np.mean([tab["seconds"][0] for tab in each.values()])
        lines.append(
            f"| {law} | {gaps} | {method} | {len(each)} | " + " | ".join(own) + f" | {seconds:.1f} |"
        )
    return lines


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--tables", type=int, default=200)
    options.add_argument("--laws", nargs="+", default=["normal", "skewed", "tight"])
    options.add_argument("--gaps", nargs="+", default=["mcar", "mar"])
    options.add_argument("--methods", nargs="+", default=[*methods()])
    args = options.parse_args()
    results = known_results("imputation_rubin").get("tables", {})
    for law in args.laws:
        for gaps in args.gaps:
            for method in args.methods:
                known = results.setdefault(f"{law}|{gaps}|{method}", {})
                for seed in range(args.tables):
                    if str(seed) not in known:
                        known[str(seed)] = one(methods()[method], law, gaps, seed)
                write_results("imputation_rubin", {"tables": results})
    write_table("imputation_rubin", summary(results))
    print("\n".join(summary(results)))


if __name__ == "__main__":
    main()
