"""Wald's truncated test: two lines on the likelihood ratio and a final cut, searched exactly."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from suffice.boundaries import only_at_looks
from suffice.curtail import forced
from suffice.errors import CalibrationInfeasible
from suffice.lattice import Floats, recursion
from suffice.rule import Counts

__all__ = ["Design", "design", "lines", "slope"]

# A line further out than this log likelihood ratio is crossed with probability below exp(-30).
FURTHEST = 30.0


class Design(NamedTuple):
    """Three numbers that make a truncated test, and its E[N] averaged over tau and q_alt."""

    upper: float
    """Declared when k is at least this much above slope * n."""
    lower: float
    """Out when k is more than this much below slope * n."""
    cut: int | None
    """Declared at the cap from this count on; None where the upper line serves there too."""
    cost: float


def slope(tau: float, q_alt: float) -> float:
    """The share of votes at which the likelihood ratio of q_alt to tau stands still."""
    against = np.log((1 - tau) / (1 - q_alt))
    return float(against / (np.log(q_alt / tau) + against))


def lines(
    n_max: int, share: float, upper: float, lower: float, cut: int | None
) -> tuple[Counts, Counts]:
    """The boundaries of a truncated test, shapes ``(n_max + 1,)``.

    >>> declare, stop = lines(6, 0.8, 1.1, 1.5, 5)
    >>> declare.tolist(), stop.tolist()
    ([1, 2, 3, 4, 5, 6, 5], [0, 0, 1, 1, 2, 3, 4])
    """
    n = np.arange(n_max + 1)
    declare = np.clip(np.ceil(share * n + upper), 1, n + 1).astype(np.int64)
    if cut is not None:
        declare[n_max] = cut
    stop = np.clip(np.ceil(share * n - lower), 0, declare).astype(np.int64)
    return declare, stop


def design(tau: float, q_alt: float, eps: float, power: float, n_max: int, every: int) -> Design:
    """The truncated test of this size and power with the smallest mean of E[N] at tau and q_alt.

    Thresholds act only through integer boundaries, so there are finitely many tests. For one cut,
    a tighter lower line affords a tighter upper line, and both end every pool sooner: the best
    test of a cut has the tightest lower line that leaves the power.
    """
    search = _Search(tau, q_alt, eps, power, n_max, every)
    best: Design | None = None
    for cut in search.cuts():
        best = search.best_with_cut(cut, best)
    if best is None:
        size, reached = search.most_powerful()
        raise CalibrationInfeasible(
            f"power = {power:g} at q_alt = {q_alt:g} is out of reach with n_max = {n_max} and "
            f"eps = {eps:g} at tau = {tau:g}; at most {reached:.3g}: raise n_max or lower power",
            best={"n_max": n_max, "size": size, "power": reached},
        )
    return best


class _Search:
    """The finite family: cuts, upper and lower lines, each list from tight to loose."""

    def __init__(
        self, tau: float, q_alt: float, eps: float, power: float, n_max: int, every: int
    ) -> None:
        self.eps, self.power, self.n_max = eps, power, n_max
        self.share = slope(tau, q_alt)
        self.masses = np.array([tau, q_alt])
        n = np.arange(n_max)
        n = n[(n % every == 0) & (n > 0)]
        self.last_look = int(n[-1]) if n.size else 0
        reach = FURTHEST * self.share / float(np.log((1 - tau) / (1 - q_alt)))
        self.uppers = _between(np.append(n, n_max), self.share, reach)  # the cap parts them too
        self.lowers = _between(n, -self.share, reach)

        def boundaries(cut: int | None, low: int, up: int) -> tuple[Counts, Counts]:
            pair = lines(n_max, self.share, float(self.uppers[up]), float(self.lowers[low]), cut)
            return only_at_looks(*pair, every)

        @cache
        def chances(cut: int | None, low: int, up: int) -> tuple[float, float]:
            declared, _, _ = recursion(*boundaries(cut, low, up), self.masses)
            size, reached = declared.sum(axis=1).tolist()
            return size, reached

        @cache
        def cost(cut: int | None, low: int, up: int) -> float:
            ends = only_at_looks(*forced(*boundaries(cut, low, up)), every)
            declared, undecided, _ = recursion(*ends, self.masses)
            return float(((declared + undecided) @ np.arange(n_max + 1.0)).mean())

        self.chances, self.cost = chances, cost

    def cuts(self) -> list[int | None]:
        """The counts at which the test may declare at the cap, the likeliest best one first."""
        counts = np.arange(max(1, int(self.masses[0] * self.n_max)), self.n_max + 1)
        # A cut below the line just before it is valid only as a majority.
        counts = counts[2 * counts > self.n_max]
        likeliest = counts[np.abs(counts - self.share * self.n_max).argsort()].tolist()
        return [None, *likeliest] if 2 * self.share < 1 else list(likeliest)

    def best_with_cut(self, cut: int | None, best: Design | None) -> Design | None:
        """The better of `best` and the cheapest test with this cut."""
        tight, loose = 0, self.lowers.size - 1
        if (
            cut is not None
        ):  # a lower line above the cut just before the cap: the same as a later cut
            tight = int(np.searchsorted(self.lowers, self.share * self.last_look - cut))
        if best is not None:
            dear = self._first(tight, loose + 1, lambda low: self._too_dear(cut, low, best))
            loose = dear - 1
        if tight > loose:
            return best
        return self._cheapest(cut, tight, loose, 0, best)

    def _cheapest(
        self, cut: int | None, tight: int, loose: int, floor: int, best: Design | None
    ) -> Design | None:
        """The better of `best` and the cheapest with a lower line in a range."""
        up = self.tightest_upper(cut, tight, floor)
        if up is None:
            return best  # looser lower lines have more size still
        if self.chances(cut, tight, up)[1] >= self.power:
            cost = self.cost(cut, tight, up)
            if best is not None and cost >= best.cost:
                return best
            return Design(float(self.uppers[up]), float(self.lowers[tight]), cut, cost)
        # No test in the range has more power than its loosest lower with its tightest upper line.
        if tight == loose or self.chances(cut, loose, up)[1] < self.power:
            return best
        middle = (tight + 1 + loose) // 2
        found = self._cheapest(cut, tight + 1, middle, up, best)
        if found is not best or middle == loose:
            return found
        return self._cheapest(cut, middle + 1, loose, up, best)

    def _too_dear(self, cut: int | None, low: int, best: Design) -> bool:
        up = self.tightest_upper(cut, low)
        return up is None or self.cost(cut, low, up) >= best.cost

    def tightest_upper(self, cut: int | None, low: int, floor: int = 0) -> int | None:
        """The first upper line, from `floor` on, with a size of at most eps, if there is one."""
        end = self.uppers.size
        if cut is not None:  # lines that end below the cut would be stricter at the cap than before
            floor = max(floor, int(np.searchsorted(self.uppers, cut - 1 - self.share * self.n_max)))
        floor, step = min(floor, end - 1), 1
        while floor + step < end and self.chances(cut, low, floor + step - 1)[0] > self.eps:
            floor, step = floor + step, 2 * step
        found = self._first(
            floor, min(floor + step, end), lambda up: self.chances(cut, low, up)[0] <= self.eps
        )
        return None if found == end else found

    @staticmethod
    def _first(start: int, end: int, holds: Callable[[int], bool]) -> int:
        """The first index from which a monotone condition holds; `end` if it holds nowhere."""
        while start < end:
            middle = (start + end) // 2
            if holds(middle):
                end = middle
            else:
                start = middle + 1
        return start

    def most_powerful(self) -> tuple[float, float]:
        """Size and power of the most powerful test of the family."""
        loosest = self.lowers.size - 1
        ups = [(cut, self.tightest_upper(cut, loosest)) for cut in self.cuts()]
        found = [self.chances(cut, loosest, up) for cut, up in ups if up is not None]
        return max(found, key=lambda pair: pair[1], default=(0.0, 0.0))


def _between(n: Counts, share: float, reach: float) -> Floats:
    """One offset for each way in which a line ``share * n + offset`` can part the lattice."""
    steps = np.arange(int(reach) + 2)
    offsets = (np.floor(share * n)[:, None] + 1 + steps - (share * n)[:, None]).ravel()
    # Offsets equal but for rounding part the lattice alike.
    distinct = np.unique(offsets.round(9))
    distinct = distinct[distinct <= reach]
    ends = np.concatenate([[0.0], distinct, [4.0 * n.size + reach + distinct.size + 1e6]])
    return np.asarray((ends[1:] + ends[:-1]) / 2)
