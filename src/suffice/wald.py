"""Wald's truncated test: two lines on the likelihood ratio and a final cut, searched exactly."""

from __future__ import annotations

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
        best = search.cheapest(cut, 0, search.lowers.size - 1, best)
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
        reach = FURTHEST * self.share / float(np.log((1 - tau) / (1 - q_alt)))
        self.uppers = _between(n, self.share, reach)
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
        """The counts at which the test may end, the likeliest best one first."""
        tau, q_alt = self.masses * self.n_max
        counts = np.arange(max(1, int(tau)), min(self.n_max, int(np.ceil(q_alt))) + 1)
        # A cut below the line just before it is valid only as a majority.
        counts = counts[2 * counts > self.n_max]
        if not counts.size:
            return [None]
        return list(counts[np.abs(counts - self.share * self.n_max).argsort()].tolist())

    def cheapest(
        self, cut: int | None, tight: int, loose: int, best: Design | None
    ) -> Design | None:
        """The better of `best` and the cheapest test of this cut with a lower line in a range."""
        up = self.tightest_upper(cut, tight)
        if up is None or (best is not None and self.cost(cut, tight, up) >= best.cost):
            return best  # looser lower lines fare no better
        if self.chances(cut, tight, up)[1] >= self.power:
            return Design(
                float(self.uppers[up]), float(self.lowers[tight]), cut, self.cost(cut, tight, up)
            )
        # No test in the range has more power than its loosest lower with its tightest upper line.
        if tight == loose or self.chances(cut, loose, up)[1] < self.power:
            return best
        middle = (tight + 1 + loose) // 2
        found = self.cheapest(cut, tight + 1, middle, best)
        if found is not best or middle == loose:
            return found
        return self.cheapest(cut, middle + 1, loose, best)

    def tightest_upper(self, cut: int | None, low: int) -> int | None:
        """The first upper line with a size of at most eps; None where there is none."""
        first, last = 0, self.uppers.size - 1
        if cut is not None:  # below the cut the upper line would be stricter at the cap than before
            first = min(last, int(np.searchsorted(self.uppers, cut - 1 - self.share * self.n_max)))
        if self.chances(cut, low, last)[0] > self.eps:
            return None
        while first < last:
            middle = (first + last) // 2
            if self.chances(cut, low, middle)[0] <= self.eps:
                last = middle
            else:
                first = middle + 1
        return first

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
