from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nongauss import SparseGPOrdinalClassifier
from nongauss.estimator.probabilities import ProbabilityClassifierMixin


class Known(ProbabilityClassifierMixin):
    """Gives each row the probabilities that are its inputs."""

    def __init__(self, classes):
        self.classes_ = np.asarray(classes)

    def predict_proba(self, X):
        return np.asarray(X)


P = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])


@pytest.mark.parametrize("classes", [[1.0, 1.5, 2.0], [1, 2, 3], ["a", "b", "c"]])
def test_the_accuracy_is_the_share_of_rows_right(classes):
    y = [classes[i] for i in (0, 1, 1, 2)]
    assert Known(classes).score(P, y) == 0.5
    assert Known(classes).score(P, np.array(y), sample_weight=[3, 1, 0, 0]) == 1.0
    np.testing.assert_array_equal(Known(classes).predict(P), [classes[i] for i in (0, 1, 2, 0)])
    np.testing.assert_allclose(np.exp(Known(classes).predict_log_proba(P)), P)


def test_a_grade_that_did_not_occur_is_wrong():
    assert Known([1.0, 1.5, 2.0]).score(P, [1.0, 2.5, 2.0, 9.0]) == 0.5


@pytest.mark.parametrize("classes", [[1.0, 1.5, 2.0], [1.0, 2.0, 3.0], [1, 2, 3]])
@pytest.mark.parametrize("odd", [2.5, 9, "a", "1.75"])
def test_what_is_no_class_is_wrong_whatever_the_classes(classes, odd):
    y = [classes[0], odd, classes[2], odd]
    for given in (y, np.array(y, dtype=object), pd.Series(y, dtype=object)):
        assert Known(classes).score(P, given) == 0.5


def test_labels_may_be_of_another_type_than_the_classes():
    p = np.array([[0.9, 0.1], [0.2, 0.8]])
    assert Known([0, 1]).score(p, [False, True]) == Known([0.0, 1.0]).score(p, np.array([[0], [1]])) == 1.0


def test_missing_labels_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        Known([1.0, 2.0, 3.0]).score(P, [1.0, np.nan, 2.0, 3.0])


def test_grades_in_half_steps_are_scored():
    x = np.linspace(0, 1, 60)[:, None]
    y = np.round(2 * (1 + 2 * x[:, 0])) / 2
    model = SparseGPOrdinalClassifier(random_state=0).fit(x, y)
    assert model.score(x, y) == np.mean(model.predict(x) == y) > 0.8
