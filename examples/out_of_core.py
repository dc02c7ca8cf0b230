"""Out of core: what if the table does not fit into memory?

In place of a table every estimator accepts the path of Parquet files: row groups are read when they are
needed. The fit agrees with the one in memory.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from nongauss import SparseGPRegressor

rng = np.random.default_rng(0)
parts = []
with tempfile.TemporaryDirectory() as folder:
    for month in range(4):
        part = pd.DataFrame({"time": rng.uniform(0, 6, 2_500)})
        part["calls"] = rng.poisson(np.exp(1 + np.sin(part["time"])))
        part.to_parquet(Path(folder) / f"calls{month}.parquet")
        parts.append(part)
    streamed = SparseGPRegressor("poisson", n_inducing=10, random_state=0).fit(
        f"{folder}/calls*.parquet", "calls"
    )

whole = pd.concat(parts, ignore_index=True)
here = SparseGPRegressor("poisson", n_inducing=10, random_state=0).fit(whole[["time"]], whole["calls"])
grid = pd.DataFrame({"time": np.linspace(0, 6, 100)})
from_disk, from_memory = streamed.predict(grid), here.predict(grid)
truth = np.exp(1 + np.sin(grid["time"]))
print(f"{len(whole):,} rows in 4 files")
print(
    f"from disk and from memory differ by {100 * np.max(np.abs(from_disk / from_memory - 1)):.0f} % at most"
)
print(f"from disk, off the truth by {100 * np.mean(np.abs(from_disk / truth - 1)):.0f} %")

plt.plot(grid["time"], truth, ":", color="0.2")
plt.plot(grid["time"], from_memory, linewidth=5, alpha=0.3)
plt.plot(grid["time"], from_disk)
plt.gca().set(
    title="The same rate from disk (line), from memory (band), and the truth (dotted)", xlabel="time"
)
plt.show()
