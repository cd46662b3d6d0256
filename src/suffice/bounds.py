"""What no rule can beat, and how often a declaration names the vote-law leader."""

from __future__ import annotations

from math import log
from typing import Any

from suffice.curtail import forced
from suffice.errors import BadInput
from suffice.inputs import between, probability
from suffice.lattice import oc
from suffice.rule import Rule

__all__ = ["information_bound", "leader_bound"]


def information_bound(tau: Any, q: Any, size: Any, power: Any) -> float:
    """The fewest samples, on average at q, of any rule with this size and power (Prop. 3).

    >>> round(information_bound(0.70, 0.85, 0.0495, 0.9248), 1)
    41.2
    """
    mass = between(q, "q", tau)
    error, reached = float(probability(size, "size")), float(probability(power, "power"))
    if reached <= error:
        raise BadInput(f"power = {power} is not above size = {size}; choose it between size and 1")
    return _divergence(reached, error) / _divergence(mass, float(probability(tau, "tau")))


def leader_bound(rule: Rule, leader_mass: float) -> float:
    """At least how probably a declaration names the leader, whatever the rivals' masses.

    Where no two classes can both cross, as in a fixed pool with r > S/2, this is the paper's
    OC(p) / (OC(p) + OC(1 - p)). Otherwise a rival may be declared before a leader who would have
    crossed too, and it is 1 - OC(1 - p) / OC(p).

    >>> round(leader_bound(Rule([1, 2, 3, 2], [0, 0, 0, 0], "two of three"), 0.8), 3)
    0.896
    """
    leader, rivals = oc(rule, [leader_mass, 1 - leader_mass])
    if leader <= 0:
        raise BadInput(
            f"leader_mass = {leader_mass}: the rule never declares there; choose a larger mass"
        )
    if two_can_cross(rule):
        return max(0.0, float(1 - rivals / leader))
    return float(leader / (leader + rivals))


def two_can_cross(rule: Rule) -> bool:
    """Whether some vote sequence brings two classes, each looked at alone, to a declaration."""
    _, hope = forced(rule.declare, rule.stop)
    low = high = 0  # counts of one class while it and a rival with all other votes are open
    for n, (top, bottom) in enumerate(zip(rule.declare.tolist(), rule.stop.tolist(), strict=True)):
        high += n > 0
        # One class crosses here; the rival with the most votes may still be able to.
        if high >= top and n - max(top, low) >= hope[n]:
            return True
        low, high = max(low, bottom, n - top + 1), min(high, top - 1, n - bottom)
        if low > high:
            return False
    return False


def _divergence(x: float, y: float) -> float:
    return x * log(x / y) + (1 - x) * log((1 - x) / (1 - y))
