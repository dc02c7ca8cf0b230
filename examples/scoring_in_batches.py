"""Scoring in batches: how do I score a big table in a service or in Spark?

Load a saved model once for each worker and map a function from frames to frames over the batches. The
function below is one for Spark's `mapInPandas`; here it runs over a generator. The prediction for a row
does not depend on the other rows of its batch.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import nongauss

rng = np.random.default_rng(0)
table = pd.DataFrame({"hour": rng.uniform(0, 24, 5_000), "desk": rng.choice(["north", "south"], 5_000)})
calls = rng.poisson(np.exp(1 + np.sin(table["hour"] / 4) + 0.5 * (table["desk"] == "north")))
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "calls.nongauss"
nongauss.save(
    nongauss.SparseGPRegressor("poisson", n_inducing=20, random_state=0).fit(table[:400], calls[:400]), path
)


def score(batches):
    """From an iterator of frames to an iterator of frames, as `DataFrame.mapInPandas` calls it."""
    model = nongauss.load(path)  # once a worker: data only, no code is run
    for batch in batches:
        law = model.predict_distribution(batch)
        yield law.to_frame(quantiles=(0.05, 0.95)).set_index(batch.index)


batches = (table[start : start + 1_000] for start in range(0, len(table), 1_000))
scored = pd.concat(score(batches))
print(scored.head(3).round(2).to_string())
whole = next(score([table]))
print("batches and the whole table agree:", bool(np.allclose(scored, whole)))
folder.cleanup()

for desk, colour in (("north", "C0"), ("south", "C1")):
    rows = table["desk"] == desk
    plt.scatter(table["hour"][rows], scored["mean"][rows], s=2, color=colour)
    at = scored["mean"][rows].idxmax()
    plt.text(table["hour"][at] + 1.5, scored["mean"][at], desk, color=colour)
plt.gca().set(title="Scored rows: expected calls", xlabel="hour")
plt.show()
