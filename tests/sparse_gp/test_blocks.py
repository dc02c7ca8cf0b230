import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.sparse_gp import inducing as module
from nongauss.sparse_gp.inducing import KernelBlocks
from nongauss.sparse_gp.likelihoods import Gaussian, Poisson
from nongauss.sparse_gp.updates import HyperObjective
from sparse_gp.small import model, params, rows


@pytest.fixture
def few(monkeypatch):
    """As if hardly anything could be kept in memory."""
    monkeypatch.setattr(module, "KEPT_NUMBERS", 10)
    monkeypatch.setattr(module, "BLOCK_NUMBERS", 35)


def test_blocks_cover_the_rows_once(few):
    data, own = rows(40), model()
    made = KernelBlocks(own, params(own, [-2.0], data.X[:5]), data)
    assert not made.kept
    covered = [i for part, _ in made for i in range(*part.indices(40))]
    assert covered == list(range(40))
    assert all(bases[0].K.shape[1] <= 7 for _, bases in made)


@pytest.mark.parametrize(
    "sizes",
    [
        {"KEPT_NUMBERS": 10, "BLOCK_NUMBERS": 35},
        {"BLOCK_NUMBERS": 35},
        {"BLOCK_NUMBERS": 35, "PRODUCT_NUMBERS": 10},
    ],
)
@pytest.mark.parametrize(("likelihood", "psi"), [(Gaussian(), [-2.0]), (Poisson(), [])])
def test_bound_and_gradient_do_not_depend_on_the_blocks(likelihood, psi, sizes, monkeypatch):
    data, own = rows(40), model(likelihood)
    data = data._replace(y=np.abs(np.round(data.y)))
    at = params(own, psi, data.X[:5])
    whole = HyperObjective(own, data, at, True, False)(at.flat(True))
    for name, size in sizes.items():
        monkeypatch.setattr(module, name, size)
    parts = HyperObjective(own, data, at, True, False)(at.flat(True))
    assert_allclose(parts[0], whole[0], rtol=1e-12)
    assert_allclose(parts[1], whole[1], rtol=1e-8, atol=1e-8)


def test_kept_matrices_are_made_once():
    data, own = rows(20), model()
    made = KernelBlocks(own, params(own, [-2.0], data.X[:5]), data)
    first, second = (next(iter(made))[1][0].K for _ in range(2))
    assert first is second
    assert np.isfinite(first).all()
