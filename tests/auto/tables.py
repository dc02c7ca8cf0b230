"""Tables that several tests of choices by evidence take."""

import numpy as np
import pandas as pd


def humps(n, seed=0):
    """Two columns, and targets in two humps about the first."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    y = X[:, 0] + np.where(rng.random(n) < 0.5, 1.0, -1.0) + 0.1 * rng.normal(size=n)
    return pd.DataFrame(X, columns=["a", "b"]), y
