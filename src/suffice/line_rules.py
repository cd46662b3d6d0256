"""Rules between two straight lines: a few of every kind, as places to start a search from."""

from __future__ import annotations

from functools import cache

import numpy as np

from suffice.boundaries import build
from suffice.errors import BadInput
from suffice.lattice import oc
from suffice.rule import Rule

__all__ = ["line_rules"]

BELOW, ABOVE, STEP = 0.09, 0.97, 0.03  # slopes, from tau - BELOW
DEPTHS = (0.2, 0.6, 1.2, 2.0, 3.5, 6.0)  # how far below the slope through nought a class is out
HALVINGS = 12


@cache
def line_rules(tau: float, eps: float, n_max: int) -> tuple[Rule, ...]:
    """Rules that declare above the line a + s n and put out below s n - b, with OC(tau) <= eps.

    For each slope s and depth b, the least a that keeps the certificate.

    >>> all(oc(rule, 0.7) <= 0.05 for rule in line_rules(0.7, 0.05, 8))
    True
    """
    n = np.arange(n_max + 1)
    found: dict[Rule, None] = {}
    for slope in np.arange(max(tau - BELOW, STEP), ABOVE, STEP):
        for depth in DEPTHS:
            low, high, best = 0.0, float(n_max + 2), None
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                declare = np.clip(np.ceil(middle + slope * n), 1, n + 1).astype(np.int64)
                stop = np.clip(np.ceil(slope * n - depth), 0, declare).astype(np.int64)
                try:
                    rule = build(declare, stop, "lines", {"tau": tau, "eps": eps, "n_max": n_max})
                    fits = oc(rule, tau) <= eps
                except BadInput:  # two classes could be declared at once
                    fits = False
                if fits:
                    high, best = middle, rule
                else:
                    low = middle
            if best is not None and (best.declare <= n).any():
                found[best] = None
    return tuple(found)
