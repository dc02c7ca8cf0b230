import numpy as np
import pandas as pd

from nongauss.sparse_gp.data import space_of, with_a_column
from nongauss.tables.learn import as_source, learn


def test_encoded_columns_know_where_they_came_from():
    frame = pd.DataFrame({"x": [1.0, 2.0, np.nan], "c": pd.Categorical(["a", "b", "c"])})
    space = space_of(learn(as_source(frame)).encoder)
    assert space.names == ("x", "c")
    assert space.group == (0, 0, 1, 1, 1)


def test_a_table_that_says_nothing_gets_a_column():
    learned = learn(as_source(np.ones((3, 1))), warn=False)
    assert with_a_column(learned.encoder.as_scaled(np.ones((3, 1)))).shape == (3, 1)
    assert len(space_of(learned.encoder).group) == 1
