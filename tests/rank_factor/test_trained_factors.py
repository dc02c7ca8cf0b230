"""How many steps training for prediction takes: by rows held out."""

import numpy as np
import pytest
from scipy.special import softmax

from nongauss import RankFactorClassifier
from nongauss.rank_factor.trained_factors import fewest_steps


def test_fewer_steps_need_a_gain_of_more_than_its_error():
    rng = np.random.default_rng(0)
    whole, weight = rng.exponential(size=200), np.ones(200)
    noise = rng.standard_normal(200)
    assert fewest_steps(np.array([whole, whole + noise - noise.mean() - 0.01]), weight) == 0
    assert fewest_steps(np.array([whole, whole + noise - noise.mean() - 0.2]), weight) == 1
    assert fewest_steps(np.array([whole, whole + 0.1, whole - 0.1]), weight) == 2
    alone = np.where(np.arange(200) < 3, 1.0, 0.0)
    assert fewest_steps(np.array([whole, whole + np.where(alone > 0, 5.0, -1.0)]), alone) == 0


def made(rng: np.random.Generator, n: int, loadings: np.ndarray, slopes: np.ndarray):
    """Rows of ten columns by three factors, five classes, and the true probabilities of these."""
    z = rng.standard_normal((n, 3))
    p = softmax(z @ slopes, axis=1)
    y = np.minimum((p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), 4)
    return z @ loadings + 0.5 * rng.standard_normal((n, 10)), y, p


@pytest.mark.gate
def test_few_rows_of_several_classes_are_told_no_worse_than_by_a_forest():
    """.12 to .24 nats above the true probabilities, as a forest has; the whole schedule has .25."""
    rng = np.random.default_rng(4)
    loadings, slopes = rng.standard_normal((3, 10)), 1.5 * rng.standard_normal((3, 5))
    X, y, _ = made(rng, 300, loadings, slopes)
    model = RankFactorClassifier(inference="predictive", random_state=0).fit(X, y)
    new, labels, true = made(np.random.default_rng(104), 2000, loadings, slopes)
    rows = np.arange(2000)
    excess = np.log(true[rows, labels]).mean() - np.log(model.predict_proba(new)[rows, labels]).mean()
    assert excess < 0.2
    assert model.n_iter_ < 100
