"""The suite covers the package: no module beside the folders, a catalogue row for every estimator."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import nongauss
from catalogue import CATALOGUE

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "nongauss"
MODULES = sorted(SOURCE.rglob("*.py"))


def test_only_public_modules_stand_beside_the_folders():
    beside = [path.stem for path in MODULES if path.parent == SOURCE]
    assert beside == ["__init__", "metrics"]
    assert "metrics" in nongauss.__all__


def test_every_public_estimator_is_in_the_catalogue():
    public = [getattr(nongauss, name) for name in nongauss.__all__]
    estimators = {c.__name__ for c in public if inspect.isclass(c) and issubclass(c, BaseEstimator)}
    assert estimators == {entry.name for entry in CATALOGUE}


PAGES = [*TESTS.parent.glob("*.md"), *(TESTS.parent / "docs").glob("*.md"), *SOURCE.rglob("NOTATION.md")]


@pytest.mark.parametrize("page", [*PAGES, *MODULES], ids=lambda p: p.name)
def test_a_file_that_is_named_exists(page):
    root = TESTS.parent
    folders = (root, SOURCE, TESTS, page.parent, TESTS / page.parent.name)
    for name in re.findall(r"`([\w.-]+/[\w./-]+\.(?:py|md))(?:::?\w+)?`", page.read_text(encoding="utf-8")):
        assert any((folder / name).exists() for folder in folders), f"{page.name} names {name}"


def _own_length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the end, the docstring left out."""
    first = node.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno - first.lineno + 1) if is_docstring else 0
    return node.end_lineno - node.lineno + 1 - docstring


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_and_functions_stay_readable(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 400, "split the file by subject"
    functions = [
        n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [f.name for f in functions if _own_length(f) > 40] == [], "split these functions"


def test_importing_changes_nothing_and_loads_no_jax():
    code = "import sys, nongauss; sys.exit('jax' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
