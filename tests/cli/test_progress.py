from __future__ import annotations

import copy
import io
import math
import sys
import time

import pytest

from nongauss.cli import progress
from nongauss.cli.progress import Bar, Log, Silent, display, of_fit
from nongauss.optimise.course import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(progress, "FIRST_LINE", 0.05)
    monkeypatch.setattr(progress, "NEXT_LINE", 0.05)


def test_a_log_gets_a_line_after_some_seconds_and_at_each_step_from_then_on(hurried):
    log = io.StringIO()
    shown = Log(log)
    try:
        shown.step("reading a.csv")
        assert log.getvalue() == ""  # a short command says nothing
        time.sleep(0.08)
        shown.step("fitting")
        of_fit(shown)(Progress(iteration=3, max_iter=7, bound=-1.5, seconds=0.1))
        time.sleep(0.1)
    finally:
        shown.close()
    lines = log.getvalue().splitlines()
    assert lines[:2] == ["0 s  reading a.csv", "0 s  fitting"]
    assert lines[2] == "0 s  fitting: 3 of 7, objective -1.5"
    time.sleep(0.1)
    assert log.getvalue().splitlines() == lines  # nothing after the end


def test_a_log_that_nobody_reads_harms_nothing(hurried):
    gone = io.StringIO()
    gone.close()
    shown = Log(gone)
    time.sleep(0.08)
    shown.step("fitting")
    shown.close()


def test_bar_on_a_terminal_whose_callback_can_be_copied(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    shown = display(silent=False)
    assert type(shown) is Bar
    shown.step("fitting")
    move = copy.deepcopy(of_fit(shown))  # what sklearn.clone does to parameters
    assert not move(Progress(iteration=3, max_iter=7, bound=-1.5, seconds=0.1))
    with shown.aside():
        pass
    shown.at(2, 20, "ridge")
    shown.close()
    assert "3/7" in terminal.getvalue()
    assert "ridge" in terminal.getvalue()


def test_nothing_on_request():
    assert type(display(silent=True)) is Silent


def test_no_objective_is_told_before_there_is_one():
    said = []

    class Told(Silent):
        def at(self, done, total, text):
            said.append(text)

    move = of_fit(Told(), what="best so far {:.3f} nats a row")
    for bound in (-math.inf, -1.976):
        move(Progress(iteration=1, max_iter=7, bound=bound, seconds=0.1))
    assert said == ["", "best so far -1.976 nats a row"]
