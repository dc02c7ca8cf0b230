"""Labels in doubt: which patients should a doctor look at again?

Probabilities are useful only if they are calibrated: errors must be frequent among the rows of which the
model is least certain. Here a doctor looks again at a tenth of the patients.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from nongauss import SparseGPClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X.iloc[:, :10], y, test_size=0.5, random_state=0)
model = SparseGPClassifier(n_inducing=40, random_state=0).fit(X_train, y_train)
chance = model.predict_proba(X_test)
wrong, sure = (model.predict(X_test) != y_test).to_numpy(), chance.max(axis=1)
print(f"correct: {100 * (1 - wrong.mean()):.0f} %, log-loss {log_loss(y_test, chance):.2f}")
doubtful = np.argsort(sure)[: len(sure) // 10]
caught = wrong[doubtful].sum()
print(f"{len(doubtful)} of {len(sure)} patients are looked at again: {caught} of {wrong.sum()} errors")

order = np.argsort(chance[:, 1])
for label, colour, text in ((0, "C1", "malignant"), (1, "C0", "benign")):
    rows = np.flatnonzero(y_test.to_numpy()[order] == label)
    plt.scatter(rows, chance[order[rows], 1], s=9, color=colour, label=text, linewidth=0)
plt.axhline(0.5, color="0.2", linewidth=0.6)
plt.legend(loc="upper left")
plt.gca().set(
    title="Probability of benign; colours are the truth", xlabel="patients, in order of the probability"
)
plt.show()
