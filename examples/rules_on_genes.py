"""Rules on gene expression: which few of 500 genes separate two groups?

There are more genes than patients, and each gene has its own scale. Rank factors collect the genes that
vary together and weight the factors to separate the two groups; the result is a short list of genes. The
data are simulated with two programmes of genes, of which one separates the groups.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from nongauss import RankFactorClassifier

rng = np.random.default_rng(0)
ill = rng.random(120) < 0.5
programmes = np.column_stack([rng.normal(size=120) + 2.0 * ill, rng.normal(size=120)])
loadings = np.zeros((2, 500))
loadings[0, :15] = 1.5  # genes 0 to 14 separate the groups
loadings[1, 15:60] = 1.5  # genes 15 to 59 vary together but do not
expression = np.exp(programmes @ loadings + rng.normal(size=(120, 500)))  # skewed, as intensities are
table = pd.DataFrame(expression, columns=[f"gene {j}" for j in range(500)])

model = RankFactorClassifier(3, random_state=0).fit(table[:80], ill[:80])
print(f"correct on new patients: {100 * model.score(table[80:], ill[80:]):.0f} %")
weights = model.coefficients()["mean"].abs().to_numpy()
print("weight of each factor:", weights.round(1))
top = model.top_columns(int(np.argmax(weights)), 15)
planted = [f"gene {j}" for j in range(15)]
found = top.index.isin(planted).sum()
print(f"of the 15 largest loadings of the separating factor, {found} are of the true genes")

scores = model.transform(table)
for flag, colour, label in ((True, "C1", "ill"), (False, "C0", "well")):
    plt.scatter(*scores[ill == flag][:, :2].T, s=14, color=colour, label=label, linewidth=0)
plt.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.gca().set(title="Two factors of 500 genes", xlabel="factor 0", ylabel="factor 1")
plt.show()
