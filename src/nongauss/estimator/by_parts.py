"""Predictions for tables in parts, by methods that know tables in memory alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from nongauss.core.errors import InputError
from nongauss.tables.dask_source import lazily
from nongauss.tables.learn import as_source, is_parted
from nongauss.tables.source import Part, is_dask, naming


def by_parts(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method whose result has one row a row of X take tables in parts as well.

    Of a Dask collection the result is a Dask array, computed when asked for; of a path all rows' results.
    """

    @wraps(method)
    def either(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if not is_parted(X):
            return method(self, X, *args, **options)
        check_is_simple((*args, *options.values()))
        work = partial(_predicted, partial(method, self), known_columns(self), args, options)
        return lazily(work, X) if is_dask(X) else np.concatenate(list(as_source(X).each(work)))

    return either


def check_is_simple(options: tuple[Any, ...]) -> None:
    """Refuse options of `predict`, which have no place in a lazy result."""
    if any(option is not None and option is not False for option in options):
        raise InputError(
            "return_std and exposure take tables in memory; predict part by part: "
            "X.map_partitions(model.predict, return_std=True)."
        )


def known_columns(model: Any) -> list[str] | None:
    """The names of the columns that a model was fitted with, if they had some."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else list(names)


def _predicted(
    method: Callable[..., Any], names: list[str] | None, args: Any, options: Any, part: Part
) -> Any:
    X = part.X
    if names is not None and hasattr(X, "columns") and set(names) <= set(X.columns):
        X = X[names]
    return naming(part, partial(method, X, *args, **options))
