"""What the documentation shows is run: python blocks of README.md and docs/, doctests of the source."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.gate

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "nongauss"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES_WITH_CODE = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8")]
WITH_DOCTESTS = [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=lambda p: p.name)
def test_code_blocks_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    namespace = {"__name__": "page"}
    for block in _BLOCK.finditer(text):
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block.group(1), str(page), "exec"), namespace)


def _module_name(path: Path) -> str:
    parts = ("nongauss", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(part for part in parts if part != "__init__")


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
