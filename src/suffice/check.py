"""Is a vote log what the rules take it for: votes that are independent and alike within a pool?

Under that model every order of a pool's votes is equally likely. So each test compares a number
with what it is after the votes of every pool were shuffled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.errors import BadInput
from suffice.inputs import whole
from suffice.votes import VoteLog

__all__ = ["OrderTest", "check"]


@dataclass(frozen=True, eq=False)
class OrderTest:
    """One number of a log, and the same of its shuffled copies."""

    name: str
    what: str
    """What a departure of this number would mean."""
    observed: float
    shuffled: NDArray[np.float64]
    """(shuffles,)"""

    @property
    def p_value(self) -> float:
        """The chance of a number at least as far out, on either side, if the model holds."""
        above = (self.shuffled >= self.observed).sum()
        below = (self.shuffled <= self.observed).sum()
        return float(min(1.0, 2 * (1 + min(above, below)) / (1 + len(self.shuffled))))


def check(log: VoteLog, shuffles: int = 299, seed: int = 0) -> list[OrderTest]:
    """Three tests of a log: the halves of pools, neighbouring draws, and draws across images.

    >>> votes = np.random.default_rng(0).integers(0, 2, (20, 2, 16), dtype=np.uint8)
    >>> log = VoteLog(np.arange(20), np.zeros(20, int), votes, {})
    >>> [tested.name for tested in check(log, shuffles=19)]
    ['halves', 'neighbours', 'batches']
    """
    shuffles = whole(shuffles, "shuffles")
    if log.draws < 2:
        raise BadInput(f"the log has {log.draws} draw a pool; a check of order needs at least 2")
    # A pool of one label says nothing of order: only the others are shuffled.
    votes = log.votes.transpose(1, 0, 2)
    split = (votes != votes[:, :, :1]).any(axis=2)
    if not split.any():
        raise BadInput("every pool of the log is unanimous; there is no order to check")
    pools = votes[split]
    random = np.random.Generator(np.random.Philox(seed))
    observed = _numbers(pools, split)
    copies = [_numbers(random.permuted(pools, axis=1), split) for _ in range(shuffles)]
    return [
        OrderTest(name, what, value, column)
        for (name, what), value, column in zip(TESTS, observed, np.transpose(copies), strict=True)
    ]


TESTS = (
    ("halves", "the first and the second half of a pool differ: votes drift with the draw"),
    ("neighbours", "a vote goes with the one before it: votes depend on each other"),
    ("batches", "draws of one number go together across images: votes depend on their batch"),
)


def _numbers(pools: NDArray[np.uint8], split: NDArray[np.bool_]) -> list[float]:
    """The three numbers of pools (P, D), which lie where `split` (T, I) says."""
    half = pools.shape[1] // 2
    apart = 0
    most = np.zeros(len(pools), dtype=np.int64)
    with_leader = np.zeros(pools.shape, dtype=bool)
    for c in np.unique(pools):
        hits = pools == c
        early = hits[:, :half].sum(axis=1)
        count = hits.sum(axis=1)
        apart += int(np.square(early - hits[:, -half:].sum(axis=1)).sum())
        with_leader[count > most] = hits[count > most]
        most = np.maximum(most, count)
    alike = pools[:, 1:] == pools[:, :-1]
    # Whether each vote is for its pool's leader, less the mean; neighbours are the images that
    # are drawn side by side.
    lean = np.zeros((*split.shape, pools.shape[1]), dtype=np.float32)
    lean[split] = with_leader - (most / pools.shape[1])[:, None]
    together = np.einsum("tid,tid->", lean[:, 1:], lean[:, :-1])
    return [float(apart), float(alike.sum()), float(together)]
