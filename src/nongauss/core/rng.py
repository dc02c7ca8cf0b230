"""Random keys: one seed gives one key, and a key is split by name, so that a new use disturbs no old one."""

from __future__ import annotations

import zlib

import jax
import numpy as np
from numpy.typing import NDArray

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


_HALVES = [("state", 0), ("state", 64), ("inc", 0), ("inc", 64)]


def generator_state(rng: np.random.Generator) -> NDArray[np.uint64]:
    """Where a generator of NumPy's default kind is, (6,)."""
    found = rng.bit_generator.state
    words = [(found["state"][name] >> shift) & (2**64 - 1) for name, shift in _HALVES]
    return np.array([*words, found["has_uint32"], found["uinteger"]], np.uint64)


def generator_at(state: NDArray[np.uint64]) -> np.random.Generator:
    """A generator that is there."""
    rng = np.random.default_rng(0)
    low, high, inc_low, inc_high, has_uint32, uinteger = map(int, state)
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": low | high << 64, "inc": inc_low | inc_high << 64},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
    return rng
