"""Results as JSON that any reader accepts: NaN and infinity become null, arrays become lists."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nongauss.report.text import settings


def to_json(record: Mapping[str, Any]) -> str:
    """The record as one JSON object on one line."""
    return json.dumps(plain(record), allow_nan=False, ensure_ascii=False)


def plain(value: Any) -> Any:
    """A value with only JSON's types in it."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, pd.DataFrame):
        name = str(value.index.name or "index")
        return [{name: plain(key), **plain(row)} for key, row in value.T.to_dict().items()]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value) if isinstance(value, Path) else repr(value)


def model_record(estimator: Any) -> dict[str, Any]:
    """What a fitted estimator says of itself: class, columns, settings, how the fit ended."""
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "model": type(estimator).__name__,
        "n_features": getattr(estimator, "n_features_in_", None),
        "columns": None if names is None else [str(name) for name in names],
        "n_iter": getattr(estimator, "n_iter_", None),
        "converged": getattr(estimator, "converged_", None),
        "stop_reason": getattr(estimator, "stop_reason_", None),
        "holds_training_rows": getattr(estimator, "holds_training_rows_", None),
        "settings": dict(settings(estimator)),
    }
