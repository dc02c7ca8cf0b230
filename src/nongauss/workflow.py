"""From a table on disk to a judged, saved and reported model: the steps behind the command line."""

from __future__ import annotations

import ast
import difflib
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone

from nongauss.core.contracts import InputError
from nongauss.data.kinds import ColumnKind, target_kind
from nongauss.data.reading import read_table, write_table
from nongauss.report.comparison import baselines, compare, fit_and_score, raise_if_stopped
from nongauss.report.html import FrameInfo, report_figures, write_report
from nongauss.report.metrics import split_interval

#: Models that a person can name, and where their classes are.
MODELS = {"tggm": ("nongauss.tggm.estimator", "TGGMRegressor")}

#: Which model `auto` takes for which kind of target; a kind that is missing here has none yet.
AUTO = {
    ColumnKind.REAL: "tggm",
    ColumnKind.POSITIVE: "tggm",
    ColumnKind.COUNT: "tggm",
    ColumnKind.ORDINAL: "tggm",
    ColumnKind.CONSTANT: "tggm",
}

_FEWEST_ROWS_TO_SPLIT = 10
_ID_REASON = "a different text in every row (an id)"


@dataclass(frozen=True)
class Table:
    """Rows ready to fit: inputs `X`, target `y` (N,), and what was done to get there."""

    source: str
    target: str
    X: pd.DataFrame
    y: npt.NDArray[np.float64]
    kind: str
    model: str
    ignored: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()

    def info(self, n_held_out: int = 0, notes: Sequence[str] = ()) -> FrameInfo:
        """The table as the report shows it."""
        kinds = [(str(name), _kind_word(self.X[name])) for name in self.X.columns]
        constant = ColumnKind.CONSTANT.value
        used = [pair for pair in kinds if pair[1] != constant]
        ignored = [(name, "the same value in every row") for name, kind in kinds if kind == constant]
        return FrameInfo(
            source=self.source, target=self.target, n_rows=len(self.y), n_held_out=n_held_out,
            target_kind=self.kind, used=used, ignored=[*self.ignored, *ignored], notes=[*self.notes, *notes],
        )  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """A fit and its judgement: `judged` has not seen the held-out rows, `final` is the one to keep."""

    final: Any
    judged: Any
    n_rows: int
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    held_out: tuple[pd.DataFrame, npt.NDArray[np.float64]] | None = None
    notes: list[str] = field(default_factory=list)


def load_table(path: str | Path, target: str, model: str = "auto") -> Table:
    """Read a table, take out its target, drop rows and columns that no model can use, choose the model.

    Raises InputError where the target is not there, has no values, or has no model.
    """
    frame = read_table(path)
    return prepare(frame, target, model, source=Path(path).name)


def prepare(frame: pd.DataFrame, target: str, model: str = "auto", *, source: str = "table") -> Table:
    """As `load_table`, for a frame in memory."""
    column = _target_column(frame, target, source)
    notes: list[str] = []
    missing = column.isna()
    if missing.all():
        raise InputError(f"The target {target!r} is missing in every row of {source}; choose another column.")
    if missing.any():
        notes.append(f"{int(missing.sum())} of {len(column)} rows have no {target!r} and were dropped.")
        frame, column = frame[~missing], column[~missing]
    kind, reason = target_kind(column)
    model, chosen = _choose_model(model, kind, reason, target)
    notes.insert(0, chosen)
    X = frame.drop(columns=[target]).reset_index(drop=True)
    ids = [name for name in X.columns if _is_id(X[name])]
    notes += [f"Column {str(name)!r} holds {_ID_REASON} and was ignored." for name in ids]
    X = X.drop(columns=ids)
    if X.shape[1] == 0:
        raise InputError(f"No column is left in {source} to predict {target!r} from; add inputs.")
    return Table(
        source=source, target=target, X=X, y=_numbers(column, target, kind), kind=kind.value,
        model=model, ignored=[(str(name), _ID_REASON) for name in ids], notes=notes,
    )  # fmt: skip


def build_model(
    name: str,
    settings: Iterable[str] = (),
    *,
    seed: int = 0,
    max_epochs: int | None = None,
    callbacks: Sequence[Callable[..., Any]] = (),
) -> Any:
    """An unfitted model by its short name, with `name=value` settings applied.

    Raises InputError for an unknown model or parameter (naming the closest), or a setting without "=".
    """
    module, class_name = MODELS[name]
    model = getattr(importlib.import_module(module), class_name)()
    known = model.get_params(deep=False)
    values: dict[str, Any] = {"random_state": seed}
    if callbacks:
        values["callbacks"] = list(callbacks)
    if max_epochs is not None:
        values["max_epochs" if "max_epochs" in known else "max_iter"] = max_epochs
    for setting in settings:
        key, separator, text = setting.partition("=")
        key = key.strip()
        if not separator:
            raise InputError(f"A setting is written name=value, got {setting!r}.")
        if key not in known:
            raise InputError(f"{class_name} has no parameter {key!r};{closest(key, known)}")
        values[key] = _literal(text.strip())
    return model.set_params(**values)


def fit_and_judge(
    model: Any,
    table: Table,
    *,
    test_size: float = 0.2,
    seed: int = 0,
    refit: bool = True,
    rivals: Mapping[str, Any] | None = None,
    checkpoint: Path | None = None,
) -> Outcome:
    """Fit on a random part of the rows, judge on the rest, then refit on all rows.

    With fewer than 10 rows, or `test_size` 0, nothing is held out and there are no figures. `rivals` are
    fitted and judged on the same rows. `checkpoint` is the file from which an interrupted fit of the kept
    model goes on; the fit that is only judged has its own beside it. Raises InputError for a
    `test_size` outside [0, 1).
    """
    if not 0 <= test_size < 1:
        raise InputError(f"The held-out share must be at least 0 and below 1, got {test_size}.")
    n = len(table.y)
    kept = _with_checkpoint(model, checkpoint)
    if test_size == 0 or n < _FEWEST_ROWS_TO_SPLIT:
        note = "No rows were held out, so there are no held-out figures."
        if test_size > 0:
            note = f"{n} rows are too few to hold any out (10 are needed), so there are no held-out figures."
        final = kept.fit(table.X, table.y)
        raise_if_stopped(final)
        return Outcome(final=final, judged=final, n_rows=n, notes=[note])
    train, test = _split(n, test_size, seed)
    parts = table.X.iloc[train], table.y[train], table.X.iloc[test], table.y[test]
    beside = None if checkpoint is None else checkpoint.with_name(checkpoint.name + ".held-out")
    judged, figures = fit_and_score(_with_checkpoint(model, beside) if refit else kept, *parts)
    metrics = {type(model).__name__: figures}
    for name, rival in (rivals or {}).items():
        metrics[name] = fit_and_score(rival, *parts)[1]
    final = kept.fit(table.X, table.y) if refit else judged
    raise_if_stopped(final)
    note = f"Held-out figures are from a fit on {len(train)} rows, judged on the other {len(test)}; "
    note += f"the saved model was then fitted on all {n}." if refit else "the saved model is that fit."
    notes = [note]
    if rivals:
        names = ", ".join(rivals)
        notes.append(f"For {names}, the predicted spread is one width, taken from out-of-fold residuals.")
    n_fitted = n if refit else len(train)
    return Outcome(final, judged, n_fitted, metrics, held_out=(parts[2], parts[3]), notes=notes)


def _split(n: int, test_size: float, seed: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Sorted row numbers to fit on (at least 2) and to hold out (at least 1)."""
    order = np.random.default_rng(seed).permutation(n)
    n_test = min(max(1, round(test_size * n)), n - 2)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def _with_checkpoint(model: Any, checkpoint: Path | None) -> Any:
    """A clone that keeps its state in the file `checkpoint`."""
    copy = clone(model)
    if checkpoint is None:
        return copy
    if "checkpoint" not in copy.get_params(deep=False):
        raise InputError(f"{type(model).__name__} cannot go on from a file; leave out --checkpoint.")
    return copy.set_params(checkpoint=str(checkpoint))


def load_model(path: Path) -> Any:
    """The estimator in a model file."""
    from nongauss.estimator.persistence import load

    return load(path)


def save_and_report(
    outcome: Outcome,
    table: Table,
    *,
    model_path: Path,
    report_path: Path,
    title: str,
    notes: Sequence[str] = (),
) -> None:
    """Write the model file and the HTML report."""
    from nongauss.estimator.persistence import save

    X, y = outcome.held_out if outcome.held_out is not None else (None, None)
    figures = report_figures(outcome.judged, X, y, target=table.target, traced=outcome.final)
    for path in (model_path, report_path):
        path.parent.mkdir(parents=True, exist_ok=True)
    save(_without_live_parts(outcome.final), model_path)
    write_report(
        report_path,
        title=title,
        estimator=outcome.final,
        frame_info=table.info(0 if y is None else len(y), [*outcome.notes, *notes]),
        metrics=outcome.metrics,
        figures=figures,
        model_path=model_path,
    )


def _without_live_parts(model: Any) -> Any:
    """The model without what belongs to this run alone: progress bar, checkpoint file."""
    defaults = type(model)().get_params(deep=False)
    live = {name: defaults[name] for name in ("callbacks", "checkpoint") if name in defaults}
    return model.set_params(**live)


def predict_table(model: Any, data: str | Path, out: str | Path) -> int:
    """Predict every row of a table and write mean, sd and 90 % interval; return the number of rows.

    The model itself checks the columns by name. Row i of `out` belongs to row i of `data`.
    """
    frame = read_table(data)
    if len(frame) == 0:
        raise InputError(f"{Path(data).name} has no rows to predict; give at least one.")
    distribution = model.predict_distribution(frame)
    lower, upper = split_interval(distribution.interval(0.9))
    columns = {"mean": distribution.mean, "sd": distribution.std, "lower_90": lower, "upper_90": upper}
    arrays = {name: np.asarray(values).reshape(len(frame), -1) for name, values in columns.items()}
    n_outputs = arrays["mean"].shape[1]
    suffix = [""] if n_outputs == 1 else [f"_{output}" for output in range(n_outputs)]
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    write_table(
        pd.DataFrame({f"{n}{s}": a[:, i] for i, s in enumerate(suffix) for n, a in arrays.items()}), out
    )
    return len(frame)


def compare_table(
    model: Any, table: Table, *, cv: int, seed: int, progress: Callable[[int, int, str], object] | None = None
) -> pd.DataFrame:
    """Cross-validated figures of the model beside the baselines; see `report.compare`."""
    estimators = {type(model).__name__: model, **baselines(table.X, random_state=seed)}
    return compare(estimators, table.X, table.y, cv=cv, random_state=seed, progress=progress)


def demo_table() -> Table:
    """The diabetes study that ships with scikit-learn, in its original units: 442 rows, 10 columns."""
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(as_frame=True, scaled=False)
    target = "disease progression"
    frame = bunch.data.assign(**{target: bunch.target})
    return prepare(frame, target, "tggm", source="diabetes data of scikit-learn")


def check_outputs(outputs: Mapping[str, Path], inputs: Sequence[Path] = (), *, force: bool = False) -> None:
    """Refuse, before any work, to write over an input, over each other, or over files without `force`."""
    seen: dict[Path, str] = {}
    for option, path in outputs.items():
        place = path.resolve()
        if path.is_dir():
            raise InputError(f"{option} must be a file, but {path} is a folder; add a file name.")
        if place in seen:
            raise InputError(f"{option} and {seen[place]} are the same file, {path}; give two names.")
        if any(place == item.resolve() for item in inputs):
            raise InputError(f"{option} would write over the input {path}; give another name.")
        folder = next(parent for parent in place.parents if parent.exists())
        if not folder.is_dir():
            raise InputError(
                f"{option} would be in {folder}, which is a file and no folder; give another name."
            )
        if path.exists() and not force:
            raise InputError(f"{path} already exists; give --force to replace it, or another {option}.")
        seen[place] = option


def closest(name: str, known: Iterable[Any]) -> str:
    """The end of an error sentence that offers the closest known name, or the names there are."""
    names = [str(item) for item in known]
    folded = {item.casefold(): item for item in reversed(names)}
    match = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    if match:
        return f" did you mean {folded[match[0]]!r}?"
    shown = ", ".join(repr(item) for item in names[:8])
    return f" there are: {shown}{', …' if len(names) > 8 else ''}."


def _target_column(frame: pd.DataFrame, target: str, source: str) -> pd.Series:
    if len(frame) == 0:
        raise InputError(f"{source} has no rows; give at least one.")
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InputError(f"{source} has more than one column named {str(repeated[0])!r}; rename one.")
    if target not in frame.columns:
        raise InputError(f"{source} has no column {target!r};{closest(target, frame.columns)}")
    return frame[target]


def _choose_model(model: str, kind: ColumnKind, reason: str, target: str) -> tuple[str, str]:
    """Short name of the model, and the note that says what the target was taken for."""
    if model != "auto" and model not in MODELS:
        raise InputError(f"There is no model {model!r};{closest(model, ['auto', *MODELS])}")
    word = kind.value
    because = reason[:1].lower() + reason[1:].rstrip(".")
    if model != "auto":
        return model, f"Target {target!r} looks {word}; model {model!r} was asked for."
    if kind not in AUTO:
        raise InputError(
            f"The target {target!r} was taken for {word} ({because}), and there is no model for "
            "that kind yet; if its values are numbers to predict as such, give --model tggm."
        )
    chosen = AUTO[kind]
    return chosen, (
        f"Target {target!r} was taken for {word} ({because}), so the model is {chosen!r}; "
        "give --model NAME to overrule."
    )


def _numbers(column: pd.Series, target: str, kind: ColumnKind) -> npt.NDArray[np.float64]:
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    bad = np.flatnonzero(np.isnan(values))
    if bad.size:
        raise InputError(
            f"The target {target!r} was taken for {kind.value} and has values that are no numbers, "
            f"the first {str(column.iloc[bad[0]])!r}; choose a numeric column or clean it."
        )
    return values


def _kind_word(column: pd.Series) -> str:
    """The kind of a column in a word; the name of its type where it has no kind (dates)."""
    try:
        return target_kind(column)[0].value
    except InputError:
        return str(column.dtype)


def _is_id(column: pd.Series) -> bool:
    if pd.api.types.is_numeric_dtype(column) or column.dtype.kind in "mMb" or len(column) < 2:
        return False
    present = column.dropna()
    return len(present) == len(column) and present.is_unique and all(isinstance(v, str) for v in present)


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return {"true": True, "false": False, "none": None}.get(text.lower(), text)
