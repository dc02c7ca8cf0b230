"""A changing spread: where is a prediction certain, and where is it not?

The noise grows with x. In a truncated-Gaussian network the hidden units are random, so the width and the
skewness of a predictive distribution can change from row to row.
"""

import matplotlib.pyplot as plt
import numpy as np

from nongauss import TGGMRegressor

rng = np.random.default_rng(0)
x = rng.uniform(0, 6, 500)
y = np.sin(1.5 * x) + (0.05 + 0.12 * x) * rng.standard_normal(500)

model = TGGMRegressor(n_members=3, max_epochs=300, random_state=0).fit(x[:300, None], y[:300])
law = model.predict_distribution(x[300:, None])
low, high = law.interval(0.9).T
inside = (low <= y[300:]) & (y[300:] <= high)
for name, rows in (("left third", x[300:] < 2), ("right third", x[300:] > 4)):
    held = f"{100 * inside[rows].mean():.0f} %"
    print(f"{name}: 90 % intervals are {np.mean(high - low, where=rows):.2f} wide and hold {held}")

grid = np.linspace(0, 6, 300)
law = model.predict_distribution(grid[:, None])
plt.scatter(x, y, s=6, color="0.6", linewidth=0)
for coverage, alpha in ((0.9, 0.2), (0.5, 0.35)):
    plt.fill_between(grid, *law.interval(coverage).T, color="C0", alpha=alpha, linewidth=0)
plt.plot(grid, law.mean)
plt.gca().set(title="Mean, 50 % and 90 % intervals", xlabel="x", ylabel="y")
plt.show()
