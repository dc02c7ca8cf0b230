"""Runs the examples and writes the pages of the gallery: code, what it prints, and the picture that it draws.

    python docs/build_gallery.py [NAME ...]

Each script of `examples/` becomes `docs/gallery/NAME.md` and `NAME.png`; `docs/gallery/index.md` shows all of
them. A script's docstring begins with the title; the paragraph below is the text of the page.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import runpy
import sys
import tempfile
from pathlib import Path

from executed import PLOT_STYLE, ROOT, tidy

EXAMPLES, GALLERY = ROOT / "examples", ROOT / "docs" / "gallery"

SECTIONS = {
    "Targets that are not Gaussian": (
        "counts_with_exposure",
        "money_with_zeros",
        "survey_grades",
        "censored_times",
        "heavy_tails",
        "several_humps",
        "shares",
        "whole_numbers",
        "changing_spread",
        "labels_in_doubt",
        "own_likelihood",
    ),
    "Prior knowledge": ("groups_with_effects", "monotone_columns"),
    "Reliability": (
        "intervals_with_a_guarantee",
        "choice_by_evidence",
        "models_compared",
        "explain_and_novelty",
    ),
    "Missing cells": ("gaps_filled_by_draws",),
    "Structure": (
        "rules_for_customers",
        "rules_on_genes",
        "other_units",
        "several_views",
        "number_of_factors",
        "topics_of_counts",
    ),
    "Large tables and services": ("out_of_core", "checkpoint", "scoring_in_batches"),
}
"""The examples in the order of the gallery."""


def title_and_text(script: Path) -> tuple[str, str]:
    """The first line of a script's docstring, and the rest of it."""
    docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    title, _, text = docstring.partition("\n")
    return title.rstrip("."), text.strip()


def code(script: Path) -> str:
    """A script without its docstring."""
    source = script.read_text(encoding="utf-8")
    end = ast.parse(source).body[0].end_lineno or 0
    return "\n".join(source.split("\n")[end:]).strip("\n")


def run_example(script: Path, picture: Path | None = None) -> str:
    """Run a script in the working folder: what it prints. Its last figure is saved as `picture`."""
    import matplotlib.pyplot as plt

    printed = io.StringIO()
    show, plt.show = plt.show, lambda: None  # a window would wait for somebody to close it
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(str(script), run_name="__main__")
        if picture is not None:
            plt.gcf().savefig(picture)
    finally:
        plt.show = show
        plt.close("all")
    return tidy(printed.getvalue())


def page(script: Path, printed: str) -> str:
    """The page of an example."""
    title, text = title_and_text(script)
    parts = [
        f"# {title}",
        text,
        f"![{title}]({script.stem}.png)",
        "## Output",
        f"```text\n{printed}```",
        "## Code",
        f"`examples/{script.name}`",
        f"```python\n{code(script)}\n```\n",
    ]
    return "\n\n".join(parts)


def shown_output(script: Path) -> str:
    """What the page of an example shows as its output."""
    text = (GALLERY / f"{script.stem}.md").read_text(encoding="utf-8")
    return text.partition("```text\n")[2].partition("```\n")[0]


def index() -> str:
    """The page with a small picture of each example."""
    parts = [
        "# Gallery\n\nEach example answers one question and runs in a few seconds, on data that come with "
        "scikit-learn or are simulated. Every page shows the code, its output and its picture. "
        "`python docs/build_gallery.py` runs them all.\n"
    ]
    for section, names in SECTIONS.items():
        cards = [_card(EXAMPLES / f"{name}.py") for name in names]
        parts.append(
            f'## {section}\n\n<div class="cards" markdown>\n\n' + "\n\n".join(cards) + "\n\n</div>\n"
        )
    return "\n".join(parts)


def _card(script: Path) -> str:
    """A small picture and the title, which lead to the page."""
    title = title_and_text(script)[0]
    return f"[![]({script.stem}.png){{ loading=lazy }}<span>{title}</span>]({script.stem}.md)"


def main() -> None:
    """Build the pages that are named, or all, and the index."""
    os.environ.setdefault("MPLBACKEND", "agg")
    import matplotlib as mpl

    GALLERY.mkdir(exist_ok=True)
    names = [name for section in SECTIONS.values() for name in section]
    for script in (EXAMPLES / f"{name}.py" for name in sys.argv[1:] or names):
        sys.stderr.write(f"{script.name}\n")
        mpl.rcParams.update(PLOT_STYLE)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            printed = run_example(script, GALLERY / f"{script.stem}.png")
        (GALLERY / f"{script.stem}.md").write_text(page(script, printed), encoding="utf-8")
    (GALLERY / "index.md").write_text(index(), encoding="utf-8")


if __name__ == "__main__":
    main()
