"""How many votes the leading class has: simulated, for what pools cost.

A pool that declares nothing goes on for as long as some class is not out, and that is nearly
always the one with the most votes. So what a pool costs follows from the leading count as what a
class costs follows from its own count: given k of n votes, every order of them is as likely.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.lattice import Floats

__all__ = ["Leads"]

POOLS = 32_768  # simulated in all, and at least
FEWEST = 4  # of each law
SEED = 1


@dataclass(frozen=True, eq=False)
class Leads:
    """The leading count after each vote, in simulated pools of many vote laws."""

    counts: NDArray[np.int64]
    """Votes of the class with the most of the first n, shape (n_max + 1, pools)."""
    laws: int
    each: int
    """Pools of each law; those of one law follow each other."""

    @classmethod
    def of(cls, laws: Floats, n_max: int) -> Leads:
        """Pools of n_max votes for each row of laws, shape (L, C); what lacks to 1 is invalid.

        >>> Leads.of(np.array([[1.0, 0.0]]), 3).counts[:, 0].tolist()
        [0, 1, 2, 3]
        """
        each = max(FEWEST, -(-POOLS // len(laws)))
        rng = np.random.default_rng(SEED)
        upper = np.repeat(laws.cumsum(axis=1), each, axis=0)
        votes = rng.random((n_max, len(upper)))
        counts = np.zeros((n_max + 1, len(upper)), dtype=np.int64)
        lower = np.zeros(len(upper))
        for c in range(laws.shape[1]):
            hits = (votes >= lower) & (votes < upper[:, c])
            np.maximum(counts[1:], hits.cumsum(axis=0), out=counts[1:])
            lower = upper[:, c]
        return cls(counts, len(laws), each)

    def tables(self, weights: Floats) -> list[Floats]:
        """[n]: sum_l w_l P(leading count k of n | law l), shape (n+1,), for weights (L,)."""
        shares = np.repeat(weights / self.each, self.each)
        some = np.flatnonzero(shares)
        return [
            np.bincount(counts[some], shares[some], n + 1).astype(np.float64)
            for n, counts in enumerate(self.counts)
        ]

    def samples(self, going: list[Floats]) -> Floats:
        """E[N] for each law, (L,), where going[n][k] is the share of orders still open."""
        open_after = np.zeros(self.counts.shape[1])
        for counts, share in zip(self.counts, going, strict=True):
            open_after += share[counts]
        return np.asarray(open_after.reshape(self.laws, self.each).mean(axis=1))
