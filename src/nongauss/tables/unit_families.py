"""Units of one quantity, and what one of them is in another: 1.2 s is 1200 ms, 18 months are 1.5 years."""

from __future__ import annotations

import math
from collections.abc import Iterable

from nongauss.tables.number_text import MARK, unit_key

_FAMILIES = (
    "ns 1e-9; µs us 1e-6; ms msec 1e-3; s sec second 1; m min minute 60; h hr hour 3600; d day 86400;"
    " w wk week 604800",
    "d day 1; w wk week 7; m mo mth month 30.436875; y yr year 365.2425",
    "nm 1e-9; µm 1e-6; mm 1e-3; cm 1e-2; dm 0.1; m 1; km 1e3; in inch 0.0254; ft 0.3048; yd 0.9144;"
    " mi mile 1609.344",
    "ng 1e-12; µg mcg 1e-9; mg 1e-6; g 1e-3; kg 1; t 1e3; oz 0.028349523125; lb 0.45359237",
    "µl ul 1e-6; ml 1e-3; cl 1e-2; dl 0.1; l 1",
    "b byte 1; kb 1e3; mb 1e6; gb 1e9; tb 1e12; kib 1024; mib 1048576; gib 1073741824",
    "m2 m² sqm 1; ha hectare 1e4; km2 km² 1e6; sqft ft2 ft² 0.09290304; acre 4046.8564224",
    "wh 1e-3; kwh 1; mwh 1e3; gwh 1e6",
    "hz 1; khz 1e3; mhz 1e6; ghz 1e9",
    "km/h kmh kph 1; mph 1.609344; m/s 3.6",
    "pg/ml ng/l 1e-9; ng/ml µg/l 1e-6; µg/ml mg/l 1e-3; mg/dl 1e-2; mg/ml g/l 1; g/dl 10",
)
"""Units by their keys, see `number_text.unit_key`, with their sizes; other cells settle what "m" is."""


def _sizes(text: str) -> dict[str, float]:
    """The size of each unit of a family."""
    parts = [part.split() for part in text.split(";")]
    return {key: float(size) for *keys, size in parts for key in keys}


_SIZES = [_sizes(text) for text in _FAMILIES]


_PREFIXED = {"mhz", "mwh"}
"""Units that are a thousandth with a small m and a million with a large one."""


def in_unit(patterns: Iterable[str], main: str) -> dict[str, float]:
    """What one of each unit, as patterns such as "# ms", is in the `main` one, by its key.

    {} where they are of several quantities, or may be; and for capital letters alone, which are rather sizes
    ("38 S", "40 M"). Bare numbers have no part in it.
    """
    units = {pattern: pattern.replace(MARK, "").strip() for pattern in patterns}
    units = {pattern: unit for pattern, unit in units.items() if unit}
    if all(len(unit) == 1 and unit.isupper() for unit in units.values()):
        return {}
    if any(unit[0] == "m" and unit.casefold() in _PREFIXED for unit in units.values()):
        return {}
    keys = {pattern: unit_key(pattern) for pattern in units}
    each = {*keys.values(), main}
    tables = [{key: of[key] / of[main] for key in each} for of in _SIZES if each <= of.keys()]
    if not tables or any(table != tables[0] for table in tables):
        return {}
    return {pattern: tables[0][key] for pattern, key in keys.items()}


def size_in(pattern: str, other: str) -> float:
    """What one of a unit is in another, as patterns; 1 where one has none, NaN for another quantity."""
    keys = unit_key(pattern), unit_key(other)
    if not all(keys) or keys[0] == keys[1]:
        return 1.0
    return in_unit((pattern, other), keys[1]).get(pattern, math.nan)
