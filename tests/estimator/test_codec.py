import dataclasses
import enum
import json
import typing

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nongauss.core.errors import InputError
from nongauss.core.records import persistable, registered_class
from nongauss.estimator.persistence import decode, encode


def there_and_back(value):
    tensors = {}
    text = json.dumps(encode(value, tensors, "Value"), allow_nan=False)
    return decode(json.loads(text), tensors, registered_class)


@persistable("test.Shade")
class Shade(enum.Enum):
    LIGHT = "light"


@persistable("test.Record")
@dataclasses.dataclass(frozen=True, eq=False)
class Record:
    loc: np.ndarray
    shade: Shade
    inner: object = None


@persistable("test.Pair")
class Pair(typing.NamedTuple):
    left: np.ndarray
    right: int


@dataclasses.dataclass(frozen=True)
class Unmarked:
    x: int


PLAIN = [
    None, True, 3, -(2**80), 0.1, -0.0, "naïve \u2028 \ud800", float("inf"), -float("inf"), (), [], {},
    (1, [2, (3,)], None), {"a": 1, 2: {"b": (1.5,)}, None: 0}, slice(1, None, 2),
]  # fmt: skip


@pytest.mark.parametrize("value", PLAIN, ids=ascii)
def test_plain_values_keep_value_and_type(value):
    back = there_and_back(value)
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value)


def test_not_a_number_and_numpy_scalars():
    assert np.isnan(there_and_back(float("nan")))
    for scalar in (np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("x"), np.datetime64("2020-01-02")):
        back = there_and_back(scalar)
        assert back == scalar
        assert type(back) is type(scalar)


SHAPES = hnp.array_shapes(min_dims=0, min_side=0, max_side=4)
NUMERIC = st.sampled_from(["f8", "f4", "f2", "i8", "i1", "u8", "u2", "?", ">f8", "M8[ns]"])


@settings(max_examples=80, deadline=None)
@given(
    array=NUMERIC.flatmap(lambda dtype: hnp.arrays(dtype, SHAPES)),
    fortran=st.booleans(),
)
def test_arrays_keep_every_bit_their_shape_and_their_memory_order(array, fortran):
    array = np.asfortranarray(array) if fortran else array
    back = there_and_back(array)
    assert back.dtype == array.dtype.newbyteorder("=")
    assert back.shape == array.shape
    assert back.tobytes() == array.astype(back.dtype).tobytes()
    assert back.flags.c_contiguous == array.flags.c_contiguous
    assert back.flags.writeable


def test_a_view_with_strides_is_kept_as_its_values():
    array = np.arange(24.0).reshape(4, 6)[::2, ::-3]
    np.testing.assert_array_equal(there_and_back(array), array)


def test_columns_in_memory_order_stay_so():
    back = there_and_back(np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    assert back.flags.f_contiguous
    assert back.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    "array",
    [
        np.array([["a", "bc"], ["", "é"]]),
        np.array(["x0", "x1"], dtype=object),
        np.array(["a", None, 3, 1.5, True, (1, 2)], dtype=object),
        np.array([], dtype="<U1"),
    ],
    ids=["text", "names", "mixed", "empty"],
)
def test_arrays_of_text_and_objects(array):
    back = there_and_back(array)
    assert back.dtype == array.dtype
    assert back.tolist() == array.tolist()
    assert back.shape == array.shape


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"iteration": [1, 2], "bound": [-1.5, np.nan], "note": ["a", "b"]}),
        pd.DataFrame({0: np.array([1, 2], dtype=np.int8)}, index=["r", "s"]),
        pd.DataFrame(columns=["iteration", "bound"], dtype=float),
        pd.DataFrame(),
    ],
    ids=["trace", "named rows", "no rows", "nothing"],
)
def test_tables(table):
    pd.testing.assert_frame_equal(there_and_back(table), table, check_index_type=False)


def test_marked_records_come_back_as_themselves():
    record = Record(np.arange(3.0), Shade.LIGHT, inner=[Pair(np.eye(2), 5)])
    back = there_and_back(record)
    assert type(back) is Record
    assert back.shade is Shade.LIGHT
    np.testing.assert_array_equal(back.loc, record.loc)
    assert type(back.inner[0]) is Pair
    np.testing.assert_array_equal(back.inner[0].left, np.eye(2))


def test_anything_with_an_array_inside_becomes_a_numpy_array():
    class Device:
        def __array__(self, dtype=None, copy=None):
            return np.array([1.0, 2.0])

    back = there_and_back(Device())
    assert type(back) is np.ndarray
    assert back.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "value",
    [
        object(), {1, 2}, b"x", len, Unmarked(1), Unmarked, Record, pd.Series([1]), np.array([1j]),
        {("a", 1): 2}, pd.DataFrame({"c": pd.Categorical(["a"])}), np.array([object()], dtype=object),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_cannot_be_held_is_named(value):
    with pytest.raises(InputError, match=r"Attribute 'x_'\[0\].* cannot be saved"):
        encode([value], {}, "Attribute 'x_'")


@pytest.mark.parametrize(
    "tree",
    [
        {"$": "pickle", "value": "x"},
        {"value": 1},
        {"$": "tensor", "name": "t9", "fortran": False},
        {"$": "strings", "dtype": "V8", "shape": [1], "items": ["a"]},
        {"$": "objects", "shape": [1], "items": [{"$": "record", "class": "os:system", "fields": {}}]},
        {"$": "record", "class": "tests:Nothing", "fields": {}},
    ],
)
def test_a_malformed_tree_builds_nothing(tree):
    with pytest.raises((KeyError, TypeError, ValueError)):
        decode(tree, {}, registered_class)
