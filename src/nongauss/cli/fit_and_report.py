"""What comes after a fit: the model file, the report, the comparison."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from nongauss.cli.choose import REGRESSION
from nongauss.cli.judge import Outcome, rows_for
from nongauss.cli.read import Table
from nongauss.core.errors import InputError
from nongauss.report.html import (
    feature_figures,
    feature_lines,
    learned_figures,
    report_figures,
    write_report,
)

ENGINES = ("memory", "stream", "dask")


def keep_compiled() -> None:
    """Keep compiled functions for the next command, where a model brings JAX and nobody has said where."""
    if "jax" in sys.modules and "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        import nongauss

        nongauss.cache_compiled()


def save_and_report(
    outcome: Outcome,
    table: Table,
    *,
    model_path: Path,
    report_path: Path,
    title: str,
    notes: Sequence[str] = (),
) -> None:
    """Write the model file, then the HTML report."""
    from nongauss.estimator.persistence import save

    for path in (model_path, report_path):
        path.parent.mkdir(parents=True, exist_ok=True)
    save(_without_live_parts(outcome.final), model_path)
    figures = report_figures(outcome.judged, scores=outcome.scores, target=table.target, traced=outcome.final)
    rows = rows_for(outcome.final, table)
    has_features = hasattr(outcome.final, "top_features")
    write_report(
        report_path,
        title=title,
        estimator=outcome.final,
        frame_info=table.info(outcome.n_held_out, [*outcome.notes, *notes]),
        verdict=outcome.verdict,
        metrics=outcome.metrics,
        figures=figures,
        learned=[
            *(feature_figures(outcome.final) if has_features else []),
            *learned_figures(outcome.final, rows, target=table.target),
        ],
        features=feature_lines(outcome.final, rows) if has_features else [],
        model_path=model_path,
    )


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
    from nongauss.report.baselines import baselines
    from nongauss.report.comparison import compare

    ours = {type(model).__name__: model for model in models}
    counts = table.kind is ColumnKind.COUNT and table.choice.model != "tggm"
    beside = baselines(classify=table.choice.task != REGRESSION, counts=counts, random_state=seed)
    return compare(
        {**ours, **beside}, table.X, table.y, cv=cv, levels=table.levels, random_state=seed, progress=progress
    )


def check_engine(engine: str, scheduler: str | None) -> None:
    """Raises InputError for an engine that there is not, and a scheduler without Dask."""
    if engine not in ENGINES:
        raise InputError(f"There is no engine {engine!r}; there are {', '.join(ENGINES)}.")
    if scheduler is not None and engine != "dask":
        raise InputError(f"--scheduler goes with --engine dask, not {engine}; give both or neither.")
