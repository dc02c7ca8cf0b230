"""A likelihood of your own: what if none in the list fits?

One function, the log density of y given f, defines a likelihood; quantiles, intervals and draws are
computed from it. Here waiting times are geometric.
"""

import matplotlib.pyplot as plt
import numpy as np

from nongauss import SparseGPRegressor


def geometric(y, f):
    """The log probability of y failures before the first success, whose odds are e^-f."""
    return -f - (y + 1) * np.log1p(np.exp(-f))


rng = np.random.default_rng(0)
x = rng.uniform(-2, 2, 200)
odds = np.exp(-1.0 - np.sin(2 * x))
waits = rng.geometric(odds / (1 + odds)) - 1

model = SparseGPRegressor(geometric, support="count", random_state=0).fit(x[:, None], waits)
grid = np.linspace(-2, 2, 100)
law = model.predict_distribution(grid[:, None])
truth = np.exp(1.0 + np.sin(2 * grid))
print(f"error of the mean wait: {100 * np.mean(np.abs(law.mean / truth - 1)):.0f} %")
print("90 % interval at x = 0:", model.predict_interval(np.zeros((1, 1)))[0])

plt.scatter(x, waits, s=6, color="0.6", linewidth=0)
plt.fill_between(grid, *law.interval(0.9).T, alpha=0.25, linewidth=0)
plt.plot(grid, law.mean)
plt.plot(grid, truth, ":", color="0.2")
plt.gca().set(title="Geometric waiting times: mean, 90 %, dotted the truth", xlabel="x", ylabel="failures")
plt.show()
