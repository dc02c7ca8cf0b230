"""What compiled code shares: records that are pytrees, blocks of 64 bits, keys by name. Loads JAX."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform

import jax

from nongauss.core.errors import InputError, NongaussWarning

__all__ = [
    "cache_compiled",
    "double_precision",
    "key_from_seed",
    "record",
    "replace",
    "split_named",
    "static",
]

T = TypeVar("T")


def static(**options: Any) -> Any:
    """Field of a `record` that is no array: hashable, part of the tree's structure, a new value recompiles.

    Takes the options of `dataclasses.field` (`default`, ...).
    """
    return dataclasses.field(metadata={"static": True}, **options)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(static, dataclasses.field))
def record(cls: type[T]) -> type[T]:
    """Class decorator: a frozen dataclass that JAX sees as a pytree, its `static()` fields as structure.

    Two records are equal only if they are the same object: an array has no single answer to `==`.
    """
    made = dataclasses.dataclass(frozen=True, eq=False)(cls)
    fields = [field for field in dataclasses.fields(made) if field.init]  # type: ignore[arg-type]
    meta = [field.name for field in fields if field.metadata.get("static", False)]
    data = [field.name for field in fields if field.name not in meta]
    jax.tree_util.register_dataclass(made, data_fields=data, meta_fields=meta)
    return made


_computes_in: list[int] = []
"""The process in which this package first used JAX."""


def refuse_after_fork() -> None:
    """Raises InputError in a process that was forked from one that had computed with JAX.

    The threads of JAX are not in it: what is compiled or run would wait for them without end.
    """
    if not _computes_in:
        _computes_in.append(os.getpid())
    if _computes_in[0] != os.getpid():
        raise InputError(
            "This process was forked from one in which JAX had computed, and would wait for ever for threads "
            "that are not in it; start processes by 'spawn' or 'forkserver', as by "
            "multiprocessing.get_context('spawn')."
        )


@contextmanager
def double_precision() -> Iterator[None]:
    """Within the block (and this thread) JAX computes in float64; afterwards the user's setting holds again.

    Arrays made inside stay float64 outside. Raises InputError as `refuse_after_fork` does.
    """
    refuse_after_fork()
    with jax.enable_x64(True):
        yield


def cache_compiled(folder: str | os.PathLike[str] | None = None) -> Path | None:
    """Keep functions compiled by JAX on disk, for later processes that fit tables of the same shape.

    Without this call nongauss does not change any setting of JAX, and each process compiles its fits again
    (some seconds of a first TGGM fit). Call it once, before the first fit; it applies to everything that
    JAX compiles in this process.

    Parameters
    ----------
    folder : where to keep them. By default a folder of the user's cache,
        `$XDG_CACHE_HOME/nongauss/compiled` or `~/.cache/nongauss/compiled`. Delete it at any time.

    Returns
    -------
    The folder; or None, with a `NongaussWarning`, if nothing can be written there.

    Examples
    --------
    >>> import nongauss
    >>> nongauss.cache_compiled()  # doctest: +SKIP
    PosixPath('/home/me/.cache/nongauss/compiled')
    """
    if folder is None:
        base = os.environ.get("XDG_CACHE_HOME", "")
        folder = (Path(base) if Path(base).is_absolute() else Path("~/.cache")) / "nongauss" / "compiled"
    try:
        path = Path(folder).expanduser()
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except (OSError, RuntimeError) as error:
        message = (
            f"Compiled functions cannot be kept in {os.fspath(folder)!r} ({error}); give another folder."
        )
        warnings.warn(message, NongaussWarning, stacklevel=2)
        return None
    jax.config.update("jax_compilation_cache_dir", os.fspath(path))  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)  # type: ignore[no-untyped-call]
    return path


_WORD = 32


def key_from_seed(seed: int) -> jax.Array:
    """Typed key of a non-negative integer of any size, whatever the user's JAX settings.

    Raises ValueError for a negative seed, InputError as `refuse_after_fork` does.
    """
    refuse_after_fork()
    if seed < 0:
        raise ValueError(f"A seed must be a non-negative integer, got {seed}; pass its absolute value.")
    mask = (1 << _WORD) - 1
    key = jax.random.key(seed & mask, impl="threefry2x32")
    while seed := seed >> _WORD:
        key = jax.random.fold_in(key, seed & mask)
    return key


def split_named(key: jax.Array, *names: str) -> dict[str, jax.Array]:
    """One key a name. It depends on `key` and that name, not on the other names or their order."""
    return {name: jax.random.fold_in(key, zlib.crc32(name.encode())) for name in names}
