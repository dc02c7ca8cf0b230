"""Monotone columns: a price must not fall when a flat gets larger, whatever the noise.

`monotone={"size": 1}` makes the mean rise with a column, exactly, and also beyond the training rows. The
unconstrained model follows the noise and falls somewhere, which no buyer would believe.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from nongauss import TGGMRegressor

rng = np.random.default_rng(0)
flats = pd.DataFrame({"size": rng.uniform(30, 120, 60)})
price = 900 / (1 + np.exp(-(flats["size"] - 55) / 6)) + 120 * rng.standard_normal(60)
grid = pd.DataFrame({"size": np.linspace(20, 150, 200)})
truth = 900 / (1 + np.exp(-(grid["size"] - 55) / 6))
seen = (grid["size"] > 30) & (grid["size"] < 120)

plt.scatter(flats["size"], price, s=10, color="0.6", linewidth=0)
plt.plot(grid["size"], truth, ":", color="0.2")
for name, rule in (("free", None), ("monotone", {"size": 1})):
    model = TGGMRegressor((20,), monotone=rule, n_members=1, random_state=0).fit(flats, price)
    mean = model.predict(grid)
    error = np.sqrt(np.mean((mean - truth)[seen] ** 2))
    falls = "falls somewhere" if (np.diff(mean) < -1e-9).any() else "never falls"
    print(f"{name}: {falls}, error {error:.0f}")
    plt.plot(grid["size"], mean)
    plt.text(151, mean[-1], name, color=plt.gca().lines[-1].get_color(), va="center")
plt.gca().set(title="Price by size (dotted: the truth)", xlabel="square metres", ylabel="thousands")
plt.show()
