"""What the C library does with memory that was freed."""

from __future__ import annotations

import ctypes

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
"""Names of these parameters in malloc.h."""

LARGEST = 2**25
"""The largest size that counts, 32 MiB."""


def keep_freed_memory() -> bool:
    """Have the GNU C library keep freed arrays of up to `LARGEST` bytes for the next ones. Does it?

    It gives them back to the system, to be cleared and mapped again, until one of their size was freed, and
    in Dask's workers, which set MALLOC_TRIM_THRESHOLD_, always; that took a third of a pass or evaluation
    (mallopt(3), M_MMAP_THRESHOLD). Other C libraries have no such choice.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST) and mallopt(_TRIM_THRESHOLD, 2 * LARGEST))
