"""Checks that every baseline's options share: each refusal says what was expected and what came."""

from __future__ import annotations

import math

from diffan.errors import InputError


def require_number(options: object, name: str, *, above: float = -math.inf, below: float = math.inf) -> None:
    """Refuse an option that is not a number strictly between the two bounds."""
    value = getattr(options, name)
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not numeric or not above < value < below:
        bounds = [f"above {above:g}"] * (above > -math.inf) + [f"below {below:g}"] * (below < math.inf)
        raise _refusal(options, name, " ".join(["a number", " and ".join(bounds)]))


def require_whole(options: object, name: str, *, least: int) -> None:
    """Refuse an option that is not a whole number of `least` or more."""
    value = getattr(options, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise _refusal(options, name, f"a whole number of {least} or more")


def require_choice(options: object, name: str, allowed: tuple[object, ...]) -> None:
    """Refuse an option that is none of those allowed."""
    value = getattr(options, name)
    if not any(type(value) is type(choice) and value == choice for choice in allowed):
        raise _refusal(options, name, "one of " + ", ".join(map(repr, allowed)))


def _refusal(options: object, name: str, expected: str) -> InputError:
    owner, value = type(options).__name__, getattr(options, name)
    return InputError(f"The {name!r} parameter of {owner} must be {expected}. Got {value!r} instead.")
