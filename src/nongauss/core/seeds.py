"""Seeds and random generators of the host: one `random_state` gives one integer."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nongauss.core.errors import InputError

_LARGEST_SEED = 2**32 - 1


def key_seed(random_state: Any) -> int:
    """Turn `random_state` into one integer seed, 0 to 2**32 - 1.

    An integer is its own seed. None draws from NumPy's global state (so `numpy.random.seed` governs it,
    as everywhere in scikit-learn); a RandomState or Generator is drawn from once and so moves on.
    Raises `InputError` for anything else.
    """
    if random_state is None or isinstance(random_state, np.random.RandomState):
        state = np.random.mtrand._rand if random_state is None else random_state
        return int(state.randint(0, _LARGEST_SEED, dtype=np.uint32))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, _LARGEST_SEED, dtype=np.uint32))
    is_integer = isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)
    if is_integer and 0 <= int(random_state) <= _LARGEST_SEED:
        return int(random_state)
    raise InputError(
        f"random_state cannot be used as a seed: got {random_state!r}; pass None, an integer from 0 to "
        f"{_LARGEST_SEED}, a numpy RandomState or a numpy Generator."
    )


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
