"""The report of filled gaps: its figures are those of the distributions of the cells."""

from __future__ import annotations

import copy
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from nongauss import AutoImputer
from nongauss.core.errors import InputError
from nongauss.report.filled import figure_of, filled_columns, least_sure
from nongauss.report.gaps import _sentences, write_gaps_report
from nongauss.report.plots.filled_cells import CellSpreadDisplay, FilledCellsDisplay
from report.browser import BROWSER, check_in_browser


@pytest.fixture(scope="module")
def filled():
    """A table with gaps in columns of three kinds, its imputer, and what was filled."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal(120)
    table = pd.DataFrame(
        {
            "size": np.round(z, 2),
            "price": np.exp(z + 0.1 * rng.standard_normal(120)).round(3),
            "kind": np.where(z + 0.5 * rng.standard_normal(120) > 0, "big", "small"),
            "day": pd.date_range("2024-01-01", periods=120).strftime("%Y-%m-%d"),
        }
    )
    gaps = table.mask(rng.random(table.shape) < 0.15)
    model = AutoImputer(["normal scores", "columns alone"], random_state=0).fit(gaps)
    laws = model.impute_distribution(gaps)
    return gaps, model, laws, {column.name: column for column in filled_columns(model, laws, gaps)}


def test_what_is_said_of_a_column_is_what_its_cells_say(filled):
    gaps, _, laws, columns = filled
    price, known = columns["price"], gaps["price"].dropna()
    assert price.before == pytest.approx(known.mean())
    put_in = laws["price"].quantile(0.5)
    assert price.after == pytest.approx(np.concatenate([known, put_in]).mean())
    assert price.how_sure == pytest.approx(1 - laws["price"].std.mean() / price.alone.std[0])
    kind = columns["kind"]
    assert kind.shown(kind.before) == gaps["kind"].mode()[0]
    assert kind.how_sure == pytest.approx(laws["kind"].probabilities().max(axis=1).mean())
    assert kind.most_frequent == pytest.approx(gaps["kind"].value_counts(normalize=True).iloc[0])
    assert columns["day"].shown(columns["day"].before).startswith("2024-0")


def test_the_least_sure_cells_are_those_with_the_widest_laws(filled):
    columns = filled[3]
    (column, first), *_ = least_sure([columns["price"]], 3)
    assert first == int(np.argmax(column.law.std))
    named = [column.name for column, _ in least_sure(list(columns.values()), 8)]
    assert max(named.count(name) for name in named) <= 3


def test_bars_and_histograms_are_shares_of_the_cells(filled):
    gaps, model, laws, columns = filled
    bars = FilledCellsDisplay(columns["kind"]).plot()
    grey = [patch.get_width() for patch in bars.ax_.patches]
    np.testing.assert_allclose(grey, 100 * gaps["kind"].value_counts(normalize=True))
    marks = bars.ax_.collections[0].get_offsets()[:, 0]
    by_name = dict(zip(laws["kind"].labels, 100 * laws["kind"].probabilities().mean(axis=0), strict=True))
    np.testing.assert_allclose(marks, [by_name[name] for name in gaps["kind"].value_counts().index])
    histogram = FilledCellsDisplay.from_estimator(model, gaps, "size").ax_
    assert sum(patch.get_height() for patch in histogram.patches[:18]) == pytest.approx(100)
    assert histogram.patches[18].get_data().values.sum() == pytest.approx(100)
    spread = CellSpreadDisplay(columns["size"]).plot().ax_
    assert len(spread.collections[-1].get_offsets()) == len(columns["size"].rows)
    for axes in (bars.ax_, histogram, spread):
        plt.close(axes.figure)
    with pytest.raises(InputError, match="'none' has no gaps that were filled"):
        CellSpreadDisplay.from_estimator(model, gaps, "none")


def test_the_page_says_what_was_filled_and_what_stays_open(filled, tmp_path):
    gaps, model, _, columns = filled
    table = gaps.assign(empty=np.nan)
    path = write_gaps_report(
        tmp_path / "report.html",
        imputer=model,
        frame=table,
        columns=list(columns.values()),
        still_open=["empty"],
        source="a<b>.csv",
        draws=["d1.csv", "d2.csv"],
        notes=["Use --raw."],
    )
    page = path.read_text("utf-8")
    n_filled = sum(len(column.rows) for column in columns.values())
    assert f"{n_filled} were filled, the other 120 could not be filled (in &#39;empty&#39;)" in page
    assert "Missing cells imputed in a&lt;b&gt;.csv" in page
    assert "analyse each of the 2 imputed tables (d1.csv to d2.csv)" in page
    assert "--raw" not in page
    assert page.count("<figure>") == 2 * len(columns)
    assert "120 (100 %)" in page
    assert not re.search(r"<script src|<link|@import|url\((?!#)", page)
    assert len(page) < 500_000


def test_figures_are_of_what_fills_the_table_and_not_of_the_first_line(filled):
    """A candidate may have a lower score on the board than the mixture, or than columns alone."""
    _, model, _, columns = filled
    other = copy.copy(model)
    lines = {"candidate": ["normal scores", "mixture", "columns alone"], "score": [0.5, 0.6, 1.0]}
    other.leaderboard_ = pd.DataFrame({**lines, "coverage": [0.7, 0.8, 0.95], "failed": ""})
    for names, said in (
        (["normal scores", "columns alone"], ("40 % below", "80 % lay")),
        (["columns alone"], ("no better", "95 % lay")),
    ):
        other.models_ = dict.fromkeys(names)
        other.weights_ = pd.DataFrame({name: [1.0 / len(names)] * 2 for name in names})
        sentences = " ".join(_sentences(other, list(columns.values())))
        assert all(text in sentences for text in said), sentences


def test_large_numbers_have_no_powers_of_ten():
    assert [figure_of(x) for x in (24552.4, 3.14159, -1e6, 1e20)] == [
        "24,552",
        "3.142",
        "-1,000,000",
        "1e+20",
    ]


@pytest.mark.gate
@pytest.mark.skipif(not BROWSER, reason="needs Chromium")
def test_a_browser_shows_the_page_on_a_narrow_screen(filled, tmp_path):
    gaps, model, _, columns = filled
    how = {"imputer": model, "frame": gaps, "still_open": [], "source": "a.csv"}
    path = write_gaps_report(tmp_path / "report.html", columns=list(columns.values()), **how)
    check_in_browser(path, tmp_path, 500)
