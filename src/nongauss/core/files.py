"""Files that are either written whole or not at all. Plain Python."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from nongauss.core.errors import InputError


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path` that becomes `path` only if the block succeeds.

    The temporary name ends like `path` (so that writers which look at the suffix behave the same). If the
    block raises, the temporary file is removed and an older file at `path` stays as it was. The yielded file
    does not exist yet: the block creates it. A symbolic link at `path` is followed, not replaced.

    Raises: InputError if the folder does not exist or `path` is a folder.
    """
    target = Path(path).expanduser().resolve()
    if target.is_dir():
        raise InputError(f"Cannot write {str(path)!r}: it is a folder; give the name of a file in it.")
    if not target.parent.is_dir():
        raise InputError(f"Cannot write {str(path)!r}: its folder does not exist; create it first.")
    temporary = target.with_name(f".{secrets.token_hex(6)}.{target.name}")
    try:
        yield temporary
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
