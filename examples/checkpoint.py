"""A checkpoint: what if the machine goes down in the middle of a fit?

With `checkpoint=PATH` a fit saves its state, and the same call resumes from there, with the same bits as if
it had not been interrupted. Here a callback stops the first fit early.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from nongauss import TGGMRegressor

X, y = load_diabetes(return_X_y=True)
settings = {"hidden_layer_sizes": (20,), "n_members": 2, "max_epochs": 60, "random_state": 0}


def after_ten(info):
    """Ask the fit to stop from its tenth epoch on; it looks up every few epochs."""
    return info.iteration >= 10


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "fit.ckpt"
    stopped = TGGMRegressor(**settings, checkpoint=path, callbacks=[after_ten]).fit(X, y)
    print(f"stopped after {stopped.n_iter_} epochs: {stopped.stop_reason_}")
    resumed = TGGMRegressor(**settings, checkpoint=path).fit(X, y)
print(f"went on to {resumed.n_iter_} epochs")
whole = TGGMRegressor(**settings).fit(X, y)
print(
    "the same to the last bit as a fit without a stop:", bool((resumed.predict(X) == whole.predict(X)).all())
)

trace = whole.trace_
column = next(name for name in ("bound", "objective") if name in trace)
plt.plot(trace.iloc[:, 0], trace[column])
plt.axvline(stopped.n_iter_, color="C1")
plt.text(stopped.n_iter_ + 1, np.nanmin(trace[column]), "stopped here, resumed later", color="C1")
plt.gca().set(title="The course of the fit", xlabel="epoch", ylabel=column)
plt.show()
