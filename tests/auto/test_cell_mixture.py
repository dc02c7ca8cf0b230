"""Mixtures of what models say of missing cells: shares by search, laws and draws by their parts."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid

import nongauss
from nongauss import AutoImputer
from nongauss.auto.cell_mixture import (
    HiddenColumn,
    best_shares,
    hidden_column,
    is_ahead,
    kept_shares,
    mixed_cells,
)
from nongauss.auto.hidden_cells import ToldColumn
from nongauss.predictive.cells import drawn_values, law_of
from nongauss.tables.column import Column
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.learn import as_source, learn
from nongauss.tables.learn_margins import learn_margins
from nongauss.tables.margins import LabelCells, Margin, OrderedCells, RowNoise
from nongauss.tables.source import itself

N = 60


def margins_of(frame: pd.DataFrame) -> tuple[Margin, ...]:
    source = as_source(frame, None, None, estimator_name="test")
    encoder: TableEncoder = learn(source, "test", None, warn=False).encoder
    (part,) = source.each(itself)
    columns: list[Column] = encoder.raw(part.X, "test", warn=False)
    return learn_margins(encoder, columns, part.weight)[0]


@pytest.fixture(scope="module")
def margins():
    """Those of a column of numbers and of labels."""
    rng = np.random.default_rng(0)
    labels = rng.choice(["a", "b", "c"], 200).astype(object)
    return margins_of(pd.DataFrame({"x": rng.standard_normal(200), "kind": labels}))


def ordered(rng, shift, sd, n_draws=3):
    mean = rng.standard_normal((1, N)) + shift
    return OrderedCells(np.arange(N), mean, np.full((1, N), sd), rng.standard_normal((n_draws, N)) + shift)


def labelled(rng, n_draws=3):
    return LabelCells(np.arange(N), rng.dirichlet(np.ones(3), N), rng.integers(0, 3, (n_draws, N)))


def test_the_best_shares_are_those_of_a_search_over_mixtures(margins):
    """The score of each mixture is that of its own distribution, the prior as it is written."""
    rng = np.random.default_rng(1)
    x, kind = margins
    y, shown = x.value(rng.random(N)), rng.integers(0, 3, N)
    numbers = [law_of(x, cells) for cells in (ordered(rng, 0.5, 1.5), ordered(rng, 0.0, 0.3))]
    labels = [law_of(kind, labelled(rng)) for _ in range(2)]
    for margin, laws, true in ((x, numbers, y), (kind, labels, shown.astype(float))):
        each = [ToldColumn(margin, law, true, np.ones(N)) for law in laws]
        usual = each[1]
        column = hidden_column(each, usual, usual.score)
        found = best_shares([column])
        grid = np.linspace(0.001, 0.999, 999)

        def total(w, margin=margin, laws=laws, true=true, usual=usual):
            if margin.is_label:
                p = w * laws[0].probabilities() + (1 - w) * laws[1].probabilities()
                scores = -np.log(p[np.arange(N), true.astype(int)])
            else:
                levels = np.linspace(x.edge[0], x.edge[-1], 500)
                up_to = [np.stack([law.cdf(np.full(N, v)) for v in levels], axis=1) for law in laws]
                mixed = w * up_to[0] + (1 - w) * up_to[1]
                scores = trapezoid((mixed - (levels >= true[:, None])) ** 2, levels, axis=1)
            return scores.sum() / usual.scores.mean() - 0.1 * (np.log(w) + np.log(1 - w))

        some = grid[::60] if not margin.is_label else grid
        values = np.array([total(w) for w in some])
        assert column.loss(np.array([0.3, 0.7]))[0] == pytest.approx(
            total(0.3) + 0.1 * (np.log(0.3) + np.log(0.7)), rel=0.02
        )
        assert found[0] == pytest.approx(some[values.argmin()], abs=0.05)
        assert found.sum() == pytest.approx(1.0)


def test_a_row_of_weight_two_is_two_rows(margins):
    rng = np.random.default_rng(6)
    for margin, make in ((margins[0], lambda: ordered(rng, 0.2, 0.8)), (margins[1], lambda: labelled(rng))):
        true = margin.value(rng.random(N)) if not margin.is_label else rng.integers(0, 3, N).astype(float)
        cells, rows = [make() for _ in range(2)], np.arange(N) < 20
        laws = [law_of(margin, own) for own in cells]
        heavy = [ToldColumn(margin, law, true, 1.0 + rows) for law in laws]
        twice = np.append(np.arange(N), np.flatnonzero(rows))
        again = [
            own._replace(mean=own.mean[:, twice], sd=own.sd[:, twice])
            if isinstance(own, OrderedCells)
            else own._replace(probabilities=own.probabilities[twice])
            for own in cells
        ]
        copied = [ToldColumn(margin, law_of(margin, own), true[twice], np.ones(N + 20)) for own in again]
        share = np.array([0.6, 0.4])
        one, other = (hidden_column(each, each[1], each[1].score) for each in (heavy, copied))
        assert one.loss(share)[0] / N == pytest.approx(other.loss(share)[0] / (N + 20))
        assert heavy[0].score == pytest.approx(copied[0].score)


def test_a_mixture_is_ahead_by_a_standard_error_of_its_gain(margins):
    rng = np.random.default_rng(7)
    true = margins[0].value(rng.random(N))
    usual, other = (
        ToldColumn(margins[0], law_of(margins[0], cells), true, np.ones(N))
        for cells in (ordered(rng, 0.0, 1.0), ordered(rng, 0.0, 1.0))
    )
    gain = (usual.scores - other.scores) / usual.scores.mean()
    expected = gain.mean() > gain.std(ddof=1) / N**0.5
    assert is_ahead([(other, usual, usual.score)]) is expected
    assert not is_ahead([(usual, usual, usual.score)])
    worse, better = (usual, other) if gain.mean() > 0 else (other, usual)
    assert is_ahead([(better, worse, 1.0)] * 400)
    assert not is_ahead([(worse, better, 1.0)] * 400)


def test_slopes_are_those_of_the_loss():
    rng = np.random.default_rng(2)
    T = rng.random((3, 3))
    part = rng.dirichlet(np.ones(20))
    for column in (
        HiddenColumn(False, T @ T.T, part, 7.0),
        HiddenColumn(True, rng.random((3, 20)), part, 4.0),
    ):
        share, h = np.array([0.2, 0.5, 0.3]), 1e-6
        slope = [(column.loss(share + h * d)[0] - column.loss(share - h * d)[0]) / (2 * h) for d in np.eye(3)]
        np.testing.assert_allclose(column.loss(share)[1], slope, rtol=1e-5)


def test_candidates_of_little_share_are_left_out():
    shares = {False: np.array([0.58, 0.4, 0.02]), True: np.array([0.96, 0.01, 0.03])}
    kept = kept_shares(shares)
    assert kept[False] == pytest.approx([0.58 / 0.98, 0.4 / 0.98, 0.0])
    assert kept[True] == pytest.approx([0.96 / 0.97, 0.01 / 0.97, 0.0])


def test_a_mixture_has_the_mean_distribution_and_draws_each_row_from_one_model(margins):
    rng = np.random.default_rng(3)
    each = [(margins, [ordered(rng, shift, 0.5, 400), labelled(rng, 400)]) for shift in (-1.0, 1.0)]
    shares = {False: np.array([0.3, 0.7]), True: np.array([0.3, 0.7])}
    x, kind = mixed_cells(each, shares, RowNoise(np.arange(N, dtype=np.uint64), 0))
    law, y = law_of(margins[0], x), np.zeros(N)
    parts = [law_of(margins[0], laws[0]) for _, laws in each]
    np.testing.assert_allclose(law.cdf(y), 0.3 * parts[0].cdf(y) + 0.7 * parts[1].cdf(y))
    np.testing.assert_allclose(
        law_of(margins[1], kind).probabilities(),
        0.3 * each[0][1][1].probabilities + 0.7 * each[1][1][1].probabilities,
    )
    drawn = drawn_values(margins[0], x), drawn_values(margins[1], kind)
    from_second = kind.draw == 1
    assert from_second.mean() == pytest.approx(0.7, abs=0.02)
    for which, (_, laws) in enumerate(each):  # numbers and labels of a draw come of the same model
        own = from_second == bool(which)
        for j in range(2):
            np.testing.assert_array_equal(drawn[j][own], drawn_values(margins[j], laws[j])[own])


def test_a_distribution_is_told_on_the_edges_of_another_margin_of_its_column():
    """Where the other has all edges of its own, nothing is lost."""
    rng = np.random.default_rng(4)
    values = np.round(rng.standard_normal(80), 1)
    few, all_ = (margins_of(pd.DataFrame({"x": v})) for v in (values[:50], values))
    law = law_of(all_[0], ordered(rng, 0.0, 1.0))
    same = law.at_edges(all_[0])
    np.testing.assert_array_equal(same, law._up_to)
    other = law.at_edges(few[0])
    assert (np.diff(other, axis=1) >= 0).all()
    inner = slice(1, -1)
    at = few[0].edge[inner]
    is_last = np.append(at[1:] != at[:-1], True)
    expected = np.stack([law.cdf(np.full(N, v)) for v in at[is_last]], axis=1)
    np.testing.assert_allclose(other[:, inner][:, is_last], expected)


def test_the_mixture_is_better_than_its_parts_and_stands_in_a_file(tmp_path):
    """Two models that are each right of half of the columns: one straight, one by groups."""
    rng = np.random.default_rng(5)
    z, n = rng.standard_normal(240), 240
    full = pd.DataFrame({name: z + 0.6 * rng.standard_normal(n) for name in "abc"})
    group = rng.integers(0, 4, n)
    for name in "pqr":
        full[name] = np.array([0.0, 3.0, -2.0, 5.0])[(group + ord(name)) % 4] + 0.3 * rng.standard_normal(n)
    gone = rng.random(full.shape) < 0.2
    gaps = full.mask(gone)
    model = AutoImputer(["harmonium", "normal scores"], random_state=0).fit(gaps)
    assert list(model.weights_.index) == ["numbers and grades", "labels"]
    laws = model.impute_distribution(gaps)

    def score(laws):
        rows = {name: np.flatnonzero(gaps[name].isna()) for name in full}
        each = [laws[name].crps(full[name].to_numpy()[rows[name]]) / full[name].std() for name in full]
        return np.concatenate(each).mean()

    alone = [score(part.impute_distribution(gaps)) for part in model.models_.values()]
    assert score(laws) < min(alone)
    nongauss.save(model, tmp_path / "m.nongauss")
    loaded = nongauss.load(tmp_path / "m.nongauss")
    for one, other in zip(loaded.sample_missing(gaps, 3), model.sample_missing(gaps, 3), strict=True):
        pd.testing.assert_frame_equal(one, other)
    held = [laws[name].interval(0.9)[:, 0] <= full[name].to_numpy()[laws.rows(name)] for name in full]
    assert np.concatenate(held).mean() > 0.9


def test_a_column_without_missing_cells_has_the_law_of_none(margins):
    none = LabelCells(np.arange(0), np.empty((0, 3)), np.empty((2, 0), int))
    assert law_of(margins[0], none).quantile(0.5).shape == (0,)
