"""Handwritten digits as two views, by harmoniums: classes, gaps, one half from the other, save and load.

Run it with `python examples/harmonium_views.py`. It needs no download and leaves no file behind.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import nongauss


def main() -> None:
    n_rows = 500 if os.environ.get("NONGAUSS_EXAMPLE_SIZE") == "small" else 1400
    X, y = load_digits(return_X_y=True)
    X, y, X_test, y_test = X[:n_rows], y[:n_rows], X[1400:], y[1400:]
    views = {"upper": slice(0, 32), "lower": slice(32, 64)}

    model = nongauss.HarmoniumClassifier(40, views=views, random_state=0).fit(X, y)
    score = model.score(X_test, y_test)
    print(f"{model.n_active_} features, {score:.3f} of the digits right. {model.stop_reason_}")
    assert score > 0.85

    gone = X_test.copy()
    gone[::2, :32] = np.nan
    print(f"{model.score(gone, y_test):.3f} right with the upper half missing in every second row.")
    assert model.score(gone, y_test) > 0.6

    pixels = nongauss.Harmonium(20, views=views, random_state=0).fit(X)
    lower = pixels.predict_view(X_test, "lower")
    error = ((lower - X_test[:, 32:]) ** 2).mean() / X_test[:, 32:].var(axis=0).mean()
    print(f"The lower half from the upper: {100 * (1 - error):.0f} % of the variance explained.")
    assert error < 0.95

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.nongauss"
        nongauss.save(model, path)
        assert (nongauss.load(path).predict(X_test) == model.predict(X_test)).all()


if __name__ == "__main__":
    main()
