"""The number of factors: how many traits does a questionnaire measure?

Twelve questions measure three traits. `n_factors="auto"` estimates how many factors the data support. The
axes of the factors are a convention, but which questions point in the same direction is not: the angles
between their loadings show three blocks.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from nongauss import RankFactorAnalysis

rng = np.random.default_rng(0)
traits = rng.normal(size=(400, 3))
questions = [f"{trait} {i}" for trait in ("mood", "sleep", "work") for i in range(1, 5)]
latent = np.repeat(traits, 4, axis=1) + 0.6 * rng.normal(size=(400, 12))
answers = pd.DataFrame(np.digitize(latent, [-1.2, -0.4, 0.4, 1.2]) + 1, columns=questions)  # grades 1 to 5

model = RankFactorAnalysis(n_factors="auto", random_state=0).fit(answers)
print("number of factors:", model.n_factors_)
loadings = np.asarray(model.loadings_)[:, : model.n_factors_]
direction = loadings / np.linalg.norm(loadings, axis=1, keepdims=True)
alike = direction @ direction.T
trait = np.repeat([0, 1, 2], 4)
same = (trait[:, None] == trait) & ~np.eye(12, dtype=bool)
print(f"cosine, questions of one trait: {alike[same].min():.1f} at least")
print(f"cosine, questions of two traits: {np.abs(alike[trait[:, None] != trait]).max():.1f} at most")

plt.figure(figsize=(7, 5))
plt.imshow(alike, cmap="RdBu_r", vmin=-1, vmax=1)
plt.xticks(range(12), questions, rotation=60, ha="right")
plt.yticks(range(12), questions)
plt.colorbar(label="cosine of the angle between loadings")
plt.gca().set(title="Which questions measure the same")
plt.show()
