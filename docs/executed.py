"""Runs the Python of the pages and writes what it prints below it.

    python docs/executed.py [PAGE.md ...]

A page is read from top to bottom. Each block marked `python` is run, a namespace for a page, in a new folder.
What a block prints stands in a block marked `text` directly below it, which this command writes and the tests
compare. A picture that a block saves is kept in `docs/figures/`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"
_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")

PLOT_STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "figure.figsize": (7.0, 3.6),
    "figure.dpi": 110,
    "figure.constrained_layout.use": True,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "font.size": 10,
}
"""How every picture of the pages is drawn: one scale of type, no box, no legend over data."""


class Ran(NamedTuple):
    """A block of a page: its code, what the page shows below it, and what it printed now."""

    code: str
    shown: str
    printed: str


def pages() -> list[Path]:
    """Every page that people wrote; those of the gallery are written from `examples/`."""
    written = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "gallery"]
    return [ROOT / "README.md", *written]


def run_page(text: str, name: str) -> Iterator[Ran]:
    """Run the blocks of a page in the working folder, in order. An exception names the line of the page."""
    namespace: dict[str, object] = {"__name__": "page"}
    for block in _BLOCK.finditer(text):
        line = text[: block.start("code")].count("\n")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + block["code"], name, "exec"), namespace)  # noqa: S102 - our own pages
        yield Ran(block["code"], block["shown"] or "", tidy(printed.getvalue()))


def tidy(printed: str) -> str:
    """Printed text without blanks at the ends of lines and without empty lines around it."""
    lines = [line.rstrip() for line in printed.split("\n")]
    text = "\n".join(lines).strip("\n")
    return f"{text}\n" if text else ""


def same_but_for_rounding(shown: str, printed: str) -> bool:
    """Whether two texts have the same words, and numbers within 5 % or 2 units of a decimal's last digit.

    Machines and versions of libraries differ in the last digits, and with them the iterations of a fit.
    """
    if _words(shown) != _words(printed):
        return False
    pairs = zip(_NUMBER.findall(shown), _NUMBER.findall(printed), strict=True)
    return all(abs(float(old) - float(new)) <= _allowed(old) for old, new in pairs)


def _words(text: str) -> str:
    """The text with every number, and every run of blanks or rules that depends on its width, made alike."""
    return re.sub(r"[\s─━═-]+", " ", _NUMBER.sub("#", text)).strip()


def _allowed(number: str) -> float:
    """How far a number may be off: 5 % of it; of a decimal also two units of its last digit."""
    decimals = len(number.partition("e")[0].partition(".")[2])
    return max(0.05 * abs(float(number)), 2.0 * 10.0**-decimals if decimals else 0.0) + 1e-12


def rewrite(page: Path) -> None:
    """Run a page and write what it prints into it."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        done = list(run_page(text, str(page)))
        for picture in Path(folder).glob("*.png"):
            shutil.copy(picture, FIGURES / picture.name)
    blocks = iter(done)
    page.write_text(_BLOCK.sub(lambda _: _as_text(next(blocks)), text), encoding="utf-8")


def _as_text(ran: Ran) -> str:
    """A block as it stands in the page, with its output below it."""
    return f"```python\n{ran.code}```\n" + (f"\n```text\n{ran.printed}```\n" if ran.printed else "")


def main() -> None:
    """Rewrite the pages that are named, or all."""
    os.environ.setdefault("MPLBACKEND", "agg")
    import matplotlib as mpl

    mpl.rcParams.update(PLOT_STYLE)
    for page in [Path(name).resolve() for name in sys.argv[1:]] or pages():
        sys.stderr.write(f"{page.relative_to(ROOT)}\n")
        rewrite(page)


if __name__ == "__main__":
    main()
