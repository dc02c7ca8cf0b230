from __future__ import annotations

import copy
import io
import sys

from nongauss.cli.progress import count_progress, fit_progress
from nongauss.optimise.course import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_no_bar_in_a_pipe(monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with fit_progress() as callbacks, count_progress() as count:
        assert callbacks == []
        count(1, 2, "ridge")
    assert pipe.getvalue() == ""


def test_bar_on_a_terminal_whose_callback_can_be_copied(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with fit_progress() as callbacks:
        (move,) = copy.deepcopy(callbacks)  # what sklearn.clone does to parameters
        assert not move(Progress(iteration=3, max_iter=7, bound=-1.5, seconds=0.1))
    assert "3/7" in terminal.getvalue()
    with count_progress() as count:
        count(2, 20, "ridge")
    assert "ridge" in terminal.getvalue()
