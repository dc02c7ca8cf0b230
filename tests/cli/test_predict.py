"""Predictions, scores and descriptions of saved models."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from nongauss.cli.predict import predict_table
from report.stand_in import small_data


def labelled(n=60, text=True):
    X, y = small_data(n)
    grade = np.digitize(y, [1.5, 4.0])
    labels = np.array(["low", "mid", "top"])[grade] if text else grade + 1
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=labels)


@pytest.mark.parametrize("text", [False, True])
def test_predictions_of_a_classifier_have_a_column_for_each_class(tmp_path, text):
    table = labelled(text=text)
    model = LogisticRegression().fit(table[["a", "b", "c"]], table["y"])
    data, out = tmp_path / "data.csv", tmp_path / "new" / "pred.csv"
    table[["a", "b", "c"]].to_csv(data, index=False)
    assert predict_table(model, data, out) == 60
    written = pd.read_csv(out)
    assert list(written) == [
        "predicted",
        *(f"p_{name}" for name in (["low", "mid", "top"] if text else [1, 2, 3])),
    ]
    np.testing.assert_allclose(written.iloc[:, 1:], model.predict_proba(table[["a", "b", "c"]]))
    assert (written["predicted"] == model.predict(table[["a", "b", "c"]])).all()
