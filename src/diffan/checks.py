"""Checks of single settings, each refusing with one sentence that names the setting and its owner."""

from __future__ import annotations

import math
from numbers import Integral, Real

from diffan.errors import InputError


def number(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)


def refuse(settings: object, name: str, expected: str) -> InputError:
    owner, value = type(settings).__name__, getattr(settings, name)
    return InputError(f"The {name!r} parameter of {owner} must be {expected}. Got {value!r} instead.")


def one_of(settings: object, name: str, allowed: tuple[object, ...]) -> None:
    if getattr(settings, name) not in allowed:
        raise refuse(settings, name, "one of " + ", ".join(map(repr, allowed)))


def whole(settings: object, name: str, *, least: int) -> None:
    value = getattr(settings, name)
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise refuse(settings, name, f"a whole number of {least} or more")


def within(
    settings: object, name: str, low: float, high: float, *, open_low: bool = False, open_high: bool = False
) -> None:
    value = getattr(settings, name)
    too_low = number(value) and (value < low or (open_low and value == low))
    too_high = number(value) and (value > high or (open_high and value == high))
    if not number(value) or too_low or too_high:
        ends = f"{'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
        raise refuse(settings, name, f"a number in {ends}")
