"""A range for a vote mass that stays valid whenever the votes are stopped."""

from __future__ import annotations

import math
from numbers import Integral

from suffice.errors import BadInput
from suffice.inputs import probability, whole

__all__ = ["interval"]


def interval(k: int, n: int, level: float, classes: int = 1) -> tuple[float, float]:
    """The masses whose Beta density after k of n votes exceeds ``(1 - level) / classes``.

    One over that density (uniform prior) is a martingale that starts at one under the true mass,
    so by Ville's inequality the true mass ever leaves with probability at most ``1 - level``:
    at any stopping time, for a class named in advance, or for all of `classes` at once.

    >>> low, high = interval(8, 10, level=0.95)
    >>> round(low, 3), round(high, 3)
    (0.353, 0.99)
    """
    counts = isinstance(k, Integral) and isinstance(n, Integral)
    if not counts or isinstance(k, bool) or not 0 <= k <= n:
        raise BadInput(
            f"k = {k!r} of n = {n!r} votes cannot be; give whole numbers with 0 <= k <= n"
        )
    floor = math.log((1 - probability(level, "level")) / whole(classes, "classes"))
    return _lower(k, n, floor), 1.0 - _lower(n - k, n, floor)


def _lower(k: int, n: int, floor: float) -> float:
    """The left end of the masses whose log Beta density exceeds `floor`, rounded outwards."""
    if k == 0:
        return 0.0
    constant = math.lgamma(n + 2) - math.lgamma(k + 1) - math.lgamma(n - k + 1)

    def inside(p: float) -> bool:
        rest = (n - k) * math.log1p(-p) if k < n else 0.0
        return constant + k * math.log(p) + rest > floor

    outer, inner = 0.0, k / n  # the density rises up to its mode k / n
    while outer < (middle := (outer + inner) / 2) < inner:
        if inside(middle):
            inner = middle
        else:
            outer = middle
    return outer
