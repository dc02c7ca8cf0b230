"""The list of cases for every estimator; `test_cases.py` has what is asked of regressors alone.

The number in a test's name is the row of the list of cases in docs/troubleshooting.md.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import nongauss
from catalogue import CATALOGUE, CLASSIFIERS, OTHERS, REGRESSORS, Entry, mixed_frame
from nongauss.core.errors import InputError, NongaussWarning

# An imputer says the table itself: tests/auto/test_imputer.py; regressors have more cases: test_cases.py.
CATALOGUE, OTHERS = ([e for e in entries if e.name != "AutoImputer"] for entries in (CATALOGUE, OTHERS))
every = pytest.mark.parametrize("entry", CATALOGUE, ids=lambda e: e.name)
every_other = pytest.mark.parametrize("entry", OTHERS, ids=lambda e: e.name)
every_classifier = pytest.mark.parametrize("entry", CLASSIFIERS, ids=lambda e: e.name)
pytestmark = [
    pytest.mark.gate,
    pytest.mark.filterwarnings("ignore::nongauss.core.errors.NongaussWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def framed(entry: Entry) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns of every kind, and a target of the estimator's kind: numbers, or labels 0, 1, 2."""
    frame, y = mixed_frame()
    return frame, y if entry in REGRESSORS else np.digitize(y, [2.0, 4.5])


_FITTED: dict[str, tuple[Any, pd.DataFrame, np.ndarray]] = {}


def fitted_to_frame(entry: Entry) -> tuple[Any, pd.DataFrame, np.ndarray]:
    """Fitted to `framed` once a process; tests must not change it."""
    if entry.name not in _FITTED:
        frame, y = framed(entry)
        _FITTED[entry.name] = (entry.make().fit(frame, y), frame, y)
    return _FITTED[entry.name]


@every_other
def test_4_units_of_the_columns_do_not_matter(entry):
    X, y = entry.data()
    scale = np.array([1e6, 1e-6, 1e3, 1.0, 1e4])[: X.shape[1]]
    other = (X + 3.0) * scale
    expected = entry.said(entry.make().fit(X, y), X)
    assert_allclose(entry.said(entry.make().fit(other, y), other), expected, rtol=1e-4, atol=1e-6)


@every
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_11_infinite_cell_names_the_column(entry, value):
    frame, y = framed(entry)
    frame.loc[3, "size"] = value
    with pytest.raises(ValueError, match="size"):
        entry.make().fit(frame, y)


@every
def test_11_missing_cells_are_handled(entry):
    frame, y = framed(entry)
    frame.loc[[0, 5, 9], "size"] = np.nan
    frame.loc[2, "rooms"] = pd.NA
    frame.loc[3, "town"] = None
    assert np.isfinite(entry.said(entry.make().fit(frame, y), frame)).all()


@every_other
def test_11_a_column_without_any_value_is_reported_and_ignored(entry):
    X, y = entry.data()
    wide = np.column_stack([X, np.full(len(X), np.nan)])
    with pytest.warns(NongaussWarning):
        estimator = entry.make().fit(wide, y)
    assert_allclose(entry.said(estimator, wide), entry.said(entry.make().fit(X, y), X), rtol=1e-6)


@every_other
def test_18_a_constant_column_is_reported_and_changes_nothing(entry):
    X, y = entry.data()
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    with pytest.warns(NongaussWarning, match="same"):
        estimator = entry.make().fit(frame.assign(same=1.0), y)
    expected = entry.said(entry.make().fit(frame, y), frame)
    assert_allclose(entry.said(estimator, frame.assign(same=1.0)), expected, rtol=1e-6)


@every
def test_21_polars_gives_what_pandas_gives(entry):
    estimator, frame, y = fitted_to_frame(entry)
    assert list(estimator.feature_names_in_) == list(frame.columns)
    other = polars.from_pandas(frame)
    assert_allclose(entry.said(entry.make().fit(other, y), other), entry.said(estimator, frame))


@every_other
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.uint16])
def test_22_narrow_number_types_do_not_overflow(entry, dtype):
    rng = np.random.RandomState(0)
    X, y = rng.randint(0, 100, (50, 3)), rng.randint(0, 2, 50)
    narrow = entry.said(entry.make().fit(X.astype(dtype), y), X.astype(dtype))
    assert_allclose(narrow, entry.said(entry.make().fit(X.astype(float), y), X.astype(float)), rtol=1e-6)


def test_25_a_new_process_without_the_data_says_the_same(tmp_path):
    for entry in OTHERS:
        estimator, frame, _ = fitted_to_frame(entry)
        nongauss.save(estimator, tmp_path / f"{entry.name}.nongauss")
        frame.to_pickle(tmp_path / "frame.pickle")
    code = (
        "import sys, pathlib, numpy as np, pandas as pd, nongauss\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "frame = pd.read_pickle(folder / 'frame.pickle')\n"
        "for path in folder.glob('*.nongauss'):\n"
        "    model = nongauss.load(path)\n"
        "    says = model.predict if hasattr(model, 'predict') else model.transform\n"
        "    np.save(path.with_suffix('.npy'), says(frame))\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True)
    for entry in OTHERS:
        estimator, frame, _ = fitted_to_frame(entry)
        assert_array_equal(np.load(tmp_path / f"{entry.name}.npy"), entry.said(estimator, frame))


@every_other
@pytest.mark.parametrize("size", [1e-200, 1e300])
def test_28_extreme_magnitudes_end_finite_or_in_a_clear_error(entry, size):
    X, y = entry.data()
    try:
        says = entry.said(entry.make().fit(X * size, y), X * size)
    except InputError:
        return
    assert np.isfinite(says).all()


@every_other
def test_30_many_rows_are_answered_in_chunks_with_the_same_answer(entry):
    estimator, frame, _ = fitted_to_frame(entry)
    many = pd.concat([frame] * 200, ignore_index=True)
    one = entry.said(estimator, frame)
    assert_allclose(entry.said(estimator, many), np.concatenate([one] * 200), rtol=1e-6, atol=1e-9)


@every
def test_31_columns_go_by_name_and_an_absent_one_is_named(entry):
    estimator, frame, _ = fitted_to_frame(entry)
    expected = entry.said(estimator, frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_array_equal(entry.said(estimator, frame[list(frame.columns[::-1])]), expected)
        assert_array_equal(entry.said(estimator, frame.assign(extra=1.0)), expected)
    with pytest.raises(ValueError, match="rooms"):
        entry.said(estimator, frame.drop(columns="rooms"))


@every
def test_31_unseen_category_counts_as_missing_with_a_warning(entry):
    frame, y = framed(entry)
    frame["town"] = frame["town"].astype(object)
    estimator = entry.make().fit(frame, y)
    unseen, missing = frame.head(4).copy(), frame.head(4).copy()
    unseen["town"], missing["town"] = "Oslo", None
    with pytest.warns(NongaussWarning, match="Oslo"):
        says = entry.said(estimator, unseen)
    assert_array_equal(says, entry.said(estimator, missing))


@every_classifier
@pytest.mark.parametrize("labels", [(-1, 1), ("no", "yes"), (False, True)], ids=str)
def test_9_any_two_labels_are_classes(entry, labels):
    X, y = entry.data()
    if entry.name == "SparseGPOrdinalClassifier" and labels == ("no", "yes"):
        return  # grades need an order: said in its own tests
    named = np.asarray(labels)[(y == y[0]).astype(int)]
    estimator = entry.make().fit(X, named)
    assert list(estimator.classes_) == list(labels)
    assert set(estimator.predict(X)) <= set(labels)


@every_classifier
def test_13_one_class_is_named(entry):
    X, y = entry.data()
    with pytest.raises(ValueError, match="7"):
        entry.make().fit(X, np.full(len(y), 7))


@every_classifier
def test_32_separable_classes_stay_finite(entry):
    X = np.random.RandomState(0).randn(60, 2) + np.repeat([[-20.0], [20.0]], 30, axis=0)
    y = np.repeat([0, 1], 30)
    proba = entry.make().fit(X, y).predict_proba(X)
    assert ((proba > 0) & (proba < 1)).all()
    assert_allclose(proba.sum(axis=1), 1.0, atol=1e-9)
