import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from nongauss.rectangle import starts
from nongauss.rectangle.params import Rows, Stated, box_prior
from rectangle.small import blobs, labels


def four() -> tuple[Rows, np.ndarray]:
    X, truth = blobs()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    none = labels(n_rows=len(Z))
    return Rows(Z, none, Z, none, np.ones(len(Z))), truth


def test_starts_are_partitions_and_find_clear_blobs():
    data, truth = four()
    share = starts.shares(data, 4, 5, seed=0)
    assert_allclose(share.sum(axis=1), 1.0)
    scores = [adjusted_rand_score(truth, s.argmax(axis=0)) for s in share]
    assert max(scores) > 0.99
    assert_array_equal(share, starts.shares(data, 4, 5, seed=0))


def test_boxes_are_around_their_clusters_and_at_stated_bounds():
    data, truth = four()
    share = (truth == np.arange(4)[:, None]).astype(float)[None]
    prior = box_prior(4, 2, 0, [Stated(1, 2, 0.25, 100.0)])
    box = starts.boxes_around(data, share, prior)
    for k in range(4):
        own = data.X[truth == k]
        assert_allclose(box.lower[0, k], own.mean(axis=0) - own.std(axis=0))
    assert box.upper[0, 1, 0] == 0.25


def test_stated_rules_begin_with_their_rows_and_the_rest_is_split():
    data, truth = four()
    margins = np.where(truth == 2, 1.0, -1.0)[:, None]
    share = starts.shares_from_rules(data, margins, 3, 2, seed=0)
    assert_allclose(share.sum(axis=1), 1.0)
    assert_array_equal(share[:, 0] > 0.5, np.broadcast_to(truth == 2, (2, len(truth))))
    assert (share[:, 1:].sum(axis=2) > 0).all()
