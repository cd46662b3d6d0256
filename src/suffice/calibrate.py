"""From what a certificate must say to the numbers that make the rule: alpha, n_max, S, tau'."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.boundaries import (
    Prior,
    binomial_tail,
    build,
    fixed_rule,
    lower_tail,
    posterior_boundary,
    smallest_critical_count,
)
from suffice.errors import BadInput, CalibrationInfeasible
from suffice.inputs import between, probability, whole
from suffice.lattice import Floats, oc, recursion
from suffice.rule import Counts, Rule

__all__ = [
    "Calibration",
    "calibrate_alpha",
    "certified_tau",
    "cut_down",
    "match_fixed",
    "match_sequential",
    "sequential_rule",
    "smallest_n_max",
]

LARGEST_N_MAX = 2_000  # where the search for a cap gives up
LARGEST_POOL = 100_000  # where the search for a matching fixed pool gives up
ROUNDING = 1e-12  # relative; equal designs must match although their sums round differently
UNIFORM: Prior = (1.0, 1.0)


@dataclass(frozen=True)
class Calibration:
    """A value of alpha for the paper's eq. (3), and the rule that it stands for."""

    alpha: float
    """The shortest decimal inside the interval."""
    above: float
    """The rule is the same for every alpha strictly above this ..."""
    up_to: float
    """... and up to this."""
    size: float
    """OC(tau) of that rule."""


def calibrate_alpha(
    tau: Any, eps: Any, n_max: int, prior: Prior = UNIFORM, every: int = 1
) -> Calibration:
    """The largest declaration region of eq. (3) whose size is at most eps, found exactly.

    Alpha acts only through which of finitely many posterior tails lie below it, so every rule
    owns an interval of alpha. The search steps from interval to interval and ends when no rule
    is left between the largest that fits and the smallest that does not.

    >>> calibrate_alpha(0.70, 0.05, 97).alpha
    0.0091
    """
    mass, limit = float(probability(tau, "tau")), float(probability(eps, "eps"))
    n_max, every = whole(n_max, "n_max"), whole(every, "every")
    n = _looks(n_max, every)
    fits = Calibration(0.0, 0.0, float(lower_tail(n_max, n_max, mass, prior)), 0.0)
    too_large = 1.0
    while fits.up_to < too_large * (1 - ROUNDING):
        alpha = (fits.up_to + too_large) / 2
        boundary = posterior_boundary(n, mass, alpha, prior)
        size = float(_declared(boundary, n, mass).sum())
        above, up_to = _interval(boundary, n, mass, prior)
        if size <= limit:
            fits = Calibration(alpha, above, up_to, size)
        else:
            too_large = above
    if fits.size == 0:
        needed = _unanimous(mass, limit)
        best = float(mass**n_max)
        raise CalibrationInfeasible(
            f"eps = {eps}: even {n_max} votes of {n_max} have size {best:.3g} at tau = {tau}; "
            f"raise n_max to at least {needed} or eps to at least {best:.3g}",
            best={"n_max": n_max, "size": best, "smallest_n_max": needed},
        )
    return Calibration(_shortest_decimal(fits.above, fits.up_to), fits.above, fits.up_to, fits.size)


def smallest_n_max(
    tau: Any,
    eps: Any,
    q_alt: Any,
    power: Any,
    prior: Prior = UNIFORM,
    every: int = 1,
    fewest_looks: int = 1,
) -> tuple[int, Calibration]:
    """The smallest cap at which the calibrated rule reaches a power at q_alt, and its alpha.

    Power is a sawtooth in n_max, so every cap is passed in turn; the steps may be long, because
    no later cap affords a larger alpha than an earlier one. The cap is a multiple of `every`.
    A rule that can declare at fewer than `fewest_looks` votes is passed over.

    >>> smallest_n_max(0.70, 0.05, 0.85, 0.92)[0]
    95
    """
    mass, alternative = float(probability(tau, "tau")), between(q_alt, "q_alt", tau)
    wanted = float(probability(power, "power")) * (1 - ROUNDING)
    limit, every = float(probability(eps, "eps")), whole(every, "every")
    largest = LARGEST_N_MAX // every * every
    best: dict[str, Any] = {"n_max": 0, "power": 0.0}
    n_max = _most_powerful_pool(mass, limit, alternative, wanted)
    n_max = min(largest, max(n_max, _unanimous(mass, limit)))
    n_max += -n_max % every
    while n_max <= largest:
        found = calibrate_alpha(tau, eps, n_max, prior, every)
        horizon = _looks(min(2 * n_max, largest), every)
        boundary = posterior_boundary(horizon, mass, found.up_to, prior)
        declared = _declared(boundary, horizon, alternative)
        reached = declared.cumsum()
        here = float(reached[n_max])
        if here >= wanted and np.count_nonzero(declared[: n_max + 1]) >= fewest_looks:
            return n_max, found
        if here > best["power"]:
            best = {"n_max": n_max, "power": here, "alpha": found.alpha, "size": found.size}
        enough = np.flatnonzero(reached >= wanted)
        further = int(enough[0]) if enough.size else int(horizon.size)
        n_max = max(n_max + 1, further)
        n_max += -n_max % every
    raise CalibrationInfeasible(
        f"power = {power} at q_alt = {q_alt} is not reached with n_max up to {largest}; "
        "choose q_alt further above tau, a smaller power, or name n_max",
        best=best,
    )


def sequential_rule(
    tau: Any,
    alpha: float,
    n_max: int,
    prior: Prior = UNIFORM,
    every: int = 1,
    curtailed: bool = True,
    **given: Any,
) -> Rule:
    """The rule of the paper's eq. (3) for this alpha; what else was `given` is remembered."""
    mass, level = float(probability(tau, "tau")), float(probability(alpha, "alpha"))
    n_max = whole(n_max, "n_max")
    n = np.arange(n_max + 1)
    declare = posterior_boundary(n, mass, level, prior)
    if declare[-1] > n_max:
        needed = float(lower_tail(n_max, n_max, mass, prior))
        raise BadInput(
            f"alpha = {alpha} never declares with n_max = {n_max} at tau = {tau}; "
            f"raise alpha above {needed:.3g} or raise n_max"
        )
    parameters = {"tau": mass, **given, "alpha": level, "n_max": n_max, "prior": list(prior)}
    return build(declare, np.zeros_like(declare), "sequential", parameters, every, curtailed)


def cut_down(value: float, places: int) -> float:
    """A certified tau with fewer decimals: cut, as one that is rounded up is not certified.

    >>> cut_down(0.77518, 4), cut_down(0.29, 2)
    (0.7751, 0.29)
    """
    scale: int = 10**places
    return int(Fraction(str(round(value, 9))) * scale) / scale


def certified_tau(rule: Rule, eps: Any) -> float:
    """The largest q with OC(q) <= eps: any class below it is declared with at most that chance.

    >>> round(certified_tau(Rule([1, 2, 3, 2], [0, 0, 0, 0], "two of three"), 0.5), 6)
    0.5
    """
    limit = float(probability(eps, "eps"))
    low, high = 0.0, 1.0
    if oc(rule, 1.0) <= limit:
        return 1.0
    for _ in range(14):  # 17 ** 14 cells: the last is as narrow as floats are
        grid = np.linspace(low, high, 18)
        beyond = np.flatnonzero(oc(rule, grid) > limit)
        if not beyond.size or beyond[0] == 0:
            break  # the cell is so narrow that rounding decides
        low, high = float(grid[beyond[0] - 1]), float(grid[beyond[0]])
    return low


def match_fixed(rule: Rule, tau: Any, q_alt: Any, tolerance: float = 0.0) -> Rule:
    """The smallest fixed pool with at most the rule's size at tau and at least its power at q_alt.

    `tolerance` loosens the power only.

    >>> dict(match_fixed(sequential_rule(0.70, 0.0091, 97), 0.70, 0.85).parameters)["samples"]
    73
    """
    mass, alternative = float(probability(tau, "tau")), between(q_alt, "q_alt", tau)
    size, limit, wanted = _to_match(rule, tau, q_alt, tolerance)
    for first in range(1, LARGEST_POOL, 1_000):
        samples = np.arange(first, first + 1_000)
        r = smallest_critical_count(samples, mass, limit)
        reached = np.where(
            r <= samples, binomial_tail(np.minimum(r, samples), samples, alternative), 0.0
        )
        enough = np.flatnonzero((reached >= wanted) & (2 * r > samples))
        if enough.size:
            at = int(enough[0])
            parameters = {"tau": mass, "eps": size, "q_alt": alternative}
            return fixed_rule(int(samples[at]), int(r[at]), "one-look", parameters, 1, True)
    raise CalibrationInfeasible(
        f"no fixed pool of up to {LARGEST_POOL} samples has size {size:.3g} at tau = {tau} and "
        f"power {wanted:.3g} at q_alt = {q_alt}; choose q_alt further above tau, or a tolerance",
        best={"size": size, "power": float(reached[-1]), "samples": int(samples[-1])},
    )


def match_sequential(rule: Rule, tau: Any, q_alt: Any, tolerance: float = 0.0) -> Rule:
    """The sequential rule of the smallest cap with at most a rule's size and at least its power.

    A rule that can declare at one vote only is a fixed pool, and no match for one. `tolerance`
    loosens the power only.

    >>> fixed = fixed_rule(32, 28, "one-look", {"tau": 0.7}, 1, True)
    >>> match_sequential(fixed, 0.70, 0.93).n_max
    42
    """
    size, limit, wanted = _to_match(rule, tau, q_alt, tolerance)
    n_max, found = smallest_n_max(tau, limit, q_alt, wanted, fewest_looks=2)
    return sequential_rule(
        tau, found.alpha, n_max, eps=size, q_alt=float(q_alt), power=float(wanted)
    )


def _to_match(rule: Rule, tau: Any, q_alt: Any, tolerance: float) -> tuple[float, float, float]:
    """The rule's size, and with slack for rounding the size allowed and the power wanted."""
    masses = [float(probability(tau, "tau")), between(q_alt, "q_alt", tau)]
    size, power = (float(chance) for chance in oc(rule, masses))
    if size <= 0:
        raise BadInput(f"the rule never declares at tau = {tau}; match one that can")
    if not 0 <= tolerance < power:
        raise BadInput(
            f"tolerance = {tolerance} is outside 0 to the rule's power {power:.3g}; choose less"
        )
    return size, size * (1 + ROUNDING), (power - tolerance) * (1 - ROUNDING)


def _unanimous(tau: float, eps: float) -> int:
    """The fewest votes whose agreement has at most this probability at tau."""
    return int(np.ceil(np.log(eps) / np.log(tau)))


def _looks(n_max: int, every: int) -> NDArray[np.int64]:
    """0..n_max, with -1 in place of each n that is no look."""
    n = np.arange(n_max + 1)
    return np.where((n % every == 0) | (n == n_max), n, -1)


def _declared(boundary: Counts, n: NDArray[np.int64], q: float) -> Floats:
    declare = np.where(n < 0, np.arange(n.size) + 1, boundary)
    declared, _, _ = recursion(declare, np.zeros_like(declare), np.array([q]))
    return np.asarray(declared[0])


def _interval(
    boundary: Counts, n: NDArray[np.int64], tau: float, prior: Prior
) -> tuple[float, float]:
    """The alphas that give this boundary: strictly above the first number, up to the second."""
    declaring = (boundary <= n) & (n > 0)
    short = (boundary > 1) & (n > 0)
    inside = lower_tail(n[declaring], boundary[declaring], tau, prior)
    outside = lower_tail(n[short], boundary[short] - 1, tau, prior)
    return float(inside.max(initial=0.0)), float(outside.min(initial=1.0))


def _most_powerful_pool(tau: float, eps: float, q_alt: float, power: float) -> int:
    """The smallest number of votes from which any test at all has this size and power.

    No rule capped at n votes beats the randomised binomial test on n votes (Neyman, Pearson).
    """
    for first in range(1, LARGEST_N_MAX + 1, 1_000):
        n = np.arange(first, first + 1_000)
        r = smallest_critical_count(n, tau, eps)
        size, reached = (
            np.where(r <= n, binomial_tail(np.minimum(r, n), n, q), 0.0) for q in (tau, q_alt)
        )
        more_size, more_reached = (
            np.where(r > 1, binomial_tail(np.maximum(r - 1, 1), n, q), 1.0) for q in (tau, q_alt)
        )
        share = (eps - size) / (more_size - size)
        best = reached + share * (more_reached - reached)
        enough = np.flatnonzero(best >= power)
        if enough.size:
            return int(n[enough[0]])
    return LARGEST_N_MAX + 1


def _shortest_decimal(above: float, up_to: float) -> float:
    """The decimal of fewest digits strictly between two numbers, the largest of them."""
    for digits in range(1, 18):
        scale = 10**digits
        decimal = Fraction(ceil(Fraction(up_to) * scale) - 1, scale)
        if above * (1 + ROUNDING) < decimal < up_to * (1 - ROUNDING):
            return float(decimal)
    return (above + up_to) / 2
