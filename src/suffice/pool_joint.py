"""The law of a pool by brute recursion over the counts of all its classes: exact, for a few."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.rule import Rule

__all__ = ["affordable", "joint_law"]

Floats = NDArray[np.float64]
LARGEST = 2e8  # cells times votes times classes: about two seconds


def affordable(rule: Rule, pi: Floats) -> bool:
    """Whether `joint_law` takes at most a few seconds."""
    classes = max(int((pi > 0).sum()), 1)
    return bool((rule.n_max + 2.0) ** classes * rule.n_max * classes <= LARGEST)


def joint_law(rule: Rule, pi: Floats) -> tuple[Floats, Floats]:
    """P(class c declared), shape (C,), and the law of N, shape (n_max+1,), of one vote law.

    >>> joint_law(Rule([1, 2, 2], [0, 0, 1], "two in a row"), np.array([0.5, 0.5]))[0].tolist()
    [0.25, 0.25]
    """
    named = np.flatnonzero(pi > 0)
    if not named.size:
        named = np.arange(1)
    size, out = rule.n_max + 2, rule.n_max + 1  # the last index of an axis: the class is out
    mass = np.zeros((size,) * named.size)
    mass[(0,) * named.size] = 1.0
    all_out = (out,) * named.size
    declared, samples = np.zeros(pi.size), np.zeros(rule.n_max + 1)
    before = 1.0
    for n in range(rule.n_max + 1):
        if n:
            after = max(1.0 - float(pi.sum()), 0.0) * mass
            for axis, c in enumerate(named):
                source, target = np.moveaxis(mass, axis, 0), np.moveaxis(after, axis, 0)
                target[1:out] += pi[c] * source[: out - 1]
                target[out] += pi[c] * source[out]
            mass = after
        up, low = int(rule.declare[n]), int(rule.stop[n])
        for axis, c in enumerate(named):
            counts = np.moveaxis(mass, axis, 0)
            declared[c] += counts[up:out].sum()
            counts[up:out] = 0.0
        for axis in range(named.size):
            counts = np.moveaxis(mass, axis, 0)
            counts[out] += counts[:low].sum(axis=0)
            counts[:low] = 0.0
        mass[all_out] = 0.0
        still = float(mass.sum()) if n < rule.n_max else 0.0
        samples[n] = before - still
        before = still
    return declared, samples
