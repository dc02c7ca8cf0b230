"""A saved model behind MLflow's `pyfunc` interface: frame in, what `nongauss predict` writes out.

MLflow finds this module by its name and needs no code or pickle of the model's:

    mlflow.pyfunc.save_model("served", loader_module="nongauss.cli.served", data_path="model.nongauss")

This module does not import MLflow, so that whatever calls it the same way can serve a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from nongauss.cli.predict import prediction_frame, wanted
from nongauss.core.errors import InputError
from nongauss.estimator.persistence import load

OPTIONS = ("keep", "coverage", "quantiles")
"""The parameters of a request, named as the options of `nongauss predict`."""


class ServedModel:
    """A fitted model that answers frames with frames, as scoring servers call it."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, model_input: pd.DataFrame, params: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """A row of predictions for each row (N) of `model_input`, in its order and with its index.

        `params`: `keep`, names of columns to repeat; `coverage`, per cents of the intervals, such as
        [50, 90]; `quantiles`, levels between 0 and 1. Numbers are in units of the target. Raises InputError.
        """
        asked = {name: _as_list(value) for name, value in (params or {}).items()}
        unknown = [name for name in asked if name not in OPTIONS]
        if unknown:
            raise InputError(f"A request takes the parameters {', '.join(OPTIONS)}; got {unknown[0]!r}.")
        what = wanted(None, *([str(each) for each in asked.get(name, [])] for name in OPTIONS))
        return prediction_frame(self.model, model_input, what).set_axis(model_input.index)


def _load_pyfunc(data_path: str) -> ServedModel:
    """What MLflow calls with the path of the model file, or of a folder that holds just it."""
    path = Path(data_path)
    return ServedModel(load(next(path.glob("*.nongauss")) if path.is_dir() else path))


def _as_list(value: Any) -> Sequence[Any]:
    """One value as a list of it; a list as it is."""
    return [value] if isinstance(value, str) or not isinstance(value, Sequence) else value
