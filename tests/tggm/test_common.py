"""What the two estimators share: canonical rows of dense and sparse tables, refused settings."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from nongauss import TGGMClassifier
from nongauss.core.errors import InputError
from nongauss.tables.sparse import SparseEncoder
from nongauss.tggm.data import canonical
from nongauss.tggm.objective import filled


def test_sparse_rows_are_merged_like_dense_ones():
    dense = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0], [0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    target, weight = np.array([[0.0], [1.0], [0.0], [0.0]]), np.array([1.0, 2.0, 3.0, 1.0])
    encoder = SparseEncoder.fit(sparse.csr_array(dense), weight)
    data = canonical(encoder.as_scaled(sparse.csr_array(dense)), target, weight, 3)
    plain = canonical(dense / encoder.scale, target, weight)
    assert sorted(data.weight) == sorted(plain.weight) == [1.0, 2.0, 4.0]
    assert data.n_inputs == plain.n_inputs == 3
    order, other = np.argsort(data.weight), np.argsort(plain.weight)
    assert_allclose(np.asarray(filled(data.X, 3))[order], plain.X[other], rtol=1e-6)


@pytest.mark.parametrize("sizes", [(), (5, 0), (0,), (2.5,), ("a",)])
def test_layers_of_whole_units_are_asked_for(sizes):
    with pytest.raises(InputError, match="a whole number of units for each hidden layer"):
        TGGMClassifier(sizes)._settings()


def test_a_portion_is_in_memory():
    with pytest.raises(InputError, match="a portion of the rows in memory, got a str; call fit"):
        TGGMClassifier().partial_fit("rows.parquet", "y")


def test_settings_become_what_the_mathematics_wants():
    config, recipe = TGGMClassifier(7, hidden_variance=0.3)._settings()
    assert config.layers == (7,)
    assert (config.hidden_variance, config.noise_variance) == (0.3, 1.0)
    assert recipe.max_epochs is None
    assert recipe.batch_size is None
