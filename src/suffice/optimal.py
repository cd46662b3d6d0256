"""The rule that a certificate leaves room for: the least expected samples of one class.

Minimise E_w[N] subject to OC(tau) <= eps, OC(q_alt) >= power and N <= n_max. With a price on each
constraint the problem is dynamic programming on the lattice, and the best prices prove a lower
bound for every rule, randomised ones too. A rule that meets both constraints is then found by
search on the boundaries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.boundaries import binomial_tail, build, smallest_critical_count
from suffice.boundary_search import Found, exhaust, improve
from suffice.errors import BadInput, CalibrationInfeasible
from suffice.inputs import between, probability, whole
from suffice.lattice import Floats, law
from suffice.priced import ROUNDING, Problem, best_prices
from suffice.rule import Counts, Rule

__all__ = ["Optimal", "Weights", "optimal"]

Weights = float | Mapping[float, float] | Sequence[tuple[float, float]] | Floats
SUM_SLACK = 1e-9  # how far from 1 weights may sum through rounding
STARTS = 6  # vertices of the dual that the search starts from
LARGEST_POOL = 100_000  # where the search for a cap that would do gives up


@dataclass(frozen=True)
class Optimal:
    """A rule, and how far it can be from the best there is."""

    rule: Rule
    lower_bound: float
    """No rule with these constraints, randomised ones included, has a smaller E_w[N]."""
    expected_samples: float
    """E_w[N] of the rule."""
    size: float
    """OC(tau) of the rule, at most eps."""
    power: float
    """OC(q_alt) of the rule, at least the power asked for."""
    multipliers: tuple[float, float]
    """The prices, in samples, of a declaration at tau and of a miss at q_alt."""
    proven: bool
    """Whether the search has seen that no other deterministic rule is better."""

    @property
    def gap(self) -> float:
        """How far E_w[N] is above the lower bound, relative to it."""
        return self.expected_samples / self.lower_bound - 1


def optimal(
    tau: Any,
    eps: Any,
    q_alt: Any,
    power: Any,
    n_max: int,
    weights: Weights | None = None,
    every: int = 1,
) -> Optimal:
    """The rule of the least E_w[N] with size <= eps, power >= power at q_alt and N <= n_max.

    `weights` is a law over vote masses: one mass, a mapping from mass to weight, or pairs of
    both, shape (J, 2), such as a histogram of a log's leader masses; q_alt when left out.

    >>> result = optimal(0.5, 0.2, 0.8, 0.7, 8)
    >>> result.size <= 0.2, result.power >= 0.7, result.proven
    (True, True, True)
    """
    low, high = float(probability(tau, "tau")), between(q_alt, "q_alt", tau)
    size, hit = float(probability(eps, "eps")), float(probability(power, "power"))
    if 1.0 - hit == 1.0:
        raise BadInput(f"power = {power} is no more than rounding; choose a larger one")
    n_max, every = whole(n_max, "n_max"), whole(every, "every")
    masses, shares = _law_of_masses(high if weights is None else weights)
    problem = Problem.of(low, high, size, hit, n_max, masses, shares, every)
    fixed = _fixed_pools(low, high, size, np.arange(n_max, n_max + 1))
    if hit > _most_power(low, high, size, n_max) * (1 + ROUNDING):
        raise _infeasible(low, high, size, hit, n_max, float(fixed[0]))
    prices, bound, vertices = best_prices(problem)
    starts = sorted(vertices, key=lambda vertex: problem.priced(vertex.totals, prices))[:STARTS]
    found: Found | None = None
    for start in starts:
        found = _best(problem, found, improve(problem, start.declare, start.stop))
    if found is None:
        found = _best(problem, found, improve(problem, *_pool(problem)))
    found, proven = exhaust(problem, prices, found)
    if found is None:
        raise _infeasible(low, high, size, hit, n_max, float(fixed[0]))
    parameters = {
        "tau": low,
        "eps": size,
        "q_alt": high,
        "power": hit,
        "n_max": n_max,
        "weights": [[float(q), float(w)] for q, w in zip(masses, shares, strict=True)],
        "every": every,
    }
    rule = build(found[1], found[2], "optimal", parameters, every)
    result = law(rule, np.concatenate([[low, high], masses]))
    expected = float(result.expected_samples[2:] @ shares)
    return Optimal(
        rule=rule,
        lower_bound=min(bound, expected),  # equal but for rounding, where the rule is a vertex
        expected_samples=expected,
        size=float(result.declare_probability[0]),
        power=float(result.declare_probability[1]),
        multipliers=(float(prices[0]), float(prices[1])),
        proven=proven,
    )


def _best(problem: Problem, found: Found | None, other: Found) -> Found | None:
    better = problem.feasible(other[0]) and (found is None or other[0][0] < found[0][0])
    return other if better else found


def _law_of_masses(weights: Weights) -> tuple[Floats, Floats]:
    """The masses and their weights, each of shape (J,), once they are known to be a law."""
    if isinstance(weights, Mapping):
        weights = list(weights.items())
    try:
        pairs = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput("weights must be numbers: one mass, or pairs of mass and weight") from None
    if pairs.ndim == 0:
        pairs = np.array([[float(pairs), 1.0]])
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise BadInput(
            f"weights have shape {pairs.shape}; give one mass, or pairs of mass and weight"
        )
    masses, where = np.unique(pairs[:, 0], return_inverse=True)
    wrong = ~((masses >= 0) & (masses <= 1))
    if wrong.any():
        raise BadInput(f"weights hold the mass {masses[wrong][0]:g}; choose masses from 0 to 1")
    wrong = ~(pairs[:, 1] >= 0)
    if wrong.any():
        raise BadInput(f"weights hold the weight {pairs[wrong][0, 1]:g}; choose 0 or more")
    shares = np.bincount(where.ravel(), pairs[:, 1])
    if abs(shares.sum() - 1) > SUM_SLACK:
        raise BadInput(f"weights sum to {shares.sum():.6g}; divide them by their sum")
    return masses, shares / shares.sum()


def _most_power(tau: float, q_alt: float, eps: float, n_max: int) -> float:
    """The power of the best test of n_max votes, randomised too (Neyman and Pearson)."""
    r = int(smallest_critical_count(np.array([n_max]), tau, eps)[0])
    tail = [float(binomial_tail(r, n_max, q)) if r <= n_max else 0.0 for q in (tau, q_alt)]
    more = [float(binomial_tail(r - 1, n_max, q)) if r > 1 else 1.0 for q in (tau, q_alt)]
    share = (eps - tail[0]) / (more[0] - tail[0])
    return tail[1] + share * (more[1] - tail[1])


def _fixed_pools(tau: float, q_alt: float, eps: float, samples: Counts) -> Floats:
    """The power of the one-look rule for each pool size, shape (P,); 0 where none has the size."""
    r = smallest_critical_count(samples, tau, eps)
    power = binomial_tail(np.minimum(r, samples), samples, q_alt)
    return np.where(r <= samples, power, 0.0)


def _pool(problem: Problem) -> tuple[Counts, Counts]:
    """The one-look rule at the cap, as a place to start the search from."""
    n = np.arange(problem.n_max + 1)
    r = int(smallest_critical_count(n[-1:], problem.tau, problem.eps)[0])
    stop = np.maximum(r - problem.n_max + n, 0)
    declare = np.minimum(r, n + 1)
    return problem.at_looks(declare, np.minimum(stop, declare))


def _infeasible(
    tau: float, q_alt: float, eps: float, power: float, n_max: int, best: float
) -> CalibrationInfeasible:
    needed = None
    for first in range(n_max, LARGEST_POOL, 1000):
        samples = np.arange(first, first + 1000)
        enough = _fixed_pools(tau, q_alt, eps, samples) >= power
        if enough.any():
            needed = int(samples[enough.argmax()])
            break
    remedy = f"n_max = {needed} would do" if needed else "lower power, or raise eps or q_alt"
    return CalibrationInfeasible(
        f"power = {power:g} cannot be had at q_alt = {q_alt:g} with {n_max} votes and size {eps:g} "
        f"at tau = {tau:g}: the best pool has {best:.4g}; {remedy}",
        best={"power": best, "n_max": needed},
    )
