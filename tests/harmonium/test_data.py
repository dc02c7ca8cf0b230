import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.harmonium.data import decode, encode
from nongauss.harmonium.visible_units import unit_coder
from nongauss.tables.learn import as_source, learn


def coder_of(X, views=None):
    source = as_source(X, accept_sparse=True)
    return unit_coder(learn(source, warn=False), views, sp.issparse(X))


FRAME = pd.DataFrame(
    {"town": ["Ulm", "Bern", None, "Ulm"], "colour": ["r", "g", "b", "b"], "size": [1.0, 2.5, np.nan, 3.0]}
)


def test_cells_become_units_and_gaps_stay_gaps():
    coder = coder_of(FRAME)
    encoded, missing = encode(coder, FRAME, "test")
    assert coder.encoded_names == ("town=Ulm", "colour=b", "colour=g", "colour=r", "size")
    assert_array_equal(encoded[:, :4], [[1, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0], [1, 1, 0, 0]])
    assert_array_equal(np.argwhere(missing), [[2, 0], [2, 4]])
    back = decode(coder, encoded)
    assert_allclose(back[[0, 1, 3], 2], [1.0, 2.5, 3.0], rtol=1e-6)
    assert_array_equal(back[:, 1], [2, 1, 0, 0])
    assert_array_equal(back[[0, 1, 3], 0], [1, 0, 1])


@pytest.mark.parametrize("column", ["town", "colour"])
def test_unseen_labels_are_gaps_with_a_warning(column):
    new = FRAME.assign(**{column: "Oslo"})
    with pytest.warns(NongaussWarning, match="Oslo"):
        _, missing = encode(coder_of(FRAME), new, "test")
    names = coder_of(FRAME).encoded_names
    assert all(missing[:, d].all() for d, name in enumerate(names) if name.startswith(column))


def test_columns_go_by_name():
    coder = coder_of(FRAME)
    with pytest.warns(NongaussWarning, match="extra"):
        encoded, _ = encode(coder, FRAME[["size", "colour", "town"]].assign(extra=1), "test")
    assert_array_equal(encoded, encode(coder, FRAME, "test")[0])
    with pytest.raises(InputError, match="colour"):
        encode(coder, FRAME.drop(columns="colour"), "test")
    with pytest.raises(InputError, match="expecting 3 features"):
        encode(coder, np.zeros((2, 5)), "test")


def test_sparse_tables_stay_sparse_and_mean_what_dense_ones_mean():
    X = (np.random.default_rng(0).random((30, 6)) < 0.3) * 2.0
    coder = coder_of(sp.csr_matrix(X))
    encoded, missing = encode(coder, sp.csc_matrix(X), "test")
    assert sp.issparse(encoded)
    assert missing is None
    assert_array_equal(encoded.toarray(), encode(coder_of(X), X, "test")[0])
    real = X * np.random.default_rng(1).normal(size=X.shape)
    coder = coder_of(sp.csr_matrix(real))
    encoded, _ = encode(coder, sp.csr_array(real), "test")
    assert encoded.nnz == np.count_nonzero(real)
    assert_allclose(np.abs(encoded.toarray()), np.minimum(np.abs(real / real.std(axis=0)), 5), rtol=1e-5)
    assert_allclose(encode(coder, real, "test")[0], encoded.toarray(), rtol=1e-6)
    assert_allclose(decode(coder, encoded.toarray()), real, rtol=1e-5)
    with pytest.raises(InputError, match="no gaps"):
        encode(coder, sp.csr_matrix(np.full((2, 6), np.nan)), "test")
    with pytest.raises(InputError, match="expecting 6 features"):
        encode(coder, sp.csr_matrix((2, 5)), "test")


def test_real_columns_survive_extreme_units():
    X = np.column_stack([np.linspace(0, 1, 9) * 1e-200, np.linspace(-3, 9, 9) * 1e150])
    encoded, _ = encode(coder_of(X), X, "test")
    assert_allclose(np.abs(encoded.std(axis=0)), 1.0, rtol=1e-5)


def test_dates_are_units_of_their_view_and_come_back_as_days_since_the_first():
    days = np.random.default_rng(0).permutation(900)[:200]
    frame = pd.DataFrame(
        {"size": np.arange(200.0), "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "D")}
    )
    coder = coder_of(frame, {"dates": ["when"], "sizes": ["size"]})
    assert coder.n_features == 2
    assert {block.view for block in coder.layout if block.kind == "binary"} == {"dates"}
    assert "when (weekday)=Monday" in coder.encoded_names
    encoded, missing = encode(coder, frame, "test")
    assert missing is None
    back = decode(coder, encoded)
    assert back.shape == (200, 2)
    assert_allclose(back, np.column_stack([np.arange(200.0), days - days.min()]), atol=1e-3)
