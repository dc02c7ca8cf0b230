from dataclasses import dataclass
from functools import partial

import jax
import numpy as np

from nongauss.optimise.fingerprint import fingerprint


def told(setting):
    return fingerprint((), {"name": setting})


def test_arrays_are_told_apart_by_bits_shapes_and_types():
    own = fingerprint({"a": np.zeros(4), "b": None})
    assert fingerprint({"a": np.zeros(8)[::2], "b": None}) == own
    for other in (np.zeros((2, 2)), np.zeros(4, np.float32), np.array([0.0, 0.0, 0.0, -0.0])):
        assert fingerprint({"a": other, "b": None}) != own


def scaled(by):
    """A function as a setting, which closes over a number."""
    return lambda x: by * x


@dataclass(frozen=True)
class Holds:
    """A setting that holds others."""

    inside: object


def test_settings_are_told_apart_by_all_of_their_content_and_by_nothing_else():
    mask = np.arange(2000) < 1000
    other = mask.copy()
    other[500] = False
    same = [
        ({8, 0}, {0, 8}),
        (scaled(2.0), scaled(2.0)),
        (mask, mask.copy()),
        (jax.jit(scaled(2.0)), scaled(2.0)),
    ]
    apart = [
        ({8, 0}, {8, 1}),
        (scaled(2.0), scaled(3.0)),
        (lambda x: x, lambda x: x + 1.0),
        (partial(scaled, 1.0), partial(scaled, 2.0)),
        (mask, other),
        (np.array([0.1]), np.array([0.1 + 1e-12])),
    ]
    for pairs, alike in ((same, True), (apart, False)):
        for one, another in pairs:
            assert (told(one) == told(another)) is alike
            assert (told(Holds([one])) == told(Holds([another]))) is alike
