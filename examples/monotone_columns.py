"""Monotone columns: a price must not fall when a flat gets larger, whatever the noise says.

`monotone={"size": 1}` makes the mean rise with a column, exactly, and beyond the training rows too. With
few and noisy rows that is knowledge worth having.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from nongauss import TGGMRegressor

rng = np.random.default_rng(2)
flats = pd.DataFrame({"size": rng.uniform(30, 120, 60), "year": rng.uniform(1900, 2020, 60)})
price = 900 - 900 * np.exp(-flats["size"] / 30) + 120 * rng.standard_normal(60)
grid = pd.DataFrame({"size": np.linspace(20, 150, 200), "year": 1960.0})
truth = 900 - 900 * np.exp(-grid["size"] / 30)

plt.scatter(flats["size"], price, s=10, color="0.6", linewidth=0)
plt.plot(grid["size"], truth, ":", color="0.2")
for name, rule in (("free", None), ("monotone", {"size": 1})):
    model = TGGMRegressor((20,), monotone=rule, n_members=1, max_epochs=150, random_state=0)
    mean = model.fit(flats, price).predict(grid)
    inside = (grid["size"] > 30) & (grid["size"] < 120)
    error = np.sqrt(np.mean((mean - truth)[inside] ** 2))
    print(f"{name}: falls somewhere: {'yes' if (np.diff(mean) < -1e-9).any() else 'no'}, error {error:.0f}")
    plt.plot(grid["size"], mean)
    plt.text(151, mean[-1], name, color=plt.gca().lines[-1].get_color(), va="center")
plt.gca().set(title="Price by size (dotted: the truth)", xlabel="square metres", ylabel="thousands")
plt.show()
