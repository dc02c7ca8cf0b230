"""How every command behaves."""

from __future__ import annotations

import signal
import sys

import pytest
import typer

from nongauss.cli.conduct import check_outputs, command, numbered
from nongauss.cli.options import Outputs, listed
from nongauss.core.errors import InputError
from nongauss.optimise.course import Progress


def test_outputs_are_checked_before_any_work(tmp_path):
    there, new = tmp_path / "there", tmp_path / "new"
    there.write_text("x")
    check_outputs(Outputs({"--out": new}, force=False))
    check_outputs(Outputs({"--out": there}, force=True))
    for outputs, inputs, force, message in (
        ({"--out": there}, [], False, "--force"),
        ({"--out": there}, [there], True, "write over the input"),
        ({"--out": tmp_path}, [], True, "is a folder"),
        ({"--save": new, "--report": tmp_path / "." / "new"}, [], True, "same file"),
        ({"--save": there / "deeper" / "model"}, [], True, "not a folder"),
    ):
        with pytest.raises(InputError, match=message):
            check_outputs(Outputs(outputs, force), inputs)
    assert there.read_text() == "x"


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="later versions follow such links to nowhere")
def test_a_link_in_a_circle_gets_a_sentence(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(InputError, match="leads back to itself"):
        check_outputs(Outputs({"--out": tmp_path / "a"}, force=True))


def test_names_are_joined_by_commas():
    assert listed(None) == ()
    assert listed(["a, b", 'c,"d, e"', " "]) == ("a", "b", "c", "d, e")


class Swallows:
    """A finalizer in which Ctrl-C comes: Python drops what is raised there."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def watched():
    """A command whose second iteration is after a swallowed signal."""
    progress = Progress(iteration=3, max_iter=9, bound=-1.0, seconds=0.1)
    with command(quiet=True) as here:
        here.callbacks[0](progress)
        Swallows()
        here.callbacks[0](progress)
        pytest.fail("went on")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_swallowed_signal_ends_the_next_iteration(capsys):
    with pytest.raises(typer.Exit) as end:
        watched()
    assert end.value.exit_code == 130
    assert "Stopped by Ctrl-C" in capsys.readouterr().err


def test_a_search_that_ctrl_c_ends_lets_the_command_go_on():
    progress = Progress(iteration=3, max_iter=9, bound=-1.0, seconds=0.1)
    with command(quiet=True) as here:
        (search,) = here.of_search()
        assert search(progress) is False
        here.stopped_by = signal.SIGINT
        assert search(progress) is True
        here.step("goes on")
        here.stopped_by = signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            search(progress)
        here.stopped_by = None


def test_rows_are_counted_as_in_the_file_or_not_at_all():
    unseen = "Labels not seen: 'x' in column 'a' (first in row 2), 'y' in column 'b' (first in row 0)."
    assert numbered(unseen, True) == (
        "Labels not seen: 'x' in column 'a' (first in row 3 below the names), "
        "'y' in column 'b' (first in row 1 below the names)."
    )
    assert numbered(unseen, False) == "Labels not seen: 'x' in column 'a', 'y' in column 'b'."
    assert numbered("X holds inf in row 4 (counted from 0).", True) == "X holds inf in row 5 below the names."
    assert "counted from 0" in numbered("X holds inf in row 4 (counted from 0).", False)
