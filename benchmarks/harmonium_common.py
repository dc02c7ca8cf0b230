"""Data of the harmonium benchmarks: texts, sets with several views, made features; a tuned SVM; seconds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

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


def timed(fit: Any) -> tuple[Any, float]:
    """What `fit()` returns, and the processor seconds it took."""
    began = time.process_time()
    return fit(), time.process_time() - began
