from dataclasses import replace

from nongauss import SparseGPRegressor
from nongauss.sparse_gp.config import FEW_INDUCING, FINE_INDUCING, MANY_INDUCING, GPRecipe
from nongauss.sparse_gp.kernels import Linear, Matern52, Space, Sum
from nongauss.sparse_gp.likelihoods import Gaussian, Poisson, StudentT


def test_an_average_over_scales_with_gaussian_noise_unless_the_kernel_is_a_sum():
    plain = GPRecipe.of(SparseGPRegressor(max_iter=1, tol=1.0))
    assert plain.kernels(Gaussian(), False) == [Matern52(), Sum((Matern52(),) * 2)]
    assert plain.kernels(Gaussian(), True) == [Matern52(), Sum((Matern52(),) * 4)]
    assert plain.kernels(Poisson(), True) == [Matern52()]
    assert replace(plain, n_scales=1).kernels(Gaussian(), True) == [Matern52()]
    assert replace(plain, n_scales=3).kernels(Poisson(), False) == [Sum((Matern52(),) * 3)]
    own = Matern52() + Linear()
    assert replace(plain, kernel=own).kernels(Gaussian(), True) == [own]


def test_default_number_of_inducing_inputs():
    plain = GPRecipe.of(SparseGPRegressor(max_iter=1, tol=1.0))
    assert plain.inducing_for(Gaussian(), 50) == 50
    assert plain.inducing_for(Gaussian(), 1200) == MANY_INDUCING
    assert plain.inducing_for(Poisson(), 50) == FEW_INDUCING
    assert replace(plain, n_inducing=7).inducing_for(Poisson(), 50) == 7
    assert plain.inducing_for(StudentT(), 50) == FINE_INDUCING
    assert plain.inducing_for(StudentT(), 5000) == FEW_INDUCING


def test_columns_share_a_scale_beside_where_rows_are_few():
    plain = GPRecipe.of(SparseGPRegressor(max_iter=1, tol=1.0))
    ten = Space(tuple("abcdefghij"), tuple(range(10)))
    assert plain.shares_scales(ten, 96)
    assert not plain.shares_scales(ten, 600)
    assert not plain.shares_scales(Space(("a",), (0,)), 5)
    assert not replace(plain, kernel=Matern52() + Linear()).shares_scales(ten, 96)
    assert not replace(plain, kernel=Matern52(columns=("a",))).shares_scales(ten, 96)
    assert not replace(plain, n_scales=1).shares_scales(ten, 96)
