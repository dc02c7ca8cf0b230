"""A bent relation with known noise: fit, beat a straight line, check the intervals, save and load.

Run it with `python examples/tggm_regression.py`. It needs no download and leaves no file behind. The data
are simulated (Friedman's first problem, Annals of Statistics 1991), so that the truth is known.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

import nongauss

NOISE_SD = 1.0


def main() -> None:
    small = os.environ.get("NONGAUSS_EXAMPLE_SIZE") == "small"
    X, y = make_friedman1(n_samples=800, n_features=8, noise=NOISE_SD, random_state=0)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

    sizes = {"hidden_layer_sizes": (20,), "max_epochs": 100, "n_members": 3} if small else {}
    model = nongauss.TGGMRegressor(random_state=0, **sizes).fit(X_train, y_train)
    print(f"{model.n_iter_} epochs. {model.stop_reason_}")

    # The relation bends, so a straight line must lose clearly; nothing can do better than the noise.
    line = LinearRegression().fit(X_train, y_train)
    rmse = float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
    straight = float(np.sqrt(np.mean((line.predict(X_test) - y_test) ** 2)))
    print(f"root mean squared error {rmse:.2f}, straight line {straight:.2f}, noise {NOISE_SD:.2f}")
    assert 0.9 * NOISE_SD < rmse < 0.75 * straight

    # A 90 % interval must hold about nine of ten held-out rows. With 400 rows, the share that a perfect model
    # would show has a standard error of 1.5 points.
    distribution = model.predict_distribution(X_test)
    lower, upper = distribution.interval(0.9).T
    covered = float(np.mean((y_test >= lower) & (y_test <= upper)))
    print(f"90 % intervals hold {100 * covered:.0f} % of the held-out rows")
    assert 0.84 <= covered <= 0.96

    # The whole predictive distribution must be worth more than the line with one spread for all rows.
    spread = float(np.std(line.predict(X_train) - y_train))
    gaussian = -0.5 * np.log(2.0 * np.pi * spread**2) - 0.5 * ((line.predict(X_test) - y_test) / spread) ** 2
    density = distribution.log_prob(y_test)
    print(f"log density a row {density.mean():.2f}, straight line {gaussian.mean():.2f}")
    assert density.mean() > gaussian.mean() + 0.3

    # Chances are honest: rows said to exceed 20 with chance p do so in about a share p of cases.
    chance = 1.0 - distribution.cdf(20.0)
    exceeded = y_test > 20.0
    print(f"mean chance of exceeding 20: {chance.mean():.2f}, observed share: {exceeded.mean():.2f}")
    assert abs(chance.mean() - exceeded.mean()) < 0.04

    # One file holds the model; the training data is not in it.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "friedman.nongauss"
        nongauss.save(model, path)
        again = nongauss.load(path)
    assert np.array_equal(again.predict(X_test), model.predict(X_test))
    assert np.array_equal(again.log_density(X_test, y_test), density)


if __name__ == "__main__":
    main()
