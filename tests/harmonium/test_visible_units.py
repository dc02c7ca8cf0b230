import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.harmonium.visible_units import resolve_views, unit_coder
from nongauss.tables.learn import as_source, learn


def kinds(X, views=None):
    coder = unit_coder(learn(as_source(X, accept_sparse=True), warn=False), views, sp.issparse(X))
    return [(block.view, block.kind, block.stop - block.start) for block in coder.layout], coder


def test_kinds_are_told_from_the_values():
    rng = np.random.default_rng(0)
    words = rng.poisson(0.3, (60, 5))
    assert kinds(words)[0] == [("all", "counts", 5)]
    assert kinds(sp.csr_matrix(words))[0] == [("all", "counts", 5)]
    assert kinds(np.minimum(words, 1))[0] == [("all", "binary", 5)]
    assert kinds(rng.integers(0, 200, (60, 3)))[0] == [("all", "real", 3)]
    assert kinds(np.column_stack([words[:, 0] > 0, rng.normal(size=60)]))[0] == [
        ("all", "binary", 1),
        ("all", "real", 1),
    ]


def test_frames_with_labels_gaps_and_constant_columns():
    frame = pd.DataFrame(
        {
            "town": ["Ulm", "Bern", None, "Ulm"],
            "size": [1.0, 2.5, np.nan, 3.0],
            "new": [True, False, True, True],
            "colour": pd.Categorical(["r", "g", "b", "b"]),
            "same": 1.0,
        }
    )
    with pytest.warns(NongaussWarning, match="same"):
        layout, coder = kinds(frame)
    assert layout == [("all", "binary", 5), ("all", "real", 1)]
    assert coder.encoded_names == ("town=Ulm", "new=True", "colour=b", "colour=g", "colour=r", "size")


def test_views_by_slice_name_and_kind():
    frame = pd.DataFrame(np.random.default_rng(0).random((20, 4)), columns=list("abcd"))
    layout, coder = kinds(frame, {"one": slice(0, 2), "two": (["d", "c"], "binary")})
    assert layout == [("one", "real", 2), ("two", "binary", 2)]
    assert coder.views == {"one": (0, 1), "two": (3, 2)}


@pytest.mark.parametrize(
    ("views", "word"),
    [
        ({}, "mapping"),
        ({"a": [0], "b": [0]}, "views 'a' and 'b'"),
        ({"a": [7]}, "does not have"),
        ({"a": "x"}, "slice"),
        ({"a": slice("x", "y")}, "slice"),
        ({"a": ([0, 1], "bin")}, "a kind, 'binary'"),
        ({"a": [0.5]}, "mask"),
        ({"a": [True, False]}, "does not have"),
    ],
)
def test_views_that_cannot_be(views, word):
    with pytest.raises(InputError, match=word):
        resolve_views(views, 3, ("x", "y", "z"))


@pytest.mark.parametrize("given", [[False, True, True], np.array([1, 2]), ("y", "z"), slice(1, None)])
def test_a_view_goes_by_mask_numbers_names_or_slice(given):
    assert resolve_views({"a": given}, 3, ("x", "y", "z")) == {"a": ((1, 2), None)}
    assert resolve_views({"a": (given, "real")}, 3, ("x", "y", "z")) == {"a": ((1, 2), "real")}


@pytest.mark.parametrize(("kind", "value"), [("binary", 2.0), ("binary", -0.1), ("counts", 0.5)])
def test_values_of_another_kind_are_refused(kind, value):
    X = np.array([[0.0], [1.0], [value]])
    with pytest.raises(InputError, match=f"view 'v' holds {value:g}"):
        kinds(X, {"v": ([0], kind)})


def test_a_table_that_says_nothing_has_one_idle_unit():
    layout, coder = kinds(np.ones((4, 2)))
    assert layout == [("all", "real", 1)]
    assert coder.constants[1] == 1.0


@pytest.mark.parametrize("n_gaps", [0, 6])
def test_labels_that_name_rows_become_no_unit(n_gaps):
    names = [f"n{i}" for i in range(60)]
    names[:n_gaps] = [None] * n_gaps
    frame = pd.DataFrame({"name": names, "size": np.arange(60.0), "colour": ["r", "g", "b"] * 20})
    with pytest.warns(NongaussWarning, match="ignored.*'name'"):
        coder = kinds(frame)[1]
    assert set(coder.encoded_names) == {"size", "colour=r", "colour=g", "colour=b"}
