"""The automatic regressor and each family alone on published splits: density, error, coverage, seconds.

    python benchmarks/auto.py --data DIR [--sets boston yacht] [--splits 3]

Seconds are of the processor, for the whole fit. Results are kept after each split: `results/auto.json`.
"""

from __future__ import annotations

import json
import time
import warnings
from typing import Any

import numpy as np
from common import RESULTS, judged, load_splits, parser

import nongauss

SETS = ["boston", "concrete", "energy", "yacht"]
MODELS: dict[str, Any] = {
    "auto": lambda: nongauss.AutoRegressor(random_state=0),
    "gp": lambda: nongauss.SparseGPRegressor(random_state=0),
    "gp heteroscedastic": lambda: nongauss.SparseGPRegressor("heteroscedastic", random_state=0),
    "gp laplace": lambda: nongauss.SparseGPRegressor("laplace", random_state=0),
    "gp gamma": lambda: nongauss.SparseGPRegressor("gamma", random_state=0),
    "tggm": lambda: nongauss.TGGMRegressor(random_state=0),
}


def one(model: Any, X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[train], y[train])
    seconds = time.process_time() - begin
    found: dict[str, Any] = {**judged(model.predict_distribution(X[test]), y[test]), "seconds": seconds}
    if hasattr(model, "weights_") and isinstance(model.weights_, dict):
        found["weights"] = model.weights_
    return found


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sets", nargs="+", default=SETS)
    options.add_argument("--splits", type=int, default=3)
    options.add_argument("--models", nargs="+", default=list(MODELS))
    chosen = options.parse_args()
    path = RESULTS / "auto.json"
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for name in chosen.sets:
        X, y, splits = load_splits(chosen.data, name)
        for number, (train, test) in enumerate(splits[: chosen.splits]):
            for model in chosen.models:
                place = known.setdefault(name, {}).setdefault(str(number), {})
                if model not in place:
                    place[model] = one(MODELS[model](), X, y, train, test)
                    print(name, number, model, place[model], flush=True)
                    path.parent.mkdir(exist_ok=True)
                    path.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
