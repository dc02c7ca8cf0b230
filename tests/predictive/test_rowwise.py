import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.core.errors import InputError
from nongauss.predictive.law import LaplaceNoiseDistribution
from nongauss.predictive.rowwise import TRANSFORMS, bounded_exp
from predictive import laws

M, V = np.zeros(3), np.full(3, 0.2)


def test_outside_the_support_there_is_no_density():
    counts = laws.poisson(M, V)
    assert (counts.log_prob(1.5) == -np.inf).all()
    assert (counts.log_prob(-1) == -np.inf).all()
    assert (laws.gamma(2.0)(M, V).log_prob(-0.1) == -np.inf).all()
    assert (laws.beta(2.0)(M, V).cdf(1.0) == 1).all()
    assert (counts.cdf(-0.5) == 0).all()
    assert (laws.gamma(2.0)(M, V).quantile(0.0) == 0).all()
    assert (laws.gamma(2.0)(M, V).quantile(1.0) == np.inf).all()


@pytest.mark.parametrize(("y", "message"), [([1, 2], "shape"), ("a", "numbers"), ([1, np.nan, 2], "row 1")])
def test_a_target_that_does_not_fit_is_refused(y, message):
    with pytest.raises(InputError, match=message):
        laws.gamma(2.0)(M, V).log_prob(y)


def test_shapes():
    made = laws.gamma(2.0)(M, V)
    assert len(made) == 3
    assert "n_rows=3" in repr(made)
    assert made.quantile(0.5).shape == (3,)
    assert made.interval(0.9).shape == (3, 2)
    assert made.sample(4, random_state=0).shape == (3, 4)


def test_transforms_go_there_and_back():
    for value, back in TRANSFORMS.values():
        np.testing.assert_allclose(back(value(np.array([-3.0, 0.0, 2.0]))), [-3.0, 0.0, 2.0], atol=1e-12)
    assert np.isfinite(bounded_exp(1e9))


def test_newton_steps_and_a_bracket_find_the_same_quantiles():
    for law in (laws.gamma(2.0)(M, V), LaplaceNoiseDistribution(M, V, 0.5)):
        rows = np.arange(len(law))
        for level in (1e-6, 0.05, 0.5, 0.95, 0.9999):
            root, is_settled = law._newton(level, rows)
            assert is_settled.all()
            assert_allclose(root, law._bracketed_root(level, rows), rtol=1e-9, atol=1e-10)
