from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from nongauss.report.plots.style import SMALL, finish, key_above, ordered_colours, tips, tips_along
from nongauss.report.svg import colours_of, on_dark, svg_of


@pytest.fixture
def drawn():
    figure = Figure(figsize=(4, 3))
    ax = figure.subplots()
    tips(ax.scatter([1, 2, 3], [3, 4, 5], color=["#0072b2", "#d55e00", "#0072b2"], label="seen"), "abc")
    bars = ax.bar([1, 2], [3, 4], color="#0072b2")
    tips(bars.patches[0], ["the first bar <1>"])
    tips_along(ax, [1, 2], [2, 2], ["left", "right"])
    ax.set_yticks([0.0, 2.0, 4.0], ["0.0001", "-0.0", "1234.5678"])
    finish(ax, "A title", "across", "up")
    key_above(ax)
    return figure


def test_text_stays_text_and_marks_say_what_they_are(drawn):
    svg = svg_of(drawn, 'what "it" shows', 3)
    tree = ElementTree.fromstring(svg.replace("xlink:href", "href"))
    assert tree.get("aria-label") == 'what "it" shows'
    texts = {text for element in tree.iter() if element.tag == "text" for text in element.itertext()}
    assert {"A title", "across", "up", "seen", "0.0001", "-0.0", "1234.5678"} <= texts
    titles = ["".join(title.itertext()) for title in tree.iter() if title.tag == "title"]
    assert sorted(titles) == sorted(["the first bar <1>", *"abc", "left", "right"])
    parents = {child: parent.tag for parent in tree.iter() for child in parent}
    assert {parents[title] for title in tree.iter() if title.tag == "title"} <= {"use", "path"}


def test_names_of_two_figures_do_not_clash(drawn):
    first, second = (set(re.findall(r'id="([^"]+)"', svg_of(drawn, "x", number))) for number in (1, 2))
    assert first
    assert not first & second


def test_colours_follow_the_page_and_are_seen_on_both_grounds(drawn):
    svg = svg_of(drawn, "x", 1)
    assert not re.search(r"#[0-9a-f]{6}\b", svg)
    colours = colours_of([svg])
    assert {"0072b2", "d55e00", "e4e4e4"} <= set(colours)
    for light, dark in colours.values():
        assert light.startswith("#")
        assert on_dark(light) == dark
    for colour in ["#0072b2", "#d55e00", "#009e73", "#000000", *ordered_colours(5)]:
        assert _contrast(colour, "#ffffff") > 1.9
        assert _contrast(on_dark(colour), "#15171a") > 3.0


def _contrast(one, other):
    """Ratio of relative luminances, WCAG 2.1."""
    lights = []
    for colour in (one, other):
        rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(rgb <= 0.03928, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        lights.append(float(linear @ [0.2126, 0.7152, 0.0722]))
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def test_grades_have_colours_in_order_that_differ_in_hue():
    colours = ordered_colours(7)
    assert len(set(colours)) == 7
    red_less_blue = [int(c[1:3], 16) - int(c[5:7], 16) for c in colours]
    assert min(red_less_blue[:3]) > 50 > max(np.abs(red_less_blue[3:4])) > -1 > -50 > max(red_less_blue[4:])
    assert ordered_colours(1) == [colours[-1]]


def test_a_key_stands_above_the_data(drawn):
    ax = drawn.axes[0]
    drawn.canvas.draw()
    box = ax.get_legend().get_window_extent()
    assert box.y0 >= ax.get_window_extent().y1 - 1
    assert all(text.get_fontsize() == SMALL for text in ax.get_legend().get_texts())
