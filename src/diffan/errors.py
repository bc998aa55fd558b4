"""The errors a user may meet: each says what was expected, what came and what to do."""

from __future__ import annotations


class DiffanError(Exception):
    """Any failure that diffan foresaw and explains in one sentence."""


class InputError(DiffanError, ValueError):
    """What the caller gave cannot be used; the message says what to give instead."""


class FitError(DiffanError, RuntimeError):
    """A computation could not finish on valid input; the message says what to change."""


class DiffanWarning(UserWarning):
    """Something the user should know before believing the result."""
