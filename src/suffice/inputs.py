"""Numbers as users give them, checked once."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from suffice.errors import BadInput

__all__ = ["INVALID", "between", "probability", "whole"]

INVALID = 255
"""The label of an invalid vote, a vote for no class, where labels are bytes."""


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
    return number
