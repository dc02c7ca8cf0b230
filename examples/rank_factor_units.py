"""Factors that see only the order of values: other units change nothing, and factors can be read.

Run it with `python examples/rank_factor_units.py`. It needs no download and leaves no file behind.
"""

from __future__ import annotations

import os

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import nongauss


def main() -> None:
    small = os.environ.get("NONGAUSS_EXAMPLE_SIZE") == "small"
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    if small:
        X, y = X.iloc[::2, :15], y[::2]
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

    model = nongauss.RankFactorClassifier(4, random_state=0).fit(X_train, y_train)
    print(f"{model.n_iter_} sweeps. {model.stop_reason_}")
    print(f"right on held-out rows: {model.score(X_test, y_test):.3f}; {model.n_active_} active factors")
    assert model.score(X_test, y_test) > 0.85

    # A laboratory that reports on another scale: the rank model does not notice, the Gaussian one does.
    def other_units(table):
        return np.exp(4 * (table - X_train.mean()) / X_train.std())

    again = nongauss.RankFactorClassifier(4, random_state=0).fit(other_units(X_train), y_train)
    assert np.array_equal(again.predict_proba(other_units(X_test)), model.predict_proba(X_test))
    values = nongauss.RankFactorClassifier(4, observation="gaussian", random_state=0)
    values.fit(other_units(X_train), y_train)
    score = values.score(other_units(X_test), y_test)
    print(f"in other units: ranks {again.score(other_units(X_test), y_test):.3f}, values {score:.3f}")
    assert score < model.score(X_test, y_test)

    # What a factor is made of, and how much the classifier relies on it.
    print(model.top_columns(0, 4).round(2).to_string())
    print(model.coefficients().round(2).to_string())
    sizes = model.top_columns(0, 4).abs()
    assert (sizes.diff().dropna() <= 0).all()


if __name__ == "__main__":
    main()
