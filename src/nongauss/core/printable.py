"""Texts of a user's tables on a terminal or a page: without what steers these."""

from __future__ import annotations

_CONTROL = (*range(32), *range(127, 160))
_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SHOWN = {code: f"\\u{code:04x}" for code in (*_CONTROL, *_TURNING) if chr(code) not in "\n\t"}


def printable(text: str) -> str:
    """The text with characters that steer written out as in JSON: a backslash, u and four digits."""
    return text.translate(_SHOWN)
