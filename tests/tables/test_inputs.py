import numpy as np
import pandas as pd
import pytest

from nongauss.core.errors import InputError
from nongauss.tables.inputs import read_inputs


def test_encoding_matrix_and_weights():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "c": ["a", "b", "c"]})
    inputs = read_inputs(frame, None, "Model")
    assert inputs.encoded.shape == (3, 4)
    assert inputs.weight.tolist() == [1, 1, 1]
    assert inputs.encoder.feature_names == ("x", "c")


def test_rows_of_weight_zero_leave_no_trace():
    X = np.array([[1.0], [3.0], [1e6]])
    inputs = read_inputs(X, [1, 1, 0], "Model")
    np.testing.assert_allclose(inputs.encoded[:2, 0], [-1, 1])


def test_weights_of_another_length_are_refused():
    with pytest.raises(InputError, match="sample_weight"):
        read_inputs([[1.0], [2.0]], [1, 1, 1], "Model")
