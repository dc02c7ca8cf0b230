"""What a saved model says of the rows of a table, written as a table."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier, is_clusterer, is_regressor

from nongauss.cli.choose import closest
from nongauss.cli.declared import column_named, spelled, without_gap_values
from nongauss.cli.judge import read_once
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.estimator.about import About
from nongauss.metrics import split_interval
from nongauss.tables.column import label_of
from nongauss.tables.files import read_table, write_table
from nongauss.tables.frame import n_rows_of, take_rows


@dataclass(frozen=True)
class Wanted:
    """Which columns are written: those of the table to `keep`, intervals in per cent, levels of quantiles."""

    keep: tuple[str, ...] = ()
    coverage: tuple[float, ...] = ()
    quantiles: tuple[float, ...] = ()


_MOST_COMPARED = 20_000  # rows that are compared with training rows

USUAL = Wanted()
"""No column kept; of a regression, the interval of 90 %."""


def wanted(id_: str | None, keep: Sequence[str], coverage: Sequence[str], quantiles: Sequence[str]) -> Wanted:
    """From the texts of the options. Raises InputError for one that is no number or out of its range."""
    kept = tuple(dict.fromkeys([*([] if id_ is None else [id_]), *keep]))
    return Wanted(
        kept, _between("--coverage", coverage, 1.0, 100.0), _between("--quantiles", quantiles, 0.0, 1.0)
    )


def _between(option: str, texts: Sequence[str], low: float, high: float) -> tuple[float, ...]:
    numbers = []
    for text in texts:
        try:
            number = float(text)
        except ValueError:
            number = np.nan
        if not low < number < high:
            example = "50,90 for intervals of 50 and 90 %" if high == 100.0 else ".05,.5,.95"
            raise InputError(
                f"{option} takes numbers above {low:g} and below {high:g}, such as {example}; got {text!r}."
            )
        numbers.append(number)
    return tuple(dict.fromkeys(numbers))


def predict_table(
    model: Any, data: str | Path, out: str | Path, what: Wanted = USUAL, raw: bool = False
) -> int:
    """Predict every row of a table and write it; return the number of rows.

    A regression writes mean, sd and intervals (90 % unless others are wanted), a classification the class and
    the probability of each, a clustering the cluster by its rule (empty where no rule may hold a row) and the
    probability of each; before them the columns that are kept. The model itself checks the columns by name.
    Row i of `out` belongs to row i of `data`.
    """
    frame = read_table(data)
    if len(frame) == 0:
        raise InputError(f"{Path(data).name} has no rows to predict; give at least one.")
    try:
        predictions = prediction_frame(model, frame, what, warn=True)
    except InputError as error:  # the model calls the table X
        raise InputError(re.sub(r"\bX (lacks|has)\b", rf"{Path(data).name} \1", str(error))) from error
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    write_table(predictions, out, raw)
    return len(frame)


def _warn_of_far_rows(model: Any, rows: Any) -> None:
    """One note on the rows that lie far outside the training rows which the model keeps, if it keeps some.

    `rows` are as `read_once` gives them.
    """
    known = getattr(model, "_known_rows", None)
    if known is None:
        return
    n_rows = n_rows_of(rows)
    n_compared = min(n_rows, _MOST_COMPARED)
    far = known.far_outside(take_rows(rows, np.arange(n_compared)), type(model).__name__)
    n = int(np.any(list(far.values()), axis=0).sum()) if far else 0
    if not n:
        return
    name, there = max(far.items(), key=lambda item: int(item[1].sum()))
    of = f"{n} of {'the first ' if n_rows > n_compared else ''}{n_compared} rows"
    warnings.warn(
        f"{of} {'lies' if n == 1 else 'lie'} far outside the range of the training rows, most often in "
        f"column {name!r} ({int(there.sum())}); predictions there are extrapolations.",
        NongaussWarning,
        stacklevel=2,
    )


def prediction_frame(
    model: Any, frame: pd.DataFrame, what: Wanted = USUAL, warn: bool = False
) -> pd.DataFrame:
    """The columns that are written for the rows of `frame`; see `predict_table`. `warn` of far rows."""
    check_wanted(model, [str(name) for name in frame.columns], what)
    fitted = as_fitted(model, frame)
    rows = read_once(model, inputs_of(model, fitted, what.keep))
    columns = prediction_columns(model, rows, what, beside_of(model, fitted))
    if warn:
        _warn_of_far_rows(model, rows)
    clash = next((name for name in what.keep if name in columns), None)
    if clash is not None:
        raise InputError(
            f"Column {clash!r} cannot be kept: the predictions have a column of that name; rename it in the "
            "table, or leave it out of --keep."
        )
    kept = {name: frame[name].reset_index(drop=True) for name in what.keep}
    return pd.DataFrame({**kept, **columns})


def as_fitted(model: Any, frame: pd.DataFrame) -> pd.DataFrame:
    """The table with the gaps that were declared of the training table, and words spelled as there."""
    about = getattr(model, "about_", None) or About()
    there = [text for text in about.missing if "=" not in text or text.rpartition("=")[0] in frame.columns]
    return spelled(without_gap_values(frame, there), about.spellings)


def check_wanted(model: Any, names: Sequence[str], what: Wanted) -> None:
    """Raises InputError for a column to keep that is not there, and for intervals of what has none."""
    for name in what.keep:
        if name not in names:
            raise InputError(f"There is no column {name!r} to keep;{closest(name, names)}")
    if (what.coverage or what.quantiles) and not is_regressor(model):
        raise InputError(f"{type(model).__name__} gives no intervals; leave out --coverage and --quantiles.")


def inputs_of(model: Any, frame: pd.DataFrame, others: Sequence[str] = ()) -> pd.DataFrame:
    """The table without columns that are known to be no inputs, so that nothing is said of these.

    They are the target, what was left out of the fit or stands beside the inputs, and `others`.
    """
    about = getattr(model, "about_", None) or About()
    beside = (column_named(text, frame) for text in about.beside.values())
    known = {about.target, *(name for name, _ in about.ignored), *beside, *others}
    used = set(getattr(model, "feature_names_in_", ()))
    return frame.drop(columns=[name for name in frame.columns if name in known - used])


def beside_of(model: Any, frame: pd.DataFrame) -> dict[str, Any]:
    """Columns that the model's predictions take beside the inputs: the exposure. Raises InputError."""
    name = (getattr(model, "about_", None) or About()).beside.get("exposure")
    if name is None:
        return {}
    if name not in frame.columns:
        raise InputError(
            f"The model was fitted with the exposure in column {name!r}, which the table does not have; add "
            "it (1 in every row for a prediction of each unit of it)."
        )
    return {"exposure": pd.to_numeric(frame[name]).to_numpy(dtype=np.float64)}


def prediction_columns(
    model: Any, frame: Any, what: Wanted = USUAL, beside: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What the model says of the rows of `frame`, by the names of the columns that are written."""
    if is_clusterer(model):
        return _cluster_columns(model, frame)
    if is_classifier(model):
        return _class_columns(model, frame)
    return _number_columns(model, frame, what, beside or {})


def _class_columns(model: Any, frame: Any) -> dict[str, Any]:
    probabilities = model.predict_proba(frame)
    names = [f"p_{label_of(label)}" for label in model.classes_.tolist()]
    return {"predicted": model.predict(frame), **dict(zip(names, probabilities.T, strict=True))}


def _cluster_columns(model: Any, frame: Any) -> dict[str, Any]:
    probabilities, names = model.predict_proba(frame), model.cluster_names_
    cluster = [None if label < 0 else names[label] for label in model.predict(frame)]
    return {"cluster": cluster, **{f"p_{name}": p for name, p in zip(names, probabilities.T, strict=True)}}


def _number_columns(model: Any, frame: Any, what: Wanted, beside: Mapping[str, Any]) -> dict[str, Any]:
    """Mean, sd, intervals and quantiles, in the units of the target as it stood in the table."""
    distribution = model.predict_distribution(frame, **beside)
    columns = {"mean": distribution.mean, "sd": distribution.std}
    for percent in what.coverage or (90.0,):
        lower, upper = split_interval(distribution.interval(percent / 100.0))
        columns |= {f"lower_{percent:g}": lower, f"upper_{percent:g}": upper}
    columns |= {f"q_{level:g}": distribution.quantile(level) for level in what.quantiles}
    scale = (getattr(model, "about_", None) or About()).scale
    arrays = {name: scale * np.asarray(values).reshape(len(frame), -1) for name, values in columns.items()}
    n_outputs = arrays["mean"].shape[1]
    suffix = [""] if n_outputs == 1 else [f"_{output}" for output in range(n_outputs)]
    return {f"{n}{s}": a[:, i] for i, s in enumerate(suffix) for n, a in arrays.items()}
