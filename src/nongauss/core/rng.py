"""Random keys: one seed gives one key, and a key is split by name, so that a new use disturbs no old one."""

from __future__ import annotations

import zlib

import jax

_WORD = 32


def key_from_seed(seed: int) -> jax.Array:
    """Typed key of a non-negative integer of any size, whatever the user's JAX settings.

    Raises ValueError for a negative seed.
    """
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
