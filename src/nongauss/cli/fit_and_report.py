"""What comes after a fit: the model file, the report, the comparison."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nongauss.cli.choose import REGRESSION
from nongauss.cli.conduct import Command
from nongauss.cli.judge import Outcome, rows_for, scale_of
from nongauss.cli.options import Outputs
from nongauss.cli.read import Table
from nongauss.core.files import PLACED, atomic_paths
from nongauss.estimator.told import told
from nongauss.report.html import feature_lines, write_report
from nongauss.report.judgement import unsaid
from nongauss.report.pictures import feature_figures, learned_figures, report_figures
from nongauss.report.rows import rows_shown
from nongauss.report.text import model_record
from nongauss.tables.column import ColumnKind


def keep_compiled(table: Table) -> None:
    """Keep compiled functions for the next command, where a model brings JAX and nobody has said where."""
    brings = "jax" in sys.modules or (table.choice.model == "auto" and _weighs_networks(table))
    if brings and "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        import nongauss

        nongauss.cache_compiled()


def _weighs_networks(table: Table) -> bool:
    """Is a truncated-Gaussian model among the candidates for this table?"""
    from nongauss.auto.candidates import FEWEST_CELLS  # the demo weighs none

    return table.choice.task != REGRESSION or table.rows.shape[0] * table.rows.shape[1] >= FEWEST_CELLS


def finish(
    here: Command,
    outcome: Outcome,
    table: Table,
    outputs: Outputs,
    title: str,
    pictures: Sequence[tuple[str, Any]] = (),
) -> None:
    """Print what came of a fit, its verdict with it, then save, draw the report and say where they are.

    `pictures`, pairs of caption and figure, stand first in the report.
    """
    known = getattr(outcome.final, "stop_reason_", "")
    for note in outcome.notes:  # those of the table stand in the block before the fit
        here.say(f"note: {note}")
    here.say("\n" * bool(outcome.notes) + outcome_text(outcome, table))
    here.step("drawing the report: predictions")
    how: dict[str, Any] = {"paths": outputs.paths, "title": title, "pictures": pictures}
    how |= {"check": here.raise_if_stopped, "step": here.step}
    save_and_report(outcome, table, notes=here.notes(known), **how)
    record = outcome_record(outcome, table) | outputs.as_record()
    before = [*table.notes, *outcome.notes] if here.as_json else []
    here.finish(record, lambda: str(outputs), before=before, known=known)


def outcome_text(outcome: Outcome, table: Table) -> str:
    """What a person reads after a fit: what was fitted, the held-out figures, the verdict."""
    how: dict[str, Any] = {"target": table.target, "n_rows": outcome.n_rows, "figures": outcome.metrics}
    return told(outcome.final, verdict=outcome.verdict.lines, **how) + "\n"


def outcome_record(outcome: Outcome, table: Table) -> dict[str, Any]:
    """The outcome of a fit for `--json`."""
    record: dict[str, Any] = {"data": table.source, "target": table.target, "kind": table.kind.value}
    record |= {"task": table.choice.task, "rows": len(table.y)}
    return record | {
        "table": table.before.record(),
        **model_record(outcome.final),
        "held_out": outcome.metrics,
        "verdict": outcome.verdict.record(),
        **_choice_record(outcome.final),
    }


def _choice_record(model: Any) -> dict[str, Any]:
    """Of a model chosen by evidence why, the shares, and what was weighed."""
    if not hasattr(model, "leaderboard_"):
        return {}
    board = model.leaderboard_.set_index("candidate")
    return {"why": model.why_, "weights": model.weights_, "leaderboard": board}


def save_and_report(
    outcome: Outcome,
    table: Table,
    *,
    paths: Mapping[str, Path],
    title: str,
    notes: Sequence[str] = (),
    pictures: Sequence[tuple[str, Any]] = (),
    check: Callable[[], None] = lambda: None,
    step: Callable[[str], object] = unsaid,
) -> None:
    """Write the model file and the HTML report; for `check` see `write_both`.

    `step` is told which part of the report is being drawn.
    """

    def draw(report_path: Path) -> None:
        how: dict[str, Any] = {"target": table.target, "traced": outcome.final}
        fits = [part.model for part in outcome.unseen]
        ordered = table.levels is not None
        rows = rows_for(outcome.final, table)
        has_features = hasattr(outcome.final, "top_features")
        figures = [*pictures, *report_figures(outcome.judged, scores=outcome.scores, **how)]
        step("drawing the report: what columns do")
        learned = [
            *(feature_figures(outcome.final) if has_features else []),
            *learned_figures(outcome.final, rows, target=table.target, fits=fits, ordered=ordered),
        ]
        step("drawing the report: rows worth a look")
        write_report(
            report_path,
            title=title,
            estimator=outcome.final,
            frame_info=table.info(outcome.n_held_out, [*outcome.notes, *notes]),
            verdict=outcome.verdict,
            metrics=outcome.metrics,
            figures=figures,
            learned=learned,
            rows=rows_shown(outcome.scores, outcome.unseen, numbers=table.row_numbers, scale=scale_of(table)),
            features=feature_lines(outcome.final, rows) if has_features else [],
            model_path=paths["--save"],
        )

    write_both(_without_live_parts(outcome.final), paths, draw, check)


def write_both(
    model: Any,
    paths: Mapping[str, Path],
    draw: Callable[[Path], None],
    check: Callable[[], None] = lambda: None,
) -> None:
    """Write the model file and the report that `draw` makes: both, or neither where the command is stopped.

    A report that cannot be drawn does not cost the model. `check` raises, once both are drawn, where the
    command was stopped meanwhile.
    """
    from nongauss.estimator.persistence import save

    places = [paths["--save"], paths["--report"]]
    for path in places:
        path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_paths(places) as (model_file, report_file):
        save(model, model_file)
        try:
            draw(report_file)
        except Exception:
            os.replace(model_file, places[0].resolve())
            PLACED.append(places[0].resolve())
            raise
        check()


def _without_live_parts(model: Any) -> Any:
    """The model without what belongs to this run alone: progress bar, checkpoint file."""
    defaults = type(model)().get_params(deep=False)
    live = {name: defaults[name] for name in ("callbacks", "checkpoint") if name in defaults}
    return model.set_params(**live)


def compare_table(
    models: Sequence[Any],
    table: Table,
    *,
    cv: int,
    seed: int,
    progress: Callable[[int, int, str], object] | None = None,
) -> pd.DataFrame:
    """Cross-validated figures of models, by class name, beside the baselines; see `report.compare`."""
    from nongauss.estimator.base import NongaussEstimator
    from nongauss.report.baselines import baselines
    from nongauss.report.comparison import compare

    ours = {type(model).__name__: model for model in models}
    counts = table.kind is ColumnKind.COUNT and table.choice.model != "tggm"
    classify = table.choice.task != REGRESSION
    reach = None if classify else (float(np.min(table.y)), float(np.max(table.y)))
    beside = baselines(classify=classify, counts=counts, reach=reach, random_state=seed)
    is_ours = all(isinstance(model, NongaussEstimator) for model in models)
    return compare(
        {**ours, **beside},
        table.rows if is_ours else table.X,  # those of scikit-learn take frames alone
        table.y,
        cv=cv,
        levels=table.levels,
        random_state=seed,
        progress=progress,
    )
