import numpy as np
import pandas as pd

from nongauss.sparse_gp.data import space_of, with_a_column
from nongauss.sparse_gp.kernels import Space
from nongauss.tables.inputs import read_inputs


def test_encoded_columns_know_where_they_came_from():
    frame = pd.DataFrame({"x": [1.0, 2.0, np.nan], "c": pd.Categorical(["a", "b", "c"])})
    space = space_of(read_inputs(frame, None, "Model").encoder)
    assert space.names == ("x", "c")
    assert space.group == (0, 0, 1, 1, 1)


def test_a_table_that_says_nothing_gets_a_column():
    encoded, space = with_a_column(np.empty((3, 0)), Space((), ()))
    assert encoded.shape == (3, 1)
    assert len(space.group) == 1
