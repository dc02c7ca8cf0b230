"""Time budgets of the automatic estimators: how much of each a fit takes, and what there was no time for.

    python benchmarks/auto_budget.py [--sizes 500 5000] [--budgets 5 15 60] [--kinds numbers labels]

Eight columns, of which four matter: numbers with a spread that follows a column, or the sign of these. Times
are by the clock on the wall, as budgets are; on a machine that does other work beside, they say what is left
to a fit there. Results are kept after each fit: `results/auto_budget.json`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from common import keep_results, known_results, write_table

from nongauss import AutoClassifier, AutoRegressor

KINDS = ("numbers", "labels")


def one(kind: str, n: int, budget: float) -> dict[str, Any]:
    """Seconds by the clock and of the processor, and the numbers of candidates there was time for and not."""
    rng = np.random.default_rng(n)
    X = rng.uniform(-1, 1, size=(n, 8))
    y = np.sin(2.5 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 1]
    y += 0.5 * np.exp(0.5 * X[:, 3]) * rng.normal(size=n)
    estimator = AutoRegressor if kind == "numbers" else AutoClassifier
    model = estimator(time_budget=budget, random_state=0)
    begin, cpu = time.monotonic(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y if kind == "numbers" else (y > 0.0).astype(int))
    took, cpu = time.monotonic() - begin, time.process_time() - cpu
    board = model.leaderboard_
    late = int(board["why_left_out"].str.contains("no time").sum())
    return {
        "took": took,
        "seconds": cpu,
        "judged": int(board["log_density"].notna().sum()),
        "late": late,
        "is_short": "not enough" in model.stop_reason_,
    }


def lines(known: dict[str, Any]) -> list[str]:
    """A row for each kind, size and budget."""
    out = ["| target | rows | budget, s | took, s | share | CPU s | judged | no time for | time was short |"]
    out.append("|---" * 9 + "|")
    every = [(*key.split(", "), found) for key, found in known.items()]
    for kind, n, budget, found in sorted(
        every, key=lambda row: (row[0] != KINDS[0], int(row[1]), int(row[2]))
    ):
        share = f"{100 * found['took'] / float(budget):.0f} %"
        figures = (
            f"{found['took']:.1f} | {share} | {found['seconds']:.1f} | {found['judged']} | {found['late']}"
        )
        out.append(f"| {kind} | {n} | {budget} | {figures} | {'yes' if found['is_short'] else 'no'} |")
    return out


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", nargs="+", type=int, default=[500, 5000])
    options.add_argument("--budgets", nargs="+", type=int, default=[5, 15, 60])
    options.add_argument("--kinds", nargs="+", default=list(KINDS))
    chosen = options.parse_args()
    known = known_results("auto_budget")
    for kind in chosen.kinds:
        for n in chosen.sizes:
            for budget in chosen.budgets:
                key = f"{kind}, {n}, {budget}"
                if key not in known:
                    known[key] = one(kind, n, budget)
                    print(key, known[key], flush=True)
                    keep_results("auto_budget", known)
    write_table("auto_budget", lines(known))


if __name__ == "__main__":
    main()
