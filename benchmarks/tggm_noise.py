"""Noise of known laws: how far `TGGMRegressor` stays below the truth, nats a row, and what it chose.

    python benchmarks/tggm_noise.py [--laws "gamma 1.5"] [--draws 3] [--heads auto]

1,000 rows (two humps: 3,000) of three columns; mean and spread follow them. The other law is judged on 4,000
rows. Results are kept after each fit: `results/tggm_noise.json`.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np
from common import known_results, with_error, write_results, write_table
from scipy import stats

from nongauss import TGGMRegressor

N_NEW = 4_000


class Sides:
    """Two humps of one weight, 3 apart and .6 wide, scaled to variance 1."""

    scale = np.sqrt(1.5**2 + 0.3**2)

    def rvs(self, size: int, random_state: np.random.Generator) -> np.ndarray:
        """`size` draws."""
        side = random_state.choice([-1.5, 1.5], size)
        return (side + 0.3 * random_state.normal(size=size)) / self.scale

    def logpdf(self, z: np.ndarray) -> np.ndarray:
        """Log density at z (N,)."""
        z = z * self.scale
        return np.log(0.5 * self.scale * (stats.norm.pdf(z, 1.5, 0.3) + stats.norm.pdf(z, -1.5, 0.3)))


class Noise(NamedTuple):
    """A law of the noise and the number of rows that are fitted."""

    law: object
    n_rows: int


NOISES = {
    "gauss": Noise(stats.norm(), 1_000),
    "gamma 1.5": Noise(stats.gamma(1.5), 1_000),
    "log-normal 0.7": Noise(stats.lognorm(0.7), 1_000),
    "two humps": Noise(Sides(), 3_000),
}


def table(noise: Noise, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows X (n, 3), targets and their true log densities (n,); the last `N_NEW` are to be predicted."""
    rng = np.random.default_rng(seed)
    n = noise.n_rows + N_NEW
    X = rng.uniform(-1.0, 1.0, (n, 3))
    middle, spread = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2], 0.4 * np.exp(0.5 * X[:, 1])
    z = noise.law.rvs(size=n, random_state=rng)
    return X, middle + spread * z, noise.law.logpdf(z) - np.log(spread)


def one_draw(noise: Noise, seed: int, n_heads: int | str) -> dict:
    """Fit on the first rows, judge on the others."""
    X, y, truth = table(noise, seed)
    started = time.perf_counter()
    model = TGGMRegressor(n_heads=n_heads, random_state=seed).fit(X[: noise.n_rows], y[: noise.n_rows])
    seconds = time.perf_counter() - started
    found = model.predict_distribution(X[noise.n_rows :]).log_prob(y[noise.n_rows :])
    return {
        "truth": float(truth[noise.n_rows :].mean()),
        "below": float((truth[noise.n_rows :] - found).mean()),
        "posterior": model.posterior_,
        "n_heads": model.n_heads_,
        "fit_seconds": seconds,
    }


def lines_of(found: dict[str, dict[str, list[dict]]]) -> list[str]:
    """The Markdown table."""
    lines = [
        "| noise | rows | heads asked | draws | truth | below it | chosen | fit s |",
        "|---|" + "---|" * 7,
    ]
    for law, by_heads in found.items():
        for heads, rows in by_heads.items():
            below = with_error([row["below"] for row in rows], ".3f")
            chosen = ", ".join(sorted({f"{row['posterior']} {row['n_heads']}" for row in rows}))
            lines.append(
                f"| {law} | {NOISES[law].n_rows} | {heads} | {len(rows)} "
                f"| {np.mean([row['truth'] for row in rows]):.3f} | {below} | {chosen} "
                f"| {np.median([row['fit_seconds'] for row in rows]):.1f} |"
            )
    return lines


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--laws", nargs="+", choices=NOISES, default=list(NOISES))
    options.add_argument("--draws", type=int, default=3)
    options.add_argument("--heads", choices=("1", "auto"), default="auto")
    options.add_argument("--anew", action="store_true")
    asked = options.parse_args()
    found = known_results("tggm_noise").get("laws", {})
    for law in asked.laws:
        rows = [] if asked.anew else found.get(law, {}).get(asked.heads, [])
        for seed in range(len(rows), asked.draws):
            rows.append(one_draw(NOISES[law], seed, 1 if asked.heads == "1" else "auto"))
            found.setdefault(law, {})[asked.heads] = rows
            write_results("tggm_noise", {"laws": found})
    lines = lines_of({law: found[law] for law in NOISES if law in found})
    write_table("tggm_noise", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
