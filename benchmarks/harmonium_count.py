"""Does the number of features follow the data? Known features in 60 columns, one fixed default.

    python benchmarks/harmonium_count.py [--seeds 3]

No data needed. Writes results/harmonium_count.json and the table in benchmarks/README.md.
"""

from __future__ import annotations

import warnings

import numpy as np
from common import parser, write_results, write_table
from harmonium_common import made, timed

from nongauss import Harmonium

TRUE = (3, 5, 8, 12, 20)


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--seeds", type=int, default=3)
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "| columns | rows | " + " | ".join(f"true {k}" for k in TRUE) + " | CPU s |",
        "|---|---|" + "---|" * 6,
    ]
    results = []
    for kind in ("real", "binary"):
        for n_rows in (1000, 5000):
            cells, spent = [], []
            for n_features in TRUE:
                found = []
                for seed in range(chosen.seeds):
                    X = made(n_features, n_rows, kind, seed)
                    model, seconds = timed(lambda X=X, seed=seed: Harmonium(random_state=seed).fit(X))
                    found.append(model.n_active_)
                    spent.append(seconds)
                results.append({"kind": kind, "rows": n_rows, "true": n_features, "found": found})
                cells.append(", ".join(map(str, found)))
                print(kind, n_rows, n_features, found, flush=True)
            lines.append(f"| {kind} | {n_rows:,} | " + " | ".join(cells) + f" | {np.mean(spent):.1f} |")
            write_results("harmonium_count", {"runs": results})
            write_table("harmonium_count", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
