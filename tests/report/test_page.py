"""A report in a real browser: nothing is asked of a network, and nothing goes wrong in the console."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nongauss.report.evidence import ALPHA, Dependence, difference, interval_coverage
from nongauss.report.html import FrameInfo, coverage_lines, difference_lines, write_report
from nongauss.report.judgement import JudgedRows, Unseen
from nongauss.report.pictures import learned_figures, report_figures
from nongauss.report.rows import rows_shown
from nongauss.report.scoring import score
from nongauss.report.text import for_readers
from nongauss.report.verdict import Setting, verdict
from report.browser import BROWSER, check_in_browser
from report.stand_in import StandIn, small_data


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report with everything in it, of a model that was judged beside two others."""
    X, y = small_data()
    train, test = slice(0, 80), slice(80, None)
    model = StandIn().fit(X[train], y[train])
    scores = score(model, X[test], y[test])
    shifted = score(StandIn().fit(X[train], y[train] + 1.0), X[test], y[test])
    none = score(StandIn().fit(np.zeros_like(X[train]), y[train]), X[test], y[test])
    rivals = {"mean of the target": none, "a shifted model": shifted}
    said = verdict(scores, rivals, Setting("price", "mean of the target", 80, X.shape[1]))
    metrics = {"StandIn": scores.figures(), **{name: rival.figures() for name, rival in rivals.items()}}
    path = tmp_path_factory.mktemp("page") / "report.html"
    parts = [Unseen(model, JudgedRows(X[test], y[test]), np.arange(80, len(y)))]
    write_report(
        path,
        title="Prices",
        estimator=model,
        frame_info=FrameInfo(source="prices.csv", target="price", n_rows=80, n_held_out=len(scores.y)),
        verdict=said,
        metrics=metrics,
        figures=report_figures(model, scores=scores, target="price"),
        learned=learned_figures(model, X[train], target="price", fits=[model, model]),
        rows=rows_shown(scores, parts),
        model_path="model.nongauss",
    )
    return path, scores, rivals, said


def test_paired_differences_are_those_of_the_rows(page):
    path, scores, rivals, said = page
    text = path.read_text("utf-8")
    for name, rival in rivals.items():
        gain = scores.log_score - rival.log_score
        mean, error = gain.mean(), gain.std(ddof=1) / np.sqrt(len(gain))
        assert f"{mean:+.3g} ± {error:.2g}" in text, name
        half = 2.0227 * error  # t quantile of .975 with 39 degrees of freedom
        line = next(
            line
            for line in difference_lines(said.differences)
            if (line.baseline, line.measure) == (name, "log score (nats a row)")
        )
        ends = [float(end) for end in line.interval.split(" to ")]
        np.testing.assert_allclose(ends, [mean - half, mean + half], rtol=6e-3)
        assert (line.middle - line.zero) * mean > 0


def test_coverage_is_the_share_of_rows_inside(page):
    path, scores, _, said = page
    inside = np.mean((scores.lower <= scores.y) & (scores.y <= scores.upper))
    lines = coverage_lines(said.coverage)
    assert [line[0] for line in lines] == ["50 %", "80 %", "90 %"]
    assert lines[2][1] == f"{100 * inside:.1f} %"
    row = f'<td data-of="interval of">90 %</td><td class="number" data-of="held">{100 * inside:.1f} %</td>'
    assert row in path.read_text("utf-8")
    narrow = interval_coverage(np.repeat([0.001, 0.999], 50), Dependence())
    assert {word for *_, word in coverage_lines(narrow)} == {"held too few"}


def test_a_row_without_any_chance_is_said_so():
    gain = difference(np.array([-np.inf, 0.0]), np.zeros(2), Dependence(), baseline="it", alpha=ALPHA)
    (line,) = difference_lines([gain])
    assert (line.word, line.interval) == ("worse", "")
    assert "zero probability was given to 1" in line.text


def test_the_parts_of_the_page_are_in_order(page):
    text = page[0].read_text("utf-8")
    heads = re.findall(r"<h2[^>]*>([^<]*)</h2>", text)
    assert heads == [
        "Verdict",
        "Scores on held-out rows, beside standard models",
        "Calibration: are the probabilities right?",
        "Which columns the prediction depends on",
        "How the prediction changes",
        "Rows to look at",
        "The table",
        "Details",
    ]
    assert len(text) < 1_000_000
    assert "prefers-color-scheme: dark" in text


SAID = {
    "check 'a': it gives 'y' away; leave it out (--ignore) and fit again.": (
        "check 'a': it gives 'y' away; leave it out and fit again."
    ),
    "Target 'y': real. It is so. Near: count; --kind WORD to overrule.": (
        "Target 'y': real. It is so. Near: count."
    ),
    "Model: all; --model NAME for one alone.": "Model: all.",
    "100 of 200 rows are fitted; give --most-rows 0 for all.": "100 of 200 rows are fitted.",
    "Use --kind real.": "",
    "A well-known - and plain - sentence.": "A well-known - and plain - sentence.",
}


@pytest.mark.parametrize("sentence", SAID)
def test_readers_are_not_told_what_to_type(sentence):
    assert for_readers(sentence) == SAID[sentence]


@pytest.mark.gate
@pytest.mark.skipif(not BROWSER, reason="needs Chromium")
@pytest.mark.parametrize("width", [500, 1200])
def test_a_browser_asks_for_nothing_and_complains_of_nothing(page, tmp_path, width):
    check_in_browser(page[0], tmp_path, width)
