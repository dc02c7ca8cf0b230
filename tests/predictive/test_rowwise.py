import numpy as np
import pytest

from nongauss.core.errors import InputError
from nongauss.predictive.latent import beta_predictive, gamma_predictive, poisson_predictive
from nongauss.predictive.rowwise import TRANSFORMS, bounded_exp

M, V = np.zeros(3), np.full(3, 0.2)


def test_outside_the_support_there_is_no_density():
    counts = poisson_predictive(M, V)
    assert (counts.log_prob(1.5) == -np.inf).all()
    assert (counts.log_prob(-1) == -np.inf).all()
    assert (gamma_predictive(M, V, 2.0).log_prob(-0.1) == -np.inf).all()
    assert (beta_predictive(M, V, 2.0).cdf(1.0) == 1).all()
    assert (counts.cdf(-0.5) == 0).all()
    assert (gamma_predictive(M, V, 2.0).quantile(0.0) == 0).all()
    assert (gamma_predictive(M, V, 2.0).quantile(1.0) == np.inf).all()


@pytest.mark.parametrize(("y", "message"), [([1, 2], "shape"), ("a", "numbers"), ([1, np.nan, 2], "row 1")])
def test_a_target_that_does_not_fit_is_refused(y, message):
    with pytest.raises(InputError, match=message):
        gamma_predictive(M, V, 2.0).log_prob(y)


def test_shapes():
    made = gamma_predictive(M, V, 2.0)
    assert len(made) == 3
    assert "n_rows=3" in repr(made)
    assert made.quantile(0.5).shape == (3,)
    assert made.interval(0.9).shape == (3, 2)
    assert made.sample(4, random_state=0).shape == (3, 4)


def test_transforms_go_there_and_back():
    for value, back in TRANSFORMS.values():
        np.testing.assert_allclose(back(value(np.array([-3.0, 0.0, 2.0]))), [-3.0, 0.0, 2.0], atol=1e-12)
    assert np.isfinite(bounded_exp(1e9))
