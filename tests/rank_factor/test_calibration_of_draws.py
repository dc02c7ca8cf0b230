import numpy as np
import pytest
from scipy.stats import chi2

from nongauss.rank_factor import pairs
from nongauss.rank_factor.config import OFFSET_PRECISION, SLAB, RankConfig
from nongauss.rank_factor.data import RankRows, neighbours_of
from nongauss.rank_factor.inference import Gibbs
from nongauss.rank_factor.params import WeightedLabels
from nongauss.rank_factor.start import first_state
from rank_factor.test_pairs import shrunk

N, EPS = 4, 0.5
N_TABLES, N_DRAWS, N_BURN, THIN = 60, 5, 25, 8


def of_the_joint(rng: np.random.Generator, is_labelled: bool) -> list[tuple]:
    """Parameters, orders and labels of N rows and 2 columns, by rejection from the prior.

    The joint density is the prior times the hinges of all orders and labels, so each order and each set of
    labels is proposed evenly and kept with the probability that the hinges give.
    """
    kept: list[tuple] = []
    while len(kept) < N_TABLES:
        n = 20_000
        A, z = shrunk(rng, n, 2), rng.standard_normal((n, N))
        slope, offset = shrunk(rng, n, 1)[:, 0], rng.standard_normal(n) / np.sqrt(OFFSET_PRECISION)
        codes = rng.permuted(np.tile(np.arange(N), (n, 2, 1)), axis=2)
        y = rng.choice([-1.0, 1.0], (n, N))
        in_order = np.take_along_axis(np.repeat(z[:, None], 2, axis=1), np.argsort(codes, axis=2), axis=2)
        u = EPS - A[:, :, None] * np.diff(in_order, axis=2)
        log_weight = -2.0 * np.maximum(u, 0.0).sum(axis=(1, 2)) - 0.5 * SLAB * (A**2).sum(axis=1)
        if is_labelled:
            f = slope[:, None] * z + offset[:, None]
            log_weight -= 2.0 * np.maximum(1.0 - y * f, 0.0).sum(axis=1)
        kept += [
            (numbers(A[i], z[i], slope[i], offset[i]), codes[i].T.astype(np.uint8), y[i])
            for i in np.flatnonzero(np.log(rng.random(n)) < log_weight)
        ]
    return kept[:N_TABLES]


def numbers(A: np.ndarray, z: np.ndarray, slope: float, offset: float) -> np.ndarray:
    """What a flip of the factor's sign leaves: of loadings, factors, scores, decisions."""
    of_ranks = [A[0] * A[1], A[0] ** 2, z[3] ** 2, A[0] * (z[3] - z[0])]
    return np.array([*of_ranks, slope * z[0] + offset, slope**2])


@pytest.mark.gate
@pytest.mark.parametrize("is_labelled", [False, True], ids=["ranks", "ranks and labels"])
def test_the_truth_has_any_rank_among_draws_as_often(is_labelled):
    """Simulation-based calibration (Talts et al. 2018) of the sampler of pairs, from its own starts."""
    rng = np.random.default_rng(0)
    config = RankConfig(1, neighbours="pairwise", eps=EPS, n_outputs=int(is_labelled), cut=False)
    n_numbers = 6 if is_labelled else 4
    counts = np.zeros((n_numbers, N_DRAWS + 1))
    for truth, codes, y in of_the_joint(rng, is_labelled):
        rows = RankRows(neighbours_of(codes, np.array([N, N])), None, codes)
        labels = WeightedLabels(y[:, None] if is_labelled else np.zeros((N, 0)), np.ones(N))
        found, inference = pairs.find_pairs(codes), Gibbs(rng)
        state, below = first_state(rng, rows, labels, config), np.zeros(n_numbers, int)
        for sweep in range(1, N_BURN + N_DRAWS * THIN + 1):
            state, _ = pairs.sweep(state, found, labels, config, inference)
            if sweep > N_BURN and (sweep - N_BURN) % THIN == 0:
                beta = state.experts.beta.mean[0, 0] if is_labelled else np.zeros(2)
                drawn = numbers(state.A.mean[:, 0], state.z.mean[:, 0], *beta)
                below += drawn[:n_numbers] < truth[:n_numbers]
        counts[np.arange(n_numbers), below] += 1
    expected = N_TABLES / (N_DRAWS + 1)
    p = chi2.sf(((counts - expected) ** 2 / expected).sum(axis=1), N_DRAWS)
    assert (p > 1e-3).all(), (p, counts)
