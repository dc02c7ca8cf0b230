"""Groups with effects: which shops sell more than their prices explain?

`group=` gives every shop an effect of its own, with a variance that is learned, as in a mixed model, beside
a smooth function of the other columns. A shop that was not in the training rows gets a wider interval.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from nongauss import SparseGPRegressor

rng = np.random.default_rng(0)
effect = rng.normal(0, 2, 12)
shop, price = rng.integers(0, 12, 150), rng.uniform(-2, 2, 150)
table = pd.DataFrame({"price": price, "shop": [f"shop {i}" for i in shop]})
sales = 20 + 3 * np.sin(2 * price) + effect[shop] + rng.normal(size=150)

model = SparseGPRegressor(group="shop", random_state=0).fit(table, sales)
found = model.group_effects_.sort_values("effect")
print(found.round(1).iloc[[0, -1]].to_string())
new = pd.DataFrame({"price": [0.0, 0.0], "shop": ["shop 3", "a new shop"]})
print("90 % width, a known shop and a new one:", np.ptp(model.predict_interval(new), axis=1).round(1))

places = np.arange(len(found))
plt.errorbar(found["effect"], places, xerr=1.64 * found["sd"], fmt="o", markersize=4)
plt.scatter(
    [effect[int(str(name).split()[-1])] - effect.mean() for name in found.index],
    places,
    marker="x",
    color="C1",
)
plt.yticks(places, found.index)
plt.gca().set(title="Effect of each shop with its 90 % interval; crosses are the truth", xlabel="sales")
plt.show()
