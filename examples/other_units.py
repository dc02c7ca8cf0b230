"""Other units: what if the next laboratory reports on another scale?

Rank factors depend only on the order of the values in a column, so logarithms, doublings and distortions
change nothing, to the last bit. A model of the values themselves loses a tenth.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from nongauss import RankFactorClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X.iloc[:, :10], y, random_state=0)


def other_units(table):
    """A distortion that keeps the order of each column."""
    return np.exp(4 * (table - X_train.mean()) / X_train.std())


score = {}
for observation in ("rank", "gaussian"):
    model = RankFactorClassifier(3, observation=observation, random_state=0)
    here = model.fit(X_train, y_train).score(X_test, y_test)
    there = model.fit(other_units(X_train), y_train).score(other_units(X_test), y_test)
    score[observation] = (here, there)
    print(f"{observation}: accuracy in the usual units {here:.3f}, in others {there:.3f}")

for place, (here, there) in enumerate(score.values()):
    plt.plot([place - 0.15, place + 0.15], [here, there], "o-", color="C0")
    plt.annotate("usual units", (place - 0.15, here), (0, 7), textcoords="offset points", ha="center")
    plt.annotate("other units", (place + 0.15, there), (0, -14), textcoords="offset points", ha="center")
plt.xticks([0, 1], [f'observation="{name}"' for name in score])
plt.gca().set(
    title="Accuracy on held-out patients", xlim=(-0.5, 1.5), ylim=(min(map(min, score.values())) - 0.05, 1)
)
plt.show()
