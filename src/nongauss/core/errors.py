"""The errors and warnings that a user sees."""

from __future__ import annotations


class InputError(ValueError):
    """The input cannot be used. The message says what is wrong, where, what was got, and the remedy."""


class NongaussWarning(UserWarning):
    """Something was changed or ignored on the user's behalf; the message says what and why."""
