import importlib.util

import numpy as np
import pytest

from nongauss.core.contracts import InputError
from nongauss.rank_factor import arviz_form
from nongauss.rank_factor.fit import drawn
from rank_factor.small import problem


def test_draws_by_chain_have_named_axes():
    state, *_ = problem(n_outputs=1)
    draws = [drawn(state)] * 5
    variables, dims = arviz_form.by_chain(draws, np.array([0, 0, 0, 1, 1]))
    assert variables["loadings"].shape == (2, 2, 6, 2)
    assert variables["coefficients"].shape == (2, 2, 1, 1, 2)
    for name, array in variables.items():
        assert array.ndim == 2 + len(dims[name])


def test_it_is_said_which_package_is_needed():
    if importlib.util.find_spec("arviz") is None:
        state, *_ = problem()
        with pytest.raises(InputError, match="arviz"):
            arviz_form.inference_data([drawn(state)], np.zeros(1), ["a"], np.array(["f"]))
