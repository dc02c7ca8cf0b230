import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from nongauss import RectangleMixture
from nongauss.rectangle import criterion, fit
from nongauss.rectangle.config import RectangleRecipe
from rectangle.small import blobs, task_of


@pytest.mark.parametrize("K", [2, pytest.param(4, marks=pytest.mark.gate)])
def test_the_number_of_clear_boxes_is_found(K):
    X, truth = blobs(200, K, seed=K)
    model = RectangleMixture(n_init=2, random_state=0).fit(X)
    assert model.n_clusters_ == K
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    assert not model.criterion_ or max(model.criterion_, key=model.criterion_.get) == K
    assert model.inside_one_ == 1.0


@pytest.mark.gate
@pytest.mark.parametrize("seed", [2, 3])
def test_columns_that_repeat_others_hide_no_clusters(seed):
    """Nine columns, of which three are others in other units, and three are sums of two."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3)) + 5.0 * (np.arange(60) % 2)[:, None]
    repeated = np.hstack([X, 32.0 + 1.8 * X, X + X[:, [1, 2, 0]]])
    model = RectangleMixture(n_init=2, random_state=0).fit(repeated)
    assert adjusted_rand_score(np.arange(60) % 2, model.labels_) == 1.0


@pytest.mark.gate
def test_columns_of_few_values_make_no_clusters_of_their_own():
    """A density would be without bounds at each of the years."""
    rng = np.random.default_rng(0)
    X, truth = blobs(300, 2)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "year": rng.integers(2007, 2010, 300)})
    frame["owned"] = rng.integers(0, 2, 300)
    model = RectangleMixture(n_init=2, random_state=0).fit(frame)
    assert adjusted_rand_score(truth, model.labels_) == 1.0


def mostly_zero(rng, n_rows, share):
    """A column of exponential numbers, of which a share is 0."""
    return np.where(rng.uniform(size=n_rows) < share, 0.0, rng.exponential(size=n_rows))


@pytest.mark.gate
@pytest.mark.parametrize("share", [0.9, 0.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_value_that_many_rows_share_makes_no_cluster(share, seed):
    """The rows at 0 have no width, so that a density finds a dense core there, and pieces about it."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([mostly_zero(rng, 300, share), rng.normal(size=300)])
    assert RectangleMixture(n_init=2, random_state=0).fit(X).n_clusters_ == 1


@pytest.mark.parametrize("seed", [0, 1])
def test_a_value_that_many_rows_share_hides_no_clusters(seed):
    rng = np.random.default_rng(seed)
    X, truth = blobs(300, 3)
    X = np.column_stack([X, mostly_zero(rng, 300, 0.8)])
    model = RectangleMixture(n_init=2, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.labels_) == 1.0


@pytest.mark.parametrize(("share", "seed"), [(0.6, 0), (0.8, 1), (0.9, 0)])
def test_clusters_that_are_mostly_one_value_each_are_found(share, seed):
    """The rows nearest to the one value are of the other cluster, beyond a gap."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(size=400) < 0.5
    value = np.where(truth, 20.0, 80.0)
    value = np.where(rng.uniform(size=400) < share, value, value + rng.normal(size=400))
    X = np.column_stack([value, rng.normal(size=400)])
    model = RectangleMixture(n_init=2, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.labels_) == 1.0


@pytest.mark.gate
def test_iris_has_three():
    assert RectangleMixture(n_init=4, random_state=0).fit(load_iris().data).n_clusters_ == 3


@pytest.mark.gate
def test_rules_on_other_columns_are_worth_their_bounds():
    X, truth = blobs(150, 3, seed=1)
    Y = np.random.default_rng(0).normal(size=(150, 2)) + 5.0 * np.array([[0, 0], [1, 0], [0, 1]])[truth]
    model = RectangleMixture(rule_columns=[0, 1], structure_columns=[2, 3], n_init=2, random_state=0)
    assert model.fit(np.hstack([X, Y])).n_clusters_ == 3


@pytest.mark.gate
def test_rows_without_clusters_have_one():
    X = np.random.default_rng(0).normal(size=(200, 3))
    assert RectangleMixture(n_init=2, random_state=0).fit(X).n_clusters_ == 1


@pytest.mark.gate
def test_a_far_row_does_not_make_a_number_of_clusters_impossible(monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[30:] += 4.0
    X[0] = [20.0, -20.0]
    sizes, fitted = [], criterion.fit

    def watched(task, recipe, run):
        result, found = fitted(task, recipe, run)
        own = found.posterior(task.cells, task.rows).argmax(axis=1)
        sizes.append(sorted(np.bincount(own).tolist()))
        return result, found

    monkeypatch.setattr(criterion, "fit", watched)
    task = criterion.seen_by_criterion(task_of(X))
    value, own, _ = criterion.criterion(task, RectangleRecipe(2, "full", 1, 10, 1e-5, 0), False, 2)
    assert sizes[0] == [1, 59]
    assert np.isfinite(value)
    a, b = task.cells.numbers.T
    near = a < 15.0
    assert adjusted_rand_score(a[near] + b[near] > 4.0, own[near]) > 0.9


def test_ctrl_c_while_a_number_is_tried_ends_the_fit(monkeypatch):
    """The criterion of a fit that was broken off would be taken for that of the number."""
    iterate, at_last = fit.iterate, []

    def interrupted(problem, state):
        if len(state.boxes.lower) > 1:  # the last stage has one start
            at_last.clear()
        at_last.append(True)
        if len(at_last) == 3:
            raise KeyboardInterrupt
        return iterate(problem, state)

    monkeypatch.setattr(fit, "iterate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        RectangleMixture(random_state=0).fit(blobs(200, 2)[0])
    assert len(at_last) == 3


@pytest.mark.gate
def test_a_number_whose_fit_loses_a_cluster_is_not_chosen():
    """Four were half a nat ahead of three, and one of the four had no rows."""
    rng = np.random.default_rng(3)
    n = 500
    contract = rng.choice(["none", "basic", "plus"], n)
    age = rng.integers(18, 80, n).astype(float)
    segment = np.where(age < 35, 0, np.where(contract == "plus", 2, 1))
    table = pd.DataFrame({"age": age, "contract": contract})
    table["spent"] = np.exp(np.array([3.0, 4.0, 5.0])[segment] + 0.25 * rng.normal(size=n))
    table["visits"] = rng.poisson(np.array([12.0, 4.0, 8.0])[segment])
    model = RectangleMixture(
        "auto",
        rule_columns=["age", "contract"],
        structure_columns=["spent", "visits"],
        n_init=3,
        random_state=0,
    ).fit(table)
    assert model.n_clusters_ == 3
    assert model.why_n_clusters_.startswith("3 clusters.")
