"""Handwritten digits: two hidden layers, honest probabilities, a rejection rule, save and load.

Run it with `python examples/tggm_digits.py`. It needs no download and leaves no file behind.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import nongauss


def main() -> None:
    small = os.environ.get("NONGAUSS_EXAMPLE_SIZE") == "small"
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

    sizes = {"max_epochs": 60, "n_members": 2} if small else {}
    model = nongauss.TGGMClassifier((50, 50), random_state=0, **sizes).fit(X_train, y_train)
    print(f"{model.n_iter_} epochs. {model.stop_reason_}")

    # Digits bend: a linear model must lose, in accuracy and in the quality of its probabilities.
    line = LogisticRegression(max_iter=2000).fit(X_train / 16, y_train)
    ours, linear = model.predict_proba(X_test), line.predict_proba(X_test / 16)
    accuracy, straight = model.score(X_test, y_test), line.score(X_test / 16, y_test)
    print(f"accuracy {accuracy:.3f}, logistic regression {straight:.3f}")
    print(f"log-loss {log_loss(y_test, ours):.3f}, logistic regression {log_loss(y_test, linear):.3f}")
    assert accuracy > max(straight, 0.96)
    assert log_loss(y_test, ours) < log_loss(y_test, linear)

    # Probabilities say where not to trust: of the tenth with the lowest confidence more are wrong.
    confidence, wrong = ours.max(axis=1), model.predict(X_test) != y_test
    doubtful = confidence <= np.quantile(confidence, 0.1)
    rates = wrong[doubtful].mean(), wrong[~doubtful].mean()
    print(f"errors among the doubtful tenth: {rates[0]:.2f}, elsewhere {rates[1]:.3f}")
    assert rates[0] > 5 * rates[1]

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.nongauss"
        nongauss.save(model, path)
        assert (nongauss.load(path).predict_proba(X_test) == ours).all()


if __name__ == "__main__":
    main()
