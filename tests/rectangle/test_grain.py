import numpy as np
from numpy.testing import assert_allclose

from nongauss.rectangle.grain import column_grain


def test_atoms_are_values_far_more_frequent_than_those_beside_them():
    rng, weight = np.random.default_rng(0), np.ones(1000)
    zeros = np.where(rng.uniform(size=1000) < 0.3, 0.0, rng.exponential(size=1000))
    zeros[0] = np.nan
    found = column_grain(zeros, weight).atoms
    n = int((zeros == 0).sum())
    near = np.sort(zeros[zeros > 0])[:n]
    assert_allclose(found, [[0.0, near.var()]], rtol=1e-5)
    capped = np.minimum(rng.normal(size=1000), 0.5)
    assert_allclose(column_grain(capped, weight).atoms[:, 0], [0.5])
    for without in (np.round(rng.normal(size=1000), 1), rng.poisson(3.0, 1000), rng.normal(size=1000)):
        assert not len(column_grain(without.astype(float), weight).atoms)


def test_an_atom_does_not_stand_for_values_beyond_a_wide_gap():
    rng = np.random.default_rng(0)
    low, high = 20.0 + rng.normal(size=50), 80.0 + rng.normal(size=50)
    x = np.concatenate([np.full(150, 20.0), low, high, np.full(150, 80.0)])
    found = column_grain(x, np.ones(400)).atoms
    assert_allclose(found, [[20.0, low.var()], [80.0, high.var()]], rtol=1e-4)


def test_a_few_values_near_an_atom_are_no_side_of_a_gap():
    x = np.concatenate([np.zeros(60), [0.01, 0.02, 0.1, 0.3, 0.5, 0.8, 1.0, 1.4, 1.7, 2.0]])
    assert_allclose(column_grain(x, np.ones(70)).atoms, [[0.0, x[60:].var()]], rtol=1e-5)


def test_a_row_of_weight_two_is_two_rows_to_an_atom():
    x = np.concatenate([np.zeros(100), np.random.default_rng(0).normal(size=400)])
    twice = np.concatenate([x, x])
    one, other = column_grain(x, np.full(500, 2.0)), column_grain(twice, np.ones(1000))
    assert_allclose(one.atoms, other.atoms)


def test_on_a_scale_of_ranks_an_atom_stands_for_the_ranks_of_its_rows():
    x = np.concatenate([np.full(600, 0.0), np.random.default_rng(0).normal(size=400)])
    at = np.linspace(-0.5, 0.5, 1001)[:-1] + 0.0005  # the ranks of 1,000 rows, of which 600 are in the middle
    order = np.argsort(x, kind="stable")
    z = np.empty(1000)
    z[order] = at
    own = z[x == 0.0]
    z[x == 0.0] = own.mean()
    found = column_grain(z, np.ones(1000), "rank").atoms
    assert_allclose(found, [[own.mean(), own.var()]], rtol=1e-4)
