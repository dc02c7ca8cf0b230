import numpy as np
from scipy.stats import ks_2samp

from nongauss.rank_factor import inference
from nongauss.rank_factor.config import ShrinkagePrior
from nongauss.rank_factor.params import Shrinkage, first_shrinkage


def from_prior(
    rng: np.random.Generator, shape: tuple[int, int], prior: ShrinkagePrior
) -> tuple[np.ndarray, Shrinkage]:
    t = rng.gamma(0.5)
    phi = rng.gamma(0.5, 1.0, shape[1]) / t
    eta = rng.gamma(prior.s, 1.0, shape) / phi
    xi = rng.gamma(prior.r, 1.0, shape) / eta
    return np.sqrt(xi) * rng.standard_normal(shape), Shrinkage(1 / xi, eta, phi, t)


def test_draws_leave_the_prior_as_it_is_block_by_block():
    """Geweke's test: coefficients from the model, then one draw of everything else, against the prior."""
    rng = np.random.default_rng(0)
    for prior in (ShrinkagePrior(), ShrinkagePrior(1.0, 0.7)):
        forward, after = [], []
        for _ in range(1500):
            c, now = from_prior(rng, (3, 2), prior)
            moved = inference.drawn_shrinkage(rng, now, c, prior)
            for out, one in ((forward, now), (after, moved)):
                out.append(np.log([one.precision[0, 0], one.rate[1, 1], one.scale[0], one.hyper]))
        for a, b in zip(np.transpose(forward), np.transpose(after), strict=True):
            assert ks_2samp(a, b).pvalue > 1e-3


def test_small_coefficients_are_shrunk_and_large_ones_hardly():
    square = np.full((50, 1), 1e-4)
    square[0] = 9.0
    now = first_shrinkage(square.shape)
    for _ in range(50):
        now = inference.expected_shrinkage(now, square, ShrinkagePrior())
    assert now.precision[0, 0] < 1.0
    assert now.precision[1:, 0].min() > 100.0
