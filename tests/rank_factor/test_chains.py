import numpy as np
import pytest

from nongauss.rank_factor.chains import effective_size, split_rhat


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
