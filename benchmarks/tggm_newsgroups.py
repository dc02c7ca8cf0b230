"""20 Newsgroups by date with 2,000 words, Table 2 of the TGGM paper, beside an MLP and linear models.

    python benchmarks/tggm_newsgroups.py --data FOLDER [--seeds 0 1 2] [--models "ml 100" "linear SVM"]
    python benchmarks/tggm_newsgroups.py --data FOLDER --vocabulary stems    # or: all

FOLDER/newsgroups20/newsgroups20.npz holds the parts of CSR count matrices (train_data, train_indices,
train_indptr, train_shape, train_y; test_...) and the words, `vocab`. Words are counted alike for all models:
the 2,000 most frequent ones of the training rows that are not among scikit-learn's English stop words; (1 +
log count) times inverse document frequency of the training rows, rows of length 1
(`TfidfTransformer(sublinear_tf=True)`). "stems" counts words of one stem (Snowball's English stemmer)
together before the 2,000 most frequent are taken; "all" takes all words but stop words. Each has a table of
its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import snowballstemmer
from labels import Rows, race, race_parser
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

from nongauss import TGGMClassifier

N_WORDS = 2000
PAPER = {"ml 100": "73.74", "ml 200": "73.38", "bp 100": "73.65", "bp 200": "73.62", "MLP 100": "72.8"}
TITLES = {"words": "tggm_newsgroups", "stems": "tggm_newsgroups_stems", "all": "tggm_newsgroups_all"}


def read(path: Path, vocabulary: str) -> tuple[Rows, Rows]:
    """Training and test rows: weighted words or stems (N, 2000 or all) and labels (N,)."""
    with np.load(path) as file:
        (X, y), (X_test, y_test) = (part_of(file, name) for name in ("train", "test"))
        words = file["vocab"].astype(str)
    kept = np.flatnonzero(~np.isin(words, list(ENGLISH_STOP_WORDS)))
    X, X_test = X[:, kept], X_test[:, kept]
    if vocabulary == "stems":
        together = by_stem(words[kept].tolist())
        X, X_test = (csr_array(part @ together) for part in (X, X_test))
    if vocabulary != "all":
        most = np.argsort(-X.sum(axis=0), kind="stable")[:N_WORDS]
        X, X_test = X[:, most], X_test[:, most]
    weighting = TfidfTransformer(sublinear_tf=True).fit(X)
    return (weighting.transform(X), y), (weighting.transform(X_test), y_test)


def by_stem(words: list[str]) -> csr_array:
    """Which stem each word has: (words, stems), one 1 a row."""
    _, stem = np.unique(snowballstemmer.stemmer("english").stemWords(words), return_inverse=True)
    at = np.arange(len(words), dtype=np.int32), stem.astype(np.int32)
    return csr_array((np.ones(len(words)), at))


def part_of(file: Any, name: str) -> tuple[csr_array, np.ndarray]:
    """Counts (N, V) and labels (N,) of "train" or "test"."""
    data, indices, indptr = (file[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    parts = data.astype(float), indices.astype(np.int32), indptr.astype(np.int32)
    return csr_array(parts, shape=tuple(file[f"{name}_shape"])), file[f"{name}_y"].astype(int)


def models() -> dict:
    """A maker for each row of the table."""
    return {
        "ml 100": lambda seed: TGGMClassifier((100,), random_state=seed),
        "ml 100, 15 epochs": lambda seed: TGGMClassifier((100,), max_epochs=15, random_state=seed),
        "ml 100, linear skip": lambda seed: TGGMClassifier((100,), skip="linear", random_state=seed),
        "ml 200": lambda seed: TGGMClassifier((200,), random_state=seed),
        "ml 100-100": lambda seed: TGGMClassifier((100, 100), random_state=seed),
        "ml 200-200": lambda seed: TGGMClassifier((200, 200), random_state=seed),
        "bp 100": lambda seed: TGGMClassifier((100,), method="bp", random_state=seed),
        "MLP 100": lambda seed: MLPClassifier((100,), max_iter=2000, random_state=seed),
        "logistic regression": lambda seed: LogisticRegression(max_iter=1000, random_state=seed),
        "linear SVM": lambda seed: LinearSVC(random_state=seed),
    }


def main() -> None:
    options = race_parser(__doc__.splitlines()[0], models())
    options.add_argument("--vocabulary", choices=TITLES, default="words")
    chosen = options.parse_args()
    path = chosen.data / "newsgroups20" / "newsgroups20.npz"
    if not path.exists():
        raise SystemExit(f"{path} is not there; see the first lines of this file.")
    train, test = read(path, chosen.vocabulary)
    race(TITLES[chosen.vocabulary], models(), chosen, lambda seed: (train, test), PAPER)


if __name__ == "__main__":
    main()
