"""What was declared or understood of a table at the fit holds of the tables that are predicted and scored."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import nongauss
from nongauss.cli import out_of_core
from nongauss.cli.describe import about_of
from nongauss.cli.judge import Outcome
from nongauss.cli.predict import prediction_frame
from nongauss.cli.read import Declared, prepare
from nongauss.cli.score import score_table
from nongauss.core.errors import InputError
from nongauss.estimator.persistence import load, save


def fitted(folder, frame, declared):
    """A model of some rows, saved and loaded as `nongauss fit` does it."""
    table = prepare(frame, "y", declared=declared)
    model = nongauss.SparseGPRegressor(n_inducing=5, random_state=0).fit(table.rows, table.y)
    model.about_ = about_of(Outcome(model, model, len(frame)), table, "auto", declared)
    save(model, folder / "m")
    return load(folder / "m"), table


@pytest.fixture
def frame():
    rng = np.random.RandomState(0)
    a = rng.normal(size=80)
    a[::4] = -9
    owned = np.array(["Yes", "no", "YES", "No", "yes", "no", "Yes", "no"] * 10)
    y = 2.0 * (np.char.lower(owned) == "yes") + np.where(a == -9, 0.0, a) + 0.1 * rng.normal(size=80)
    return pd.DataFrame({"a": a, "owned": owned, "y": y})


def test_declared_gaps_are_gaps_when_predicting_and_scoring(frame, tmp_path):
    model, _ = fitted(tmp_path, frame, Declared(missing=("a=-9",)))
    gap = frame.assign(a=frame["a"].where(frame["a"] != -9))
    pd.testing.assert_frame_equal(prediction_frame(model, frame), prediction_frame(model, gap))
    frame.to_csv(tmp_path / "signs.csv", index=False)
    gap.to_csv(tmp_path / "gaps.csv", index=False)
    signs, gaps = (score_table(model, tmp_path / name) for name in ("signs.csv", "gaps.csv"))
    assert signs.figures == gaps.figures


def test_yes_and_no_are_one_label_whatever_their_case(frame, tmp_path):
    model, table = fitted(tmp_path, frame, Declared())
    assert any("(No/no, YES/Yes/yes), treated as the same label" in note for note in table.notes)
    other = frame.assign(owned=frame["owned"].str.upper())
    pd.testing.assert_frame_equal(prediction_frame(model, frame), prediction_frame(model, other))


def test_so_are_those_of_a_target_but_not_other_labels(frame):
    target = prepare(frame.rename(columns={"y": "b", "owned": "y"}), "y")
    assert set(target.y) == {"Yes", "no"}
    colours = prepare(frame.assign(owned=np.where(frame["a"] > 0, "Red", "red")), "y")
    assert set(colours.X["owned"]) == {"Red", "red"}


@pytest.mark.parametrize("declared", [{"exposure": "a"}, {"censored": "a"}, {"missing": ("a=9",)}])
def test_parts_are_told_of_no_such_option(declared):
    with pytest.raises(InputError, match=f"--{next(iter(declared))}: not known to --engine stream"):
        out_of_core.check_engine("stream", None, Declared(**declared))
    out_of_core.check_engine("memory", None, Declared(**declared))
