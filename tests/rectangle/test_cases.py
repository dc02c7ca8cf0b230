"""Inputs that break other libraries, and what the clusterer does instead.

The number in a test's name is the row of the list of cases in docs/troubleshooting.md.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import nongauss
from nongauss import RectangleMixture
from nongauss.core.errors import InputError, NongaussWarning
from rectangle.small import blobs

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def model(n_clusters: int | str = 2, **changes) -> RectangleMixture:
    return RectangleMixture(n_clusters, **{"n_init": 2, "max_iter": 20, "random_state": 0, **changes})


def mixed_frame(n_rows: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns of every kind, two clusters that size and colour tell."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, n_rows)
    frame = pd.DataFrame(
        {
            "size": 6.0 * truth + rng.normal(size=n_rows),
            "colour": pd.Categorical(np.where(truth, rng.choice(["red", "pink"], n_rows), "blue")),
            "town": rng.choice(["Ulm", "Bern"], n_rows).astype(object),
            "new": rng.random(n_rows) > 0.5,
            "rooms": pd.array(rng.integers(1, 6, n_rows), dtype="Int64"),
        }
    )
    return frame, truth


@pytest.fixture(scope="module")
def fitted() -> tuple[RectangleMixture, pd.DataFrame, np.ndarray]:
    frame, truth = mixed_frame()
    return model().fit(frame), frame, truth


def test_5_and_7_repeated_rows_and_identical_columns():
    X, truth = blobs(30, 2)
    X = np.repeat(np.column_stack([X, X[:, 1], X[:, 1]]), 3, axis=0)
    assert adjusted_rand_score(np.repeat(truth, 3), model().fit_predict(X)) == 1.0


def test_11_gaps_cost_nothing_and_infinity_is_refused_by_column(fitted):
    _, frame, truth = fitted
    holes = frame.copy()
    holes.loc[[0, 5, 9], "size"] = np.nan
    holes.loc[2, "rooms"], holes.loc[3, "colour"], holes.loc[4, "town"] = pd.NA, None, None
    holes["new"] = holes["new"].astype(object)
    holes.loc[6] = [np.nan, None, None, None, pd.NA]
    found = model().fit(holes)
    assert adjusted_rand_score(truth, found.labels_) > 0.9
    assert found.inside(holes.loc[[6]]).all()
    with pytest.raises(InputError, match="size"):
        model().fit(frame.assign(size=np.inf))


def test_11_and_18_columns_that_say_nothing_are_named_and_change_nothing():
    X, _ = blobs(60, 2)
    frame = pd.DataFrame({"x": X[:, 0], "y": X[:, 1]})
    with pytest.warns(NongaussWarning, match="'empty'.*'one'"):
        found = model().fit(frame.assign(one=1.0, empty=np.nan))
    pd.testing.assert_frame_equal(found.rules_, model().fit(frame).rules_)


@pytest.mark.filterwarnings("ignore::nongauss.core.errors.NongaussWarning")
@pytest.mark.parametrize("X", [[[1.0, 2.0]], np.ones((9, 2))], ids=["one row", "equal rows"])
def test_12_one_row_or_equal_rows_are_one_cluster(X):
    assert model("auto").fit(X).rule_text_ == {"cluster 0": "every row"}
    with pytest.raises(InputError, match="n_clusters=2 is more than the 1"):
        model().fit(X)


@pytest.mark.gate
def test_21_and_22_frames_of_every_kind_and_narrow_numbers(fitted):
    found, frame, truth = fitted
    assert adjusted_rand_score(truth, found.labels_) == 1.0
    assert list(found.feature_names_in_) == list(frame)
    assert_array_equal(model().fit(polars.from_pandas(frame)).labels_, found.labels_)
    X = np.random.default_rng(0).integers(0, 120, (60, 2))
    expected = model().fit(X.astype(float))
    for kind in (np.int8, np.float32, np.uint16):
        assert_array_equal(model().fit(X.astype(kind)).predict(X.astype(kind)), expected.labels_)


@pytest.mark.gate
def test_25_a_new_process_without_the_data_predicts_the_same(fitted, tmp_path):
    found, frame, _ = fitted
    saved, inputs, outputs = tmp_path / "m.nongauss", tmp_path / "X.pkl", tmp_path / "p.npy"
    nongauss.save(found, saved)
    frame.to_pickle(inputs)
    code = (
        "import sys, numpy as np, pandas as pd, nongauss; model, inputs, outputs = sys.argv[1:]; "
        "np.save(outputs, nongauss.load(model).predict_posterior(pd.read_pickle(inputs)))"
    )
    subprocess.run([sys.executable, "-c", code, saved, inputs, outputs], check=True)
    assert_array_equal(np.load(outputs), found.predict_posterior(frame))


@pytest.mark.parametrize("size", [1e-200, 1e150, 1e300])
def test_28_extreme_magnitudes_change_nothing_or_are_a_clear_error(size):
    X, truth = blobs(60, 2)
    try:
        found = model().fit(X * size)
    except InputError:
        return
    assert adjusted_rand_score(truth, found.labels_) == 1.0
    assert_array_equal(found.predict(X * size), found.labels_)


def test_29_weights_pass_through_a_pipeline():
    X, _ = blobs(60, 2)
    weight = np.random.default_rng(0).integers(0, 3, 60)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(MinMaxScaler(), model().set_fit_request(sample_weight=True))
        routed.fit(X, sample_weight=weight)
    assert routed[-1].clusters_["rows"].sum() == weight.sum()


def test_30_many_rows_get_the_same_answer_block_by_block(fitted):
    found, frame, _ = fitted
    many = pd.concat([frame] * 600, ignore_index=True)
    assert_array_equal(found.predict(many), np.tile(found.labels_, 600))
    assert_allclose(found.predict_posterior(many)[-len(frame) :], found.predict_posterior(frame), rtol=1e-9)


def test_31_columns_go_by_name_and_an_unseen_level_is_a_gap(fitted):
    found, frame, _ = fitted
    assert_array_equal(found.predict(frame[list(frame)[::-1]]), found.labels_)
    with pytest.warns(NongaussWarning, match="extra"):
        assert_array_equal(found.predict(frame.assign(extra=1.0)), found.labels_)
    with pytest.raises(InputError, match="'colour'"):
        found.predict(frame.drop(columns="colour"))
    unseen, missing = frame.head(4).copy(), frame.head(4).copy()
    unseen["colour"], missing["colour"] = "green", None
    with pytest.warns(NongaussWarning, match="green"):
        predicted = found.predict_proba(unseen)
    assert_array_equal(predicted, found.predict_proba(missing))
