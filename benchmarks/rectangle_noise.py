"""What columns that tell nothing, rare 0/1 columns and small directions do to clusters of known number."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from common import RESULTS, parser, write_results, write_table
from rectangle_uci import AIMS, load
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from nongauss import RectangleMixture

Figures = dict[str, float]
SETS = tuple(name for name in AIMS if name != "zoo")  # zoo has labels alone
NOISE = 8


def fitted(X: pd.DataFrame, K: int, seed: int) -> RectangleMixture:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RectangleMixture(K, random_state=seed).fit(X)


def beside(X: pd.DataFrame, seed: int, law: str) -> pd.DataFrame:
    """The columns, and eight that say nothing."""
    rng = np.random.default_rng(seed)
    draw = {"normal": rng.normal, "uniform": rng.uniform, "log-normal": rng.lognormal}[law]
    noise = pd.DataFrame(draw(size=(len(X), NOISE)), index=X.index).add_prefix("noise ")
    return pd.concat([X, noise], axis=1)


def noisy_set(X: pd.DataFrame, y: np.ndarray, law: str, seed: int, alone: float) -> Figures:
    """NMI by the rules with eight columns of noise, less that without them; noise columns in rules."""
    began = time.process_time()
    model = fitted(beside(X, seed, law), len(np.unique(y)), seed)
    seconds = time.process_time() - began
    named, quiet = set(model.rules_["column"].map(str)), set(model.quiet_columns_)
    noise = {f"noise {i}" for i in range(NOISE)}
    return {
        "cost": alone - float(normalized_mutual_info_score(y, model.labels_)),
        "quiet": float(len(noise & quiet)),
        "in rules": float(len(noise & named)),
        "others quiet": float(len(quiet - noise)),
        "seconds": seconds,
    }


def rare_column(seed: int) -> tuple[pd.DataFrame, np.ndarray, set[str]]:
    """Two Gaussian groups in one column, a column of noise, and one that is 1 in 3 % of the rows."""
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1], 100)
    columns = [rng.normal(size=200) + 4.0 * truth, rng.normal(size=200), 1.0 * (rng.random(200) < 0.03)]
    return pd.DataFrame(dict(zip(("told", "noise", "rare"), columns, strict=True))), truth, {"told"}


def small_direction(seed: int, n_columns: int = 4) -> tuple[pd.DataFrame, np.ndarray, set[str]]:
    """Two groups across the common direction of some columns, which a rule column tells."""
    rng = np.random.default_rng(seed)
    truth = np.repeat([-1.0, 1.0], 200)
    like = rng.normal(size=(400, 1)) + 0.05 * rng.normal(size=(400, n_columns))
    like += 0.15 * truth[:, None] * np.where(np.arange(n_columns) % 2, -1.0, 1.0)
    age = np.where(truth > 0, rng.uniform(20, 45, 400), rng.uniform(40, 70, 400))
    return pd.DataFrame(like).add_prefix("x").assign(age=age), truth, {"age"}


MADE: dict[str, Callable[[int], tuple[pd.DataFrame, np.ndarray, set[str]]]] = {
    "a rare 0/1 column": rare_column,
    "a small direction of 4 columns": small_direction,
    "a small direction of 20 columns": lambda seed: small_direction(seed, 20),
}


def made_table(name: str, seed: int) -> Figures:
    """Were the groups found by all columns (adjusted Rand index above .8), the rules of the right ones?"""
    X, truth, telling = MADE[name](seed)
    model = fitted(X, 2, seed)
    ari = adjusted_rand_score(truth, model.predict_posterior(X).argmax(axis=1))
    return {"found": float(ari > 0.8), "right columns": float(set(model.rules_["column"]) <= telling)}


def table(noisy: dict[str, list[Figures]], made: dict[str, list[Figures]]) -> list[str]:
    lines = [
        "| eight columns of noise beside | fits | NMI lost, mean | most | noise columns left out | in rules "
        "| others left out | CPU s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, fits in noisy.items():
        frame = pd.DataFrame(fits)
        mean = frame.mean()
        lines.append(
            f"| {name} | {len(fits)} | {mean['cost']:.3f} | {frame['cost'].max():.3f} | {mean['quiet']:.1f} "
            f"| {mean['in rules']:.1f} | {mean['others quiet']:.1f} | {mean['seconds']:.1f} |"
        )
    lines += ["", "| made tables | groups found | rules of the right columns alone |", "|---|---|---|"]
    for name, fits in made.items():
        sums = pd.DataFrame(fits).sum()
        told = " | ".join(f"{sums[key]:.0f} of {len(fits)}" for key in ("found", "right columns"))
        lines.append(f"| {name} | {told} |")
    return lines


def noisy_fits(data: Path, name: str, laws: list[str], seeds: int) -> dict[str, list[Figures]]:
    """The fits of one set with noise of each law."""
    X, y = load(data, name)
    out: dict[str, list[Figures]] = {}
    for seed in range(seeds):
        alone = float(normalized_mutual_info_score(y, fitted(X, len(np.unique(y)), seed).labels_))
        for law in laws:
            out.setdefault(f"{name}, {law}", []).append(noisy_set(X, y, law, seed, alone))
    return out


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS), metavar="SET")
    options.add_argument("--laws", nargs="+", choices=("normal", "uniform", "log-normal"), default=["normal"])
    options.add_argument("--made", nargs="*", choices=list(MADE), default=list(MADE), metavar="TABLE")
    options.add_argument("--seeds", type=int, default=3)
    chosen = options.parse_args()
    path = RESULTS / "rectangle_noise.json"
    kept = json.loads(path.read_text()) if path.exists() else {"noisy": {}, "made": {}}
    for name in chosen.sets:
        kept["noisy"] |= noisy_fits(chosen.data, name, chosen.laws, chosen.seeds)
        _keep(kept)
    for name in chosen.made:
        kept["made"][name] = [made_table(name, seed) for seed in range(4 * chosen.seeds)]
        _keep(kept)
    print("\n".join(table(kept["noisy"], kept["made"])))


def _keep(kept: dict[str, dict[str, list[Figures]]]) -> None:
    """Write what is known so far."""
    content = {key: kept[key] for key in ("noisy", "made")}
    write_results("rectangle_noise", content)
    write_table("rectangle_noise", table(**content))


if __name__ == "__main__":
    main()
