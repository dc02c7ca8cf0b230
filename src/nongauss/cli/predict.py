"""What a saved model says of a table: predictions written row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier, is_clusterer

from nongauss.cli.judge import read_once
from nongauss.core.errors import InputError
from nongauss.report.metrics import split_interval
from nongauss.tables.column import label_of
from nongauss.tables.files import read_table, write_table


def predict_table(model: Any, data: str | Path, out: str | Path) -> int:
    """Predict every row of a table and write it; return the number of rows.

    A regression writes mean, sd and 90 % interval, a classification the class and the probability of each, a
    clustering the cluster by its rule (empty where no rule may hold a row) and the probability of each.
    The model itself checks the columns by name. Row i of `out` belongs to row i of `data`.
    """
    frame = read_table(data)
    if len(frame) == 0:
        raise InputError(f"{Path(data).name} has no rows to predict; give at least one.")
    predictions = prediction_columns(model, read_once(model, frame))
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    write_table(pd.DataFrame(predictions), out)
    return len(frame)


def prediction_columns(model: Any, frame: Any) -> dict[str, Any]:
    """The columns that are written for the rows of `frame`; see `predict_table`."""
    if is_clusterer(model):
        return _cluster_columns(model, frame)
    return _class_columns(model, frame) if is_classifier(model) else _number_columns(model, frame)


def _class_columns(model: Any, frame: Any) -> dict[str, Any]:
    probabilities = model.predict_proba(frame)
    names = [f"p_{label_of(label)}" for label in model.classes_.tolist()]
    return {"predicted": model.predict(frame), **dict(zip(names, probabilities.T, strict=True))}


def _cluster_columns(model: Any, frame: Any) -> dict[str, Any]:
    probabilities, names = model.predict_proba(frame), model.cluster_names_
    cluster = [None if label < 0 else names[label] for label in model.predict(frame)]
    return {"cluster": cluster, **{f"p_{name}": p for name, p in zip(names, probabilities.T, strict=True)}}


def _number_columns(model: Any, frame: Any) -> dict[str, Any]:
    distribution = model.predict_distribution(frame)
    lower, upper = split_interval(distribution.interval(0.9))
    columns = {"mean": distribution.mean, "sd": distribution.std, "lower_90": lower, "upper_90": upper}
    arrays = {name: np.asarray(values).reshape(len(frame), -1) for name, values in columns.items()}
    n_outputs = arrays["mean"].shape[1]
    suffix = [""] if n_outputs == 1 else [f"_{output}" for output in range(n_outputs)]
    return {f"{n}{s}": a[:, i] for i, s in enumerate(suffix) for n, a in arrays.items()}
