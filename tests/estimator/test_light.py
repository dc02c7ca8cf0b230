"""What a process pays for that only loads a model and predicts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FILES = Path(__file__).parent / "models_of_0_1"
WITHOUT_JAX = (
    "Harmonium",
    "HarmoniumClassifier",
    "RankFactorAnalysis",
    "RankFactorClassifier",
    "RectangleMixture",
    "SparseGPClassifier",
    "SparseGPOrdinalClassifier",
    "SparseGPRegressor",
)
HEAVY = ("jax", "optax", "matplotlib", "typer", "rich", "jinja2", "dask", "sklearn.cluster")
SCRIPT = f"""
import json, sys
import pandas as pd
import nongauss

rows = pd.read_csv({str(FILES / "table.csv")!r})[["size", "colour", "rooms"]]
found = {{}}
for name in {WITHOUT_JAX!r}:
    model = nongauss.load({str(FILES)!r} + "/" + name + ".nongauss")
    model.predict(rows) if hasattr(model, "predict") else model.transform(rows)
    found[name] = [module for module in {HEAVY!r} if module in sys.modules]
print(json.dumps(found))
"""


def test_a_loaded_model_predicts_without_jax_or_anything_that_draws_or_prints():
    done = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout) == {name: [] for name in WITHOUT_JAX}
