"""20 Newsgroups by date with 2,000 words, Table 2 of the TGGM paper, beside an MLP and linear models.

    python benchmarks/tggm_newsgroups.py --data FOLDER [--seeds 0 1 2] [--models "ml 100" "linear SVM"]

FOLDER/newsgroups20/newsgroups20.npz holds the parts of CSR count matrices (train_data, train_indices,
train_indptr, train_shape, train_y; test_...) and top5000, the numbers of words by falling count in the
training rows, stop words among them. The first 2,000 are used. All models get the same numbers: (1 + log
count) times inverse document frequency of the training rows, rows of length 1
(`TfidfTransformer(sublinear_tf=True)`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from labels import race, race_parser
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

from nongauss import TGGMClassifier

N_WORDS = 2000
PAPER = {"ml 100": "73.74", "ml 200": "73.38", "bp 100": "73.65", "bp 200": "73.62", "MLP 100": "72.8"}


def read(path: Path, part: str) -> tuple[csr_matrix, np.ndarray]:
    """Word counts (N, V) and labels (N,) of a part, "train" or "test"."""
    with np.load(path) as file:
        data, indices, indptr = (file[f"{part}_{name}"] for name in ("data", "indices", "indptr"))
        shape, y = tuple(file[f"{part}_shape"]), file[f"{part}_y"].astype(int)
        words = file["top5000"][:N_WORDS].astype(int)
    return csr_matrix((data.astype(float), indices.astype(int), indptr), shape=shape)[:, words], y


def models() -> dict:
    """A maker for each row of the table."""
    return {
        "ml 100": lambda seed: TGGMClassifier((100,), random_state=seed),
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
    (X, y), (X_test, y_test) = read(path, "train"), read(path, "test")
    weighting = TfidfTransformer(sublinear_tf=True).fit(X)
    train, test = (weighting.transform(X), y), (weighting.transform(X_test), y_test)
    race("tggm_newsgroups", models(), chosen, lambda seed: (train, test), PAPER)


if __name__ == "__main__":
    main()
