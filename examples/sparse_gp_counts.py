"""Counts with exposure, by a sparse Gaussian process: beat a straight line, check intervals, save and load.

Run it with `python examples/sparse_gp_counts.py`. It needs no download and leaves no file behind. The data
are simulated, so that the truth is known: calls at a desk, whose rate bends with the hour and the weather.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import PoissonRegressor

import nongauss


def main() -> None:
    n_rows = 300 if os.environ.get("NONGAUSS_EXAMPLE_SIZE") == "small" else 1500
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "hour": rng.uniform(8, 18, n_rows),
            "rain": rng.exponential(1.0, n_rows),
            "desk": rng.choice(["north", "south"], n_rows),
            "shoe size": rng.normal(42, 3, n_rows),
        }
    )
    rate = np.exp(
        1.0 + np.sin(frame["hour"]) + 0.3 * np.sqrt(frame["rain"]) + 0.5 * (frame["desk"] == "north")
    )
    minutes = rng.uniform(10, 120, n_rows)
    calls = rng.poisson(rng.gamma(5.0, rate * minutes / 60 / 5.0))  # over-dispersed
    train, test = np.arange(n_rows) < n_rows // 2, np.arange(n_rows) >= n_rows // 2

    model = nongauss.SparseGPRegressor(likelihood="negative_binomial", random_state=0)
    model.fit(frame[train], calls[train], exposure=minutes[train] / 60)
    print(f"{model.n_iter_} iterations. {model.stop_reason_}")

    # The hourly rate is found better than by a Poisson regression that is linear in the columns.
    numbers = frame.assign(desk=frame["desk"] == "north").astype(float)
    line = PoissonRegressor(alpha=0.0, max_iter=1000)
    hourly = calls[train] / minutes[train] * 60
    line.fit(numbers[train], hourly, sample_weight=minutes[train])
    error = float(np.abs(np.log(model.predict(frame[test]) / rate[test])).mean())
    straight = float(np.abs(np.log(line.predict(numbers[test]) / rate[test])).mean())
    print(f"mean error of the log rate {error:.2f}, straight line {straight:.2f}")
    assert error < 0.5 * straight

    # A 90 % interval of a count holds at least nine of ten, and not many more.
    distribution = model.predict_distribution(frame[test], exposure=minutes[test] / 60)
    lower, upper = distribution.interval(0.9).T
    covered = float(np.mean((lower <= calls[test]) & (calls[test] <= upper)))
    print(f"90 % intervals hold {100 * covered:.0f} % of the held-out counts")
    assert 0.86 <= covered <= 0.99

    # Over-dispersion is found: r is 5, and 90 % intervals of a Poisson would be too narrow.
    print(f"dispersion {model.likelihood_params_['dispersion']:.1f}")
    assert 2.0 < model.likelihood_params_["dispersion"] < 20.0

    # The column that has no part in it has a long length-scale, the hour a short one.
    print({name: round(scale, 1) for name, scale in model.lengthscales_.items()})
    assert model.lengthscales_["hour"] < 0.5 * model.lengthscales_["shoe size"]

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calls.nongauss"
        nongauss.save(model, path)
        assert np.array_equal(nongauss.load(path).predict(frame[test]), model.predict(frame[test]))


if __name__ == "__main__":
    main()
