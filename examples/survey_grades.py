"""Survey grades: how likely is each answer, when answers have an order but no distances?

An ordinal Gaussian process learns where one grade ends and the next begins. The truth is known here:
contentment rises with income, but not linearly.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from nongauss import SparseGPOrdinalClassifier

rng = np.random.default_rng(0)
grades = ["poor", "fair", "good", "very good"]
people = pd.DataFrame({"income": rng.uniform(10, 100, 400), "children": rng.integers(0, 4, 400)})
feeling = 2.5 * np.tanh((people["income"] - 40) / 20) - 0.3 * people["children"] + rng.logistic(size=400)
answer = pd.Series(pd.cut(feeling, [-np.inf, -2, 0, 2, np.inf], labels=grades), name="health")  # ordered

model = SparseGPOrdinalClassifier(random_state=0).fit(people[:300], answer[:300])
print("classes in order:", [str(grade) for grade in model.classes_])
print(f"correct on new rows: {100 * model.score(people[300:], answer[300:]):.0f} %")
truth = answer[300:].cat.codes
guess = pd.Series(model.predict(people[300:])).map(grades.index).to_numpy()
print(f"correct or one grade off: {100 * np.mean(np.abs(guess - truth) <= 1):.0f} %")

grid = pd.DataFrame({"income": np.linspace(10, 100, 200), "children": 1})
chance = model.predict_proba(grid)
colours = plt.get_cmap("viridis")(np.linspace(0.9, 0.2, 4))
plt.stackplot(grid["income"], chance.T, colors=colours)
for grade, below, own in zip(grades, np.cumsum(chance, axis=1).T - chance.T, chance.T, strict=True):
    plt.text(101, below[-1] + own[-1] / 2, grade, va="center")
plt.gca().set(
    title="Probability of each answer, one child", xlabel="income in thousands", xlim=(10, 100), ylim=(0, 1)
)
plt.show()
