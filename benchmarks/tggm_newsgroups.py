"""20 Newsgroups by date with 2,000 words, Table 2 of the TGGM paper, beside an MLP and linear models.

    python benchmarks/tggm_newsgroups.py --data FOLDER [--seeds 0 1 2] [--models "ml 100" "linear SVM"]

FOLDER/newsgroups20/newsgroups20.npz holds the parts of CSR count matrices (train_data, train_indices,
train_indptr, train_shape, train_y; test_...) and the words, `vocab`. Words are counted alike for all models:
the 2,000 most frequent ones of the training rows that are not among scikit-learn's English stop words; (1 +
log count) times inverse document frequency of the training rows, rows of length 1
(`TfidfTransformer(sublinear_tf=True)`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from labels import Rows, race, race_parser
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

from nongauss import TGGMClassifier

N_WORDS = 2000
PAPER = {"ml 100": "73.74", "ml 200": "73.38", "bp 100": "73.65", "bp 200": "73.62", "MLP 100": "72.8"}


def read(path: Path) -> tuple[Rows, Rows]:
    """Training and test rows: weighted words (N, 2000) and labels (N,)."""
    with np.load(path) as file:
        (X, y), (X_test, y_test) = (part_of(file, name) for name in ("train", "test"))
        stop = np.isin(file["vocab"], list(ENGLISH_STOP_WORDS))
    counts = np.where(stop, -1.0, X.sum(axis=0))
    words = np.argsort(-counts, kind="stable")[:N_WORDS]
    weighting = TfidfTransformer(sublinear_tf=True).fit(X[:, words])
    return (weighting.transform(X[:, words]), y), (weighting.transform(X_test[:, words]), y_test)


def part_of(file: Any, name: str) -> tuple[csr_array, np.ndarray]:
    """Counts (N, V) and labels (N,) of "train" or "test"."""
    data, indices, indptr = (file[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    parts = data.astype(float), indices.astype(np.int32), indptr.astype(np.int32)
    return csr_array(parts, shape=tuple(file[f"{name}_shape"])), file[f"{name}_y"].astype(int)


def models() -> dict:
    """A maker for each row of the table."""
    return {
        "ml 100": lambda seed: TGGMClassifier((100,), random_state=seed),
        "ml 100, linear skip": lambda seed: TGGMClassifier((100,), skip="linear", random_state=seed),
        "ml 200": lambda seed: TGGMClassifier((200,), random_state=seed),
        "bp 100": lambda seed: TGGMClassifier((100,), method="bp", random_state=seed),
        "MLP 100": lambda seed: MLPClassifier((100,), max_iter=2000, random_state=seed),
        "logistic regression": lambda seed: LogisticRegression(max_iter=1000, random_state=seed),
        "linear SVM": lambda seed: LinearSVC(random_state=seed),
    }


def main() -> None:
    chosen = race_parser(__doc__.splitlines()[0], models()).parse_args()
    path = chosen.data / "newsgroups20" / "newsgroups20.npz"
    if not path.exists():
        raise SystemExit(f"{path} is not there; see the first lines of this file.")
    train, test = read(path)
    race("tggm_newsgroups", models(), chosen, lambda seed: (train, test), PAPER)


if __name__ == "__main__":
    main()
