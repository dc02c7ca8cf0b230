"""Files that are either written whole or not at all. Plain Python."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import signal
import socket
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nongauss.core.errors import InputError

_NO_ROOM = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO),
    errno.ENAMETOOLONG,
}
"""Why a file cannot be written."""

PLACED: list[Path] = []
"""The files that this process has put in place, in order: what a command that is stopped says of them."""


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
    targets = [target_of(path) for path in paths]
    temporaries = [_beside(target) for target in targets]
    for target in targets:
        sweep_leftovers(target)
    try:
        yield temporaries
        with undisturbed():
            for target, temporary in zip(targets, temporaries, strict=True):
                if target.exists():
                    shutil.copymode(target, temporary)
            for target, temporary in zip(targets, temporaries, strict=True):
                os.replace(temporary, target)
            PLACED.extend(targets)
    except OSError as error:
        named = dict(zip([None, *temporaries], [targets[0], *targets], strict=True))
        place = None if error.filename is None else Path(error.filename)
        if error.errno not in _NO_ROOM or place not in named:
            raise
        raise OSError(error.errno, os.strerror(error.errno), os.fspath(named[place])) from error
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


def _beside(target: Path) -> Path:
    """A name for a temporary file beside `target`, which says of which host and process it is."""
    return target.with_name(f".nongauss-{_host()}-{os.getpid()}-{secrets.token_hex(6)}.{target.name}")


def _host() -> str:
    return f"{zlib.crc32(socket.gethostname().encode()):08x}"


def sweep_leftovers(target: Path) -> None:
    """Remove what processes of this machine that were killed while they wrote `target` have left."""
    if os.name != "posix":
        return
    ours = re.compile(rf"(?:\.nongauss-{_host()}-(\d+)-[0-9a-f]{{12}}\.)+{re.escape(target.name)}")
    for name in os.listdir(target.parent):
        found = ours.fullmatch(name)
        if found and not _is_alive(int(found[1])):
            target.with_name(name).unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)  # asks, and sends nothing
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def target_of(path: str | os.PathLike[str]) -> Path:
    """The file that a path means, links followed. Raises InputError where none can be written there."""
    try:
        target = Path(path).expanduser().resolve()
        is_other = target.exists() and not (target.is_file() or target.is_dir())
    except (RuntimeError, OSError, ValueError) as error:  # of links in a circle, names that are none
        raise InputError(f"Cannot write {os.fspath(path)!r}: {error}; give another name.") from error
    if is_other or target.is_symlink():
        raise InputError(
            f"Cannot write {os.fspath(path)!r}: it is a device, a pipe or a link that leads back to itself, "
            "and no file; give another name."
        )
    if target.is_dir():
        raise InputError(f"Cannot write {os.fspath(path)!r}: it is a folder; give the name of a file in it.")
    if not target.parent.is_dir():
        raise InputError(f"Cannot write {os.fspath(path)!r}: its folder does not exist; create it first.")
    return target
