import numpy as np
import pandas as pd

from nongauss import SparseGPRegressor
from nongauss.data.inputs import read_inputs
from nongauss.sparse_gp.common import FEW, MANY, readable_kernels, space_of, with_a_column
from nongauss.sparse_gp.kernel import Space
from nongauss.sparse_gp.likelihoods import Gaussian, Poisson
from sparse_gp.small import model, params, rows


def test_encoded_columns_know_where_they_came_from():
    frame = pd.DataFrame({"x": [1.0, 2.0, np.nan], "c": pd.Categorical(["a", "b", "c"])})
    space = space_of(read_inputs(frame, None, "Model").encoder)
    assert space.names == ("x", "c")
    assert space.group == (0, 0, 1, 1, 1)


def test_a_table_that_says_nothing_gets_a_column():
    encoded, space = with_a_column(np.empty((3, 0)), Space((), ()))
    assert encoded.shape == (3, 1)
    assert len(space.group) == 1


def test_readable_parameters_take_the_shortest_lengthscale():
    own = model(kernel="matern52 + matern52(a)")
    at = params(own, [0.0], np.zeros((1, 2)))
    named, scales = readable_kernels(own, at.thetas)
    assert set(scales) == {"a", "b"}
    assert scales["a"] == min(named["matern52 lengthscale a"], named["matern52 lengthscale a (2)"])


def test_default_number_of_inducing_inputs():
    plain = SparseGPRegressor()
    assert plain._n_inducing(rows(50), Gaussian()) == 50
    assert plain._n_inducing(rows(1200, weighted=False), Gaussian()) == MANY
    assert plain._n_inducing(rows(50), Poisson()) == FEW
    assert SparseGPRegressor(n_inducing=7)._n_inducing(rows(50), Poisson()) == 7
