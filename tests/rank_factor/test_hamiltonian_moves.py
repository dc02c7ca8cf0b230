"""The move of loadings and factors together: its gradient by differences, its draws by weighted draws."""

import numpy as np
from numpy.testing import assert_allclose

from nongauss.rank_factor.data import NONE
from nongauss.rank_factor.hamiltonian_moves import hamiltonian_move, hinge_table, n_leaps, slopes_at
from rank_factor.test_level_density import gaps

EPS = 0.5


def energy(codes, y, A, v, own, beta) -> float:
    """Minus the log density, cell by cell."""
    z = v / np.sqrt((v**2).mean())
    hinges = sum(max(u, 0.0) for *_, u in gaps(z, codes, A, EPS))
    labels = np.maximum(1.0 - y * (z @ beta[:, :-1].T + beta[:, -1]), 0.0).sum()
    return 2.0 * (hinges + labels) + 0.5 * (own * A**2).sum() + 0.5 * (v**2).sum()


def test_energy_and_slopes_are_those_of_the_density():
    rng = np.random.default_rng(0)
    codes = rng.permuted(np.tile(np.arange(9)[:, None] % 4, (1, 5)), axis=0).astype(np.uint8)
    codes[2, 1], codes[:3, 4], codes[3:, 4] = NONE, 0, 1
    A, v, own = rng.standard_normal((5, 3)), rng.standard_normal((9, 3)), rng.uniform(0.5, 2.0, (5, 3))
    beta, y = rng.standard_normal((2, 4)), rng.choice([-1.0, 1.0], (9, 2))
    found = slopes_at(hinge_table(codes, EPS, y), A, v, own, beta)
    assert_allclose(found.energy, energy(codes, y, A, v, own, beta))
    for _ in range(5):
        a, b, h = rng.standard_normal(A.shape), rng.standard_normal(v.shape), 1e-6
        ends = [energy(codes, y, A + s * h * a, v + s * h * b, own, beta) for s in (1, -1)]
        expected = (ends[0] - ends[1]) / (2.0 * h)
        assert_allclose((found.of_loadings * a).sum() + (found.of_factors * b).sum(), expected, rtol=1e-5)


def test_draws_have_the_density():
    """Means of what a flip of signs leaves are those of draws of the prior, weighted by all hinges."""
    rng = np.random.default_rng(1)
    codes, y = np.array([[0, 1], [1, 0], [2, 2], [0, 1]], np.uint8), np.array([[1.0], [-1.0], [1.0], [1.0]])
    own, beta, n = np.array([[1.5], [0.8]]), np.array([[0.8, -0.2]]), 200_000

    def told(A, z):
        return np.array([A[0] * A[1], A[0] ** 2, A[1] * (z[2] - z[0]), (z[1] - z[2]) ** 2, z[0], A[0] * z[3]])

    A, z = rng.standard_normal((2, n)) / np.sqrt(own), rng.standard_normal((4, n))
    z /= np.sqrt((z**2).mean(axis=0))
    loss = np.maximum(1.0 - y * (beta[0, 0] * z + beta[0, 1]), 0.0).sum(axis=0)
    for a, column in zip(A, codes.T, strict=True):
        means = [z[column == level].mean(axis=0) for level in range(3)]
        for one, level in zip(z, column, strict=True):
            loss += 0.0 if level == 0 else np.maximum(EPS - a * (one - means[level - 1]), 0.0)
            loss += 0.0 if level == 2 else np.maximum(EPS + a * (one - means[level + 1]), 0.0)
    weight = np.exp(-2.0 * (loss - loss.min()))
    expected = told(A, z) @ weight / weight.sum()
    table, drawn = hinge_table(codes, EPS, y), []
    now = np.zeros((2, 1)), z[:, :1]
    for _ in range(2500):
        now = hamiltonian_move(rng, *now, table, own, beta, 18)
        drawn.append(told(now[0][:, 0], now[1][:, 0]))
    assert (np.abs(np.mean(drawn, axis=0) - expected) < 0.08 * np.std(drawn, axis=0)).all()
    assert_allclose((now[1] ** 2).mean(), 1.0)


def test_large_tables_are_not_moved_so():
    assert n_leaps(1000, 20) == 30
    assert n_leaps(1000, 900) == 450
    assert n_leaps(50_000, 900) == 50
    assert n_leaps(100_000, 900) == 0
