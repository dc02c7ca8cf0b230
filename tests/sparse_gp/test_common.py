import json

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from UNKNOWN import FEW, MANY, readable_kernels

from nongauss import SparseGPRegressor, load, save
from nongauss.sparse_gp.data import space_of, with_a_column
from nongauss.sparse_gp.kernels import Linear, Matern52, Space, Sum
from nongauss.sparse_gp.likelihoods import Gaussian, Poisson
from nongauss.tables.inputs import read_inputs
from sparse_gp.small import model, params, rows


def test_encoded_columns_know_where_they_came_from():
    frame = pd.DataFrame({"x": [1.0, 2.0, np.nan], "c": pd.Categorical(["a", "b", "c"])})
    space = space_of(read_inputs(frame, None, "GPModel").encoder)
    assert space.names == ("x", "c")
    assert space.group == (0, 0, 1, 1, 1)


def test_a_table_that_says_nothing_gets_a_column():
    encoded, space = with_a_column(np.empty((3, 0)), Space((), ()))
    assert encoded.shape == (3, 1)
    assert len(space.group) == 1


def test_readable_parameters_are_named_and_have_a_lengthscale_a_column():
    own = model(kernel="matern52 + matern52(a)")
    at = params(own, [0.0], np.zeros((1, 2)))
    named, scales = readable_kernels(own, at.thetas)
    assert set(scales) == {"a", "b"}
    both = [named["matern52 lengthscale a"], named["matern52 lengthscale a (2)"]]
    assert min(both) < scales["a"] < max(both)


def test_an_average_over_scales_with_gaussian_noise_unless_the_kernel_is_a_sum():
    plain = SparseGPRegressor()
    assert plain._kernels(Gaussian(), False) == [Matern52(), Sum((Matern52(),) * 2)]
    assert plain._kernels(Gaussian(), True) == [Matern52(), Sum((Matern52(),) * 4)]
    assert plain._kernels(Poisson(), True) == [Matern52()]
    assert SparseGPRegressor(n_scales=1)._kernels(Gaussian(), True) == [Matern52()]
    assert SparseGPRegressor(n_scales=3)._kernels(Poisson(), False) == [Sum((Matern52(),) * 3)]
    own = Matern52() + Linear()
    assert SparseGPRegressor(kernel=own)._kernels(Gaussian(), True) == [own]


def test_default_number_of_inducing_inputs():
    plain = SparseGPRegressor()
    assert plain._n_inducing(rows(50), Gaussian()) == 50
    assert plain._n_inducing(rows(1200, weighted=False), Gaussian()) == MANY
    assert plain._n_inducing(rows(50), Poisson()) == FEW
    assert SparseGPRegressor(n_inducing=7)._n_inducing(rows(50), Poisson()) == 7


def said_and_held(model, path, X):
    """What the manifest says, and whether an encoded row is in the file."""
    save(model, path)
    with safe_open(path, framework="numpy") as file:
        said = json.loads(file.metadata()["nongauss"])["holds_training_rows"]
        tensors = [file.get_tensor(name) for name in file.keys()]  # noqa: SIM118
    encoded = model._encode(X).astype(np.float32)  # rows are rounded before a fit
    held = any((t[:, None] == encoded).all(-1).any() for t in tensors if t.ndim == 2 and t.shape[1] == 10)
    assert load(path).holds_training_rows_ == said
    return said, held


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("likelihood", "n_rows", "n_inducing", "holds"),
    [("poisson", 2000, 200, False), ("gaussian", 100, "auto", True), ("poisson", 80, "auto", True)],
)
def test_the_file_is_small_and_says_whether_rows_are_in_it(tmp_path, likelihood, n_rows, n_inducing, holds):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 10))
    y = rng.poisson(np.exp(0.5 * np.sin(2 * X[:, 0])))
    model = SparseGPRegressor(likelihood, n_inducing=n_inducing, max_iter=2, random_state=0).fit(X, y)
    path = tmp_path / "model"
    assert said_and_held(model, path, X) == (holds, holds)
    assert path.stat().st_size < 1_000_000
