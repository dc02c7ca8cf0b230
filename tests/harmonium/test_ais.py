import numpy as np
import pytest
from numpy.testing import assert_allclose

from harmonium.small import BINARY, log_z, params, states
from nongauss.core.errors import InputError
from nongauss.harmonium.ais import annealed_log_partition, log_likelihood
from nongauss.harmonium.exponential_families import UnitBlock
from nongauss.harmonium.objective import chain_log_joint, log_marginal
from nongauss.harmonium.params import FeaturePrior, HarmoniumParams
from nongauss.harmonium.predict import NO_FILLER, Machine

SUMMED, SAMPLED = 10, 0  # features of which all sets are summed: here all, or none


def sums(monkeypatch, most):
    monkeypatch.setattr("nongauss.harmonium.predict.MOST_ENUMERATED", most)


PRIOR = FeaturePrior(np.array([0.4, -0.7, 0.0]), np.zeros((0, 2)))


def machine(reading="global", units="binary"):
    return Machine(params(size=1.5), PRIOR, BINARY, units, reading, np.zeros(0), NO_FILLER)


def test_annealing_finds_the_partition_function_and_says_how_sure_it_is(monkeypatch):
    m = machine()
    value, error = annealed_log_partition(m, np.random.default_rng(0), 300, 300)
    assert error < 0.05
    assert_allclose(value, log_z(m.params, PRIOR.log_odds), atol=5 * error)
    exact = log_marginal(m.params, "binary", PRIOR.log_odds, states(4)) - log_z(m.params, PRIOR.log_odds)
    assert_allclose(log_likelihood(m, states(4), np.random.default_rng(0)), exact, atol=1e-6)
    sums(monkeypatch, SAMPLED)
    assert_allclose(log_likelihood(m, states(4), np.random.default_rng(0), 300, 300), exact, atol=5 * error)


def test_annealing_agrees_with_enumeration_of_twelve_units():
    rng, z = np.random.default_rng(3), states(12)
    p = HarmoniumParams(
        rng.normal(size=(20, 12)), rng.normal(size=20), rng.normal(size=12), np.ones(20), *[np.zeros(0)] * 2
    )
    m = machine()._replace(
        params=p,
        prior=FeaturePrior(np.zeros(12), np.zeros((0, 2))),
        layout=(UnitBlock("all", "binary", 0, 20),),
    )
    each = z @ p.hidden_bias + np.logaddexp(0, z @ p.weights.T + p.visible_bias).sum(axis=1)
    log_z = np.logaddexp.reduce(each)
    value, error = annealed_log_partition(m, np.random.default_rng(0), 300, 500)
    assert error < 0.2
    assert_allclose(value, log_z, atol=4 * error)
    use = np.exp(each - log_z) @ z  # where the units are on in the model
    near, less = annealed_log_partition(m, np.random.default_rng(0), 300, 500, use)
    assert less < 0.8 * error
    assert_allclose(near, log_z, atol=4 * less)


@pytest.mark.parametrize(("most", "atol"), [(SUMMED, 1e-6), (SAMPLED, 0.1)])
def test_real_columns_integrate_to_the_exact_gaussian_mixture(monkeypatch, most, atol):
    sums(monkeypatch, most)
    layout = (UnitBlock("all", "real", 0, 4),)
    m = machine()._replace(layout=layout, params=params(size=0.5)._replace(scale=np.full(4, 2.0)))
    x = np.random.default_rng(0).normal(size=(5, 4))
    z, p = states(3), m.params
    mean = z @ p.weights.T + p.visible_bias
    weight = z @ (p.hidden_bias + PRIOR.log_odds) + 0.5 * (mean**2).sum(axis=1)
    weight -= np.logaddexp.reduce(weight)
    gap = 2.0 * x[:, None, :] - mean
    exact = np.logaddexp.reduce(
        weight - 0.5 * (gap**2).sum(axis=2) - 2 * np.log(2 * np.pi) + 4 * np.log(2.0), axis=1
    )
    for use in (None, np.array([0.3, 0.8, 0.5])):
        told = log_likelihood(m, x, np.random.default_rng(0), 300, 300, use=use)
        assert_allclose(told, exact, atol=atol)


@pytest.mark.parametrize(("most", "atol"), [(SUMMED, 1e-6), (SAMPLED, 0.1)])
def test_likelihood_of_the_chain_graph_agrees_with_enumeration(monkeypatch, most, atol):
    sums(monkeypatch, most)
    m, x, z = machine("chain"), states(4), states(3)
    none = np.zeros((len(x), 0))
    joint = [chain_log_joint(m.params, BINARY, PRIOR.log_odds, x, none, np.tile(s, (len(x), 1))) for s in z]
    exact = np.logaddexp.reduce(joint, axis=0)
    assert_allclose(np.logaddexp.reduce(exact), 0.0, atol=1e-12)
    assert_allclose(log_likelihood(m, x, np.random.default_rng(0), 4000), exact, atol=atol)


@pytest.mark.parametrize(("most", "atol"), [(SUMMED, 1e-6), (SAMPLED, 0.05)])
def test_counts_given_their_sum_are_a_distribution(monkeypatch, most, atol):
    sums(monkeypatch, most)
    monkeypatch.setattr("nongauss.harmonium.predict.CELLS", 16)  # four rows at a time
    x = np.array([row for row in np.ndindex(4, 4, 4, 4) if sum(row) == 3], np.float32)
    m = machine("chain")._replace(layout=(UnitBlock("a", "counts", 0, 4),), totals=np.array([3.0]))
    each = log_likelihood(m, x, np.random.default_rng(0), 2000)
    assert_allclose(np.logaddexp.reduce(each), 0.0, atol=atol)


@pytest.mark.parametrize(("most", "atol"), [(SUMMED, 1e-6), (SAMPLED, 0.1)])
@pytest.mark.parametrize("lost", [0, 2])
def test_counts_that_are_seen_share_their_sum_whichever_is_missing(monkeypatch, most, atol, lost):
    """Such a row is one of a model without the lost column, the first as well as any other."""
    sums(monkeypatch, most)
    x, kept = np.array([[0.0, 2.0, 1.0, 4.0], [3.0, 0.0, 0.0, 1.0]], np.float32), np.arange(4) != lost
    p = params(size=1.5)
    less = p._replace(weights=p.weights[kept], visible_bias=p.visible_bias[kept], scale=np.ones(3))
    wide, narrow = (
        machine("chain")._replace(
            params=q, layout=(UnitBlock("a", "counts", 0, len(q.scale)),), totals=np.array([5.0])
        )
        for q in (p, less)
    )
    rng, missing = np.random.default_rng(0), np.tile(~kept, (2, 1))
    told = log_likelihood(wide, np.where(missing, np.float32(0), x), rng, 4000, missing=missing)
    assert_allclose(told, log_likelihood(narrow, x[:, kept], rng, 4000), atol=atol)


def test_other_units_are_refused():
    with pytest.raises(InputError, match="binary hidden units"):
        annealed_log_partition(machine(units="real"), np.random.default_rng(0), 2, 2)
    counts = machine()._replace(layout=(UnitBlock("a", "counts", 0, 4),))
    with pytest.raises(InputError, match="without counts"):
        annealed_log_partition(counts, np.random.default_rng(0), 2, 2)
