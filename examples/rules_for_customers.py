"""Rules for customers: which groups buy alike, and how can they be described?

Clusters are found in how people buy, and each gets a rule in terms of what is known beforehand. The truth
is known here: three groups by age and contract. The shoe size is irrelevant, and no rule uses it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from nongauss import RectangleMixture

rng = np.random.default_rng(0)
people = pd.DataFrame(
    {"age": rng.integers(18, 80, 300), "contract": rng.choice(["none", "basic", "plus"], 300)}
)
people["shoe size"] = rng.normal(42, 3, 300)
group = np.where(people["age"] < 35, 0, np.where(people["contract"] == "plus", 2, 1))
people["spent"] = np.exp(np.array([3.0, 4.0, 5.0])[group] + 0.2 * rng.normal(size=300))
people["visits"] = np.array([12.0, 4.0, 8.0])[group] + rng.normal(size=300)

model = RectangleMixture(
    "auto",
    rule_columns=["age", "contract", "shoe size"],
    structure_columns=["spent", "visits"],
    n_init=2,
    random_state=0,
).fit(people)
for name, rule in model.rule_text_.items():
    print(f"{name}: {rule}")
print(f"agreement with the true groups: {adjusted_rand_score(group, model.labels_):.2f}")
print(model.row_rules(people[:1]).iloc[0])

for k in range(model.n_clusters_):
    rows = model.labels_ == k
    plt.scatter(people["spent"][rows], people["visits"][rows], s=10, label=list(model.rule_text_.values())[k])
plt.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=1)
plt.gca().set(title="Three groups of customers", xlabel="spent", ylabel="visits", xscale="log")
plt.show()
