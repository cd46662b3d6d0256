"""The counts at which each kind of rule declares, and how boundaries become a rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.curtail import curtail
from suffice.errors import BadInput
from suffice.rule import Counts, Rule

__all__ = [
    "binomial_tail",
    "build",
    "first_count",
    "fixed_rule",
    "lower_tail",
    "mixture_boundary",
    "only_at_looks",
    "plug_in_count",
    "posterior_boundary",
    "smallest_critical_count",
]

Floats = NDArray[np.float64]
Prior = tuple[float, float]


def build(
    declare: Counts,
    stop: Counts,
    name: str,
    parameters: Mapping[str, Any],
    every: int = 1,
    curtailed: bool = True,
) -> Rule:
    """The rule with these boundaries at each `every`-th vote and at the cap, and no look else."""
    declare, stop = only_at_looks(declare, stop, every)
    given = {key: value for key, value in parameters.items() if value is not None}
    given |= {"every": every, "curtailed": curtailed}
    try:
        rule = Rule(declare, stop, name, given)
    except BadInput:
        raise BadInput(
            f"tau = {given['tau']} with every = {every} lets two classes cross at one look; "
            "choose tau of at least 0.5, a smaller eps or more looks"
        ) from None
    return curtail(rule, every) if curtailed else rule


def only_at_looks(declare: Counts, stop: Counts, every: int) -> tuple[Counts, Counts]:
    """The boundaries with nothing declared and nothing out between looks."""
    n = np.arange(declare.size)
    look = (n % every == 0) | (n == declare.size - 1)
    return np.where(look, declare, n + 1), np.where(look, stop, 0)


def fixed_rule(
    samples: int, r: int, name: str, parameters: Mapping[str, Any], every: int, curtailed: bool
) -> Rule:
    """A fixed pool that declares from r votes on."""
    if 2 * r <= samples:
        raise BadInput(
            f"r = {r} of {samples} samples lets two classes be declared; a fixed pool needs "
            "r above half of it: raise tau to at least 0.5, or use a sequential rule"
        )
    declare = np.arange(1, samples + 2)
    declare[samples] = r
    found = {**parameters, "samples": samples, "r": r}
    return build(declare, np.zeros_like(declare), name, found, every, curtailed)


def binomial_tail(r: Any, samples: Any, q: float) -> Any:
    """P(K >= r) for K ~ Bin(samples, q) and 1 <= r <= samples."""
    from scipy.special import betainc  # here, because it takes longer to import than numpy

    return betainc(r, np.subtract(samples, r) + 1.0, q)


def smallest_critical_count(samples: NDArray[np.int64], tau: float, size: float) -> Counts:
    """The paper's eq. (2) for each pool size: the smallest r with P(K >= r) <= size at tau."""
    return first_count(samples, lambda n, k: binomial_tail(k, n, tau) <= size)


def lower_tail(n: Any, k: Any, tau: float, prior: Prior) -> Any:
    """P(pi_c <= tau | k of n votes) under a Beta prior."""
    from scipy.special import betainc

    return betainc(k + prior[0], np.subtract(n, k) + prior[1], tau)


def posterior_boundary(n: NDArray[np.int64], tau: float, alpha: float, prior: Prior) -> Counts:
    """b(n) of the paper's eq. (3): the posterior above tau strictly exceeds 1 - alpha.

    >>> posterior_boundary(np.arange(1, 6), 0.5, 0.1, (1, 1)).tolist()
    [2, 3, 3, 4, 5]
    """
    # As a lower tail below alpha, not an upper tail above 1 - alpha, which would round.
    return first_count(n, lambda n, k: lower_tail(n, k, tau, prior) < alpha)


def mixture_boundary(n: NDArray[np.int64], tau: float, eps: float) -> Counts:
    """Where a bet against q <= tau, mixed uniformly over (tau, 1), has grown to 1 / eps.

    >>> mixture_boundary(np.arange(1, 8), 0.5, 0.1).tolist()
    [2, 3, 4, 5, 5, 6, 7]
    """
    from scipy.special import betaincc, betaln

    def grown(n: NDArray[np.int64], k: NDArray[np.int64]) -> NDArray[np.bool_]:
        with np.errstate(divide="ignore"):  # a wealth of 0 has no logarithm, and has not grown
            above = np.log(betaincc(k + 1.0, n - k + 1.0, tau))
        wealth = betaln(k + 1.0, n - k + 1.0) + above
        stake = k * np.log(tau) + (n - k + 1) * np.log1p(-tau)
        return np.asarray(wealth - stake >= -np.log(eps))

    return first_count(n, grown)


def first_count(
    n: NDArray[np.int64], crosses: Callable[[NDArray[np.int64], NDArray[np.int64]], Any]
) -> Counts:
    """For each n the smallest k in 1..n at which `crosses` (monotone in k) holds, else n + 1."""
    low, high = np.ones_like(n), n + 1
    while (low < high).any():
        middle = (low + high) // 2
        # Where the search has ended, any valid k serves; its answer changes nothing.
        hit = crosses(n, np.minimum(middle, np.maximum(n, 1)))
        searching = low < high
        high = np.where(searching & hit, middle, high)
        low = np.where(searching & ~hit, middle + 1, low)
    return np.asarray(low, dtype=np.int64)


def plug_in_count(samples: int, tau: Fraction) -> int:
    """The smallest count whose share of `samples` exceeds tau: floor(S tau) + 1, exactly."""
    return int(samples * tau) + 1
