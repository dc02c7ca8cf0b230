"""Epochs over a `Source`, for callers that have no name for them yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from nongauss.optimise import loop
from nongauss.optimise.checkpoint import Checkpoint, unnamed
from nongauss.optimise.course import Rule
from nongauss.optimise.minibatch import Batch, GradientStep, minibatch, statistics
from nongauss.optimise.result import Callback, FitResult, Run
from nongauss.tables.source import Source

__all__ = ["Batch", "run", "statistics"]


def run(
    step: GradientStep,
    key: jax.Array,
    state: Any,
    source: Source,
    n_rows: int,
    held_out: Any = None,
    *,
    max_iter: int,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
) -> FitResult:
    """`loop.run` of epochs over a source."""
    watching = Run(tuple(callbacks), checkpoint, verbose)
    epochs = minibatch(step, source, n_rows, held_out)
    return loop.run(epochs, state, watching, Rule(max_iter), name=unnamed(checkpoint), key=key)
