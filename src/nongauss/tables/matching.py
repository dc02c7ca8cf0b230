"""Columns of new rows against those of the fit: by name if both have names, else by position."""

from __future__ import annotations

from collections.abc import Sequence

from nongauss.core.errors import InputError
from nongauss.tables.frame import InputTable


def match_columns(
    table: InputTable,
    feature_names: Sequence[str] | None,
    n_features: int,
    estimator_name: str,
    notes: list[str],
) -> list[int]:
    """For each of the `n_features` columns of the fit, its position in `table`.

    Adds to `notes` what a warning should say. Raises InputError where a column is absent.
    """
    if feature_names is not None and table.names is not None:
        place = {name: j for j, name in enumerate(table.names)}
        absent = [name for name in feature_names if name not in place]
        if absent:
            raise InputError(
                f"X lacks {listed(absent)}, which {estimator_name} was fitted with; "
                f"add it, or leave its cells missing. X has {listed(table.names)}."
            )
        extra = [name for name in table.names if name not in set(feature_names)]
        if extra:
            notes.append(f"Columns that were not there when fitting are ignored: {listed(extra)}.")
        return [place[name] for name in feature_names]
    check_width(len(table.labels), n_features, estimator_name)
    if feature_names is not None:
        notes.append(
            f"X does not have valid feature names, but {estimator_name} was fitted with feature names."
        )
    elif table.names is not None:
        notes.append(f"X has feature names, but {estimator_name} was fitted without feature names.")
    return list(range(n_features))


def check_width(n_columns: int, n_features: int, estimator_name: str) -> None:
    """Raises InputError, in scikit-learn's words, unless X has as many columns as the fit."""
    if n_columns != n_features:
        raise InputError(
            f"X has {n_columns} features, but {estimator_name} is expecting {n_features} features as input."
        )


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names for a message: "column 'a'" or "columns 'a', 'b' and 3 more"."""
    shown = ", ".join(repr(name) for name in names[:most])
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{'column' if len(names) == 1 else 'columns'} {shown}{more}"
