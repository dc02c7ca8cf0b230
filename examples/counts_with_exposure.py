"""Counts with exposure: how many calls an hour, when desks were observed for different times?

Calls are over-dispersed, and each row was observed for its own length of time. A negative binomial Gaussian
process takes this time as exposure and estimates the hourly rate. A Poisson regression that is linear in
the columns cannot follow the nonlinear relation.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import PoissonRegressor

from nongauss import SparseGPRegressor

rng = np.random.default_rng(0)
table = pd.DataFrame({"hour": rng.uniform(8, 18, 600), "rain": rng.exponential(1.0, 600)})
rate = np.exp(1.0 + np.sin(table["hour"]) + 0.3 * np.sqrt(table["rain"]))  # calls an hour: the truth
hours = rng.uniform(0.2, 2.0, 600)
calls = rng.poisson(rng.gamma(5.0, rate * hours / 5.0))
train, test = slice(0, 300), slice(300, None)

model = SparseGPRegressor("negative_binomial", random_state=0)
model.fit(table[train], calls[train], exposure=hours[train])
line = PoissonRegressor(alpha=0.0, max_iter=1000)
line.fit(table[train], calls[train] / hours[train], sample_weight=hours[train])

for name, found in (("Gaussian process", model), ("Poisson regression", line)):
    error = np.abs(np.log(found.predict(table[test]) / rate[test])).mean()
    print(f"{name}: the hourly rate is off by {100 * np.expm1(error):.0f} %")
law = model.predict_distribution(table[test], exposure=hours[test])
low, high = law.interval(0.9).T
print(
    f"90 % intervals hold {100 * np.mean((low <= calls[test]) & (calls[test] <= high)):.0f} % of new counts"
)

day = pd.DataFrame({"hour": np.linspace(8, 18, 200), "rain": 0.7})
law = model.predict_distribution(day, exposure=1.0)
plt.scatter(table["hour"], calls / hours, s=6, color="0.6", linewidth=0)
plt.fill_between(day["hour"], *law.interval(0.9).T, alpha=0.25, linewidth=0)
plt.plot(day["hour"], law.mean)
plt.plot(day["hour"], line.predict(day), "--", color="C1")
plt.text(14.6, 12, "Gaussian process: mean, 90 %", color="C0")
plt.text(10.0, 6.5, "Poisson regression", color="C1")
plt.gca().set(title="Calls an hour", xlabel="hour of the day", ylim=(0, 25))
plt.show()
