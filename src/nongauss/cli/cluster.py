"""From a table on disk to saved and reported clusters with rules: the steps of `nongauss cluster`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from nongauss.cli.choose import closest, parse_settings
from nongauss.cli.describe import about_clusters
from nongauss.cli.fit_and_report import write_both
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.report.columns import fingerprint
from nongauss.report.html import FrameInfo, write_report
from nongauss.report.pictures import rule_figures
from nongauss.report.text import model_record
from nongauss.tables.files import read_table
from nongauss.tables.frame import read_input
from nongauss.tables.hints import counts_rows
from nongauss.tables.roles import understand_columns
from nongauss.tables.target_kinds import column_kind

if TYPE_CHECKING:
    from nongauss.rectangle.estimator import RectangleMixture


def fit_clusters(
    data: Path,
    *,
    n_clusters: int | Literal["auto"] = "auto",
    rules: str | None = None,
    structure: str | None = None,
    settings: Iterable[str] = (),
    seed: int = 0,
    callbacks: Sequence[Callable[..., Any]] = (),
) -> tuple[RectangleMixture, pd.DataFrame]:
    """Fit clusters to a table file: the model and the rows.

    `rules` and `structure` are names of columns joined by commas; None is all but row numbers and ids, which
    are not among the rows that are returned either. Raises InputError.
    """
    from nongauss.rectangle.estimator import RectangleMixture

    frame = read_table(data)
    if len(frame) == 0:
        raise InputError(f"{data.name} has no rows; give at least one.")
    model = RectangleMixture(random_state=seed, callbacks=list(callbacks) or None)
    values = parse_settings(settings)
    known = model.get_params()
    for name in values:
        if name not in known:
            raise InputError(f"RectangleMixture has no parameter {name!r};{closest(name, known)}")
    columns = {"rule_columns": rules, "structure_columns": structure}
    frame = _without_ids(frame, [text for text in columns.values() if text is not None])
    chosen = {name: _columns(text, frame, name) for name, text in columns.items() if text is not None}
    model.set_params(**{"n_clusters": n_clusters, **chosen, **values}).fit(frame)
    return model.set_params(callbacks=None), frame


def save_clusters(
    model: RectangleMixture,
    frame: pd.DataFrame,
    *,
    data: Path,
    paths: Mapping[str, Path],
    notes: Sequence[str] = (),
    check: Callable[[], None] = lambda: None,
) -> None:
    """Write the model file and the HTML report; for `check` see `write_both`."""
    roles = _roles(model)
    encoder = model._encoder  # a column of dates is several: its days, and its parts of the calendar
    kinds = {
        str(code.name): column_kind(frame.iloc[:, place]).value
        for code, place in zip(encoder.columns, encoder.places, strict=True)
    }
    info = FrameInfo(
        source=data.name,
        target="",
        n_rows=len(frame),
        used=[(c, f"{kinds[c]}, {role}") for c, role in roles.items() if role],
        ignored=left_out(roles, dict(zip(kinds, encoder.places, strict=True))),
        notes=notes,
        fingerprint=fingerprint(frame),
    )

    def draw(report_path: Path) -> None:
        write_report(
            report_path,
            title=f"Clusters of {data.name}",
            estimator=model,
            frame_info=info,
            rules=rule_lines(model, frame),
            figures=rule_figures(model, frame),
            model_path=paths["--save"],
        )

    model.about_ = about_clusters(frame, data.name)
    write_both(model, paths, draw, check)


def cluster_record(model: RectangleMixture, frame: pd.DataFrame, data: Path) -> dict[str, Any]:
    """The clusters and their rules as plain data."""
    about = {"data": data.name, "rows": len(frame), **model_record(model)}
    return about | {"clusters": model.clusters_, "rules": model.rules_, "rule_text": model.rule_text_}


def rule_lines(model: RectangleMixture, frame: pd.DataFrame) -> list[tuple[str, str, str, str, str, str]]:
    """Cluster, rows, precision, recall, stability under resampling and rule of each cluster, as text."""
    stable = {} if model.preset else model.rule_stability(frame, 5).to_dict()
    return [
        (
            line["cluster"],
            f"{line['rows']:g}",
            f"{100 * line['precision']:.0f} %",
            f"{100 * line['recall']:.0f} %",
            f"{stable[line['cluster']]:.2f}" if stable else "–",
            model.rule_text_[line["cluster"]],
        )
        for line in model.clusters_.to_dict("records")
    ]


def _roles(model: RectangleMixture) -> dict[str, str]:
    """What each column of the table is for, in words; "" for nothing."""
    rule, look = ({str(code.name) for code in view.codes} for view in model._of_fit().views)
    words = {
        (True, True): "for rules and structure",
        (True, False): "for rules",
        (False, True): "for structure",
    }
    names = [str(code.name) for code in model._encoder.columns]
    return {name: words.get((name in rule, name in look), "") for name in names}


def left_out(roles: Mapping[str, str], places: Mapping[str, int]) -> list[tuple[str, str]]:
    """The columns that are for nothing, and why; of a date whose calendar parts are used, its days."""
    out = []
    for name, role in roles.items():
        if role:
            continue
        used = [other for other in roles if roles[other] and places[other] == places[name]]
        if used and used[0].startswith(f"{name} ("):
            parts = " and ".join(other.removeprefix(f"{name} (").removesuffix(")") for other in used)
            verb = "is" if len(used) == 1 else "are"
            out.append((f"{name} (day)", f"uninformative; its {parts} {verb} used"))
        else:
            out.append((name, "uninformative, or not requested"))
    return out


def _without_ids(frame: pd.DataFrame, asked: Sequence[str]) -> pd.DataFrame:
    """The table without the columns that number or name its rows, unless the names `asked` for hold them.

    What is left out is warned of, and so is a column that may number the rows.
    """
    named = {name.strip() for text in asked for name in text.split(",")}
    table = read_input(frame)
    ids = [role for role in understand_columns(table) if role.role == "id" and role.name not in named]
    if ids and len(ids) == frame.shape[1]:
        raise InputError("Every column only numbers or names the rows; --rules A,B takes some in.")
    if ids:
        shown = ", ".join(f"{role.name!r} ({role.reason})" for role in ids)
        tell(f"Left out: {shown}. --rules and --structure take such columns in.")
    known = named | {role.name for role in ids}
    for place, name in enumerate(table.labels):
        if name not in known and counts_rows(table.column(place), name):
            tell(f"Column {name!r} rises by one from row to row: if it only numbers the rows, leave it out.")
    gone = {role.name for role in ids}
    return frame.loc[:, [str(label) not in gone for label in frame.columns]]


def tell(sentence: str) -> None:
    """Warn of what a person should know."""
    warnings.warn(sentence, NongaussWarning, stacklevel=2)


def _columns(text: str, frame: pd.DataFrame, what: str) -> list[str]:
    """Names joined by commas, each of which the table has."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in frame:
            raise InputError(f"There is no column {name!r} for {what};{closest(name, frame.columns)}")
    return names
