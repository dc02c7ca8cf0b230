"""What the documentation shows is run and printed: blocks of README.md and docs/, doctests of the source."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import shlex
from pathlib import Path

import beside_figures
import pytest
from executed import ROOT, pages, run_page, same_but_for_rounding
from typer.main import get_command

from nongauss.cli.app import app

SOURCE = ROOT / "src" / "nongauss"
PAGES = pages()
PAGES_WITH_CODE = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8")]
WITH_DOCTESTS = [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
_SHELL = re.compile(r"^ *```sh\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


@pytest.mark.gate
@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_blocks_of_a_page_run_in_order_and_print_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for ran in run_page(page.read_text(encoding="utf-8"), str(page)):
        assert same_but_for_rounding(ran.shown, ran.printed), f"{ran.code}\nprints\n{ran.printed}"


def test_figures_beside_other_libraries_are_those_that_were_measured():
    page = beside_figures.PAGE.read_text("utf-8")
    stale = "run `poe figures`: benchmarks have been measured anew"
    assert beside_figures.written(page) == page, stale


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("3 clusters", "3 clusters", True),
        ("3 clusters", "4 clusters", False),
        ("error 0.31", "error 0.33", True),
        ("error 0.31", "error 0.36", False),
        ("error 0.31", "gain 0.31", False),
        ("120 epochs", "124 epochs", True),
        ("", "something", False),
        ("a\n  1.0 2.0", "a 1.0  2.0", True),
    ],
)
def test_outputs_are_the_same_but_for_rounding(shown, printed, same):
    assert same_but_for_rounding(shown, printed) is same


def commands() -> list[str]:
    """Every `nongauss` command of the pages, without its comment."""
    texts = [block for page in PAGES for block in _SHELL.findall(page.read_text(encoding="utf-8"))]
    lines = [line.split("  #")[0].strip() for text in texts for line in text.split("\n")]
    return sorted({part for line in lines for part in line.split(" && ") if part.startswith("nongauss ")})


@pytest.mark.parametrize("command", commands())
def test_commands_of_the_pages_have_the_options_that_they_use(command):
    name, *words = shlex.split(command)[1:]
    options = {option for each in get_command(app).commands[name].params for option in each.opts}
    asked = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert asked <= {*options, "--help"}


def _module_name(path: Path) -> str:
    parts = ("nongauss", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(part for part in parts if part != "__init__")


@pytest.mark.gate
@pytest.mark.parametrize("path", WITH_DOCTESTS, ids=_module_name)
def test_doctests(path):
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testmod(importlib.import_module(_module_name(path)), optionflags=options)
    assert result.attempted > 0
    assert result.failed == 0


def test_relative_links_lead_somewhere():
    link = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
    pages = [*PAGES, ROOT / "CONTRIBUTING.md"]
    targets = [(page, target) for page in pages for target in link.findall(page.read_text(encoding="utf-8"))]
    assert targets
    assert [
        f"{page.name} -> {target}" for page, target in targets if not (page.parent / target).exists()
    ] == []


_SECTION = re.compile(r"\n(?:Parameters|Attributes)\n-+\n(.*?)(?=\n\n|\Z)", re.DOTALL)
_NAMES = re.compile(r"[\w*][\w*, ]*( : .*| :)?,?")


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_what_is_said_of_a_parameter_is_indented(path):
    """Else the reference takes the rest of a sentence for one more parameter, and is not built."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for section in _SECTION.findall(ast.get_docstring(node) or ""):
                astray = [
                    line
                    for line in section.splitlines()
                    if not line.startswith(" ") and not _NAMES.fullmatch(line)
                ]
                assert not astray, f"{node.name}: {astray[0]}"
