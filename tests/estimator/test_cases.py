"""Inputs that break other libraries, each from a public bug report, and what every regressor does instead.

`test_cases_every.py` has what is asked of all estimators.

The number in a test's name is the row of the list of cases in docs/troubleshooting.md.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import nongauss
from catalogue import REGRESSORS, mixed_frame
from nongauss.core.errors import InputError, NongaussWarning

pytestmark = [
    pytest.mark.filterwarnings("ignore::nongauss.core.errors.NongaussWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.parametrize("entry", REGRESSORS, ids=lambda e: e.name),
]


def wave() -> tuple[np.ndarray, np.ndarray]:
    x = np.linspace(0, 1, 30)
    return x[:, None], 5 + np.sin(6 * x)


@pytest.mark.gate
def test_3_target_in_millions(entry):
    X, y = wave()
    mean, std = entry.longer(60).fit(X, y).predict(X, return_std=True)
    large_mean, large_std = entry.longer(60).fit(X, 1e6 * y + 3e6).predict(X, return_std=True)
    assert_allclose(large_mean, 1e6 * mean + 3e6, rtol=1e-6)
    assert_allclose(large_std, 1e6 * std, rtol=1e-6)


@pytest.mark.gate
def test_4_three_hundred_columns_in_units_of_ten_thousand(entry):
    rng = np.random.RandomState(0)
    X = rng.rand(60, 300)
    y = X[:, 0] + 0.1 * rng.randn(60)
    expected = entry.make().fit(X, y).predict(X)
    assert_allclose(entry.make().fit(1e4 * X, y).predict(1e4 * X), expected, rtol=1e-6)


def test_5_repeated_inputs_learn_the_noise(entry):
    rng = np.random.RandomState(0)
    X = np.repeat(np.linspace(-2, 2, 20), 3)[:, None]
    y = np.sin(X[:, 0]) + 0.1 * rng.randn(60)
    _, std = entry.longer(400).fit(X, y).predict(X, return_std=True)
    assert 0.05 < np.median(std) < 0.25


@pytest.mark.gate
def test_7_identical_columns_without_noise(entry):
    column = np.random.RandomState(0).uniform(-4, 4, 200)
    X = np.column_stack([column, column, column])
    y = X.sum(axis=1)
    mean, std = entry.longer(200).fit(X, y).predict(X, return_std=True)
    assert np.sqrt(np.mean((mean - y) ** 2)) < 0.15 * y.std()
    assert (std > 0).all()
    assert (std < y.std()).all()


def test_11_missing_target_names_the_row(entry):
    X, y = wave()
    y[4] = np.nan
    with pytest.raises(ValueError, match=r"row 4\b"):
        entry.make().fit(X, y)


def test_11_column_without_any_value_is_reported_and_ignored(entry):
    X, y = wave()
    with pytest.warns(NongaussWarning):
        estimator = entry.make().fit(np.column_stack([X, np.full(len(X), np.nan)]), y)
    again = estimator.predict(np.column_stack([X, np.full(len(X), np.nan)]))
    assert_allclose(again, entry.make().fit(X, y).predict(X), rtol=1e-6)


def test_12_constant_target(entry):
    X = np.random.RandomState(0).randn(10, 2)
    with pytest.warns(NongaussWarning):
        estimator = entry.make().fit(X, np.full(10, 3.0))
    mean, std = estimator.predict(X, return_std=True)
    assert_allclose(mean, 3.0, atol=0.1)
    assert ((std > 0) & (std < 10)).all()


def test_12_one_row(entry):
    with pytest.warns(NongaussWarning):
        estimator = entry.make().fit([[1.0, 2.0]], [3.0])
    mean, std = estimator.predict([[1.0, 2.0], [0.0, 0.0]], return_std=True)
    assert np.isfinite(mean).all()
    assert ((std > 0) & (std < 100)).all()


def test_18_constant_column_is_reported_and_changes_nothing(entry):
    frame = pd.DataFrame({"x": np.random.RandomState(0).randn(100)})
    y = np.abs(frame["x"])
    with_constant = frame.assign(same=1.0)
    with pytest.warns(NongaussWarning, match="same"):
        estimator = entry.make().fit(with_constant, y)
    expected = entry.make().fit(frame, y).predict(frame)
    assert_allclose(estimator.predict(with_constant), expected, rtol=1e-6)
    array = np.asarray(with_constant)
    assert_allclose(entry.make().fit(array, y).predict(array), expected, rtol=1e-6)


def test_21_columns_of_every_kind_are_encoded_and_keep_their_names(entry):
    frame, y = mixed_frame()
    estimator = entry.longer(150).fit(frame, y)
    assert list(estimator.feature_names_in_) == list(frame.columns)
    assert estimator.score(frame, y) > 0.7


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.uint16])
def test_22_narrow_number_types_do_not_overflow(entry, dtype):
    rng = np.random.RandomState(0)
    X, y = rng.randint(0, 100, (50, 2)), rng.randint(0, 120, 50)
    narrow = entry.make().fit(X.astype(dtype), y.astype(dtype)).predict(X.astype(dtype))
    assert_allclose(narrow, entry.make().fit(X.astype(float), y.astype(float)).predict(X.astype(float)))


def test_24_weights_of_another_length_are_refused(entry):
    X, y = wave()
    with pytest.raises(ValueError, match="weight"):
        entry.make().fit(X, y, sample_weight=np.ones(len(X) - 1))


@pytest.mark.gate
def test_25_a_new_process_without_the_data_predicts_the_same(entry, tmp_path):
    X, y = wave()
    estimator = entry.make().fit(X, y)
    model, inputs, outputs = tmp_path / "m.nongauss", tmp_path / "X.npy", tmp_path / "p.npy"
    nongauss.save(estimator, model)
    np.save(inputs, X)
    code = (
        "import sys, numpy as np, nongauss; model, inputs, outputs = sys.argv[1:]; "
        "np.save(outputs, nongauss.load(model).predict(np.load(inputs)))"
    )
    subprocess.run([sys.executable, "-c", code, model, inputs, outputs], check=True)
    assert_array_equal(np.load(outputs), estimator.predict(X))


@pytest.mark.parametrize("damage", ["truncated", "foreign", "empty"])
def test_25_a_damaged_file_is_a_clear_error(entry, tmp_path, damage):
    X, y = wave()
    path = tmp_path / "m.nongauss"
    nongauss.save(entry.make().fit(X, y), path)
    content = path.read_bytes()
    damaged = {"truncated": content[: len(content) // 2], "foreign": b"PK" + content, "empty": b""}
    path.write_bytes(damaged[damage])
    with pytest.raises(ValueError, match=r"m\.nongauss"):
        nongauss.load(path)


@pytest.mark.parametrize("size", [1e-200, 1e150, 1e300])
def test_28_extreme_magnitudes_end_finite_or_in_a_clear_error(entry, size):
    X, y = wave()
    try:
        mean, std = entry.make().fit(X * size, y * size).predict(X * size, return_std=True)
    except InputError:
        return
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


def test_29_weights_pass_through_a_pipeline(entry):
    X, y = entry.data()
    weight = np.random.RandomState(0).randint(0, 3, len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        plain = make_pipeline(MinMaxScaler(), entry.make().set_fit_request(sample_weight=True))
        routed = plain.fit(X, y, sample_weight=weight).predict(X)
    scaled = MinMaxScaler().fit_transform(X)
    assert_allclose(routed, entry.make().fit(scaled, y, sample_weight=weight).predict(scaled), rtol=1e-9)


def test_30_many_rows_are_predicted_in_chunks_with_the_same_answer(entry):
    X, y = wave()
    estimator = entry.make().fit(X, y)
    many = np.tile(X, (1000, 1))
    mean, std = estimator.predict(many, return_std=True)
    one_mean, one_std = estimator.predict(X, return_std=True)
    assert_allclose(mean, np.tile(one_mean, 1000), rtol=1e-9)
    assert_allclose(std, np.tile(one_std, 1000), rtol=1e-9)


@pytest.mark.slow
def test_30_memory_of_a_prediction_does_not_grow_with_the_rows(entry, tmp_path):
    X, y = wave()
    nongauss.save(entry.make().fit(X, y), tmp_path / "m.nongauss")
    code = (
        "import sys, resource, numpy as np, nongauss\n"
        "model = nongauss.load(sys.argv[1])\n"
        "for n in (20_000, 200_000):\n"
        "    model.predict(np.linspace(0, 1, n)[:, None], return_std=True)\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    command = [sys.executable, "-c", code, tmp_path / "m.nongauss"]
    small, large = map(
        int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    )
    # Ten times the rows: inputs, encoded inputs and results are 10 MB; a chunk is bounded.
    assert large - small < 100_000
