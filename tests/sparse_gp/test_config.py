from dataclasses import replace

from nongauss import SparseGPRegressor
from nongauss.sparse_gp.config import FEW_INDUCING, MANY_INDUCING, GPRecipe
from nongauss.sparse_gp.kernels import Linear, Matern52, Sum
from nongauss.sparse_gp.likelihoods import Gaussian, Poisson


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
