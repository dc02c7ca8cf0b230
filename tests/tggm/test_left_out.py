"""What an ensemble says of a row by the member that has not trained on it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from catalogue import diabetes_part, wine_part
from nongauss import TGGMClassifier, TGGMRegressor
from nongauss.core.errors import InputError
from nongauss.tggm.left_out import left_out_law, left_out_probabilities

SMALL = {"hidden_layer_sizes": (6,), "max_epochs": 15, "n_members": 5, "random_state": 0}


def test_each_row_is_told_by_one_member():
    X, y = diabetes_part()
    model = TGGMRegressor(validation_fraction=0.2, **SMALL).fit(X, y)
    law = left_out_law(model, X, y, np.ones(len(y)))
    assert len(law) == len(y)
    ensemble, encoded = model.ensemble_, model._encode(X)
    members = np.stack(
        [
            ensemble._replace(
                params=type(ensemble.params)(
                    *(
                        tuple(np.asarray(own)[e : e + 1] for own in leaf)
                        if isinstance(leaf, tuple)
                        else np.asarray(leaf)[e : e + 1]
                        for leaf in ensemble.params
                    )
                )
            ).moments(encoded)[0][:, 0]
            for e in range(5)
        ]
    )
    is_member = np.isclose(members, law.mean, rtol=1e-9, atol=0)
    assert is_member.any(axis=0).all()
    assert_allclose(np.bincount(is_member.argmax(axis=0)), 18, atol=1)


def test_probabilities_of_labels():
    X, y = wine_part()
    model = TGGMClassifier(validation_fraction=0.2, **SMALL).fit(X, y)
    found = left_out_probabilities(model, X, np.searchsorted(model.classes_, y), np.ones(len(y)))
    assert_allclose(found.sum(axis=1), 1.0)
    assert not np.allclose(found, model.predict_proba(X))


def test_rows_that_no_member_leaves_out_are_refused():
    X, y = diabetes_part()
    model = TGGMRegressor(validation_fraction=0.1, **SMALL).fit(X, y)
    with pytest.raises(InputError, match="held out by no member"):
        left_out_law(model, X, y, np.ones(len(y)))
