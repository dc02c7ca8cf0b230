import numpy as np
import pandas as pd
from numpy.testing import assert_array_equal

from nongauss.data.encoder import TableEncoder
from nongauss.rank_factor.columns import raw_cells, raw_names


def test_numbers_stay_and_labels_become_zeros_and_ones_with_gaps():
    frame = pd.DataFrame(
        {
            "size": [1.5, np.nan, 3e9, 4.0],
            "colour": ["red", "blue", None, "green"],
            "new": [True, False, True, True],
            "same": [7.0] * 4,
        }
    )
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder = TableEncoder.fit(frame)
    cells = raw_cells(encoder, frame)
    assert raw_names(encoder) == ("size", "colour=blue", "colour=green", "colour=red", "new=True")
    assert_array_equal(cells[:, 0], frame["size"])
    assert_array_equal(cells[2, 1:4], [np.nan] * 3)
    assert_array_equal(cells[3, 1:4], [0, 1, 0])
    assert_array_equal(cells[:, 4], [1, 0, 1, 1])
