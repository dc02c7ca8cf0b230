from dataclasses import replace

from nongauss import SparseGPRegressor
from nongauss.sparse_gp.base import most_read
from nongauss.sparse_gp.config import FEW_INDUCING, FINE_INDUCING, MANY_INDUCING, GPRecipe
from nongauss.sparse_gp.kernels import Cyclic, Linear, Matern52, Space, Sum
from nongauss.sparse_gp.likelihoods import Censored, Gamma, Gaussian, Poisson, StudentT


def test_an_average_over_scales_with_gaussian_noise_of_numbers_on_a_continuous_scale():
    plain = GPRecipe.of(SparseGPRegressor(max_iter=1, tol=1.0))
    assert plain.kernels(Gaussian(), 5000) == [Matern52(), Sum((Matern52(),) * 2)]
    assert plain.kernels(Gaussian(), 5001) == [Sum((Matern52(),) * 2)]
    assert plain.kernels(Gaussian(), 50) == [Matern52(), Sum((Matern52(),) * 4)]
    assert plain.kernels(StudentT(), 50) == plain.kernels(Gaussian(), 50)
    assert plain.kernels(Censored(of=StudentT()), 50) == [Matern52(), Sum((Matern52(),) * 2)]
    assert plain.kernels(StudentT(), 5000) == plain.kernels(Poisson(), 50) == [Matern52()]
    assert replace(plain, n_components=2).kernels(StudentT(), 50) == [Matern52()]
    assert replace(plain, n_scales=1).kernels(Gaussian(), 50) == [Matern52()]
    assert replace(plain, n_scales=3).kernels(Poisson(), 50) == [Sum((Matern52(),) * 3)]
    own = Matern52() + Linear()
    assert replace(plain, kernel=own).kernels(Gaussian(), 50) == [own]


def test_default_number_of_inducing_inputs():
    plain = GPRecipe.of(SparseGPRegressor(max_iter=1, tol=1.0))
    assert plain.inducing_for(Gaussian(), 50) == 50
    assert plain.inducing_for(Gaussian(), 1200) == MANY_INDUCING
    assert plain.inducing_for(Poisson(), 50) == FEW_INDUCING
    assert replace(plain, n_inducing=7).inducing_for(Poisson(), 50) == 7
    assert plain.inducing_for(StudentT(), 950) == 950
    assert plain.inducing_for(StudentT(), 1200) == plain.most_inducing(StudentT()) == MANY_INDUCING
    assert plain.inducing_for(Gamma(), 50) == FINE_INDUCING
    assert plain.inducing_for(Gamma(), 5000) == FEW_INDUCING


def test_of_many_rows_some_are_fitted_first():
    plain = GPRecipe.of(SparseGPRegressor(max_iter=1, tol=1.0))
    assert plain.first_rows(Gaussian(), 20_000) is None
    assert plain.first_rows(Gaussian(), 20_001) == 10_000
    assert plain.first_rows(Poisson(), 400_000) is None
    assert replace(plain, n_inducing=1000).first_rows(Poisson(), 40_000) == 2500
    assert replace(plain, n_inducing=2000).first_rows(Poisson(), 40_000) is None  # 625 would not tell so many
    assert replace(plain, n_inducing=200_000).first_rows(Poisson(), 400) is None
    assert plain.rougher().tol > plain.tol


def test_tables_that_near_rows_may_tell_are_kept_in_memory():
    plain = GPRecipe.of(SparseGPRegressor(max_iter=1, tol=1.0))
    assert most_read(plain, Gaussian(), 8) == 250_000
    assert most_read(plain, Gaussian(), 31) == most_read(replace(plain, n_scales=1), Gaussian(), 8) == 50_000


def test_which_noise_begins_at_normal_noise():
    plain = GPRecipe.of(SparseGPRegressor(max_iter=1, tol=1.0))
    assert plain.begins_with_gaussian(StudentT())
    assert not plain.begins_with_gaussian(Gamma())
    assert not replace(plain, n_scales=1).begins_with_gaussian(StudentT())
    assert not replace(plain, n_components=2).begins_with_gaussian(StudentT())


def test_columns_share_a_scale_beside_where_rows_are_few():
    plain = GPRecipe.of(SparseGPRegressor(max_iter=1, tol=1.0))
    ten = Space(tuple("abcdefghij"), tuple(range(10)))
    assert plain.shares_scales(ten, 96)
    assert not plain.shares_scales(ten, 600)
    assert not plain.shares_scales(Space(("a",), (0,)), 5)
    assert not replace(plain, kernel=Matern52() + Linear()).shares_scales(ten, 96)
    assert not replace(plain, kernel=Matern52(columns=("a",))).shares_scales(ten, 96)
    assert not replace(plain, n_scales=1).shares_scales(ten, 96)


def test_one_more_model_follows_hours_weekdays_and_months():
    plain = GPRecipe.of(SparseGPRegressor(max_iter=1, tol=1.0))
    dates = Space(("x", "hour"), (0, 1, 1, 1), turns=(-1.0, 0.0, 0.25, 0.5))
    assert plain.with_cycles(dates) == [Matern52() + Cyclic(("hour",))]
    assert plain.with_cycles(Space(("x", "label"), (0, 1, 1, 1))) == []
    assert replace(plain, n_scales=1).with_cycles(dates) == []
    assert replace(plain, kernel=Linear()).with_cycles(dates) == []
    assert replace(plain, n_components=2).with_cycles(dates) == []
