"""Exact laws of one class: from a rule and a vote mass to OC(q), E[N] and the law of N."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.errors import BadInput
from suffice.rule import Counts, Rule

__all__ = ["Law", "expected_samples", "law", "oc", "recursion"]

Floats = NDArray[np.float64]
NEGLIGIBLE = 1e-15
WIDE = 512  # narrower windows keep every state, so that tiny probabilities stay exact
PACE = 64  # votes between two searches for states to drop


@dataclass(frozen=True, eq=False)
class Law:
    """How the pool of one class ends, for each vote mass q.

    >>> result = law(Rule([1, 2, 2], [0, 0, 1], "two in a row"), [0.5, 1.0])
    >>> result.declare_probability.tolist(), result.expected_samples.tolist()
    ([0.25, 1.0], [2.0, 2.0])
    """

    q: Floats
    """Vote masses, shape (Q,)."""
    declared: Floats = field(repr=False)
    """P(declared at exactly n), shape (Q, n_max + 1)."""
    undecided: Floats = field(repr=False)
    """P(ended undecided at exactly n), shape (Q, n_max + 1)."""
    dropped: Floats = field(repr=False)
    """Mass of the states left out as negligible, shape (Q,)."""

    @property
    def declare_probability(self) -> Floats:
        """OC(q), shape (Q,)."""
        return np.asarray(self.declared.sum(axis=1))

    @property
    def samples(self) -> Floats:
        """The law of N: P(N = n), shape (Q, n_max + 1)."""
        return self.declared + self.undecided

    @property
    def expected_samples(self) -> Floats:
        """E[N], shape (Q,)."""
        return _mean(self.samples, np.ones_like(self.q))

    @property
    def expected_samples_declared(self) -> Floats:
        """E[N | declared], shape (Q,); nan where that has no probability."""
        return _mean(self.declared, self.declared.sum(axis=1))

    @property
    def expected_samples_undecided(self) -> Floats:
        """E[N | undecided], shape (Q,); nan where that has no probability."""
        return _mean(self.undecided, self.undecided.sum(axis=1))

    def quantile(self, p: float) -> NDArray[np.int64]:
        """The smallest n with P(N <= n) >= p, shape (Q,).

        >>> law(Rule([1, 1, 1], [0, 0, 0], "first vote"), [0.6]).quantile(0.5).tolist()
        [1]
        """
        if not 0 < p <= 1:
            raise BadInput(f"p = {p} is no level of a quantile; choose it above 0 and at most 1")
        # The slack is for rounding: a probability of exactly p must count as reached.
        reached = self.samples.cumsum(axis=1) + self.dropped[:, None] >= p - 1e-12
        reached[:, -1] = True
        return np.asarray(reached.argmax(axis=1))


def law(rule: Rule, q: ArrayLike) -> Law:
    """The exact law of one class's pool at each q (the appendix's recursion, run forwards).

    The pool of that class alone ends when the class is declared or out, or at the cap.

    >>> one_of_two = Rule([1, 1, 1], [0, 0, 1], "one of two")
    >>> law(one_of_two, 0.5).samples.tolist()
    [[0.0, 0.5, 0.5]]
    """
    if not isinstance(rule, Rule):
        raise BadInput(f"{rule!r} is no Rule; make one with suffice.sequential(...)")
    masses = vote_masses(q).ravel()
    return Law(masses, *recursion(rule.declare, rule.stop, masses))


@overload
def oc(rule: Rule, q: float) -> float: ...
@overload
def oc(rule: Rule, q: Sequence[float] | NDArray[Any]) -> Floats: ...
def oc(rule: Rule, q: Any) -> Any:
    """OC(q) = P(class declared | q), of the same shape as q.

    >>> oc(Rule([1, 2, 2], [0, 0, 1], "two in a row"), 0.5)
    0.25
    """
    return _shaped_like(q, law(rule, q).declare_probability)


@overload
def expected_samples(rule: Rule, q: float) -> float: ...
@overload
def expected_samples(rule: Rule, q: Sequence[float] | NDArray[Any]) -> Floats: ...
def expected_samples(rule: Rule, q: Any) -> Any:
    """E[N] of one class's pool, of the same shape as q.

    >>> expected_samples(Rule([1, 1, 1], [0, 0, 1], "one of two"), 0.5)
    1.5
    """
    return _shaped_like(q, law(rule, q).expected_samples)


def vote_masses(q: ArrayLike) -> Floats:
    """The vote masses as an array, once each is known to lie in [0, 1]."""
    try:
        masses = np.asarray(q, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"q = {q!r} is not a vote mass; give numbers from 0 to 1") from None
    wrong = ~((masses >= 0) & (masses <= 1))
    if wrong.any():
        raise BadInput(f"q = {masses[wrong].flat[0]:g} is not a vote mass; choose it from 0 to 1")
    return masses


def recursion(declare: Counts, stop: Counts, q: Floats) -> tuple[Floats, Floats, Floats]:
    """P(declared at n), P(undecided at n), dropped mass: shapes (Q, n_max + 1) twice and (Q,)."""
    tops, bottoms = declare.tolist(), stop.tolist()
    n_max = len(tops) - 1
    declared = np.zeros((q.size, n_max + 1))
    undecided = np.zeros((q.size, n_max + 1))
    dropped = np.zeros(q.size)
    mass = np.zeros((q.size, n_max + 2))  # mass[:, k], k in low..high; nothing lives above high
    mass[:, 0] = 1.0
    hit, miss = q[:, None], 1.0 - q[:, None]
    low = high = 0
    for n in range(n_max + 1):
        if n:
            here = mass[:, low : high + 1]
            up = here * hit
            here *= miss
            high += 1
            mass[:, low + 1 : high + 1] += up
        top, bottom = tops[n], bottoms[n]
        if high >= top:
            first = max(top, low)
            crossed = mass[:, first : high + 1]
            declared[:, n] = crossed[:, 0] if first == high else crossed.sum(axis=1)
            crossed[...] = 0.0
            high = top - 1
        if low < bottom:
            ended = min(bottom, high + 1)
            undecided[:, n] = mass[:, low:ended].sum(axis=1)
            low = bottom
        if low > high:
            return declared, undecided, dropped
        if n % PACE == 0:
            low, high = _drop(mass, low, high, dropped)
            if low > high:
                return declared, undecided, dropped
    undecided[:, n_max] += mass[:, low : high + 1].sum(axis=1)
    return declared, undecided, dropped


def _drop(mass: Floats, low: int, high: int, dropped: Floats) -> tuple[int, int]:
    """Leave out negligible states at both ends of a wide window, and of any that is dying out."""
    window = mass[:, low : high + 1]
    heavy = np.flatnonzero((window > NEGLIGIBLE).any(axis=0))
    if not heavy.size:
        dropped += window.sum(axis=1)
        return low, low - 1
    if window.shape[1] <= WIDE:
        return low, high
    first, last = int(heavy[0]), int(heavy[-1])
    dropped += window[:, :first].sum(axis=1) + window[:, last + 1 :].sum(axis=1)
    window[:, last + 1 :] = 0.0
    return low + first, low + last


def _mean(law_of_n: Floats, total: Floats) -> Floats:
    sums = law_of_n @ np.arange(law_of_n.shape[1], dtype=np.float64)
    return np.divide(sums, total, out=np.full_like(sums, np.nan), where=total > 0)


def _shaped_like(q: Any, values: Floats) -> Any:
    return float(values[0]) if np.ndim(q) == 0 else values.reshape(np.shape(q))
