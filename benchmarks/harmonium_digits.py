"""MNIST: supervised harmoniums beside a linear classifier and an RBM's features.

    python benchmarks/harmonium_digits.py --data FOLDER [--train 60000]

Writes results/harmonium_digits.json and the table.
"""

from __future__ import annotations

import warnings

import numpy as np
from common import parser, write_results, write_table
from harmonium_common import timed
from sklearn.linear_model import SGDClassifier

from nongauss import Harmonium, HarmoniumClassifier


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--train", type=int, default=60_000)
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    archive = np.load(chosen.data / "mnist" / "mnist.npz")
    parts = [archive[name] for name in ("X_train", "y_train", "X_test", "y_test")]
    X, X_test = (part.reshape(len(part), -1) / 255.0 for part in (parts[0][: chosen.train], parts[2]))
    y, y_test = parts[1][: chosen.train], parts[3]
    view = {"pixels": (slice(0, X.shape[1]), "binary")}
    lines, results = ["| model | rows | test error | CPU s |", "|---|---|---|---|"], []
    for name, model in {
        "HarmoniumClassifier(100)": HarmoniumClassifier(100, views=view, random_state=0),
        "HarmoniumClassifier(500)": HarmoniumClassifier(500, views=view, random_state=0),
        "linear SVM (SGD)": SGDClassifier(random_state=0),
    }.items():
        fitted, seconds = timed(lambda model=model: model.fit(X, y))
        error = float(np.mean(fitted.predict(X_test) != y_test))
        results.append({"model": name, "rows": len(y), "error": error, "cpu_seconds": seconds})
        lines.append(f"| {name} | {len(y):,} | {error:.4f} | {seconds:.0f} |")
        print(lines[-1], flush=True)
    features = Harmonium(100, views=view, random_state=0)
    _, seconds = timed(lambda: features.fit(X[:10_000]))
    score = float(features.score_samples(np.round(X_test[:500])).mean())
    results.append(
        {"model": "Harmonium(100)", "rows": 10_000, "log_likelihood": score, "cpu_seconds": seconds}
    )
    lines.append(f"| Harmonium(100), AIS {score:.1f} nats a test row | 10,000 | | {seconds:.0f} |")
    write_results("harmonium_digits", {"runs": results})
    write_table("harmonium_digits", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
