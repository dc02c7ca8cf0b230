"""Files that are either written whole or not at all. Plain Python."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nongauss.core.errors import InputError


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path` that becomes `path` only if the block succeeds.

    The temporary name ends like `path` (so that writers which look at the suffix behave the same). If the
    block raises, the temporary file is removed and an older file at `path` stays as it was. The yielded file
    does not exist yet: the block creates it. A symbolic link at `path` is followed, not replaced.

    Raises: InputError if the folder does not exist or `path` is a folder.
    """
    with atomic_paths([path]) as (temporary,):
        yield temporary


@contextlib.contextmanager
def atomic_paths(paths: Sequence[str | Path]) -> Iterator[list[Path]]:
    """As `atomic_path` for several files that belong together: all are put in place, or none is.

    Ctrl-C and SIGTERM wait until all are there. A path that the block leaves unwritten is an error.
    """
    targets = [_target(path) for path in paths]
    temporaries = [target.with_name(f".{secrets.token_hex(6)}.{target.name}") for target in targets]
    try:
        yield temporaries
        with undisturbed():
            for target, temporary in zip(targets, temporaries, strict=True):
                if target.exists():
                    shutil.copymode(target, temporary)
            for target, temporary in zip(targets, temporaries, strict=True):
                os.replace(temporary, target)
    finally:
        with undisturbed():
            for temporary in temporaries:
                temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back until the block is over; they take effect then.

    Python hands signals to its main thread alone, so that elsewhere there is nothing to hold back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    former: dict[int, Any] = {}
    try:
        number: int
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not None:  # None: set outside Python, which could not be put back
                former[number] = signal.signal(number, lambda number, frame: came.append(number))
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    for number in came:
        signal.raise_signal(number)


def _target(path: str | Path) -> Path:
    """The file that a path means, links followed. Raises InputError where none can be written there."""
    target = Path(path).expanduser().resolve()
    if target.is_dir():
        raise InputError(f"Cannot write {str(path)!r}: it is a folder; give the name of a file in it.")
    if not target.parent.is_dir():
        raise InputError(f"Cannot write {str(path)!r}: its folder does not exist; create it first.")
    return target
