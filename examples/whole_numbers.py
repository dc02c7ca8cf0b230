"""Whole numbers that are not counts: how many days late is a train, when it may be early?

Whole numbers of any sign and spread are modelled as real numbers that were rounded. The probability of each
number is exact, so "zero days late" has a probability, not a density.
"""

import matplotlib.pyplot as plt
import numpy as np

from nongauss import SparseGPRegressor

rng = np.random.default_rng(0)
distance = rng.uniform(0, 10, 250)
late = np.round(1.5 * np.sin(distance) + 0.8 * rng.standard_normal(250)).astype(int)
train, test = slice(0, 150), slice(150, None)

model = SparseGPRegressor("discretised", random_state=0).fit(distance[train, None], late[train])
law = model.predict_distribution(distance[test, None])
print(f"mean log probability of the observed values: {law.log_prob(late[test]).mean():.2f}")
three = model.predict_distribution(np.array([[1.5], [4.5], [9.5]]))
for value in (-2, -1, 0, 1, 2):
    print(f"P(late = {value:2d}) at 1.5, 4.5 and 9.5:", three.prob(value, value).round(2))

values = np.arange(-4, 5)
grid = np.linspace(0, 10, 120)
law = model.predict_distribution(grid[:, None])
chance = np.array([law.prob(value, value) for value in values])
mesh = plt.pcolormesh(grid, values, chance, cmap="Blues", shading="nearest")
plt.scatter(distance, late + rng.uniform(-0.25, 0.25, 250), s=6, color="0.2", linewidth=0)
plt.colorbar(mesh, label="probability")
plt.gca().set(title="Each whole number has a probability", xlabel="distance", ylabel="days late")
plt.show()
