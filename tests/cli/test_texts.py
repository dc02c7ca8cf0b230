"""Texts of a table steer neither a terminal, nor a page, nor a spreadsheet."""

from __future__ import annotations

import pandas as pd
from typer.testing import CliRunner

from nongauss.cli.app import app
from nongauss.tables.files import write_table


def test_control_characters_of_a_name_do_not_reach_the_terminal(tmp_path):
    (tmp_path / "t.csv").write_text("a\x1b[2J,b\n1,2\n2,3\n")
    outcome = CliRunner().invoke(app, ["fit", str(tmp_path / "t.csv"), "--target", "c\x1b[2J"])
    assert outcome.exit_code == 2
    assert "\x1b" not in outcome.output


def test_cells_that_a_spreadsheet_would_run_are_quoted_but_for_raw(tmp_path):
    frame = pd.DataFrame({"=x": ["=1+1", "-3", "\x07", "＝1", "plain"], "n": [-1, 2, 3, 4, 5]})
    write_table(frame, tmp_path / "safe.csv")
    write_table(frame, tmp_path / "raw.csv", raw=True)
    assert (tmp_path / "safe.csv").read_text().splitlines() == [
        "'=x,n",
        "'=1+1,-1",
        "-3,2",
        "'\x07,3",
        "'＝1,4",
        "plain,5",
    ]
    assert (tmp_path / "raw.csv").read_text().splitlines()[:2] == ["=x,n", "=1+1,-1"]
