import numpy as np
import pandas as pd
from pandas.testing import assert_frame_equal
from sklearn.datasets import load_iris

from nongauss import RectangleMixture
from nongauss.rectangle.parts import tally_of
from nongauss.tables.parquet import Part


def test_rules_are_judged_on_all_rows_of_all_parts(tmp_path):
    X: pd.DataFrame = load_iris(as_frame=True).data
    X.to_parquet(tmp_path / "iris.parquet", row_group_size=40, index=False)
    model = RectangleMixture(3, n_init=2, random_state=0)
    whole, inside = model.fit(X).clusters_, model.inside_one_
    model.fit(tmp_path / "iris.parquet")
    assert_frame_equal(model.clusters_, whole)
    assert model.inside_one_ == inside
    assert model.labels_ is None
    np.testing.assert_array_equal(model.fit_predict(tmp_path / "iris.parquet"), model.predict(X))
    assert np.isfinite(model.predict_posterior(str(tmp_path)).sum())


def test_a_part_without_rows_adds_nothing():
    nothing = Part("part", load_iris(as_frame=True).data[:0], None, None)
    assert tally_of(nothing, None, None, None, "full") is None
