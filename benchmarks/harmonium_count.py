"""Does the number of features follow the data? Known features in 60 columns, one fixed default.

    python benchmarks/harmonium_count.py [--seeds 2]

The last rows have twice the steps of contrastive divergence and at most twice the iterations of the chain.

No data needed. Writes results/harmonium_count.json and the table in benchmarks/README.md.
"""

from __future__ import annotations

import warnings

import numpy as np
from common import parser, write_results, write_table
from harmonium_common import made, timed

from nongauss import Harmonium
from nongauss.harmonium import fit

TRUE = (3, 5, 8, 12, 20)
CASES = [
    *((kind, n_rows, 1) for kind in ("real", "binary") for n_rows in (1000, 5000)),
    *((kind, 5000, 2) for kind in ("real", "binary")),
]


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--seeds", type=int, default=2)
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "| columns | rows | " + " | ".join(f"true {k}" for k in TRUE) + " | CPU s |",
        "|---|---|" + "---|" * 6,
    ]
    results = []
    usual = fit.LEAST_STEPS, fit.FIRST_WORK, fit.CHAIN_EPOCHS
    for kind, n_rows, times in CASES:
        fit.LEAST_STEPS, fit.FIRST_WORK, fit.CHAIN_EPOCHS = (times * number for number in usual)
        cells, spent = [], []
        for n_features in TRUE:
            found = []
            for seed in range(chosen.seeds):
                X = made(n_features, n_rows, kind, seed)
                model, seconds = timed(lambda X=X, seed=seed: Harmonium(random_state=seed).fit(X))
                found.append(model.n_active_)
                spent.append(seconds)
            case = {"kind": kind, "rows": n_rows, "times": times, "true": n_features}
            results.append({**case, "found": found})
            cells.append(", ".join(map(str, found)))
            print(results[-1], flush=True)
        what = f"{kind}, twice the epochs" if times == 2 else kind
        lines.append(f"| {what} | {n_rows:,} | " + " | ".join(cells) + f" | {np.mean(spent):.1f} |")
        write_results("harmonium_count", {"runs": results})
        write_table("harmonium_count", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
