"""Topics of counts: which words occur together, and how many topics are there?

A harmonium finds features of a table of word counts, sparse or dense; how many are used follows from the
data. The data are simulated with three topics, and a text may have several of them. Counts are relative to
the length of a text, so a feature may also say what a text is not about: one of these lowers the words of
cooking.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from nongauss import Harmonium

rng = np.random.default_rng(0)
words = ["goal", "team", "match", "coach", "vote", "party", "law", "senate", "oven", "salt", "flour", "taste"]
has = rng.random((500, 3)) < 0.35  # sport, politics, cooking
rate = 0.15 + 2.0 * np.repeat(has, 4, axis=1)
counts = pd.DataFrame(rng.poisson(rate), columns=words)

model = Harmonium(views={"words": (slice(0, 12), "counts")}, random_state=0).fit(counts)
print("features in use:", model.n_active_)
for k, best in enumerate(model.top_features(4)[: model.n_active_]):
    print(f"feature {k}:", ", ".join(best))
found = np.corrcoef(has.T.astype(float), model.transform(counts)[:, : model.n_active_].T)[:3, 3:]
print("best correlation with each true topic:", np.abs(found).max(axis=1).round(2))

weights = model.components_[: model.n_active_]
end = np.abs(weights).max()
plt.imshow(weights, cmap="RdBu_r", vmin=-end, vmax=end, aspect="auto")
plt.xticks(range(12), words, rotation=60, ha="right")
plt.yticks(range(model.n_active_), [f"feature {k}" for k in range(model.n_active_)])
plt.colorbar(label="weight")
plt.gca().set(title="What each feature raises (red) and lowers (blue)")
plt.show()
