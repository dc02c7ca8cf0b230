"""The number of clusters that `n_clusters="auto"` chooses, where the number of classes is known."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from common import known_results, parser, write_results, write_table
from rectangle_uci import AIMS, OTHERS, load

from nongauss import RectangleMixture

MADE = tuple(f"{K} boxes" for K in range(2, 7))


def read(data: Path, name: str) -> tuple[pd.DataFrame, int]:
    """Rows, and the number of classes or of boxes."""
    if name not in MADE:
        X, y = load(data, name)
        return X, len(np.unique(y))
    K = int(name.split()[0])
    rng = np.random.default_rng(K)
    centres = 4.0 * np.array([(x, y) for x in range(3) for y in range(2)])[:K]
    X = centres[rng.integers(0, K, 300)] + rng.uniform(-1.0, 1.0, (300, 2))
    return pd.DataFrame(X, columns=["a", "b"]), K


def chosen_number(X: pd.DataFrame, seed: int) -> dict[str, float]:
    """The number chosen, by how many nats it beats the next best, seconds."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RectangleMixture(random_state=seed).fit(X)
    values = sorted(value for value in model.criterion_.values() if np.isfinite(value))
    lead = values[-1] - values[-2] if len(values) > 1 else np.nan
    seconds = time.perf_counter() - began
    return {"chosen": model.n_clusters_, "lead": float(lead), "seconds": seconds}


def table(sets: dict[str, dict]) -> list[str]:
    lines = ["| set | classes | chosen | ahead of the next by, nats | s a fit |", "|---|---|---|---|---|"]
    for name, figures in sets.items():
        fits = pd.DataFrame(figures["fits"])
        chosen, leads = (
            ", ".join("-" if np.isnan(v) else f"{v:.0f}" for v in fits[c]) for c in ("chosen", "lead")
        )
        lines.append(f"| {name} | {figures['classes']} | {chosen} | {leads} | {fits['seconds'].mean():.0f} |")
    return lines


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    every = (*MADE, *AIMS, *OTHERS)
    options.add_argument("--sets", nargs="+", choices=every, default=list(every), metavar="SET")
    options.add_argument("--seeds", type=int, default=2)
    chosen = options.parse_args()
    sets = known_results("rectangle_number").get("sets", {})
    for name in chosen.sets:
        X, classes = read(chosen.data, name)
        fits = [chosen_number(X, seed) for seed in range(chosen.seeds)]
        sets[name] = {"classes": classes, "fits": fits}
        print(name, sets[name], flush=True)
        sets = {key: sets[key] for key in every if key in sets}
        write_results("rectangle_number", {"sets": sets})
        write_table("rectangle_number", table(sets))


if __name__ == "__main__":
    main()
