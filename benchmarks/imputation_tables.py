"""The tables of `imputation.py`, and which of their cells are hidden."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from common import load_table
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

MOST_ROWS = 300
OF_SKLEARN = {
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "diabetes": load_diabetes,
    "iris": load_iris,
}
OF_FOLDER = ("abalone", "boston", "esl", "german", "glass", "pima", "titanic", "zoo")
FRESH = ("anes96", "ccard", "fair", "grunfeld", "macrodata", "modechoice", "penguins", "star98", "statecrime")
"""Tables of statsmodels and palmerpenguins, added when all models stood: nothing was tuned on them."""


def table_of(name: str, data: Path) -> pd.DataFrame:
    """A table with its target as a column; classes and pairs of values as labels; MOST_ROWS at most."""
    if name in FRESH:
        frame = fresh(name)
    elif name in OF_SKLEARN:
        found = OF_SKLEARN[name](as_frame=True)
        frame = found.data.copy()
        frame["target"] = found.target if name == "diabetes" else [f"c{k}" for k in found.target]
    else:
        frame, y = load_table(data, name)
        frame["target"] = [f"c{k}" for k in y] if len(np.unique(y)) <= 3 else y
    for column in frame:
        if is_number(frame[column]) and frame[column].nunique() == 2:
            frame[column] = [f"v{value:g}" for value in frame[column]]
    frame = frame.loc[:, frame.nunique() > 1]
    rows = np.random.default_rng(0).permutation(len(frame))[:MOST_ROWS]
    return frame.iloc[np.sort(rows)].reset_index(drop=True)


def fresh(name: str) -> pd.DataFrame:
    """A table of `FRESH`, its rows without gaps."""
    if name == "penguins":
        from palmerpenguins import load_penguins

        found: pd.DataFrame = load_penguins().dropna()
        return found
    import statsmodels.api as sm

    data: pd.DataFrame = getattr(sm.datasets, name).load_pandas().data
    return data.dropna()


def hidden(frame: pd.DataFrame, share: float, depends: bool, seed: int) -> np.ndarray:
    """Which cells (N, D) are hidden."""
    rng = np.random.default_rng(seed)
    chance = np.full(frame.shape, share)
    if depends:
        pivot = next(j for j, name in enumerate(frame) if is_number(frame[name]))
        place = frame.iloc[:, pivot].rank(pct=True).to_numpy()
        chance[:] = np.minimum(2.0 * share * place, 0.95)[:, None]
        chance[:, pivot] = 0.0
    return rng.random(frame.shape) < chance


def is_number(column: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column))
