"""Several views: can the lower half of a picture be predicted from the upper one?

A harmonium has features that several views share. One view determines the features, the features determine
the other view, and a missing view is integrated out.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from nongauss import Harmonium

X, _ = load_digits(return_X_y=True)
train, test = X[:500], X[1400:]
views = {"upper": slice(0, 32), "lower": slice(32, 64)}
model = Harmonium(20, views=views, random_state=0).fit(train)
told = model.predict_view(test, "lower")
error = ((told - test[:, 32:]) ** 2).mean(axis=0).sum()
usual = ((train[:, 32:].mean(axis=0) - test[:, 32:]) ** 2).mean(axis=0).sum()
told_share = 100 * (1 - error / usual)
print(f"{model.n_active_} features; the upper half explains {told_share:.0f} % of the lower half's variance")

figure, axes = plt.subplots(2, 8, figsize=(7, 2.2))
for row, (above, below) in enumerate(axes.T):
    above.imshow(test[row].reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
    half = np.concatenate([test[row, :32], told[row]]).reshape(8, 8)
    below.imshow(half, cmap="gray_r", vmin=0, vmax=16)
    below.axhline(3.5, color="C1")
for ax in axes.flat:
    ax.axis("off")
figure.suptitle(
    "Above: the digit. Below: its lower half predicted from the upper one", x=0.01, ha="left", fontsize=11
)
plt.show()
