"""Models compared: is a negative binomial likelihood worth its parameter?

`nongauss.compare` compares fitted Gaussian processes by their leave-one-out predictions, without refitting.
The paired difference between two models has its own standard error.
"""

import matplotlib.pyplot as plt
import numpy as np

from nongauss import SparseGPRegressor, compare

rng = np.random.default_rng(0)
x = rng.uniform(-2, 2, (200, 1))
rate = np.exp(1.5 + np.sin(2 * x[:, 0]))
visits = rng.poisson(rng.gamma(3.0, rate / 3.0))  # over-dispersed

laws = ("poisson", "negative_binomial", "zero_inflated_poisson")
models = {law: SparseGPRegressor(law, random_state=0).fit(x, visits) for law in laws}
table = compare(models)
print(table[["log_density", "difference", "difference_error", "weight"]].round(2).to_string())

figure, axes = plt.subplots(1, 3, sharey=True)
grid = np.linspace(-2, 2, 100)[:, None]
for ax, (name, model) in zip(axes, models.items(), strict=True):
    law = model.predict_distribution(grid)
    ax.scatter(x, visits, s=6, color="0.6", linewidth=0)
    ax.fill_between(grid[:, 0], *law.interval(0.9).T, alpha=0.25, linewidth=0)
    ax.plot(grid, law.mean)
    ax.set_title(name.replace("_", " ") + f"\n{table.loc[name, 'log_density']:.2f} nats a row", fontsize=10)
plt.show()
