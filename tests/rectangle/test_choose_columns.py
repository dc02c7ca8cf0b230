"""Which columns tell clusters: noise is left out, small directions found, coarse columns make no cluster."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import adjusted_rand_score

from nongauss import RectangleMixture
from nongauss.rectangle.choose_columns import marginal_gain
from nongauss.rectangle.data import LevelCodes, RectangleRows
from nongauss.rectangle.objective import log_density
from nongauss.rectangle.params import ClusterStructure


def test_a_column_pays_by_itself_where_one_cluster_differs():
    rng = np.random.default_rng(0)
    which = np.repeat(np.arange(3), 60)
    told = rng.normal(size=180) + 3.0 * (which == 1)
    columns = np.column_stack([told, rng.normal(size=180), rng.uniform(size=180) < 0.03])
    share = np.eye(3)[:, which]
    gain = marginal_gain(columns, np.ones(180), share)
    assert gain[0] > 20
    assert_allclose(gain[1:], 0.0)
    assert_allclose(gain, marginal_gain(-np.exp(columns), np.ones(180), share), atol=0.5)


def test_the_density_of_a_coarse_cell_is_the_mean_log_density_within_its_step():
    rng = np.random.default_rng(1)
    Y, step = rng.integers(0, 2, (6, 2)).astype(float), np.array([1.0, 0.5])
    nothing = LevelCodes(np.zeros((6, 0), dtype=np.intp), ())
    rows = RectangleRows(Y, nothing, Y, nothing, np.ones(6), np.tile(step**2 / 12.0, (6, 1)))
    scatter = np.array([[0.5, 0.2], [0.2, 0.8]])
    law = ClusterStructure(np.array([[[0.3, 0.1]]]), scatter[None, None], np.zeros((1, 1, 0)))
    at = (np.arange(400) + 0.5) / 400 - 0.5
    within = np.stack(np.meshgrid(*(at * h for h in step), indexing="ij"), axis=-1).reshape(-1, 2)
    off = Y[:, None] + within - law.mean[0, 0]
    square = np.einsum("nmi,ij,nmj->nm", off, np.linalg.inv(scatter), off)
    expected = -0.5 * (square.mean(axis=1) + np.log(np.linalg.det(2 * np.pi * scatter)))
    assert_allclose(log_density(rows, law, "full")[0][0, 0], expected, rtol=1e-5)


@pytest.mark.gate
def test_one_rare_column_of_zeros_and_ones_makes_no_rule():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 100)
    X = np.column_stack([rng.normal(size=200) + 4.0 * truth, rng.normal(size=200), rng.random(200) < 0.03])
    model = RectangleMixture(2, n_init=2, random_state=0).fit(X)
    assert set(model.rules_["column"]) == {"x0"}
    assert adjusted_rand_score(truth, model.labels_) > 0.85


@pytest.mark.gate
@pytest.mark.parametrize("seed", [0, 6])
def test_eight_columns_of_noise_cost_nothing_and_are_named(seed):
    """In the second draw noise tells more, given all others, than a petal's length given its width."""
    from sklearn.datasets import load_iris

    data = load_iris(as_frame=True)
    noise = pd.DataFrame(np.random.default_rng(seed).normal(size=(150, 8))).add_prefix("noise")
    with_noise = pd.concat([data.data, noise], axis=1)
    model = RectangleMixture(3, random_state=seed).fit(with_noise)
    alone = RectangleMixture(3, random_state=seed).fit(data.data)
    assert set(model.quiet_columns_) == set(noise)
    assert adjusted_rand_score(alone.labels_, model.labels_) > 0.95
    assert "noise3" in model.describe()
    assert adjusted_rand_score(model.labels_, model.predict(with_noise)) == 1.0


@pytest.mark.gate
def test_groups_in_a_small_direction_of_like_columns_are_found():
    rng = np.random.default_rng(0)
    truth = np.repeat([-1.0, 1.0], 200)
    like = rng.normal(size=(400, 1)) + 0.05 * rng.normal(size=(400, 4))
    like += 0.15 * truth[:, None] * [1.0, -1.0, 1.0, -1.0]
    age = np.where(truth > 0, rng.uniform(20, 45, 400), rng.uniform(40, 70, 400))
    X = pd.DataFrame(like).add_prefix("x").assign(age=age)
    model = RectangleMixture(2, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.predict_posterior(X).argmax(axis=1)) > 0.95
    assert set(model.rules_["column"]) == {"age"}
