"""MNIST, Table 2 of the TGGM paper: one and two hidden layers beside an MLP and logistic regression.

    python benchmarks/tggm_mnist.py --data FOLDER [--seeds 0 1 2] [--models "ml 100" "bp 100"]

FOLDER/mnist/mnist.npz holds X_train, y_train, X_test, y_test (28 x 28 grey values, original split). The MLP
and logistic regression get grey values over 255, the TGGM the grey values; all run with their defaults.
"""

from __future__ import annotations

import numpy as np
from labels import race, race_parser
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from nongauss import TGGMClassifier

LAYERS = {"100": (100,), "200": (200,), "100-100": (100, 100), "200-200": (200, 200)}
PAPER = {  # Su et al. 2016, Table 2; the MLP stands beside its ReLU networks
    "ml 100": "97.75", "ml 200": "97.97", "ml 200-200": "98.31",
    "bp 100": "97.52", "bp 200": "97.56", "bp 200-200": "98.12",
    "MLP 100": "97.58", "MLP 200": "97.89", "MLP 200-200": "98.04",
}  # fmt: skip


def over_255(X):
    return X / np.float32(255)


def models() -> dict:
    """A maker for each row of the table."""
    made = {}
    for method in ("ml", "bp"):
        for name, layers in LAYERS.items():
            made[f"{method} {name}"] = lambda seed, layers=layers, method=method: TGGMClassifier(
                layers, method=method, random_state=seed
            )
    for name, layers in LAYERS.items():
        made[f"MLP {name}"] = lambda seed, layers=layers: make_pipeline(
            FunctionTransformer(over_255), MLPClassifier(layers, max_iter=2000, random_state=seed)
        )
    made["logistic regression"] = lambda seed: make_pipeline(
        FunctionTransformer(over_255), LogisticRegression(max_iter=300, random_state=seed)
    )
    return made


def main() -> None:
    chosen = race_parser(__doc__.splitlines()[0], models()).parse_args()
    path = chosen.data / "mnist" / "mnist.npz"
    if not path.exists():
        raise SystemExit(f"{path} is not there; see the first lines of this file.")
    with np.load(path) as file:
        X, y, X_test, y_test = (file[key] for key in ("X_train", "y_train", "X_test", "y_test"))
    train = X.reshape(len(X), -1).astype(np.float32), y.astype(int)
    test = X_test.reshape(len(X_test), -1).astype(np.float32), y_test.astype(int)
    race("tggm_mnist", models(), chosen, lambda seed: (train, test), PAPER)


if __name__ == "__main__":
    main()
