"""Intervals with a guarantee: what if the model is wrong?

A straight line with Gaussian noise is fitted to data that are neither linear nor Gaussian. `conformalize`
takes rows that were not used in the fit; after that, intervals have the requested coverage of new rows,
whatever the model.
"""

import matplotlib.pyplot as plt
import numpy as np

from nongauss import AutoRegressor

rng = np.random.default_rng(0)
x = rng.uniform(0, 1, 3100)
y = 3 * x + rng.exponential(0.1 + 2 * x, 3100)
fit, keep, new = slice(0, 100), slice(100, 1100), slice(1100, None)

model = AutoRegressor(candidates=["linear"], calibrate=False, random_state=0).fit(x[fit, None], y[fit])
model.conformalize(x[keep, None], y[keep])
for coverage in (0.5, 0.8, 0.9, 0.95):
    held = []
    for guarantee in ("none", "conformal"):
        low, high = model.predict_interval(x[new, None], coverage, guarantee=guarantee).T
        held.append(100 * np.mean((low <= y[new]) & (y[new] <= high)))
    alone, guaranteed = held
    print(f"nominal {100 * coverage:.0f} %: alone {alone:.0f} %, with the guarantee {guaranteed:.0f} %")

grid = np.linspace(0, 1, 50)[:, None]
plt.scatter(x[new], y[new], s=2, color="0.7", linewidth=0)
for guarantee, style in (("none", "--"), ("conformal", "-")):
    for end in model.predict_interval(grid, 0.8, guarantee=guarantee).T:
        plt.plot(grid, end, style, color="C0" if guarantee == "conformal" else "C1")
plt.gca().set(title="80 % intervals: the model alone (dashed), with the guarantee", xlabel="x", ylim=(-2, 12))
plt.show()
