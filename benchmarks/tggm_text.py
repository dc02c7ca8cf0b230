"""Political blogs of 2008, conservative or liberal, by words: beside an MLP and linear models.

    python benchmarks/tggm_text.py --data FOLDER [--seeds 0 1 2] [--models "ml 100"]

FOLDER/poliblog5k/poliblog5k.npz holds the parts of a CSR count matrix (x_data, x_indices, x_indptr, x_shape)
and `rating` (0, 1), 5,000 posts with 2,632 words (Eisenstein and Xing 2010). The blog corpus of the TGGM
paper is not public; 70 % of the rows are for training, by a split of our own for each seed. Numbers are made
of counts as in `tggm_newsgroups.py`.
"""

from __future__ import annotations

import numpy as np
from common import random_splits
from labels import Rows, race, race_parser
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

from nongauss import TGGMClassifier


def models() -> dict:
    """A maker for each row of the table."""
    return {
        "ml 100": lambda seed: TGGMClassifier((100,), random_state=seed),
        "ml 100, linear skip": lambda seed: TGGMClassifier((100,), skip="linear", random_state=seed),
        "ml 100-100": lambda seed: TGGMClassifier((100, 100), random_state=seed),
        "bp 100": lambda seed: TGGMClassifier((100,), method="bp", random_state=seed),
        "MLP 100": lambda seed: MLPClassifier((100,), max_iter=2000, random_state=seed),
        "logistic regression": lambda seed: LogisticRegression(max_iter=1000, random_state=seed),
        "linear SVM": lambda seed: LinearSVC(random_state=seed),
    }


def main() -> None:
    chosen = race_parser(__doc__.splitlines()[0], models()).parse_args()
    path = chosen.data / "poliblog5k" / "poliblog5k.npz"
    if not path.exists():
        raise SystemExit(f"{path} is not there; see the first lines of this file.")
    with np.load(path) as file:
        index, pointer = (file[f"x_{part}"].astype(np.int32) for part in ("indices", "indptr"))
        parts = file["x_data"].astype(float), index, pointer
        X, y = csr_matrix(parts, shape=tuple(file["x_shape"])), file["rating"].astype(int)
    splits = random_splits(len(y), int(0.7 * len(y)), max(chosen.seeds) + 1)

    def split(seed: int) -> tuple[Rows, Rows]:
        train, test = splits[seed]
        weighting = TfidfTransformer(sublinear_tf=True).fit(X[train])
        return (weighting.transform(X[train]), y[train]), (weighting.transform(X[test]), y[test])

    race("tggm_text", models(), chosen, split, {})


if __name__ == "__main__":
    main()
