"""What the build of the pages adds, so that they need no network: formulas as MathML, search from disk."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_ELSEWHERE = "https://unpkg.com/iframe-worker/shim"
"""The address from which the theme would load what search needs on pages that are opened from disk."""
_HERE = "assets/worker_from_disk.js"


def on_page_content(html: str, **_: Any) -> str:
    """The page with each TeX formula that pymdownx.arithmatex marked written as MathML."""
    return _FORMULA.sub(_as_mathml, html)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """The page with its scripts loaded from beside it."""
    return output.replace(_ELSEWHERE, "../" * page.url.count("/") + _HERE)


def on_post_template(output_content: str, **_: Any) -> str:
    """The same of the page that says that there is none."""
    return output_content.replace(_ELSEWHERE, _HERE)


def _as_mathml(found: re.Match[str]) -> str:
    """One formula, on a line of its own where it stood so."""
    tag, bracket, tex = found.groups()
    formula = convert(unescape(tex).strip(), display="block" if bracket == "[" else "inline")
    formula = formula.replace("<mi>&#x0007E;</mi>", "<mo>&#x0223C;</mo>")  # ~ as a relation
    return f'<{tag} class="formula">{formula}</{tag}>'
