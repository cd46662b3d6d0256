"""Dynamic programming with a price on each error, and the best prices.

All values are per arrangement: at (n, k) the share of the orders of k hits in n votes that are
still open flows on, and what happens there weighs P(k hits in n votes), so that nothing under- or
overflows however many votes there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # its `special` is loaded at first use: it takes longer to import than numpy
from numpy.typing import NDArray

from suffice.curtail import forced
from suffice.lattice import Floats
from suffice.rule import Counts

__all__ = [
    "ROUNDING",
    "Problem",
    "Totals",
    "Vertex",
    "best_prices",
    "binomial_tables",
    "onward",
    "solve",
]

Totals = NDArray[np.float64]  # (3,): E_w[N] less what declarations save, OC(tau), 1 - OC(q_alt)
ROUNDING = 1e-12  # relative; a design that just fits must fit although its sums round differently
CONVERGED = 1e-9  # relative to the value of the dual
STEPS = 400


@dataclass(frozen=True, eq=False)
class Problem:
    """What is minimised and under which constraints, as tables over the lattice."""

    tau: float
    eps: float
    miss: float
    n_max: int
    looks: NDArray[np.bool_]
    """Whether the rule may decide at n, shape (n_max+1,)."""
    cost: list[Floats]
    """[n]: sum_j w_j P(k of n | q_j), shape (n+1,)."""
    false: list[Floats]
    """[n]: P(k of n | tau), shape (n+1,)."""
    missed: list[Floats]
    """[n]: P(k of n | q_alt), shape (n+1,)."""
    reward: list[Floats]
    """[n]: what a declaration at (n, k) saves, weighed as `cost` is, shape (n+1,)."""

    @classmethod
    def of(
        cls,
        tau: float,
        q_alt: float,
        eps: float,
        power: float,
        n_max: int,
        masses: Floats,
        shares: Floats,
        every: int,
    ) -> Problem:
        """Fill the tables; masses and shares have shape (J,)."""
        n = np.arange(n_max + 1)
        cost = [shares @ table for table in binomial_tables(n_max, masses)]
        false, missed = zip(*binomial_tables(n_max, np.array([tau, q_alt])), strict=True)
        looks = (n % every == 0) | (n == n_max)
        nothing = [np.zeros(votes + 1) for votes in n]
        return cls(tau, eps, 1.0 - power, n_max, looks, cost, list(false), list(missed), nothing)

    @cached_property
    def limits(self) -> Floats:
        """The two constraints with slack for rounding, shape (2,)."""
        # 1 - power is itself a difference of rounded numbers.
        return np.array([self.eps, self.miss]) * (1 + ROUNDING) + [0.0, ROUNDING * 1e-3]

    def feasible(self, totals: Totals) -> bool:
        """Whether both constraints hold."""
        return bool((totals[1:] <= self.limits).all())

    def priced(self, totals: Totals, prices: Floats) -> float:
        """The Lagrangian of a rule with these totals."""
        return float(totals[0] + prices @ (totals[1:] - [self.eps, self.miss]))

    def at_looks(self, declare: Counts, stop: Counts) -> tuple[Counts, Counts]:
        """The boundaries with nothing declared and nothing out between looks."""
        n = np.arange(self.n_max + 1)
        return np.where(self.looks, declare, n + 1), np.where(self.looks, stop, 0)


@dataclass(frozen=True, eq=False)
class Vertex:
    """The best rule at some prices, and where it is one, its boundaries."""

    totals: Totals
    declare: Counts
    stop: Counts
    values: list[Floats]
    """[n]: the least priced value of going on from (n, k), shape (n+1,)."""


def solve(problem: Problem, prices: Floats) -> Vertex:
    """Backwards over n: declare, put out, or go on, whichever is cheapest at these prices."""
    n_max = problem.n_max
    declare, stop = np.zeros((2, n_max + 1), dtype=np.int64)
    values: list[Floats] = []
    after = np.zeros((3, n_max + 2))
    for n in range(n_max, -1, -1):
        declared_value = prices[0] * problem.false[n] - problem.reward[n]
        out_value = prices[1] * problem.missed[n]
        if n == n_max:
            going = np.full((3, n + 1), np.inf)
        else:
            going = onward(after, n)
            going[0] += problem.cost[n]
        k = np.arange(n + 1)
        value = going[0] + prices @ going[1:] if n < n_max else going[0]
        values.append(value)
        if not problem.looks[n]:
            after, declare[n] = going, n + 1
            continue
        declares = (declared_value < out_value) & (k > 0)
        ended = np.zeros((3, n + 1))
        ended[0] = declares * -problem.reward[n]
        ended[1], ended[2] = declares * problem.false[n], ~declares * problem.missed[n]
        ends = np.where(declares, declared_value, out_value) <= value
        after = np.where(ends, ended, going)
        # The upper set of counts that declare, and the lower set of counts that are out.
        inside = np.flatnonzero(~(ends & declares))
        declare[n] = max(int(inside[-1]) + 1 if inside.size else 0, 1)
        above = np.flatnonzero(~(ends & ~declares))
        stop[n] = min(int(above[0]) if above.size else n + 1, declare[n])
    return Vertex(after[:, 0], *_tidy(problem, declare, stop), values[::-1])


def onward(after: Floats, n: int) -> Floats:
    """Values at (n, k) of what follows the next vote, from those at n+1; last axis n+2 to n+1."""
    hit = np.arange(1, n + 2) / (n + 1)
    miss = hit[::-1]
    return np.asarray(hit * after[..., 1 : n + 2] + miss * after[..., : n + 1])


def _tidy(problem: Problem, declare: Counts, stop: Counts) -> tuple[Counts, Counts]:
    stop = np.minimum(np.maximum.accumulate(stop), declare)
    return problem.at_looks(*forced(declare, stop))


def best_prices(problem: Problem) -> tuple[Floats, float, list[Vertex]]:
    """The prices that maximise the dual, its value (the lower bound), and the rules met.

    Kelley's cutting planes: each rule bounds the concave dual from above by a plane in the two
    prices, and the next prices are where the lowest of the planes is highest.
    """
    from scipy.optimize import linprog

    prices, best, bound = np.array([1.0, 1.0]) * problem.n_max, np.zeros(2), -np.inf
    box = 100.0 * problem.n_max
    vertices: list[Vertex] = []
    for _ in range(STEPS):
        vertex = solve(problem, prices)
        vertices.append(vertex)
        value = problem.priced(vertex.totals, prices)
        if value > bound:
            best, bound = prices, value
        totals = np.array([seen.totals for seen in vertices])
        slopes = totals[:, 1:] - [problem.eps, problem.miss]
        planes = np.column_stack([np.ones(len(totals)), -slopes])
        top = linprog(
            [-1.0, 0.0, 0.0],
            A_ub=planes,
            b_ub=totals[:, 0],
            bounds=[(None, None), (0, box), (0, box)],
            method="highs",
        )
        if top.x is None:  # the planes bound nothing: no rule keeps both constraints
            break
        prices = top.x[1:]
        if -top.fun <= bound + CONVERGED * max(abs(bound), 1.0):
            if prices.max() < box * 0.999:
                break
            box *= 100.0
    return best, bound, vertices


def binomial_tables(n_max: int, q: Floats) -> list[Floats]:
    """[n]: P(k of n | q_j), shape (J, n+1), for n up to n_max."""
    special = scipy.special
    tables = []
    for n in range(n_max + 1):
        k = np.arange(n + 1)
        log = special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)
        hits, misses = special.xlogy(k, q[:, None]), special.xlog1py(n - k, -q[:, None])
        tables.append(np.exp(log + hits + misses))
    return tables
