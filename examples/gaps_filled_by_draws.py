"""Multiple imputation: is the mean of a column with missing cells as certain as it looks?

A single imputed table is treated as the truth by any later analysis. Several tables with random draws in
the missing cells show how much is uncertain: analyse each table, then pool the results.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from nongauss import RankFactorAnalysis

wine = load_wine(as_frame=True).data[["alcohol", "malic_acid", "ash", "magnesium", "flavanoids", "hue"]]
rng = np.random.default_rng(0)
hidden = (rng.random(len(wine)) < 0.4) & (wine["flavanoids"].rank(pct=True) > 0.3)  # not at random
gaps = wine.copy()
gaps.loc[hidden, "hue"] = np.nan

model = RankFactorAnalysis(3, random_state=0).fit(gaps)
tables = model.sample_missing(gaps, 20)
means = [table["hue"].mean() for table in tables]
within = np.mean([table["hue"].var() / len(wine) for table in tables])
pooled = np.sqrt(within + (1 + 1 / 20) * np.var(means, ddof=1))
print(f"{hidden.sum()} of {len(wine)} cells are missing")
print(f"mean of hue, true value:      {wine['hue'].mean():.3f}")
print(f"missing cells left out:       {gaps['hue'].mean():.3f} ± {gaps['hue'].sem():.3f}")
print(f"20 imputed tables, pooled:    {np.mean(means):.3f} ± {pooled:.3f}")

interval = model.impute_distribution(gaps)["hue"].interval(0.9)
truth = wine.loc[hidden, "hue"].to_numpy()
held = (interval[:, 0] <= truth) & (truth <= interval[:, 1])
print(f"90 % intervals hold {100 * held.mean():.0f} % of the hidden cells")
order = np.argsort(truth)
plt.vlines(np.arange(len(truth)), *interval[order].T, color="C0", alpha=0.5)
plt.scatter(np.arange(len(truth)), truth[order], s=10, color="C1")
plt.gca().set(
    title="Hidden cells (dots) and their 90 % intervals", xlabel="missing cells, in order", ylabel="hue"
)
plt.show()
