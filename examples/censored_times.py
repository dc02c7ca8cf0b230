"""Censored times: how long do machines last, when most are still running?

For a machine that is still running, only a lower limit of its lifetime is known. If the limit is treated as
the lifetime, predictions are far too low; with `censoring`, predictions are of the true lifetime.
"""

import matplotlib.pyplot as plt
import numpy as np

from nongauss import SparseGPRegressor

rng = np.random.default_rng(0)
load = rng.uniform(0, 1, 300)
typical = 10.0 * np.exp(-1.5 * load**2)  # the median lifetime in years: the truth
lifetime = typical * np.exp(0.5 * rng.standard_normal(300))
watched = rng.uniform(1, 8, 300)
runs_still = lifetime > watched
seen = np.minimum(lifetime, watched)
print(f"{100 * runs_still.mean():.0f} % of the machines still run")

told = SparseGPRegressor("log_normal", random_state=0)
told.fit(load[:, None], seen, censoring=np.where(runs_still, 1, 0))
naive = SparseGPRegressor("log_normal", random_state=0).fit(load[:, None], seen)

grid = np.linspace(0, 1, 100)
truth = 10.0 * np.exp(-1.5 * grid**2)
for name, model in (("with censoring", told), ("limits as lifetimes", naive)):
    median = model.predict_quantiles(grid[:, None], 0.5)
    print(f"{name}: the median is off by {100 * np.mean(np.abs(median / truth - 1)):.0f} %")
    plt.plot(grid, median)
    plt.text(0.02, median[5] + 0.3, name, color=plt.gca().lines[-1].get_color())
for rows, marker, label in ((~runs_still, "o", "failed"), (runs_still, "^", "still runs")):
    plt.scatter(load[rows], seen[rows], s=10, marker=marker, color="0.6", linewidth=0, label=label)
plt.plot(grid, truth, ":", color="0.2", label="true median")
plt.legend(loc="upper right")
plt.gca().set(title="Lifetime of machines", xlabel="load", ylabel="years")
plt.show()
