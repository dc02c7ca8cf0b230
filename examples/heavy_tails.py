"""Heavy tails: does one gross error bend the whole curve?

A tenth of the measurements are far off. With Gaussian noise the curve bends towards them, and all intervals
become wide; with Student-t noise they have little influence.
"""

import matplotlib.pyplot as plt
import numpy as np

from nongauss import SparseGPRegressor

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 6, 150))
y = np.sin(2 * x) + 0.1 * rng.standard_normal(150)
gross = rng.random(150) < 0.1
y[gross] += rng.choice([-3.0, 3.0], gross.sum())
grid = np.linspace(0, 6, 300)

figure, axes = plt.subplots(1, 2, sharey=True)
for likelihood, ax in zip(("gaussian", "student_t"), axes, strict=True):
    model = SparseGPRegressor(likelihood, random_state=0).fit(x[:, None], y)
    law = model.predict_distribution(grid[:, None])
    error = np.sqrt(np.mean((law.quantile(0.5) - np.sin(2 * grid)) ** 2))
    width = np.ptp(law.interval(0.9), axis=1).mean()
    print(f"{likelihood}: error {error:.3f}, width of the 90 % interval {width:.2f}")
    ax.scatter(x, y, s=8, color="0.6", linewidth=0)
    ax.fill_between(grid, *law.interval(0.9).T, alpha=0.25, linewidth=0)
    ax.plot(grid, law.quantile(0.5))
    ax.plot(grid, np.sin(2 * grid), ":", color="0.2")
    ax.set(title=f"{likelihood}: error {error:.2f}")
plt.show()
