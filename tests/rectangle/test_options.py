"""What the options of rules, and the answers about them, are: each against a known truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from scipy.stats import ks_2samp, multivariate_normal, spearmanr
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from nongauss import RectangleMixture, load, save
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.rectangle.box_search import MOST_CONDITIONS, CodeGrid, HardBox, further_box, search_boxes
from nongauss.rectangle.data import RawCells
from nongauss.rectangle.null_tables import without_clusters
from nongauss.rectangle.objective import log_density
from nongauss.rectangle.piece_groups import valley_groups, valleys
from nongauss.rectangle.pieces import find_pieces
from nongauss.rectangle.rules import Condition, Rules, bound_between
from nongauss.rectangle.updates import update_structure
from nongauss.rectangle.words import row_sentences
from nongauss.tables.column_code import ColumnCode
from rectangle.small import blobs, labels, rows, structure, task_of


def two_boxes_one_cluster() -> tuple[np.ndarray, np.ndarray]:
    """Rows whose structure is 0 in the middle of a column and 1 on both sides of it."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 9, 240)
    outer = (x < 2.5) | (x > 6.5)
    return np.column_stack([x, 8.0 * outer + rng.normal(size=240)]), outer


def test_a_rule_of_two_boxes_holds_what_no_single_one_does(tmp_path):
    X, outer = two_boxes_one_cluster()
    settings = {"rule_columns": [0], "structure_columns": [1], "n_init": 1, "random_state": 0}
    grid = CodeGrid(np.argsort(np.argsort(X[:, 0]))[None], (240,), (True,), np.ones(240))
    first = search_boxes(grid, [HardBox(grid, outer, {})], 0.0)
    second = further_box(grid, outer, first, 2.4)
    assert_array_equal((first[0].broken == 0) | (second.broken == 0), outer)
    assert further_box(grid, outer, [*first, second], 2.4) is None
    model = RectangleMixture(2, max_boxes=2, **settings).fit(X)
    assert adjusted_rand_score(outer, model.labels_) > 0.98  # a soft box alone would cut one cluster apart
    assert list(model.rules_)[-1] == "box"
    for name, text in model.rule_text_.items():
        own = model.rules_[model.rules_["cluster"] == name]
        assert text.count(", or ") == own["box"].nunique() - 1
    inside = np.zeros((240, 2), dtype=bool)
    for (name, _), box in model.rules_.groupby(["cluster", "box"]):
        held = np.logical_and.reduce(
            [
                (X[:, 0] >= low) & (X[:, 0] <= high)
                for low, high in zip(box["lower"], box["upper"], strict=True)
            ]
        )
        inside[:, model.cluster_names_.index(name)] |= held
    assert_array_equal(inside, model.inside(X))
    save(model, tmp_path / "m")
    assert_array_equal(load(tmp_path / "m").predict_proba(X), model.predict_proba(X))


@pytest.fixture(scope="module")
def paper() -> tuple[RectangleMixture, np.ndarray]:
    X, _ = blobs(150, 3)
    return RectangleMixture(3, preset="paper", slope=8.0, n_init=2, random_state=0).fit(X), X


def test_the_papers_rule_is_kept_in_a_file(paper, tmp_path):
    model, X = paper
    save(model, tmp_path / "m")
    assert_array_equal(load(tmp_path / "m").predict_proba(X), model.predict_proba(X))


def test_the_papers_rule_is_the_soft_one(paper):
    """logit G by the definition of G, from the bounds that are printed and the slope that was given."""
    model, X = paper
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    boxes = model._fitted.soft
    signs = np.array([scale.sign for scale in model._fitted.views.rule.scales])
    G = np.ones((len(X), 3))
    for k in range(3):
        for d in range(2):
            z = signs[d] * Z[:, d]
            G[:, k] *= expit(8.0 * (z - boxes.lower[0, k, d])) * expit(8.0 * (boxes.upper[0, k, d] - z))
    assert_allclose(model.predict_proba(X), softmax(np.log(G) - np.log1p(-G), axis=1), atol=1e-4)
    for line in model.rules_.itertuples():
        d, k = int(line.column[-1]), model.cluster_names_.index(line.cluster)
        ends = sorted(
            X[:, d].mean() + signs[d] * X[:, d].std() * t[0, k, d] for t in (boxes.lower, boxes.upper)
        )
        for printed, exact in zip((line.lower, line.upper), ends, strict=True):
            assert np.isinf(printed) or printed == pytest.approx(exact, rel=1e-4)


def test_the_papers_gaussians_are_those_of_maximum_likelihood():
    data, look = rows(60, gaps=False), structure(1, 2)
    share = np.random.default_rng(0).dirichlet(np.ones(2), (1, 60)).transpose(0, 2, 1) * data.weight
    found = update_structure(data, share, np.ones_like(share), look, "likelihood")
    for k in range(2):
        mean = share[0, k] @ data.Y / share[0, k].sum()
        assert_allclose(found.mean[0, k], mean)
        assert_allclose(found.scatter[0, k], np.cov(data.Y.T, aweights=share[0, k], bias=True), atol=1e-12)
    levels = found.log_levels[0, 0, data.Y_labels.codes[:, 0]]
    density = log_density(data, found, "likelihood")[0][0, 0] - levels
    expected = multivariate_normal(found.mean[0, 0], found.scatter[0, 0]).logpdf(data.Y)
    assert_allclose(density, expected)


def test_alpha_beta_and_slope_are_those_of_the_objective(paper):
    """Strong precisions hold every bound at the column's mean."""
    model, X = paper
    held = RectangleMixture(
        3, preset="paper", alpha=1e6, slope=8.0, n_init=1, max_iter=5, tol=1.0, random_state=0
    ).fit(X)
    assert np.abs(np.concatenate(held._fitted.soft, axis=-1)).max() < 0.01
    narrow = RectangleMixture(3, preset="paper", beta=100.0, n_init=2, random_state=0).fit(X)
    widths = [(m._fitted.soft.upper - m._fitted.soft.lower).sum() for m in (narrow, model)]
    assert widths[0] < widths[1]


@pytest.mark.gate
def test_probabilities_are_the_same_in_any_units():
    X = np.hstack([blobs(160, 3)[0], np.random.default_rng(1).gamma(2.0, size=(160, 1))])
    scale, shift = np.array([1e4, -1e-3, 7.0]), np.array([3.0, -5.0, 0.5])
    settings = {"n_init": 2, "random_state": 0}
    here = RectangleMixture(3, **settings).fit(X).predict_proba(X)
    moved = RectangleMixture(3, **settings).fit(X * scale + shift).predict_proba(X * scale + shift)
    assert_allclose(moved, here, atol=1e-6)
    digits = RectangleMixture(3, rule_precision=0, **settings).fit(X)
    assert_allclose(digits.predict_proba(X), here)  # digits are of the print alone
    bounds = digits.rules_[["lower", "upper"]].to_numpy()
    assert (bounds[np.isfinite(bounds)] % 1 == 0).all()


def test_no_rule_is_longer_than_a_person_reads():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 30, (10, 300))
    own = ((codes > 2) & (codes < 28)).all(axis=0)
    grid = CodeGrid(codes, (30,) * 10, (True,) * 10, np.ones(300))
    bounds = {(column, side): (3, 27)[side] for column in range(10) for side in (0, 1)}
    (box,) = search_boxes(grid, [HardBox(grid, own, bounds)], 0.0)
    assert len(box.conditions) == MOST_CONDITIONS


def test_a_row_is_told_which_rule_it_meets_and_by_how_much():
    young, old = Condition(0, "age", upper=29.5, shown=(-np.inf, 29.0)), Condition(0, "age", lower=40.0)
    clerk = Condition(1, "job", levels=("clerk",), all_levels=("clerk", "cook"))
    rules = Rules(("young", "old"), ((young,), (old, clerk)), slopes=(2.0, 2.0))
    codes = (ColumnCode("age", "numeric"), ColumnCode("job", "labels", levels=("clerk", "cook")))
    ages = np.array([[20.0], [30.0], [45.0], [np.nan], [30.12345678], [1.23456789e-9]])
    cells = RawCells(ages, labels(np.array([[1], [0], [0], [1], [1], [1]]), 2))
    told = row_sentences(rules, codes, cells, rules.claims(rules.margins(cells)))
    assert told[0] == "meets the rule of young: age at most 29, and it is 20, 9 inside"
    assert told[1] == "is in no rule; the nearest is young: age at most 29, and it is 30, outside by 1"
    assert told[2] == "meets the rule of old: job clerk, and it is clerk"
    assert told[3] == "meets the rule of young: age at most 29, and it is missing"
    assert told[4].endswith("and it is 30.12, outside by 1.12")  # no more digits than the distance has
    assert told[5].endswith("and it is 0, 29 inside")
    frame = pd.DataFrame(blobs(60, 2)[0], columns=["a", "b"], index=range(100, 160))
    model = RectangleMixture(2, n_init=1, random_state=0).fit(frame)
    assert list(model.row_rules(frame).index) == list(frame.index)
    assert model.row_rules(frame).str.startswith("meets the rule of cluster ").all()


@pytest.mark.gate
def test_clear_rules_are_found_again_and_arbitrary_ones_are_not():
    clear = RectangleMixture(3, n_init=2, random_state=0).fit(blobs(150, 3)[0])
    assert (clear.rule_stability(blobs(150, 3)[0], 3) > 0.95).all()
    noise = np.random.default_rng(0).normal(size=(150, 3))
    drawn = RectangleMixture(3, n_init=2, random_state=0).fit(noise)
    assert drawn.rule_stability(noise, 3).mean() < 0.8


@pytest.mark.gate
def test_valleys_are_those_of_the_density():
    """Two Gaussians at a distance d: the density half way, over that at a mean, is known."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(1000, 2)) + np.where(np.arange(1000) < 500, 0.0, 4.5)[:, None] * [1.0, 0.0]
    data = rows(2, gaps=False).take(np.zeros(1000, dtype=int))
    data.Y, data.Y_labels, data.weight = Y, labels(n_rows=1000), np.ones(1000)
    data.grain = np.zeros(Y.shape)
    found = find_pieces(data, 0)
    assert len(found.mass) == 2
    expected = 2 * np.exp(-(4.5**2) / 8) / (1 + np.exp(-(4.5**2) / 2))
    assert valleys(found)[0, 1] == pytest.approx(expected, rel=0.35)
    assert valley_groups(data, found)[0].tolist() == [0, 1]


def test_a_table_without_clusters_keeps_marginals_and_correlations():
    rng = np.random.default_rng(0)
    own = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 400)
    X = np.column_stack([np.exp(own[:, 0]), own[:, 1], np.repeat([0.0, 9.0], 200) + rng.normal(size=400)])
    task = task_of(X)
    null = without_clusters(task, 0)
    assert set(null.cells.numbers[:, 0]) <= set(X[:, 0])
    for d in range(3):  # the same cells in all views, and the law of the column
        assert ks_2samp(null.cells.numbers[:, d], X[:, d]).pvalue > 0.01
        assert_allclose(null.rows.X[:, d], task.views.rule.scaled(null.cells.numbers)[:, d])
    assert_array_equal(null.rows.X, null.rows.Y)
    assert spearmanr(null.cells.numbers[:, 0], null.cells.numbers[:, 1])[0] == pytest.approx(0.78, abs=0.07)


def test_a_table_of_given_clusters_keeps_each_and_no_more():
    """Two groups far apart, one of which is two: the null table has the two, and in each one copula."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 200)
    humps = np.where(np.arange(400) % 2, 1.0, -1.0) * (group == 1)
    X = np.column_stack([20.0 * group + rng.normal(size=400), rng.normal(scale=0.1, size=400) + humps])
    X = np.column_stack([X, X[:, 1] + rng.normal(scale=0.02, size=400), humps * X[:, 0]])
    task = task_of(X)
    of_row = (task.cells.numbers[:, 0] > 10).astype(int)
    null = without_clusters(task, 0, of_row).cells.numbers
    for g in (0, 1):
        own = X[group == g]
        assert (of_row == g).sum() == 200
        for d in range(4):
            assert set(null[of_row == g, d]) <= set(own[:, d])
        assert spearmanr(null[of_row == g, 1], null[of_row == g, 2])[0] > 0.9
    hump = null[of_row == 1]
    assert len(set(zip(hump[:, 1] > 0, hump[:, 3] > 0, strict=True))) > 2  # the humps are no longer one thing


def test_rules_of_very_few_rows_have_a_stability():
    X = pd.DataFrame({"a": [1.0, 5.0], "b": [2.0, 3.0]})
    model = RectangleMixture(2, n_init=1, max_iter=5, tol=1.0, random_state=0).fit(X)
    assert ((model.rule_stability(X, 2) > 0) & (model.rule_stability(X, 2) <= 1)).all()


def test_a_bound_between_the_greatest_numbers_is_finite():
    assert bound_between(-1.7e308, 1.7e308, False, None) == 0.0
    assert bound_between(-1.7e308, 1.7e308, False, "auto") == 0.0


@pytest.mark.parametrize("far", [1e9, 1e3])
def test_a_value_that_hides_all_others_is_named(far):
    X, _ = blobs(60, 2)
    X[7, 1] = far
    with pytest.warns(NongaussWarning, match=r"'x1' is so far .* scaling='rank'"):
        RectangleMixture(2, n_init=1, max_iter=5, tol=1.0, random_state=0).fit(X)


def test_stability_is_refused_where_rules_are_soft(paper):
    model, X = paper
    with pytest.raises(InputError, match="preset='paper'"):
        model.rule_stability(X)


@pytest.mark.gate
def test_why_so_many_clusters_is_said():
    model = RectangleMixture(n_init=2, random_state=0).fit(load_iris().data)
    assert model.why_n_clusters_.startswith("3 clusters. Valleys separate 2 groups")
    assert model.why_n_clusters_ in model.describe()
