"""Benchmarks and examples name only what the package has: they run by hand, so nothing else would tell."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted([*ROOT.glob("benchmarks/*.py"), *ROOT.glob("examples/*.py")])


def imported(script: Path) -> list[tuple[str, str]]:
    """Every `from nongauss... import name` of a script, at the top or within a function."""
    tree = ast.parse(script.read_text(encoding="utf-8"))
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return [
        (node.module, alias.name)
        for node in froms
        if node.module is not None and node.module.split(".")[0] == "nongauss"
        for alias in node.names
    ]


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_what_a_script_imports_is_there(script: Path) -> None:
    for module, name in imported(script):
        if not hasattr(importlib.import_module(module), name):
            importlib.import_module(f"{module}.{name}")
