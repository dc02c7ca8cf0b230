"""Disease progression with honest intervals: fit, check the intervals on held-out rows, save and load.

Run it with `python examples/tggm_regression.py`. It needs no download and leaves no file behind.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import nongauss


def main() -> None:
    small = os.environ.get("NONGAUSS_EXAMPLE_SIZE") == "small"
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)

    sizes = {"hidden_layer_sizes": (10,), "max_epochs": 60, "n_members": 2} if small else {}
    model = nongauss.TGGMRegressor(random_state=0, **sizes).fit(X_train, y_train)
    print(f"{model.n_iter_} epochs. {model.stop_reason_}")

    # Point predictions must beat the mean of the training targets clearly.
    rmse = float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
    baseline = float(np.sqrt(np.mean((y_train.mean() - y_test) ** 2)))
    print(f"root mean squared error {rmse:.1f}, predicting the mean {baseline:.1f}")
    assert rmse < 0.9 * baseline

    # A 90 % interval must hold about nine of ten held-out rows. With 111 rows, the share that a perfect model
    # would show has a standard error of 3 points.
    lower, upper = model.predict_interval(X_test, coverage=0.9).T
    covered = float(np.mean((y_test >= lower) & (y_test <= upper)))
    print(f"90 % intervals hold {100 * covered:.0f} % of the held-out rows")
    assert 0.78 <= covered <= 0.99

    # The whole predictive distribution: the chance that the progression exceeds 200, for each patient.
    chance = 1.0 - model.predict_distribution(X_test).cdf(np.full(len(X_test), 200.0))
    exceeded = y_test.to_numpy() > 200
    print(f"mean chance of exceeding 200: {chance.mean():.2f}, observed share: {exceeded.mean():.2f}")
    assert chance[exceeded].mean() > chance[~exceeded].mean()

    # One file holds the model; the training data is not in it.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "diabetes.nongauss"
        nongauss.save(model, path)
        again = nongauss.load(path)
    assert np.array_equal(again.predict(X_test), model.predict(X_test))


if __name__ == "__main__":
    main()
