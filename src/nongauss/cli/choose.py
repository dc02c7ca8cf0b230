"""Which models there are, and which one a target calls for."""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.tables.column import ColumnKind, TargetKind

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
    "harmonium": {
        REGRESSION: ("nongauss.harmonium.regressor", "HarmoniumRegressor"),
        CLASSIFICATION: ("nongauss.harmonium.classifier", "HarmoniumClassifier"),
    },
    "rank_factor": {CLASSIFICATION: ("nongauss.rank_factor.classifier", "RankFactorClassifier")},
}

#: What weighs all models by evidence, for each task: what `auto` is, wherever it takes what is asked for.
EVIDENCE = {
    REGRESSION: ("nongauss.auto.regressor", "AutoRegressor"),
    CLASSIFICATION: ("nongauss.auto.classifier", "AutoClassifier"),
    ORDINAL: ("nongauss.auto.classifier", "AutoClassifier"),
}

#: The single model and the task for each kind of target; a kind that is missing here has none.
AUTO = {
    ColumnKind.REAL: ("tggm", REGRESSION),
    ColumnKind.CONSTANT: ("tggm", REGRESSION),
    ColumnKind.POSITIVE: ("sparse_gp", REGRESSION),
    ColumnKind.ZEROS: ("sparse_gp", REGRESSION),
    ColumnKind.COUNT: ("sparse_gp", REGRESSION),
    ColumnKind.SHARE: ("sparse_gp", REGRESSION),
    ColumnKind.TIME: ("sparse_gp", REGRESSION),
    ColumnKind.GRADE: ("sparse_gp", ORDINAL),
    ColumnKind.BINARY: ("sparse_gp", CLASSIFICATION),
    ColumnKind.LABEL: ("sparse_gp", CLASSIFICATION),
}

#: What `AutoRegressor` is told where a person has said what the target is.
KINDS = {
    ColumnKind.REAL: "real",
    ColumnKind.POSITIVE: "positive",
    ColumnKind.TIME: "positive",
    ColumnKind.ZEROS: "zeros",
    ColumnKind.COUNT: "count",
    ColumnKind.SHARE: "share",
}

#: The single model where a task was asked for that is not the one of the target's kind.
FOR_TASK = {REGRESSION: "tggm", CLASSIFICATION: "sparse_gp", ORDINAL: "sparse_gp"}


@dataclass(frozen=True)
class Choice:
    """A model by its short name, its task, and the parameters that differ from the defaults.

    "auto" weighs all models by evidence. `why_single`: why it does not, where it was asked for.
    """

    model: str
    task: str = REGRESSION
    settings: Mapping[str, Any] = field(default_factory=dict)
    why_single: str = ""


def choose(
    column: pd.Series,
    kind: ColumnKind,
    model: str = "auto",
    task: str = "auto",
    settings: Mapping[str, Any] | None = None,
    needs: Iterable[str] = (),
) -> Choice:
    """The single model for a target column without gaps: what was asked for, else what its kind calls for.

    `model` and `task` are "auto" or names from MODELS and TASKS. `settings` overrule the one that follows
    from the values, a likelihood. `needs`: what `fit` must take beside X and y, such as `exposure`.
    Raises InputError for an unknown name, a kind without a model, a model
    without the task.
    """
    for name, known, what in ((model, MODELS, "model"), (task, TASKS, "task")):
        if name not in ("auto", *known):
            raise InputError(f"There is no {what} {name!r};{closest(name, ['auto', *known])}")
    given = dict(settings or {})
    model, task = _by_likelihood(given.get("likelihood"), model, task)
    usual_model, usual_task = AUTO.get(kind, (None, None))
    if task == "auto":
        task = _task_of(model, kind) if model != "auto" else usual_task or ""
    if model == "auto":
        model = (usual_model if task == usual_task else FOR_TASK.get(task)) or ""
        model = _that_has(given, frozenset(needs), model, task)
    if not model:
        raise InputError(
            f"There is no model for a target of kind {kind.value}; choose another column, or declare "
            "its kind (--kind label for labels)."
        )
    if task not in MODELS[model]:
        others = [name for name, tasks in MODELS.items() if task in tasks]
        raise InputError(f"The model {model!r} has no {task}; give --model {' or '.join(others)}.")
    lacks = needs and frozenset(needs) - _fit_takes(model, task)
    if lacks:
        what = " and ".join(sorted(lacks))
        raise InputError(f"The model {model!r} does not accept {what} for {task}; give --model sparse_gp.")
    usual = likelihood_for(kind, column) if (model, task) == ("sparse_gp", REGRESSION) else {}
    return Choice(model, task, {**usual, **given})


def by_evidence(
    single: Choice,
    found: TargetKind,
    settings: Mapping[str, Any],
    needs: Iterable[str] = (),
    why_single: str = "",
) -> Choice:
    """All models for the task of a single one, to be weighed by evidence; or that one, with the reason.

    `settings` and `needs` are those asked for; `why_single`: a reason that is known already.
    """
    if "likelihood" in settings:
        return single  # it was asked for by name, and one model has it
    known = _class_of("auto", single.task)().get_params(deep=False)
    others = [name for name in settings if name not in known]
    lacks = sorted(frozenset(needs) - _fit_takes("auto", single.task))
    if others:
        why_single = f"the search over all models does not accept {' and '.join(others)}"
    elif lacks:
        why_single = f"the search over all models does not accept {' and '.join(lacks)} yet"
    if why_single:
        return replace(single, why_single=why_single)
    told: dict[str, Any] = {"ordered": True} if single.task == ORDINAL else {}
    if single.task == REGRESSION and found.declared and found.kind in KINDS:
        told = {"kind": KINDS[found.kind]}
    return Choice("auto", single.task, {**told, **settings})


def candidates(chosen: Choice, found: TargetKind, column: Any, needs: Iterable[str] = ()) -> list[Choice]:
    """The choice, then those for the target's kind and for each kind that is near, without repetitions.

    Without evidence the first is taken. Evidence weighs all that serve the task, labels beside grades.
    """
    out = [chosen]
    if chosen.model == "auto":
        beside = {ORDINAL: (ORDINAL, CLASSIFICATION)}.get(chosen.task, (chosen.task,))
        tasks = dict.fromkeys(AUTO[kind][1] for kind, _ in found.near if kind in AUTO)
        return [*out, *(Choice("auto", task) for task in tasks if task not in beside)]
    known = {_law(chosen)}
    for kind in (found.kind, *(kind for kind, _ in found.near)):
        if kind in AUTO:
            choice = choose(column, kind)
            lacks = needs and frozenset(needs) - _fit_takes(choice.model, choice.task)
            if not lacks and _law(choice) not in known:
                known.add(_law(choice))
                out.append(choice)
    return out


def _law(choice: Choice) -> tuple[str, str, Any]:
    """Model, task and likelihood, by which candidates are told apart."""
    return choice.model, choice.task, choice.settings.get("likelihood")


def likelihood_for(kind: ColumnKind, column: Any) -> dict[str, str]:
    """The likelihood for numbers of this kind, as a setting; none where the default serves.

    Counts whose variance is not above their mean have no use for the negative binomial's dispersion; shares
    of exactly 0 or 1 need masses there.
    """
    if kind is ColumnKind.POSITIVE:
        return {"likelihood": "gamma"}
    if kind is ColumnKind.TIME:
        return _if_there("log_normal") or {"likelihood": "gamma"}
    if kind is ColumnKind.ZEROS:
        return _if_there("hurdle_gamma")
    values = (
        pd.Series(column).to_numpy(dtype=np.float64) if kind in (ColumnKind.COUNT, ColumnKind.SHARE) else None
    )
    if kind is ColumnKind.COUNT and values is not None:
        return {"likelihood": "poisson" if values.var() <= values.mean() else "negative_binomial"}
    if kind is ColumnKind.SHARE and values is not None:
        at_ends = bool(((values <= 0) | (values >= 1)).any())
        return _if_there("zero_one_beta" if at_ends else "beta")
    return {}


def likelihoods() -> dict[str, Any]:
    """The likelihoods that a model of numbers may be given, by name."""
    from nongauss.sparse_gp.likelihoods import REGRESSION as known

    return known


def _if_there(name: str) -> dict[str, str]:
    """A likelihood as a setting, if there is one of this name."""
    return {"likelihood": name} if name in likelihoods() else {}


def _by_likelihood(likelihood: Any, model: str, task: str) -> tuple[str, str]:
    """The model and the task where a likelihood was asked for by name: those that have it.

    Raises InputError for a likelihood that there is not, naming the closest, and for a model without any.
    """
    if not isinstance(likelihood, str):
        return model, task
    if likelihood not in likelihoods():
        raise InputError(f"There is no likelihood {likelihood!r};{closest(likelihood, likelihoods())}")
    if task not in ("auto", REGRESSION):
        raise InputError(f"The likelihood {likelihood!r} is of numbers, not for {task}; leave out --task.")
    if model not in ("auto", "sparse_gp"):
        raise InputError(
            f"The model {model!r} has no likelihood {likelihood!r}, sparse_gp has; give --model sparse_gp."
        )
    return "sparse_gp", REGRESSION


def _that_has(settings: Mapping[str, Any], needs: frozenset[str], model: str, task: str) -> str:
    """The first model of a task with parameters of these names, whose fit takes `needs`; else `model`."""
    if not settings and not needs:
        return model  # nothing is loaded to know that
    others = [name for name, tasks in MODELS.items() if task in tasks and name != model]
    for name in (model, *others):
        if name and settings.keys() <= parameters_of(name, task).keys() and needs <= _fit_takes(name, task):
            return name
    return model


def _fit_takes(model: str, task: str) -> frozenset[str]:
    """The names of what `fit` takes."""
    return frozenset(inspect.signature(_class_of(model, task).fit).parameters)


def parameters_of(model: str, task: str) -> dict[str, Any]:
    """Parameters of a model, with their defaults."""
    found: dict[str, Any] = _class_of(model, task)().get_params(deep=False)
    return found


def _class_of(model: str, task: str) -> Any:
    module, class_name = EVIDENCE[task] if model == "auto" else MODELS[model][task]
    return getattr(importlib.import_module(module), class_name)


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
    model = _class_of(choice.model, choice.task)()
    class_name = type(model).__name__
    known = model.get_params(deep=False)
    for name, value in choice.settings.items():
        if name not in known:
            raise InputError(f"{class_name} has no parameter {name!r};{closest(name, known)}")
        _check_word(model, name, value)
    values: dict[str, Any] = {"random_state": seed}
    if callbacks:
        values["callbacks"] = list(callbacks)
    if max_epochs is not None and choice.model != "auto":
        values["max_epochs" if "max_epochs" in known else "max_iter"] = max_epochs
    return model.set_params(**{**values, **choice.settings})


def _check_word(model: Any, name: str, value: Any) -> None:
    """Raises InputError for a word that is none of those that a parameter takes, naming the closest."""
    allowed = getattr(model, "_parameter_constraints", {}).get(name, [])
    words = {word for item in allowed for word in getattr(item, "options", ())}
    if isinstance(value, str) and words and str not in allowed and value not in words:
        of = type(model).__name__
        raise InputError(f"{of} has no {name} {value!r};{closest(value, sorted(map(str, words)))}")


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
