"""Numbers as users give them, checked once."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

from suffice.errors import BadInput

__all__ = ["INVALID", "between", "parsed", "price", "probability", "whole"]

INVALID = 255
"""The label of an invalid vote, a vote for no class, where labels are bytes."""
MOST = 10_000_000
"""No count is larger."""
DEAREST = 1e12
"""No price is higher."""


def probability(value: Any, name: str) -> Fraction:
    """A number strictly between 0 and 1, read as the decimal that it is written as.

    >>> probability(0.57, "tau") * 100
    Fraction(57, 1)
    """
    try:
        exact = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise BadInput(f"{name} = {value!r} is not a number; choose it between 0 and 1") from None
    if not 0 < exact < 1:
        raise BadInput(f"{name} = {value} is outside (0, 1); choose it between 0 and 1")
    return exact


def between(value: Any, name: str, tau: Any) -> float:
    """A vote mass strictly above tau and below 1, such as q_alt.

    >>> between(0.85, "q_alt", 0.7)
    0.85
    """
    exact = probability(value, name)
    if exact <= probability(tau, "tau"):
        raise BadInput(f"{name} = {value} is not above tau = {tau}; choose it between tau and 1")
    return float(exact)


def price(value: Any, name: str) -> float:
    """A finite number of at least 0.

    >>> price("2.5", "round_cost")
    2.5
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= DEAREST:
        raise BadInput(f"{name} = {value!r} is no price; give a number from 0 to {DEAREST:g}")
    return number


def parsed(text: str, source: str, again: str) -> Any:
    """What a JSON text holds, which must be whole and have numbers for numbers.

    >>> parsed("[1, 2]", "votes.json", "write it again")
    [1, 2]
    """
    try:
        return json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        reason = f"{error.msg} at character {error.pos}"
    except (ValueError, RecursionError) as error:
        reason = str(error)
    raise BadInput(f"{source}: not whole JSON ({reason}); {again}")


def _no_number(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")


def whole(value: Any, name: str) -> int:
    """A whole number of at least 1.

    >>> whole(32, "samples")
    32
    """
    try:
        number = int(value)
        fits = number == value and number >= 1
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise BadInput(f"{name} = {value!r} is not a whole number above 0; choose 1 or more")
    if number > MOST:
        raise BadInput(f"{name} = {number:.3g} is too large; choose {MOST:,} at most")
    return number
