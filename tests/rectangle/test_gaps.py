"""Rows with missing cells: whatever their patterns, each counts by the columns that it has."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, multivariate_t

from nongauss.rectangle import gaps
from nongauss.rectangle import objective as o
from nongauss.rectangle.data import RectangleRows
from nongauss.rectangle.params import ClusterStructure
from nongauss.rectangle.updates import update_structure
from rectangle.small import rows, structure


def many_gaps(n_rows: int = 60) -> RectangleRows:
    """Rows of every pattern of gaps, and grains."""
    data = rows(n_rows, gaps=False)
    data.Y[np.random.default_rng(3).uniform(size=data.Y.shape) < 0.4] = np.nan
    data.Y[:5] = np.nan
    data.grain = np.random.default_rng(4).uniform(0.0, 0.2, data.Y.shape)
    return data


@pytest.mark.parametrize("kind", ["full", "student_t", "diagonal"])
@pytest.mark.parametrize("at_once", [2**18, 1], ids=["patterns together", "each by itself"])
def test_a_row_has_the_density_of_the_columns_it_has(kind, at_once, monkeypatch):
    monkeypatch.setattr(gaps, "AT_ONCE", at_once)
    data, law = many_gaps(), structure()
    if kind == "diagonal":
        law = law._replace(scatter=law.scatter * np.eye(3))
    found, t_weight = o.log_density(data, law, kind)
    for n, (y, levels) in enumerate(zip(data.Y, data.Y_levels, strict=True)):
        seen = np.flatnonzero(~np.isnan(y))
        for s, k in np.ndindex(2, 3):
            mean, scatter = law.mean[s, k, seen], law.scatter[s, k][np.ix_(seen, seen)]
            expected, weight = law.log_levels[s, k] @ levels, 1.0
            hidden = np.diagonal(np.linalg.inv(scatter)) @ data.grain[n, seen]
            if len(seen) and kind == "student_t":
                off = y[seen] - mean
                distance = off @ np.linalg.solve(scatter, off) + hidden
                weight = (4 + len(seen)) / (4 + distance)
                expected += multivariate_t(mean, scatter, df=4).logpdf(mean)
                expected -= 0.5 * (4 + len(seen)) * np.log1p(distance / 4)
            elif len(seen):
                expected += multivariate_normal(mean, scatter).logpdf(y[seen]) - 0.5 * hidden
            assert_allclose(found[s, k, n], expected)
            assert_allclose(t_weight[s, k, n], weight)


def of_each_row(
    data: RectangleRows, share: np.ndarray, law: ClusterStructure
) -> tuple[np.ndarray, np.ndarray]:
    """Means of cells (K, P) and of their products (K, P, P) where gaps follow the law given the row."""
    K, P = law.mean.shape[1:]
    first, second = np.zeros((K, P)), np.zeros((K, P, P))
    for k, n in np.ndindex(K, len(data)):
        y, mean, S = data.Y[n], law.mean[0, k], law.scatter[0, k]
        seen, gone = np.flatnonzero(~np.isnan(y)), np.flatnonzero(np.isnan(y))
        gain = S[np.ix_(gone, seen)] @ np.linalg.inv(S[np.ix_(seen, seen)])
        filled, rest = y.copy(), np.zeros((P, P))
        filled[gone] = mean[gone] + gain @ (y[seen] - mean[seen])
        rest[np.ix_(gone, gone)] = S[np.ix_(gone, gone)] - gain @ S[np.ix_(seen, gone)]
        first[k] += share[0, k, n] * filled
        across = np.eye(P)[:, seen]
        across[gone] = gain
        rest += across @ np.diag(data.grain[n, seen]) @ across.T
        second[k] += share[0, k, n] * (np.outer(filled, filled) + rest)
    total = share[0].sum(axis=1)
    return [first / total[:, None], second / total[:, None, None]]


@pytest.mark.parametrize("kind", ["full", "diagonal"])
@pytest.mark.parametrize("at_once", [2**18, 1], ids=["patterns together", "each by itself"])
def test_gaps_follow_the_law_given_the_cells_that_a_row_has(kind, at_once, monkeypatch):
    monkeypatch.setattr(gaps, "AT_ONCE", at_once)
    data, law = many_gaps(), structure(n_starts=1)
    if kind == "diagonal":
        law = law._replace(scatter=law.scatter * np.eye(3))
    share = np.random.default_rng(0).dirichlet(np.ones(3), len(data)).T[None] * data.weight
    found = update_structure(data, share, np.ones_like(share), law, kind)
    mean, second = of_each_row(data, share, law)
    assert_allclose(found.mean[0], mean)
    n = share.sum(axis=-1)[0, :, None, None]
    within = n * (second - mean[:, :, None] * mean[:, None])
    expected = (within + o.prior_variance(3, 3) * np.eye(3)) / (n + o.prior_count(3, kind))
    assert_allclose(found.scatter[0], expected * (np.eye(3) if kind == "diagonal" else 1.0), atol=1e-12)
