"""Data of the harmonium benchmarks: texts, sets with several views, made features; rivals; seconds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from nongauss import Harmonium
from nongauss.harmonium.updates import Adam

VIEWS = {
    "bbcsport": ["view1", "view2"],
    "threesources": ["bbc", "reuters", "guardian"],
    "mfeat": ["fac", "fou", "kar", "mor", "pix", "zer"],
    "msrc_v1": ["view1", "view2", "view3", "view4", "view5"],
}


def _archive(data: Path, name: str) -> Any:
    path = data / name / f"{name}.npz"
    if not path.exists():
        raise SystemExit(f"{path} is not there: give the folder that holds {name}/{name}.npz by --data.")
    return np.load(path)


def _sparse(archive: Any, part: str) -> sp.csr_matrix:
    parts = (archive[f"{part}_data"].astype(np.float32), archive[f"{part}_indices"].astype(int))
    return sp.csr_matrix((*parts, archive[f"{part}_indptr"]), shape=tuple(archive[f"{part}_shape"]))


def newsgroups(data: Path) -> tuple[Any, np.ndarray, Any, np.ndarray, np.ndarray, np.ndarray]:
    """Binary words of the 5,000 most frequent, by date: train, labels, test, labels, words, group names."""
    archive = _archive(data, "newsgroups20")
    chosen, out = archive["top5000"], []
    for part in ("train", "test"):
        words = _sparse(archive, part)[:, chosen].tocsr()
        words.data[:] = 1.0
        out += [words, archive[f"{part}_y"].astype(int)]
    return (*out, archive["vocab"][chosen], archive["label_names"])


def views(data: Path, name: str) -> tuple[list[np.ndarray], np.ndarray]:
    """The views of a set as dense arrays (texts as words that occur: 0 and 1), and its classes."""
    archive = _archive(data, name)
    dense = [
        archive[view].astype(float)
        if view in archive.files
        else (_sparse(archive, view).toarray() > 0).astype(float)
        for view in VIEWS[name]
    ]
    return dense, archive["target"].astype(int)


def made(n_features: int, n_rows: int, kind: str, seed: int, n_columns: int = 60) -> np.ndarray:
    """Columns made by features that each touch a fifth of them and that 10 to 40 % of the rows have."""
    rng = np.random.default_rng(seed)
    weights, width = np.zeros((n_columns, n_features)), n_columns // 5
    for k in range(n_features):
        touched = rng.choice(n_columns, width, replace=False)
        weights[touched, k] = rng.choice([-1, 1], width) * rng.uniform(0.7, 1.3, width)
    who = (rng.random((n_rows, n_features)) < rng.uniform(0.1, 0.4, n_features)).astype(float)
    if kind == "real":
        return who @ weights.T + 0.5 * rng.standard_normal((n_rows, n_columns))
    chance = expit(rng.normal(-1, 0.5, n_columns) + 3 * who @ weights.T)
    return (rng.random((n_rows, n_columns)) < chance).astype(float)


def tuned_svm(X: Any, y: np.ndarray, folds: int = 3) -> Any:
    """A linear SVM on standardised columns, C chosen by cross-validation on these rows."""
    steps = make_pipeline(StandardScaler(with_mean=not sp.issparse(X)), LinearSVC(dual="auto", max_iter=3000))
    grid = {"linearsvc__C": [0.001, 0.01, 0.1, 1.0]}
    return GridSearchCV(steps, grid, cv=folds).fit(X, y)


class DRBM:
    """Discriminative restricted Boltzmann machine (Larochelle and Bengio 2008), by Adam on log p(y | x).

    log p(y | x) = d_y + sum_j log(1 + exp(c_j + U_jy + W_j x)) - log of the sum over y. The epoch that is
    best on a tenth of the training rows is kept.
    """

    def __init__(self, n_hidden: int = 50, rate: float = 3e-3, epochs: int = 15, seed: int = 0) -> None:
        self.n_hidden, self.rate, self.epochs, self.seed = n_hidden, rate, epochs, seed

    def fit(self, X: Any, y: np.ndarray) -> DRBM:
        """Learn from rows X and labels y."""
        rng, self.classes_ = np.random.default_rng(self.seed), np.unique(y)
        n_classes, labels = len(self.classes_), np.searchsorted(self.classes_, y)
        order = rng.permutation(len(y))
        held, kept = order[: len(y) // 10], order[len(y) // 10 :]
        shapes = (X.shape[1], self.n_hidden), (n_classes, self.n_hidden), (self.n_hidden,), (n_classes,)
        self.parts = tuple(
            (0.01 * rng.standard_normal(shape) if len(shape) > 1 else np.zeros(shape)).astype(np.float32)
            for shape in shapes
        )
        adam, best, kept_parts = Adam(self.parts), np.inf, self.parts
        for _ in range(self.epochs):
            for batch in np.array_split(rng.permutation(kept), max(1, len(kept) // 256)):
                adam.step(self.parts, self._gradient(X[batch], labels[batch]), (self.rate,) * 4)
            error = np.mean(self.predict(X[held]) != y[held])
            if error < best:
                best, kept_parts = error, tuple(part.copy() for part in self.parts)
        self.parts = kept_parts
        return self

    def _scores(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        W, U, c, d = self.parts
        drive = np.asarray(X @ W)[:, None, :] + U[None] + c
        return drive, d + np.logaddexp(0, drive).sum(axis=2)

    def _gradient(self, X: Any, labels: np.ndarray) -> tuple[np.ndarray, ...]:
        drive, f = self._scores(X)
        left = -softmax(f, axis=1)
        left[np.arange(len(left)), labels] += 1.0
        left /= len(left)
        by_drive = left[:, :, None] * expit(drive)
        by_row = by_drive.sum(axis=1)
        return X.T @ by_row, by_drive.sum(axis=0), by_row.sum(axis=0), left.sum(axis=0)

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class of each row."""
        return self.classes_[self._scores(X)[1].argmax(axis=1)]


class JointRBM:
    """A restricted Boltzmann machine of columns and classes together, by our contrastive divergence.

    p(y | x) is exact: proportional to p~(x, e_y), the hidden units summed out.
    """

    def __init__(self, n_hidden: int = 1000, seed: int = 0) -> None:
        self.n_hidden, self.seed = n_hidden, seed

    def fit(self, X: Any, y: np.ndarray) -> JointRBM:
        """Learn from sparse rows X and labels y."""
        self.classes_, labels = np.unique(y, return_inverse=True)
        both = sp.hstack([X, sp.csr_matrix(np.eye(len(self.classes_))[labels])]).tocsr()
        kinds = {"all": (slice(0, both.shape[1]), "binary")}
        model = Harmonium(self.n_hidden, views=kinds, random_state=self.seed).fit(both)
        self.machine, self.columns = model.machine_, [unit.column for unit in model._coder.units]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class of each row."""
        p, n_classes = self.machine.params, len(self.classes_)
        words = [column for column in self.columns if column < X.shape[1]]
        W, U = p.weights[: len(words)], p.weights[len(words) :]
        drive = np.asarray(X[:, words] @ W) + p.hidden_bias + self.machine.prior.log_odds
        bias = p.visible_bias[len(words) :]
        scores = [bias[c] + np.logaddexp(0, drive + U[c]).sum(axis=1) for c in range(n_classes)]
        return self.classes_[np.argmax(scores, axis=0)]


def timed(fit: Any) -> tuple[Any, float]:
    """What `fit()` returns, and the processor seconds it took."""
    began = time.process_time()
    return fit(), time.process_time() - began
