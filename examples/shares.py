"""Shares: what proportion of the seeds germinates, and can an interval leave 0 to 1?

A beta distribution ends at 0 and 1, is narrow near the ends, and skewed where it must be. Gaussian
intervals go beyond 100 %.
"""

import matplotlib.pyplot as plt
import numpy as np

from nongauss import SparseGPRegressor

rng = np.random.default_rng(0)
warmth = rng.uniform(0, 35, 250)
middle = 1 / (1 + np.exp(-(4.5 - ((warmth - 20) / 6) ** 2)))
share = np.clip(rng.beta(15 * middle, 15 * (1 - middle)), 1e-6, 1 - 1e-6)

grid = np.linspace(0, 35, 200)
figure, axes = plt.subplots(1, 2, sharey=True)
for likelihood, ax in zip(("gaussian", "beta"), axes, strict=True):
    model = SparseGPRegressor(likelihood, random_state=0).fit(warmth[:150, None], share[:150])
    law = model.predict_distribution(grid[:, None])
    low, high = law.interval(0.9).T
    density = model.log_density(warmth[150:, None], share[150:]).mean()
    print(f"{likelihood}: log density of new rows {density:.2f}, ", end="")
    print(f"intervals from {low.min():.2f} to {high.max():.2f}")
    ax.scatter(warmth, share, s=8, color="0.6", linewidth=0)
    ax.fill_between(grid, low, high, alpha=0.25, linewidth=0)
    ax.plot(grid, law.mean)
    ax.axhline(1, color="0.2", linewidth=0.6)
    ax.axhline(0, color="0.2", linewidth=0.6)
    ax.set(title=likelihood, xlabel="degrees")
plt.show()
