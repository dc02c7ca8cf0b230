"""How every command behaves: warnings become notes, bad input one sentence, outputs are checked first."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from nongauss.core.errors import InputError


def echo_notes(notes: list[str]) -> None:
    """Print what was guessed, dropped or warned of, a line each, before the result."""
    for note in notes:
        typer.echo(f"note: {note}")
    if notes:
        typer.echo()


def messages(caught: list[Any], known: str | None = None) -> list[str]:
    """Each warning once, on one line, without those that only repeat what is `known`."""
    texts = dict.fromkeys(" ".join(str(item.message).split()) for item in caught)
    return [text for text in texts if known is None or known not in text]


@contextmanager
def polite() -> Iterator[list[Any]]:
    """Collect warnings; turn bad input into one sentence on stderr and exit code 2."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)  # whatever filters the shell has set
        try:
            yield caught
        except OSError as error:
            named = error.filename is not None and error.strerror
            refuse(f"{error.filename}: {error.strerror}." if named else str(error))
        except ValueError as error:
            refuse(str(error))


def refuse(message: str) -> None:
    """Print one sentence on stderr and end with exit code 2."""
    typer.echo("Error: " + " ".join(message.split()), err=True)
    raise typer.Exit(2) from None


def output_paths(out: Path, save: Path | None, report: Path | None) -> dict[str, Path]:
    """Where model and report go, by the option that says so."""
    return {"--save": save or out / "model.nongauss", "--report": report or out / "report.html"}


def check_outputs(outputs: Mapping[str, Path], inputs: Sequence[Path] = (), *, force: bool = False) -> None:
    """Refuse, before any work, to write over an input, over each other, or over files without `force`."""
    seen: dict[Path, str] = {}
    for option, path in outputs.items():
        place = path.resolve()
        if path.is_dir():
            raise InputError(f"{option} must be a file, but {path} is a folder; add a file name.")
        if place in seen:
            raise InputError(f"{option} and {seen[place]} are the same file, {path}; give two names.")
        if any(place == item.resolve() for item in inputs):
            raise InputError(f"{option} would write over the input {path}; give another name.")
        folder = next(parent for parent in place.parents if parent.exists())
        if not folder.is_dir():
            raise InputError(
                f"{option} would be in {folder}, which is a file and no folder; give another name."
            )
        if path.exists() and not force:
            raise InputError(f"{path} already exists; give --force to replace it, or another {option}.")
        seen[place] = option
