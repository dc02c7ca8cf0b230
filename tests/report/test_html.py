from __future__ import annotations

import copy
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from nongauss.core.errors import InputError
from nongauss.report.html import FrameInfo, write_report
from nongauss.report.metrics import classification_metrics, in_digits, regression_metrics
from nongauss.report.pictures import learned_figures, report_figures
from report.stand_in import StandIn, small_data


@pytest.fixture(scope="module")
def fitted():
    X, y = small_data()
    return StandIn().fit(X, y), X, y


INFO = FrameInfo(
    source="a<b>.csv",
    target="y<script>",
    n_rows=120,
    n_held_out=24,
    target_kind="real",
    used=[("x & z", "real")],
    ignored=[("id", "a different text in every row")],
    notes=["3 rows were dropped"],
)


def test_report_is_one_page_that_needs_nothing_else(fitted, tmp_path):
    model, X, y = fitted
    metrics = {"StandIn": regression_metrics(y, model.predict(X), seconds=0.1)}
    path = write_report(
        tmp_path / "report.html", title="Prices <2026>", estimator=model, frame_info=INFO, metrics=metrics,
        figures=report_figures(model, X, y, target="price"), learned=learned_figures(model, X),
        model_path=tmp_path / "m o'd.nongauss",
    )  # fmt: skip
    page = path.read_text(encoding="utf-8")
    HTMLParser().feed(page)
    assert page.count('<svg viewBox="0 0 ') == 4 + 1 + 3  # held-out rows and the fit, columns, a panel each
    assert "<img" not in page
    assert not re.search(r"<script src|<link|@import|url\((?!#)", page)
    assert set(re.findall(r"https?://[^\"' ]*", page)) <= {"http://www.w3.org/1999/xlink"}
    assert "Prices &lt;2026&gt;" in page
    assert "y&lt;script&gt;" in page
    assert "x &amp; z" in page
    assert "width=device-width" in page
    assert "a different text in every row" in page
    assert "3 rows were dropped" in page
    assert "nongauss.load(&#34;m o&#39;d.nongauss&#34;)" in page
    assert [item.name for item in tmp_path.iterdir()] == ["report.html"]


def test_report_of_a_classifier(tmp_path):
    X, y = small_data()
    label = np.where(y > 3, "high", "low")
    model = LogisticRegression().fit(X, label)
    figures = report_figures(model, X, label, target="price")
    assert ["against predicted classes" in picture.caption for picture in figures] == [True, False]
    metrics = {"logistic": classification_metrics(label, model.predict_proba(X), model.classes_)}
    page = write_report(
        tmp_path / "r.html", title="t", estimator=model, frame_info=INFO, metrics=metrics, figures=figures,
        model_path=tmp_path / "m.nongauss",
    ).read_text(encoding="utf-8")  # fmt: skip
    assert "predict_proba(new_rows)" in page
    assert "predict_distribution" not in page
    assert "coin toss" in page
    assert "Log density" not in page


def test_report_without_held_out_rows_or_model_file(fitted, tmp_path):
    model, _, _ = fitted
    figures = report_figures(model)
    assert len(figures) == 1  # the trace
    info = FrameInfo(source="t.csv", target="y", n_rows=3)
    page = write_report(
        tmp_path / "r.html", title="t", estimator=model, frame_info=info, figures=figures
    ).read_text()
    assert "No rows were held out" in page
    assert "nongauss.load" not in page


def test_a_report_that_cannot_be_written_leaves_nothing(fitted, tmp_path):
    info = FrameInfo(source="t.csv", target="y", n_rows=3)
    with pytest.raises((InputError, OSError)):
        write_report(tmp_path / "no" / "r.html", title="t", estimator=fitted[0], frame_info=info)
    assert list(tmp_path.iterdir()) == []


def test_what_was_learned_has_a_panel_for_each_column_that_matters():
    X, y = small_data()
    X = np.column_stack([X, X[:, ::-1] ** 2, np.ones((len(X), 2))])
    model = StandIn().fit(X, y + X[:, 3:6] @ [0.3, 0.4, 0.5])
    relevance, *dependence = learned_figures(model, X, target="price")
    assert (relevance.part, {picture.part for picture in dependence}) == ("columns", {"change"})
    assert len(relevance.figure.axes[0].patches) == 8
    panels = [picture.figure.axes[0] for picture in dependence]
    assert [ax.get_xlabel() for ax in panels][:2] == ["x1", "x0"]
    assert len(panels) == 6
    assert [ax.get_legend() for ax in panels] == [None] * 6
    assert [text for text, *_ in dependence[0].key] == ["90 % of observations", "mean prediction"]
    assert {ax.get_ylabel() for ax in panels} == {"predicted price"}
    assert len({ax.get_ylim() for ax in panels}) == 1


def test_a_model_that_learned_nothing_has_no_panels():
    X = small_data()[0]
    assert len(learned_figures(StandIn().fit(X, np.ones(len(X))), X)) == 1


def test_report_of_features(tmp_path):
    info = FrameInfo(source="words.csv", target="", n_rows=3)
    lines = [("F0", "0.25", "", "spade, <hose>", "4, 7")]
    model = PCA(1).fit(np.eye(3))
    page = write_report(
        tmp_path / "r.html", title="Words", estimator=model, frame_info=info, features=lines,
        model_path=tmp_path / "m.nongauss",
    ).read_text(encoding="utf-8")  # fmt: skip
    assert "<td>spade, &lt;hose&gt;</td><td>4, 7</td>" in page
    assert "model.transform(new_rows)" in page
    assert "held out" not in page


def test_a_report_says_what_was_weighed_and_why(fitted, tmp_path):
    model, _, _ = fitted
    chosen = copy.copy(model)
    chosen.why_ = "Of 2 candidates 1 was judged."
    board = {"candidate": ["gp", "tggm"], "log_density": [-1.25, np.nan], "standard_error": [0.1, np.nan]}
    chosen.leaderboard_ = pd.DataFrame(board | {"weight": [1.0, 0.0], "why_left_out": ["", "no time <left>"]})
    page = write_report(tmp_path / "r.html", title="t", estimator=chosen, frame_info=INFO).read_text("utf-8")
    assert "<p>Of 2 candidates 1 was judged.</p>" in page
    cells = re.sub(r"<td[^>]*>", "<td>", page)
    assert "<td>gp</td><td>-1.250</td><td>0.100</td><td>1.00</td><td></td>" in cells
    assert "<td>tggm</td><td></td><td></td><td></td><td>no time &lt;left&gt;</td>" in cells
    plain = write_report(tmp_path / "p.html", title="t", estimator=model, frame_info=INFO).read_text("utf-8")
    assert "Choice by evidence" not in plain


class LooksAt(RegressorMixin, BaseEstimator):
    """A regression that looks at some columns of a wide table, and fails without them."""

    feature_names_in_ = np.array(["a", "b", "c"])

    def __init__(self, names=()):
        self.names = self.kept_columns_ = names

    def predict(self, X):
        return X[list(self.kept_columns_)].sum(axis=1).to_numpy(float)


def test_fits_of_parts_of_the_rows_may_look_at_other_columns_than_the_model():
    X = pd.DataFrame(np.random.default_rng(0).standard_normal((40, 3)), columns=["a", "b", "c"])
    fits = [LooksAt(("a", "b")), LooksAt(("c",)), LooksAt(("a",))]
    relevance, panel = learned_figures(LooksAt(("a",)), X, fits=fits)
    assert [text.get_text() for text in relevance.figure.axes[0].get_yticklabels()] == ["a"]
    assert [text for text, *_ in panel.key] == ["90 % of the mean", "mean prediction"]


def test_thousands_have_no_exponent():
    said = [in_digits(829.4, 3, "+"), in_digits(3000.0, 3, "+"), in_digits(-512.6, 2), in_digits(80_328.4)]
    assert said == ["+829", "+3,000", "-510", "80,330"]
    said = [in_digits(0.42, 3, "+"), in_digits(7.68e7, 3), in_digits(3.7e10, 2), in_digits(1234.5, 6)]
    assert said == ["+0.42", "76,800,000", "3.7e+10", "1,234.5"]
