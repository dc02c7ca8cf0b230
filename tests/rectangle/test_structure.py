from typing import get_args

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, multivariate_t

from nongauss.rectangle.config import StructureKind
from nongauss.rectangle.objective import FREEDOM, log_density, log_prior, prior_variance
from nongauss.rectangle.updates import update_structure
from rectangle.small import rows, structure


@pytest.mark.parametrize("kind", ["student_t", "full"])
def test_densities_equal_scipys_and_gaps_are_integrated_out(kind):
    data, look = rows(), structure()
    got = log_density(data, look, kind)[0]
    for n in range(len(data)):
        present = np.flatnonzero(~np.isnan(data.Y[n]))
        code = data.Y_labels.codes[n, 0]
        for s, k in np.ndindex(2, 3):
            expected = 0.0 if code < 0 else look.log_levels[s, k, code]
            if len(present):
                mean, scatter = look.mean[s, k, present], look.scatter[s, k][np.ix_(present, present)]
                if kind == "full":
                    expected += multivariate_normal(mean, scatter).logpdf(data.Y[n, present])
                else:
                    expected += multivariate_t(mean, scatter, df=FREEDOM).logpdf(data.Y[n, present])
            assert got[s, k, n] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", get_args(StructureKind))
def test_em_never_lowers_likelihood_plus_prior_gaps_and_weights_included(kind):
    """With shares held: each update is an EM step of its own for Student's t and for missing cells."""
    data, look = rows(), structure()
    share = np.random.default_rng(0).dirichlet(np.ones(3), (2, len(data))).transpose(0, 2, 1) * data.weight
    look = update_structure(data, share, np.ones_like(share), look, kind)
    former = -np.inf
    for _ in range(30):
        log_p, t_weight = log_density(data, look, kind)
        value = (share * log_p).sum(axis=(1, 2)) + log_prior(data, look, kind)
        assert (value >= former - 1e-9).all()
        former = value
        look = update_structure(data, share, t_weight, look, kind)
    # At the end the update stands still.
    assert_allclose(
        update_structure(data, share, log_density(data, look, kind)[1], look, kind).mean, look.mean, atol=1e-2
    )


def test_the_prior_expects_clusters_that_fill_the_volume_of_the_rows():
    assert prior_variance(1, 3) == 1.0
    assert 8 * prior_variance(8, 3) ** 1.5 == pytest.approx(1.0)  # eight volumes of sd^3


def test_kinds_are_what_they_say():
    data, look = rows(), structure()
    share = np.random.default_rng(0).dirichlet(np.ones(3), (2, len(data))).transpose(0, 2, 1)
    diagonal = update_structure(data, share, np.ones_like(share), look, "diagonal").scatter
    assert_allclose(diagonal * (1 - np.eye(3)), 0.0)
    shared = update_structure(data, share, np.ones_like(share), look, "shared").scatter
    assert_allclose(shared, np.broadcast_to(shared[:, :1], shared.shape))
