"""Which models there are, and which one a target calls for."""

from __future__ import annotations

import ast
import difflib
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.tables.kinds import ColumnKind

REGRESSION, CLASSIFICATION, ORDINAL = "regression", "classification", "ordinal"
TASKS = (REGRESSION, CLASSIFICATION, ORDINAL)

#: Models that a person can name, and for each task that one has, where its class is.
MODELS: dict[str, dict[str, tuple[str, str]]] = {
    "tggm": {
        REGRESSION: ("nongauss.tggm.estimator", "TGGMRegressor"),
        CLASSIFICATION: ("nongauss.tggm.classifier", "TGGMClassifier"),
    },
    "sparse_gp": {
        REGRESSION: ("nongauss.sparse_gp.estimator", "SparseGPRegressor"),
        CLASSIFICATION: ("nongauss.sparse_gp.classifier", "SparseGPClassifier"),
        ORDINAL: ("nongauss.sparse_gp.classifier", "SparseGPOrdinalClassifier"),
    },
    "harmonium": {CLASSIFICATION: ("nongauss.harmonium.classifier", "HarmoniumClassifier")},
    "rank_factor": {CLASSIFICATION: ("nongauss.rank_factor.classifier", "RankFactorClassifier")},
}

#: The model and the task that `auto` takes for each kind of target; a kind that is missing here has none.
AUTO = {
    ColumnKind.REAL: ("tggm", REGRESSION),
    ColumnKind.CONSTANT: ("tggm", REGRESSION),
    ColumnKind.POSITIVE: ("sparse_gp", REGRESSION),
    ColumnKind.COUNT: ("sparse_gp", REGRESSION),
    ColumnKind.ORDINAL: ("sparse_gp", ORDINAL),
    ColumnKind.BINARY: ("sparse_gp", CLASSIFICATION),
    ColumnKind.CATEGORICAL: ("sparse_gp", CLASSIFICATION),
}

#: The model that `auto` takes where a task was asked for that is not the one of the target's kind.
FOR_TASK = {REGRESSION: "tggm", CLASSIFICATION: "sparse_gp", ORDINAL: "sparse_gp"}


@dataclass(frozen=True)
class Choice:
    """A model by its short name, its task, and the parameters that differ from the defaults."""

    model: str
    task: str = REGRESSION
    settings: Mapping[str, Any] = field(default_factory=dict)


def choose(
    column: pd.Series,
    kind: ColumnKind,
    model: str = "auto",
    task: str = "auto",
    settings: Mapping[str, Any] | None = None,
) -> Choice:
    """The model for a target column without gaps: what was asked for, else what its kind calls for.

    `model` and `task` are "auto" or names from MODELS and TASKS. `settings` overrule the one that follows
    from the values, a likelihood. Raises InputError for an unknown name, a kind without a model, a model
    without the task.
    """
    for name, known, what in ((model, MODELS, "model"), (task, TASKS, "task")):
        if name not in ("auto", *known):
            raise InputError(f"There is no {what} {name!r};{closest(name, ['auto', *known])}")
    usual_model, usual_task = AUTO.get(kind, (None, None))
    if task == "auto":
        task = _task_of(model, kind) if model != "auto" else usual_task or ""
    if model == "auto":
        model = (usual_model if task == usual_task else FOR_TASK.get(task)) or ""
    if not model:
        raise InputError(
            f"There is no model for a target of kind {kind.value}; choose another column, or say what it is: "
            "--task classification for labels."
        )
    if task not in MODELS[model]:
        others = [name for name, tasks in MODELS.items() if task in tasks]
        raise InputError(f"The model {model!r} has no {task}; give --model {' or '.join(others)}.")
    usual = likelihood_for(kind, column) if (model, task) == ("sparse_gp", REGRESSION) else {}
    return Choice(model, task, {**usual, **(settings or {})})


def likelihood_for(kind: ColumnKind, column: pd.Series) -> dict[str, str]:
    """The likelihood for numbers of this kind, as a setting; none where the default serves.

    Counts whose variance is not above their mean have no use for the negative binomial's dispersion.
    """
    if kind is ColumnKind.POSITIVE:
        return {"likelihood": "gamma"}
    if kind is ColumnKind.COUNT:
        counts = column.to_numpy(dtype=np.float64)
        return {"likelihood": "poisson" if counts.var() <= counts.mean() else "negative_binomial"}
    return {}


def _task_of(model: str, kind: ColumnKind) -> str:
    """The task that a named model does for a target of this kind: the kind's own, or the nearest it has."""
    usual = AUTO.get(kind, ("", CLASSIFICATION))[1]
    nearest = {
        ORDINAL: (ORDINAL, REGRESSION, CLASSIFICATION),
        CLASSIFICATION: (CLASSIFICATION, REGRESSION, ORDINAL),
        REGRESSION: (REGRESSION, ORDINAL, CLASSIFICATION),
    }
    return next(task for task in nearest[usual] if task in MODELS[model])


def family(choice: Choice, kind: ColumnKind, column: Any) -> list[Choice]:
    """The choice and, after it, every other model that has its task, each as `choose` would set it."""
    others = [name for name, tasks in MODELS.items() if name != choice.model and choice.task in tasks]
    return [choice, *(choose(pd.Series(column), kind, name, choice.task) for name in others)]


def build_model(
    choice: Choice,
    *,
    seed: int = 0,
    max_epochs: int | None = None,
    callbacks: Sequence[Callable[..., Any]] = (),
) -> Any:
    """The chosen model, unfitted. Raises InputError for a parameter it does not have, naming the closest."""
    module, class_name = MODELS[choice.model][choice.task]
    model = getattr(importlib.import_module(module), class_name)()
    known = model.get_params(deep=False)
    for name in choice.settings:
        if name not in known:
            raise InputError(f"{class_name} has no parameter {name!r};{closest(name, known)}")
    values: dict[str, Any] = {"random_state": seed}
    if callbacks:
        values["callbacks"] = list(callbacks)
    if max_epochs is not None:
        values["max_epochs" if "max_epochs" in known else "max_iter"] = max_epochs
    return model.set_params(**{**values, **choice.settings})


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """Settings written `name=value` as a mapping; values are Python literals, else text."""
    values = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        if not separator:
            raise InputError(f"A setting is written name=value, got {setting!r}.")
        values[name.strip()] = _literal(text.strip())
    return values


def closest(name: str, known: Iterable[Any]) -> str:
    """The end of an error sentence that offers the closest known name, or the names there are."""
    names = [str(item) for item in known]
    folded = {item.casefold(): item for item in reversed(names)}
    match = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    if match:
        return f" did you mean {folded[match[0]]!r}?"
    shown = ", ".join(repr(item) for item in names[:8])
    return f" there are: {shown}{', …' if len(names) > 8 else ''}."


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return {"true": True, "false": False, "none": None}.get(text.lower(), text)
