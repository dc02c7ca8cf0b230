"""Money with exact zeros: who claims nothing, and how much do the others claim?

Most rows are exactly zero and the rest are skewed. A hurdle likelihood has one function for "whether" and
one for "how much", so a prediction is a probability of zero together with a distribution of the amount.
"""

import matplotlib.pyplot as plt
import numpy as np

from nongauss import SparseGPRegressor

rng = np.random.default_rng(0)
age = rng.uniform(18, 80, 500)
claims = rng.random(500) < 0.15 + 0.5 * np.exp(-((age - 18) / 12))  # the young claim more often
amount = np.where(claims, rng.gamma(2.0, 300 + 8 * age), 0.0)  # the old claim more

model = SparseGPRegressor("hurdle_gamma", random_state=0).fit(age[:, None], amount)
law = model.predict_distribution(np.array([[20.0], [50.0], [75.0]]))
print("age 20, 50, 75")
print("probability of no claim:", law.cdf(0.0).round(2))
print("expected claim:         ", law.mean.round(-1))
print("95 % of claims are below", law.quantile(0.95).round(-2))

grid = np.linspace(18, 80, 200)
law = model.predict_distribution(grid[:, None])
figure, (left, right) = plt.subplots(1, 2)
left.plot(grid, 1 - law.cdf(0.0))
left.plot(grid, 0.15 + 0.5 * np.exp(-((grid - 18) / 12)), ":", color="0.4")
left.set(title="Probability of a claim (dotted: the truth)", xlabel="age", ylim=(0, 1))
right.scatter(age[claims], amount[claims], s=6, color="0.6", linewidth=0)
right.plot(grid, law.mean)
right.plot(grid, law.quantile(0.95), "--", color="C0")
right.set(title="Amount: mean, and 95 % (dashed)", xlabel="age")
plt.show()
