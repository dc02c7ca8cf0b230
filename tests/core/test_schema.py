"""Records are built from files only of what their annotations say."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import pytest
from jaxtyping import Float
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

import nongauss
from nongauss.core import schema
from nongauss.core.records import _CLASSES, record_name


class Fields(NamedTuple):
    """A field of each kind."""

    number: float
    count: int
    word: Literal["a", "b"]
    names: tuple[str, ...]
    pair: tuple[int, str]
    rows: Float[np.ndarray, "N D"]
    weight: Float[np.ndarray, " N"]
    places: NDArray[np.int64] | None = None
    labels: Mapping[str, Sequence[float]] = {}


GOOD = {
    "number": 1.0,
    "count": 3,
    "word": "a",
    "names": ("x",),
    "pair": (1, "x"),
    "rows": np.zeros((3, 2)),
    "weight": np.ones(3),
    "places": np.arange(2),
    "labels": {"x": [1.0, 2]},
}


def test_a_record_is_built_of_what_its_class_says():
    assert schema.built(Fields, GOOD) == Fields(**GOOD)
    assert schema.built(Fields, GOOD | {"number": 1, "places": None}).number == 1
    assert schema.built(Fields, GOOD | {"number": np.float32(1), "count": np.int8(1)}).count == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", "1"),
        ("number", True),
        ("number", 10**400),
        ("count", 1.0),
        ("count", 2**63),
        ("word", "c"),
        ("names", ["x"]),
        ("names", ("x", 1)),
        ("pair", (1, "x", 2)),
        ("rows", np.zeros(3)),
        ("rows", np.zeros((3, 2), int)),
        ("rows", np.full((3, 2), np.nan)),
        ("weight", np.ones(4)),
        ("places", np.zeros(2)),
        ("labels", {"x": ["1"]}),
        ("labels", {1: [1.0]}),
        ("more", 1),
    ],
)
def test_what_it_does_not_say_is_refused_by_name(name, value):
    with pytest.raises(schema.Misfit, match=name):
        schema.built(Fields, GOOD | {name: value})


def test_a_field_that_is_missing_is_named():
    with pytest.raises(schema.Misfit, match="weight"):
        schema.built(Fields, {name: value for name, value in GOOD.items() if name != "weight"})


def test_the_annotations_of_every_record_can_be_read():
    for name in nongauss.__all__:
        getattr(nongauss, name)
    for cls in set(_CLASSES.values()):
        if hasattr(cls, "_fields") or dataclasses.is_dataclass(cls):
            assert set(schema._hints(cls)) == set(schema.field_names(cls)), record_name(cls)


def test_an_alias_of_a_type_is_what_it_stands_for():
    """`numpy.typing.NDArray` is one from NumPy 2.5 on; without this no model with such a field was loaded."""
    T = TypeVar("T", bound=np.generic)
    Rows = TypeAliasType("Rows", np.ndarray[tuple[int, ...], np.dtype[T]], type_params=(T,))
    assert schema._fits(np.array([0, 1]), Rows[np.int64])
    assert not schema._fits(np.array([0.5, 1.0]), Rows[np.int64])
    assert not schema._fits([0, 1], Rows[np.int64])
    Names = TypeAliasType("Names", tuple[str, ...])
    assert schema._fits(("a", "b"), Names)
    assert not schema._fits(("a", 1), Names)
