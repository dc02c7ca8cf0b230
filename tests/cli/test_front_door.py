"""Messy files as people have them are read, understood and spoken of as is right."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def _imported():
    """What checks a file, and the files that need no data folder; modules of benchmarks have plain names."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        recipes = importlib.import_module("front_door_files").every_recipe()
        return importlib.import_module("front_door_check"), {n: r for n, r in recipes.items() if not r.needs}
    finally:
        sys.path.remove(str(BENCHMARKS))


check, RECIPES = _imported()


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.gate] if r.large else []) for n, r in RECIPES.items()]
)
def test_a_messy_file_is_read_understood_and_spoken_of(name, tmp_path):
    file = RECIPES[name](None)
    path = tmp_path / f"{name}{file.suffix}"
    path.write_bytes(file.data)
    assert check.wrong_before(file, check.seen(path, file)) == []


def test_every_row_of_what_is_right_has_files():
    assert len(RECIPES) >= 50
    assert len({recipe.row for recipe in RECIPES.values()}) >= 15
