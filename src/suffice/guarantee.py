"""A promise on P(wrong | declared): designs tested in a fixed order by exact binomial tests.

Of m declared images that played no part in a design, w are wrong. The design is passed at level
1 - confidence when so few wrong ones would be that unlikely at an error of delta. Designs are
tested in an order fixed beforehand, and testing stops at the first that fails; so the chance that
any design passes whose error is above delta is at most 1 - confidence, however many there are:
for one to pass, the first such design in the order must.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its `special` is loaded at first use: it takes longer to import than numpy
from numpy.typing import ArrayLike, NDArray

from suffice.errors import BadInput
from suffice.inputs import probability

__all__ = ["Trial", "declared_needed", "fixed_sequence", "upper_bound"]

Floats = NDArray[np.float64]
MOST = 1_000_000  # declared images; no test that needs more is looked for
POWER = 0.8  # the chance to pass that `declared_needed` asks for


@dataclass(frozen=True)
class Trial:
    """What the held-out images say of one design."""

    declared: int
    wrong: int
    upper_bound: float
    """P(wrong | declared) is at most this, with the confidence asked for (Clopper, Pearson)."""
    passed: bool
    """Whether it and every design tested before it are within delta."""


def upper_bound(wrong: ArrayLike, declared: ArrayLike, confidence: float) -> Floats:
    """The error rates above this are refuted by `wrong` of `declared`; 1 where none are.

    >>> upper_bound([0, 0, 3], [0, 59, 100], 0.95).round(4).tolist()
    [1.0, 0.0495, 0.0757]
    """
    w, m = np.asarray(wrong, dtype=np.float64), np.asarray(declared, dtype=np.float64)
    right = m - w
    bound = scipy.special.betaincinv(w + 1.0, np.maximum(right, 1.0), confidence)
    return np.asarray(np.where(right > 0, bound, 1.0))


def fixed_sequence(
    wrong: ArrayLike, declared: ArrayLike, delta: float, confidence: float = 0.95
) -> list[Trial]:
    """Test designs in the order given, up to and with the first that fails.

    >>> [each.passed for each in fixed_sequence([0, 1, 9, 0], [99, 99, 99, 99], 0.05)]
    [True, True, False]
    """
    limit = float(probability(delta, "delta"))
    w, m = (np.asarray(counts, dtype=np.int64) for counts in (wrong, declared))
    if w.ndim != 1 or w.shape != m.shape or (w < 0).any() or (w > m).any():
        raise BadInput("give one number wrong and one number declared a design, 0 <= wrong")
    bounds = upper_bound(w, m, float(probability(confidence, "confidence")))
    failed = np.flatnonzero(bounds > limit)
    last = int(failed[0]) if failed.size else len(w) - 1
    return [
        Trial(int(m[at]), int(w[at]), float(bounds[at]), bool(bounds[at] <= limit))
        for at in range(last + 1)
    ]


def declared_needed(rate: float, delta: float, confidence: float = 0.95) -> int | None:
    """The declared images with which a design of this error rate passes four times in five.

    None where no number of images would do, or a million do not.

    >>> declared_needed(0.0, 0.05), declared_needed(0.01, 0.05), declared_needed(0.05, 0.05)
    (59, 124, None)
    """
    limit = float(probability(delta, "delta"))
    level = 1.0 - float(probability(confidence, "confidence"))
    if rate >= limit:
        return None
    allowed, declared = 0, 1
    while declared <= MOST:
        declared = _fewest(allowed, declared, limit, level)
        if scipy.special.bdtr(allowed, declared, rate) >= POWER:
            return declared
        allowed += max(1, allowed // 100)
    return None


def _fewest(allowed: int, least: int, delta: float, level: float) -> int:
    """The fewest declared images, at least `least`, of which `allowed` may be wrong."""
    low, high = max(least, allowed + 1) - 1, max(least, allowed + 1)
    while scipy.special.bdtr(allowed, high, delta) > level:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if scipy.special.bdtr(allowed, middle, delta) > level:
            low = middle
        else:
            high = middle
    return high
