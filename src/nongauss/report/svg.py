"""A figure of matplotlib as SVG inside a page: text is text, colours follow the page, marks have titles."""

from __future__ import annotations

import colorsys
import io
import re
from collections.abc import Iterator
from html import escape
from itertools import count
from typing import TYPE_CHECKING, Any

from nongauss.report.plots.style import TIPS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEX = re.compile(r"#[0-9a-fA-F]{6}\b")
_NUMBER = re.compile(r"-?\d+\.\d+")
_UNUSED = re.compile(r'<g id="(?!tips-)[^"]*">')
_MARK = re.compile(r"<(use|path) ([^>]*?)/>")
_LIGHTEST, _DARKEST = 0.94, 0.16
_LEAST_LIGHTNESS = 0.62
"""Of a colour on dark ground: what blue needs to stand out from it."""

_ON_DARK = {"#56b4e9": "#c4e3f8"}
"""Sky blue, which is what blue becomes, is paler there."""

_SETTINGS = {"svg.fonttype": "none", "svg.image_inline": True, "path.simplify": True}


def svg_of(figure: Figure, label: str, number: int) -> str:
    """The figure as an SVG element; `label` says what it shows, `number` sets its names apart from others."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure.patch.set_visible(False)
    tips: dict[str, list[str]] = {}
    for ax in figure.axes:
        ax.patch.set_visible(False)
        for artist in _with_tips(ax):
            name = f"tips-{number}-{len(tips)}"
            artist.set_gid(name)
            tips[name] = getattr(artist, TIPS)
    engine = figure.get_layout_engine()
    if engine is not None:  # once: a figure with an engine is laid out and drawn twice
        figure.set_dpi(72)
        engine.execute(figure)
        figure.set_layout_engine("none")
    buffer = io.StringIO()
    how: Any = {**_SETTINGS, "svg.hashsalt": str(number)}
    with mpl.rc_context(how):
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(buffer, metadata=dict.fromkeys(_ABOUT))
    return _for_page(buffer.getvalue(), label, tips)


_ABOUT = ("Creator", "Date", "Format", "Type")


def colours_of(texts: Any) -> dict[str, tuple[str, str]]:
    """The colours that pages of these texts name, each as it is on light and on dark ground."""
    found = sorted({name for text in texts for name in re.findall(r"var\(--c-([0-9a-f]{6})\)", text)})
    return {name: (f"#{name}", on_dark(f"#{name}")) for name in found}


def on_dark(colour: str) -> str:
    """A colour #rrggbb as it is drawn on dark ground: greys turned round, others light enough to see."""
    if colour in _ON_DARK:
        return _ON_DARK[colour]
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    if max(red, green, blue) - min(red, green, blue) < 0.08:
        light, saturation = _LIGHTEST - light * (_LIGHTEST - _DARKEST), 0.0
    else:
        light, saturation = max(light, _LEAST_LIGHTNESS), min(saturation, 0.85)
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, light, saturation))


def _with_tips(ax: Any) -> Iterator[Any]:
    """The marks of a plot that have texts."""
    for artist in (*ax.collections, *ax.lines, *ax.patches):
        if hasattr(artist, TIPS):
            yield artist


def _for_page(text: str, label: str, tips: dict[str, list[str]]) -> str:
    """What matplotlib wrote, as an element of the page."""
    body = text[text.index("<svg") :]
    body = re.sub(r"<!--.*?-->\s*|<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    for name, said in tips.items():
        body = _with_titles(body, name, said)
    body = re.sub(r"font-family:[^;\"]*;?\s*", "", body)
    body = re.sub(r"font: (?:bold )?([\d.]+px)[^;\"]*", _type, body)
    body = re.sub(r"<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>", "", body)
    body = _UNUSED.sub("<g>", body)
    body = re.sub(r"<[^>]*>", _tag, body)
    head = re.match(r"<svg[^>]*>", body)
    assert head is not None
    box = re.search(r'viewBox="[^"]*"', head[0])
    width = re.search(r'width="([\d.]+)pt"', head[0])
    assert box is not None
    assert width is not None
    named = f'<svg {box[0]} data-width="{float(width[1]):.0f}" role="img" aria-label="{escape(label)}">'
    return named + re.sub(r">\s+<", "><", body[head.end() :]).strip()


def _tag(found: re.Match[str]) -> str:
    """A tag with colours of the page and short lengths; what stands between tags is read, and stays."""
    tag = _HEX.sub(lambda colour: f"var(--c-{colour[0][1:].lower()})", found[0])
    return _NUMBER.sub(_rounded, tag)


def _rounded(found: re.Match[str]) -> str:
    """A length in points to what can be seen."""
    value = float(found[0])
    return f"{value:.{1 if abs(value) >= 10 else 2}f}".rstrip("0").rstrip(".")


def _type(found: re.Match[str]) -> str:
    """Size and weight of a text, without the name of a font: the page has its own."""
    bold = "font-weight: bold; " if "bold" in found[0] else ""
    return f"{bold}font-size: {found[1]}"


def _with_titles(body: str, name: str, said: list[str]) -> str:
    """The marks of the group of this name with their texts, which browsers show under the pointer."""
    start = body.find(f'<g id="{name}">')
    if start < 0:  # a single mark has the name itself
        texts = iter(said)
        return re.sub(
            rf'<(use|path) ([^>]*id="{name}"[^>]*?)/>', lambda found: _titled(found, next(texts)), body
        )
    end, depth = start + 1, 1
    for tag in re.finditer(r"<g\b|</g>|<defs>", body[start + 2 :]):
        depth += -1 if tag[0] == "</g>" else int(tag[0] == "<g")
        if depth == 0:
            end = start + 2 + tag.end()
            break
    group, numbers = body[start:end], count()
    defs_end = group.find("</defs>") + 1

    def titled(found: re.Match[str]) -> str:
        number = next(numbers)
        return _titled(found, said[number]) if number < len(said) else found[0]

    group = group[:defs_end] + _MARK.sub(titled, group[defs_end:])
    return body[:start] + group + body[end:]


def _titled(found: re.Match[str], text: str) -> str:
    """A mark with its text inside."""
    return f"<{found[1]} {found[2]}><title>{escape(text)}</title></{found[1]}>"
