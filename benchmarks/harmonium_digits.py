"""MNIST: supervised harmoniums beside a linear classifier. Densities are in harmonium_rbm.py.

    python benchmarks/harmonium_digits.py --data FOLDER [--train 60000] [--models ...]

Writes results/harmonium_digits.json and the table.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from common import known_results, parser, write_results, write_table
from harmonium_common import timed
from sklearn.linear_model import SGDClassifier

from nongauss import HarmoniumClassifier

MODELS: dict[str, Callable[[Any], Any]] = {
    "HarmoniumClassifier(100)": lambda view: HarmoniumClassifier(100, views=view, random_state=0),
    "HarmoniumClassifier(500)": lambda view: HarmoniumClassifier(500, views=view, random_state=0),
    "HarmoniumClassifier(500), 24 epochs, dropout .2": lambda view: HarmoniumClassifier(
        500, max_epochs=24, dropout=0.2, views=view, random_state=0
    ),
    "linear SVM (SGD)": lambda view: SGDClassifier(random_state=0),
}


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--train", type=int, default=60_000)
    options.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    archive = np.load(chosen.data / "mnist" / "mnist.npz")
    parts = [archive[name] for name in ("X_train", "y_train", "X_test", "y_test")]
    X, X_test = (part.reshape(len(part), -1) / 255.0 for part in (parts[0][: chosen.train], parts[2]))
    y, y_test = parts[1][: chosen.train], parts[3]
    view = {"pixels": (slice(0, X.shape[1]), "binary")}
    results = known_results("harmonium_digits").get("runs", {})
    for name in chosen.models:
        fitted, seconds = timed(lambda name=name: MODELS[name](view).fit(X, y))
        error = float(np.mean(fitted.predict(X_test) != y_test))
        results[name] = {"rows": len(y), "error": error, "cpu_seconds": seconds}
        write_results("harmonium_digits", {"runs": results})
        print(name, results[name], flush=True)
    lines = ["| model | rows | test error | CPU s |", "|---|---|---|---|"]
    for name in MODELS:
        if name in results:
            row = results[name]
            lines.append(f"| {name} | {row['rows']:,} | {row['error']:.4f} | {row['cpu_seconds']:.0f} |")
    write_table("harmonium_digits", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
