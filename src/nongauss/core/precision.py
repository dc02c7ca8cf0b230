"""64-bit arithmetic inside a `with` block, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax


@contextmanager
def double_precision() -> Iterator[None]:
    """Within the block (and this thread) JAX computes in float64; afterwards the user's setting holds again.

    Arrays made inside stay float64 outside.
    """
    with jax.enable_x64(True):
        yield
