"""Labels in doubt: which digits should a person look at?

Probabilities are only useful where they are honest: among the rows of which the model is least sure,
errors must be frequent. Here a person who reads a tenth of the digits catches most of the errors.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from nongauss import TGGMClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
model = TGGMClassifier((50,), n_members=2, max_epochs=40, random_state=0).fit(X_train, y_train)
chance = model.predict_proba(X_test)
wrong, sure = model.predict(X_test) != y_test, chance.max(axis=1)
print(f"right: {100 * (1 - wrong.mean()):.1f} %, log-loss {log_loss(y_test, chance):.3f}")
doubtful = np.argsort(sure)[: len(sure) // 10]
print(f"a tenth is looked at: {wrong[doubtful].sum()} of {wrong.sum()} errors are among them")

figure, axes = plt.subplots(2, 6, figsize=(7, 3))
for ax, row in zip(axes.flat, doubtful, strict=False):
    first, second = np.argsort(chance[row])[:-3:-1]
    ax.imshow(X_test[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(
        f"{first}: {chance[row, first]:.2f}, {second}: {chance[row, second]:.2f}", fontsize=8, loc="center"
    )
    ax.axis("off")
figure.suptitle("The digits of which the model is least sure", x=0.01, ha="left", fontsize=11)
plt.show()
