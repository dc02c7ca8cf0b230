"""Rows as the network takes them: canonical, dealt out to members, held out, in memory and in parts."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from nongauss.core.device import replace
from nongauss.tables.source import Encoded, Sample, Stream
from nongauss.tables.sparse import SparseEncoder, SparseRows
from nongauss.tggm import data as rows_of
from nongauss.tggm.config import NetworkConfig, TrainingRecipe
from nongauss.tggm.data import HeldOutInputs, NetworkRows, canonical, dense_dropout, filled, thinned
from nongauss.tggm.fit import fit
from tggm.small import RECIPE, made_rows

RNG = np.random.default_rng(0)
STREAMED = NetworkConfig((4,), "ml", "moments", 5, None, None)
OF_PARTS = TrainingRecipe(2, 64, 0.01, 3, n_iter_no_change=10, tol=1e-4, validation_fraction=0.2)


def test_each_member_holds_out_its_own_tenth():
    fold = rows_of.folds(200, RECIPE)
    assert fold.dtype == np.int32
    assert np.bincount(fold + 1).tolist() == [140, 20, 20, 20]
    assert_array_equal(fold[:12], [0, 1, 2, -1, -1, -1, -1, -1, -1, -1, 0, 1])


@pytest.mark.parametrize(("n_rows", "fraction"), [(19, 0.1), (500, 0.0)])
def test_few_rows_or_no_wish_hold_nothing_out(n_rows, fraction):
    fold = rows_of.folds(n_rows, replace(RECIPE, validation_fraction=fraction))
    assert_array_equal(fold, np.full(n_rows, -1))
    assert rows_of.held_out(made_rows(n_rows), fold, 3) is None


def test_of_few_numbers_the_members_hold_out_all():
    five = replace(RECIPE, n_members=5)
    assert_array_equal(rows_of.folds(7, five, rows_of.FEWEST_NUMBERS), [0, 1, 2, 3, 4, 0, 1])
    assert_array_equal(rows_of.folds(4, five, rows_of.FEWEST_NUMBERS), np.full(4, -1))
    assert_array_equal(rows_of.folds(20, five, rows_of.FEWEST_NUMBERS), rows_of.folds(20, five))


@pytest.mark.parametrize(("n_members", "fraction"), [(1, 0.9), (2, 0.8), (30, 0.1), (5, 0.001)])
def test_every_member_has_rows_to_train_on_and_rows_to_be_judged_on(n_members, fraction):
    for n_rows in (20, 25, 40):
        fold = rows_of.folds(n_rows, replace(RECIPE, n_members=n_members, validation_fraction=fraction))
        if (fold < 0).all():
            assert n_members > n_rows
            continue
        own = [(fold == e).sum() for e in range(n_members)]
        assert min(own) >= 1
        assert max(own) <= (n_rows + 1) / 2


def test_held_out_rows_are_the_members_own_and_padding_has_no_weight():
    data = made_rows(53)._replace(weight=np.arange(1.0, 54.0))
    fold = rows_of.folds(53, RECIPE)
    X, Y, weight = (np.asarray(part) for part in rows_of.held_out(data, fold, 3))
    assert X.shape == (3, 16, 2)
    assert Y.shape == (3, 16, 1)
    for e in range(3):
        own = fold == e
        count = own.sum()
        assert_array_equal(X[e, :count], data.X[own])
        assert_array_equal(Y[e, :count], data.Y[own])
        assert_array_equal(weight[e, :count], data.weight[own].astype(np.float32))
        assert not weight[e, count:].any()


def test_sparse_rows_are_merged_like_dense_ones():
    dense = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0], [0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    target, weight = np.array([[0.0], [1.0], [0.0], [0.0]]), np.array([1.0, 2.0, 3.0, 1.0])
    encoder = SparseEncoder.fit(sparse.csr_array(dense), weight)
    data = canonical(encoder.as_scaled(sparse.csr_array(dense)), target, weight, 3)
    plain = canonical(dense / encoder.scale, target, weight)
    assert sorted(data.weight) == sorted(plain.weight) == [1.0, 2.0, 4.0]
    assert data.n_inputs == plain.n_inputs == 3
    order, other = np.argsort(data.weight), np.argsort(plain.weight)
    assert_allclose(np.asarray(filled(data.X, 3))[order], plain.X[other], rtol=1e-6)


def rows(n):
    X = RNG.normal(size=(n, 2)).astype(np.float32)
    return Encoded(X, np.sin(X[:, :1]), RNG.uniform(5.0, 9.0, n))


def test_held_out_rows_are_told_by_their_inputs_wherever_they_are():
    all_rows = rows(300)
    data = NetworkRows(*Sample.of(all_rows, 100).rows)
    fold = np.where(np.arange(100) % 4 < 2, np.arange(100) % 4, -1).astype(np.int32)
    folds = HeldOutInputs.of_rows(data, fold)
    assert_array_equal(folds.folds_of(data.X), fold)
    assert (folds.folds_of(all_rows.X) >= 0).sum() == 50
    assert_array_equal(folds.folds_of(rows(20).X), np.full(20, -1))


@pytest.mark.gate
def test_a_fit_does_not_depend_on_the_unit_of_the_weights():
    all_rows = rows(300)
    found = []
    for unit in (1.0, 64.0):
        cut = [Encoded(*(array[a:b] for array in all_rows)) for a, b in ((0, 90), (90, 300))]
        source = Stream([part._replace(weight=unit * part.weight) for part in cut])
        first = Sample.of(all_rows._replace(weight=unit * all_rows.weight), 100)
        result, ensemble = fit(0, NetworkRows(*first.rows), STREAMED, OF_PARTS, source)
        found.append(ensemble.params.W0)
        assert len(result.trace) == 3
        assert "held_out" in result.trace[0]
    assert_array_equal(*found)


def test_half_of_the_words_are_left_out_and_the_rest_make_up_for_it():
    words = SparseRows(
        np.tile(np.arange(50), (400, 1)), np.where(np.arange(50) < 40, 3.0, 0.0) * np.ones((400, 1))
    )
    one, other = (thinned(jax.random.key(seed), words, 0.5) for seed in (0, 1))
    assert_array_equal(one.index, words.index)
    assert set(np.unique(one.value)) == {0.0, 6.0}
    assert abs(np.mean(one.value[:, :40]) - 3.0) < 5 * 3.0 / np.sqrt(16_000)
    assert not one.value[:, 40:].any()
    assert 0.4 < np.mean(np.asarray(one.value == other.value)[:, :40]) < 0.6
    assert thinned(jax.random.key(0), words, 0.0) is words


def test_cells_of_dense_tables_are_left_out_where_there_are_many_columns():
    rows = np.full((400, 50), 3.0)
    left = np.asarray(thinned(jax.random.key(0), rows, 0.4))
    assert_allclose(np.unique(left), [0.0, 5.0], rtol=1e-6)
    assert abs(np.mean(left) - 3.0) < 5 * 3.0 * np.sqrt(0.4 / 0.6 / 20_000)
    assert [dense_dropout(n) for n in (2, 19, 20, 299, 300)] == [0.0, 0.0, 0.2, 0.2, 0.4]
