"""How every command behaves: what it says, refusals in one sentence, signals, checks of outputs."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from nongauss.cli.options import Outputs
from nongauss.cli.progress import Silent, display, of_fit
from nongauss.core.errors import InputError
from nongauss.core.files import PLACED
from nongauss.core.printable import printable

_MISUSE: Any = typer.BadParameter.__mro__[1]  # typer's error for any misuse, which it does not name
_STOPPED_BY: dict[int, str] = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


class _Stopped(KeyboardInterrupt):
    """A signal came.

    It is a class of its own because `python -m` ends by SIGINT, whatever its program then says, once a plain
    KeyboardInterrupt has passed a text that `exec` runs, as dataclasses do while they are imported.
    """


class Command:
    """A command under way. `as_json`: one JSON object is all that it prints on stdout.

    `takes_whole_file`: a model takes the rows of the file as they stand, so that it numbers them as they are
    there. What it says of other rows is said without numbers.
    """

    def __init__(self, caught: list[Any], *, as_json: bool) -> None:
        self._caught, self.as_json = caught, as_json
        self.shown = Silent()
        self.stopped_by: int | None = None
        self.is_over = False
        self.kept = "no file was written"
        self.takes_whole_file = False
        self._checkpoint: Path | None = None
        self._n_before = len(PLACED)

    def show(self, shown: Silent) -> None:
        """From here on progress is shown."""
        self.shown = shown

    @property
    def callbacks(self) -> list[Any]:
        """Callbacks of a fit: they show its progress, and stop it after a signal."""
        return [of_fit(self.shown, self.raise_if_stopped)]

    def step(self, name: str) -> None:
        """Begin a step. A signal that something on the way has swallowed takes effect here."""
        self.raise_if_stopped()
        self.shown.step(printable(name))

    def raise_if_stopped(self) -> None:
        """Raises KeyboardInterrupt after a signal whose own exception was swallowed.

        Python drops what is raised in finalizers and in callbacks of the garbage collector, of which a
        compiled fit has many.
        """
        if self.stopped_by is not None:
            raise _Stopped

    def callbacks_of(self, choice: Any) -> list[Any]:
        """Callbacks of a search, or of a fit of the one model that was chosen."""
        return self.of_search() if choice.model == "auto" else self.callbacks

    def of_search(self) -> list[Any]:
        """Callbacks of a fit that keeps the best so far: Ctrl-C ends its search, and the command goes on."""

        def is_to_end() -> bool:
            is_asked = self.stopped_by == signal.SIGINT
            if is_asked:
                self.stopped_by = None
            self.raise_if_stopped()
            return is_asked

        return [of_fit(self.shown, is_to_end, "best so far {:.3f} nats a row")]

    def counted(self, done: int, total: int, name: str) -> None:
        """`done` of `total` parts of the step are over, the last being `name`."""
        self.raise_if_stopped()
        self.shown.at(done, total, printable(name))

    def say(self, text: str) -> None:
        """Print on stdout, where a person reads; nothing with --json."""
        if not self.as_json:
            with self.shown.aside():
                _print(text)

    def aside(self, text: str) -> None:
        """Print on stderr, for a person."""
        with self.shown.aside():
            _print(text, err=True)

    def notes(self, known: str = "") -> list[str]:
        """What was warned of, each once and on one line, without what only repeats what is `known`."""
        said = (" ".join(str(item.message).split()) for item in self._caught)
        texts = dict.fromkeys(numbered(text, self.takes_whole_file) for text in said)
        return [text for text in texts if not known or known not in text]

    def goes_on_from(self, checkpoint: Path | None) -> None:
        """From here on an interrupted command leaves what it has done in a file."""
        if checkpoint is not None:
            self._checkpoint = checkpoint.expanduser().resolve()
            self.kept = f"the state is saved in {checkpoint}: the same command resumes from there"

    def written(self) -> str:
        """The names of the files that are in place by now."""
        there = [path for path in PLACED[self._n_before :] if path.exists() and path != self._checkpoint]
        return ", ".join(map(str, there))

    def finish(
        self,
        record: Mapping[str, Any],
        text: Callable[[], str],
        *,
        before: Sequence[str] = (),
        known: str = "",
    ) -> None:
        """Print the result: the record as JSON, or the notes, a line each, and the text.

        Notes are those `before` and, after them, what was warned of beyond what is `known`.
        """
        from nongauss.report.text import to_json

        self.shown.close()
        notes = [*before, *self.notes(known)]
        if self.as_json:
            _print(to_json({**record, "notes": notes}))
            return
        for note in notes:
            _print(f"note: {note}")
        _print("\n" + text() if notes else text())


_FIRST_ROW = re.compile(r" \(first in row (\d+)\)")
_ROW = re.compile(r"row (\d+) \(counted from 0\)")


def numbered(text: str, is_whole: bool) -> str:
    """What a model says of rows, which it counts from 0, as a person counts those of a file.

    The first row below the names is 1. Of rows that are not all of the file, no number is told of the first
    of several.
    """

    def below(found: re.Match[str]) -> str:
        return f"row {int(found[1]) + 1} below the names"

    if not is_whole:
        return _FIRST_ROW.sub("", text)
    return _ROW.sub(below, _FIRST_ROW.sub(lambda found: f" (first in {below(found)})", text))


class Commands(TyperGroup):
    """The group of all commands. With --json a command line that cannot be read is told of in JSON too."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **others: Any) -> Any:
        """Run the command that `args` name."""
        given = sys.argv[1:] if args is None else list(args)
        if "--json" not in given or not others.get("standalone_mode", True):
            return super().main(args, *more, **others)
        try:
            code = super().main(args, *more, **{**others, "standalone_mode": False})
        except _MISUSE as error:
            _print(json.dumps({"error": error.format_message()}, ensure_ascii=False))
            code = 2
        sys.exit(code or 0)


def _print(text: str, err: bool = False) -> None:
    """Print a text in which nothing steers the terminal."""
    typer.echo(printable(text), err=err)


@contextmanager
def command(quiet: bool = False, as_json: bool = False) -> Iterator[Command]:
    """A command from its first step to its end, which is an exit code of 0, or a sentence and another one.

    Warnings are collected. Bad input ends with 2; Ctrl-C with 130 and SIGTERM with 143, as shells have it.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)  # whatever filters the shell has set
        here = Command(caught, as_json=as_json)
        with _stoppable(here), _ending(here):
            here.show(display(silent=as_json or quiet))  # whose first line may bring a signal
            yield here


@contextmanager
def _ending(here: Command) -> Iterator[None]:
    """What the block raises becomes one sentence and an exit code."""
    try:
        try:
            yield
        finally:
            here.is_over = True
    except BrokenPipeError:
        raise  # nobody reads on: an end in silence, as of any program in a pipe
    except OSError as error:
        named = error.filename is not None and error.strerror
        _end(here, _with_files(f"{error.filename}: {error.strerror}." if named else str(error), here))
    except ValueError as error:
        said = numbered(str(error), True) if here.takes_whole_file else str(error)
        _end(here, _with_files(said, here))
    except KeyboardInterrupt:
        number = here.stopped_by or signal.SIGINT
        written = here.written()
        what_is_left = f"written before: {written}" if written else here.kept
        _end(here, f"Stopped by {_STOPPED_BY[number]}; {what_is_left}.", 128 + number)
    finally:
        here.shown.close()


def _with_files(sentence: str, here: Command) -> str:
    """The sentence of an error and, if the command had placed files before it, their names."""
    written = here.written()
    return f"{sentence} Written before: {written}." if written else sentence


@contextmanager
def _stoppable(here: Command) -> Iterator[None]:
    """SIGTERM is what Ctrl-C is, a KeyboardInterrupt, so that fits end and temporary files go in one way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        if here.is_over:  # it only tells what it came to
            return
        here.stopped_by = number
        raise _Stopped

    former = {number: signal.signal(number, stop) for number in _STOPPED_BY}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def _end(here: Command, message: str, code: int = 2) -> None:
    """Print one sentence on stderr (with --json, an object with it on stdout) and end."""
    here.shown.close()
    sentence = " ".join(message.split())
    if here.as_json:
        _print(json.dumps({"error": sentence}, ensure_ascii=False))
    else:
        _print(f"Error: {sentence}", err=True)
    raise typer.Exit(code) from None


def check_outputs(outputs: Outputs, inputs: Sequence[Path] = ()) -> None:
    """Refuse, before any work, to write over an input, over each other, or over files without `force`."""
    seen: dict[Path, str] = {}
    for option, path in outputs.paths.items():
        place = _place(path)
        if path.is_dir():
            raise InputError(f"{option} must be a file, but {path} is a folder; add a file name.")
        if place in seen:
            raise InputError(f"{option} and {seen[place]} are the same file, {path}; give two names.")
        if any(place == _place(item) or _is_same(place, item) for item in inputs):
            raise InputError(f"{option} would write over the input {path}; give another name.")
        if place.exists() and not place.is_file():
            raise InputError(f"{option} would be {path}, a device or a pipe, not a file; give another name.")
        folder = next(parent for parent in place.parents if parent.exists())
        if not folder.is_dir():
            raise InputError(
                f"{option} would be in {folder}, which is a file, not a folder; give another name."
            )
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(
                f"{option} would be {path}, but you may not write in {folder}; give another name."
            )
        if path.exists() and not outputs.force:
            raise InputError(f"{path} already exists; give --force to replace it, or another {option}.")
        seen[place] = option


def _is_same(place: Path, item: Path) -> bool:
    """Are two paths names of one file (a hard link)?"""
    return place.exists() and item.exists() and place.samefile(item)


def _place(path: Path) -> Path:
    """The file that a path means. Raises InputError where links go in a circle."""
    try:
        place = path.resolve()
        is_loop = place.is_symlink()
    except RuntimeError:  # as versions of Python have it
        is_loop = True
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        is_loop = True
    if is_loop:
        raise InputError(f"{path} is a link that leads back to itself; give another name.")
    return place
