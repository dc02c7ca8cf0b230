from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import nbinom, norm
from sklearn.base import BaseEstimator

from nongauss.core.errors import InputError
from nongauss.report.evidence import Dependence, interval_coverage
from nongauss.report.judgement import JudgedRows, Unseen
from nongauss.report.rows import rows_shown
from nongauss.report.scoring import LabelScores, NumberScores, score


class Adds:
    """Predicts 10 + 2 a - b, and says so; a row is the more unusual the larger |a|."""

    def explain(self, X, n_permutations=None):
        a, b = X["a"].to_numpy(), X["b"].to_numpy()
        names = [("mean", "a"), ("mean", "b"), ("mean", "base"), ("sd", "a"), ("sd", "b"), ("sd", "base")]
        cells = np.column_stack([2 * a, -b, np.full(len(a), 10.0), 0 * a, 0 * a, 1 + 0 * a])
        return pd.DataFrame(cells, columns=pd.MultiIndex.from_tuples(names))

    def novelty(self, X):
        return np.clip(np.abs(X["a"].to_numpy()) / 10, 0, 1)


class KeepsNone(Adds):
    def explain(self, X, n_permutations=None):
        raise InputError("no rows")

    novelty = explain


def numbers(y, mean):
    y, mean = np.asarray(y, float), np.asarray(mean, float)
    pit, zero = norm.cdf(y, mean), np.zeros(len(y))
    return NumberScores(y, mean, norm.logpdf(y, mean), mean - 1.645, mean + 1.645, pit, zero)


def case(model):
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 9.5, 0.5, 3.0], "b": [1.0, 0.0, np.nan, 0.0, 1.0, 2.0]})
    mean = 10 + 2 * X["a"] - X["b"].fillna(0)
    y = mean + np.array([0.1, 3.0, -0.2, 0.0, 0.3, -1.0])
    scores = numbers(y, mean)
    parts = [
        Unseen(model, JudgedRows(X[:4], y[:4]), np.array([0, 2, 4, 6])),
        Unseen(model, JudgedRows(X[4:].reset_index(drop=True), y[4:]), np.array([1, 3])),
    ]
    return scores, parts, y, mean


def test_misses_come_by_their_chance_with_what_columns_add():
    scores, parts, y, mean = case(Adds())
    shown = rows_shown(scores, parts, numbers=np.arange(7) + 100)
    first, second = shown.misses[:2]
    assert (first.row, second.row) == (103, 104)  # rows 2 and 3 of the table, the third and fourth of it
    chance = 2 * norm.sf(3.0)
    assert first.figure == f"{100 * chance:.2g} %"
    assert first.predicted == f"{mean[1]:.4g} (90 %: {mean[1] - 1.645:.4g} to {mean[1] + 1.645:.4g})"
    assert first.observed == f"{y[1]:.4g}"
    assert (first.adds, first.base) == ([("a = 1", "+2")], "10")  # b adds nothing
    assert second.adds == [("a = 3", "+6"), ("b = 2", "-2")]
    assert [row.row for row in shown.unusual] == [107]
    assert shown.unusual[0].figure == "95 %"


def test_units_of_the_table_and_of_exposure():
    scores, parts, _, _ = case(Adds())
    of = {"exposure": np.full(4, 3.0)}
    parts[0] = Unseen(parts[0].model, JudgedRows(parts[0].rows.X, parts[0].rows.y, of), parts[0].numbers)
    first = rows_shown(scores, parts, scale=100.0).misses[0]
    assert (first.adds, first.base) == ([("a = 1", "+600")], "3,000")


def test_without_rows_to_compare_with_or_held_out_rows():
    scores, parts, _, _ = case(KeepsNone())
    shown = rows_shown(scores, parts)
    assert not shown.misses[0].adds
    assert not shown.unusual
    assert rows_shown(None, []).misses == ()


def test_labels_are_missed_where_another_was_predicted():
    p = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    scores = LabelScores(
        np.array(["no", "no", "no"]), np.array(["no", "yes", "no"]), p, np.array(["no", "yes"])
    )
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0]})
    shown = rows_shown(scores, [Unseen(object(), JudgedRows(X, scores.y), np.arange(3), "new.csv")])
    first = shown.misses[0]
    assert (first.row, first.observed, first.predicted, first.figure) == (2, "no", "yes (80 %)", "20 %")
    assert shown.of == "new.csv"
    assert [row.row for row in shown.misses] == [2]  # a right label is none, however unsure it was


@pytest.mark.parametrize("exact", [True, False])
def test_a_limit_is_no_miss(exact):
    scores, parts, y, _ = case(Adds())
    known = np.ones(len(y), dtype=bool)
    known[1] = exact
    limited = NumberScores(**{**vars(scores), "exact": known})
    assert (rows_shown(limited, parts).misses[0].row == 3) is exact


class Counts(BaseEstimator):
    """Predicts negative binomial counts with the means of its column."""

    def predict_distribution(self, X):
        law = nbinom(2, 2 / (2 + X["mean"].to_numpy()))

        class Law:
            mean, cdf, log_prob = law.mean(), staticmethod(law.cdf), staticmethod(law.logpmf)

            def interval(self, coverage):
                return np.stack(law.interval(coverage), axis=1)

        return Law()


def test_a_count_that_was_expected_is_no_miss():
    X = pd.DataFrame({"mean": [0.02] * 40 + [3.0] * 4})
    y = np.array([0.0] * 40 + [2.0, 14.0, 0.0, 3.0])
    scores = score(Counts(), X, y)
    shown = rows_shown(scores, [Unseen(Counts(), JudgedRows(X, y), np.arange(44))]).misses
    assert shown[0].row == 42
    assert shown[0].figure == f"{200 * nbinom.sf(13, 2, 0.4):.2g} %"
    assert {row.row for row in shown} == {41, 42, 43, 44} - {
        41 + i for i, v in enumerate(y[40:]) if min(nbinom.cdf(v, 2, 0.4), nbinom.sf(v - 1, 2, 0.4)) >= 0.5
    }
    zero = next(row for row in shown if row.row == 43)
    assert zero.figure == f"{200 * 0.4**2:.2g} %"  # 2 P(Y = 0), the mass of 0 counted whole


class Rounds(Adds):
    """Adds a rounding error for column b."""

    def explain(self, X, n_permutations=None):
        out = super().explain(X).astype(float)
        out[("mean", "b")] = -2.22e-16
        return out


def test_money_has_commas_and_a_rounding_error_is_no_contribution():
    scores, parts, *_ = case(Rounds())
    own = ("y", "mean", "lower", "upper")
    large = replace(scores, **{name: 1e4 * getattr(scores, name) for name in own})
    first = rows_shown(large, parts, scale=1e4).misses[0]
    assert first.observed == "150,000"
    assert first.predicted == "120,000 (90 %: 103,600 to 136,400)"
    assert (first.adds, first.base) == ([("a = 1", "+20,000")], "100,000")


def test_coverage_of_counts_is_that_of_the_verdict():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"mean": rng.gamma(1, 1, 4000)})
    y = rng.negative_binomial(2, 2 / (2 + X["mean"])).astype(float)
    scores = score(Counts(), X, y)
    (of_90,) = (c.held for c in interval_coverage(scores.pit, Dependence()) if c.level == 0.9)
    assert scores.figures()["coverage_90"] == of_90
    assert of_90 == pytest.approx(0.9, abs=0.02)
    assert ((scores.lower <= y) & (y <= scores.upper)).mean() > 0.93  # whole numbers hold more
