"""Features are counted that link columns; what is the shape of one column alone is not."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nongauss import Harmonium
from nongauss.harmonium.chain_graph import ACTIVE, LONE
from nongauss.harmonium.data import VisibleRows
from nongauss.harmonium.exponential_families import UnitBlock
from nongauss.harmonium.linked_columns import n_linked_columns


@pytest.mark.parametrize("law", ["standard_exponential", "standard_normal", "standard_t"])
def test_independent_columns_have_no_feature_in_common(law):
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (500, 8)) if law == "standard_t" else getattr(rng, law)((500, 8))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = Harmonium(random_state=0).fit(X)
    assert model.n_active_ <= 1
    told = [str(one.message) for one in said if "No feature is in use" in str(one.message)]
    assert len(told) == (model.n_active_ == 0)
    counted = model.component_status_.count(ACTIVE) + model.component_status_.count(LONE)
    assert counted == model.transform(X).shape[1]


def test_a_feature_of_several_columns_is_counted_beside_noise():
    rng = np.random.default_rng(0)
    z = rng.random(500) < 0.3
    X = np.column_stack([2.5 * z[:, None] + rng.standard_normal((500, 4)), rng.exponential(size=(500, 4))])
    assert Harmonium(random_state=0).fit(X).n_active_ == 1


def test_weights_of_chance_link_as_often_as_they_should():
    """Least squares on an independent feature: a column seems to go with it in one of a hundred tables."""
    rng = np.random.default_rng(0)
    z, n_tables, N = (rng.random((200, 1)) < 0.3).astype(float), 1000, 200
    linked = []
    for _ in range(n_tables):
        x = rng.standard_normal((N, 5))
        W = (z - z.mean()).T @ x / (N * z.var())
        rows, layout = (
            VisibleRows(x.astype(np.float32), None, np.ones(N), None),
            (UnitBlock("a", "real", 0, 5),),
        )
        linked.append(int(n_linked_columns(W.T, layout, rows, z, np.arange(5))[0]))
    assert 0.003 < np.mean(np.array(linked) > 0) < 0.02


def test_the_levels_of_a_column_are_one_column():
    rng = np.random.default_rng(0)
    z = (rng.random((300, 1)) < 0.5).astype(float)
    x = (rng.random((300, 3)) < 0.3).astype(np.float32)
    rows, layout = VisibleRows(x, None, np.ones(300), None), (UnitBlock("a", "binary", 0, 3),)
    W = np.full((3, 1), 2.0)
    for owner, n in (([0, 0, 0], 1), ([0, 0, 1], 2), ([0, 1, 2], 3)):
        assert_array_equal(n_linked_columns(W, layout, rows, z, np.array(owner)), [n])
