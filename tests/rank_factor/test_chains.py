import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.rank_factor.chains import effective_size, split_rhat, watched_names, watched_numbers
from nongauss.rank_factor.params import point
from rank_factor.small import problem


def autoregressive(rho: float, n: int, chains: int = 4) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = np.zeros((chains, n))
    for t in range(1, n):
        x[:, t] = rho * x[:, t - 1] + rng.standard_normal(chains)
    return x[:, 100:]


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_effective_size_of_an_autoregression(rho):
    x = autoregressive(rho, 5100)
    expected = x.size * (1 - rho) / (1 + rho)
    assert 0.8 < effective_size(x) / expected < 1.25


def test_chains_apart_have_a_large_rhat_and_few_effective_draws():
    x = autoregressive(0.0, 500)
    assert split_rhat(x) < 1.02
    apart = x + 3.0 * np.arange(4)[:, None]
    assert split_rhat(apart) > 1.5
    assert effective_size(apart) < 0.05 * effective_size(x)


def test_too_short_or_constant_chains_have_no_answer():
    assert np.isnan(split_rhat(np.zeros((2, 3))))
    assert np.isnan(effective_size(np.ones((2, 100))))


def test_what_is_watched_is_named_and_holds_whatever_the_size_of_separating_coefficients():
    state, _, _, _ = problem(n_outputs=1)
    names = tuple("abcdef")
    sized = [
        state._replace(experts=state.experts._replace(beta=point(size * np.array([[[3.0, 4.0, 1.0]]]))))
        for size in (1e3, 1e6)
    ]
    seen = [watched_numbers(each, np.eye(2), -5.0)[0] for each in sized]
    said = watched_names(len(seen[0]), state.A.mean.shape, names, is_labelled=True)
    assert len(said) == len(seen[0])
    assert_allclose(seen[1], seen[0], rtol=1e-5, atol=1e-5)
    found = dict(zip(said, seen[0], strict=True))  # of the numbers with one name the last
    assert found["the bound"] == -5.0
    assert_allclose(
        found["the decision value of a training row"], state.z.mean[7] @ [0.6, 0.8] + 0.2, rtol=1e-5
    )
    assert_allclose(
        found["the score of column 'a' of a training row"], state.z.mean[7] @ state.A.mean[0], rtol=1e-12
    )
    assert_allclose(found["the loading of column 'f' on factor1"], state.A.mean[5, 1], rtol=1e-12)
