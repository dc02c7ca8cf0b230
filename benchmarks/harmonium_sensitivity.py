"""How much C, alpha and the number of features matter on 20 Newsgroups (figures 9 and 10 of the paper).

    python benchmarks/harmonium_sensitivity.py --data FOLDER

Judged on a fifth of the training rows that is held out, not on test rows. Writes the table and the JSON.
"""

from __future__ import annotations

import warnings

import numpy as np
from common import parser, random_splits, write_results, write_table
from harmonium_common import newsgroups, timed

from nongauss import HarmoniumClassifier

SETTINGS = [
    *({"n_components": 50, "C": C} for C in (3.0, 30.0, 100.0, 300.0, 1000.0, 10_000.0)),
    *({"n_components": K} for K in (20, 100, 200)),
    *({"n_components": 50, "dropout": share} for share in (0.0, 0.25, 0.65)),
    *({"alpha": alpha} for alpha in (0.5, 5.0)),
]


def main() -> None:
    chosen = parser(__doc__.splitlines()[0]).parse_args()
    warnings.simplefilter("ignore")
    X, y, *_ = newsgroups(chosen.data)
    ((train, held),) = random_splits(len(y), 4 * len(y) // 5, 1)
    lines, results = ["| setting | held-out error | features | CPU s |", "|---|---|---|---|"], []
    for setting in SETTINGS:
        model, seconds = timed(
            lambda setting=setting: HarmoniumClassifier(random_state=0, **setting).fit(X[train], y[train])
        )
        error = float(np.mean(model.predict(X[held]) != y[held]))
        results.append({**setting, "error": error, "active": model.n_active_, "cpu_seconds": seconds})
        shown = ", ".join(f"{key}={value:g}" for key, value in setting.items())
        lines.append(f"| {shown} | {error:.4f} | {model.n_active_} | {seconds:.1f} |")
        print(lines[-1], flush=True)
        write_results("harmonium_sensitivity", {"runs": results})
        write_table("harmonium_sensitivity", lines)


if __name__ == "__main__":
    main()
