"""Explain and novelty: why this prediction, and has such a row been seen before?

`explain` says what each column contributes to the mean and to the standard deviation of a row's prediction;
the contributions add up to it. `novelty` says how unlike the training rows a row is.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from nongauss import SparseGPRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = X[["age", "bmi", "bp", "s5"]]
model = SparseGPRegressor("gamma", random_state=0).fit(X[:300], y[:300])

rows = X[300:303]
parts = model.explain(rows)["mean"]
print(parts.round(0).to_string())
print(
    "sum of the parts:",
    parts.sum(axis=1).round(1).tolist(),
    "  predicted:",
    model.predict(rows).round(1).tolist(),
)

odd = rows.assign(bmi=[60.0, 60.0, 60.0])
print(
    "novelty of these rows:", model.novelty(rows).round(2), "  with a BMI of 60:", model.novelty(odd).round(2)
)

row = parts.iloc[0].drop("base").sort_values()
plt.barh(
    [f"{name} = {rows.iloc[0][name]:.0f}" for name in row.index],
    row,
    color=["C1" if v < 0 else "C0" for v in row],
)
plt.axvline(0, color="0.2", linewidth=0.6)
plt.gca().set(
    title=f"Why {parts.iloc[0].sum():.0f} and not {parts.iloc[0]['base']:.0f}?",
    xlabel="added to the prediction",
)
plt.show()
