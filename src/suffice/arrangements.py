"""What a rule does to a random arrangement of votes, for one class and for two.

Given how many of n i.i.d. votes each class has, every order of them is equally likely, whatever
the vote masses. So the chance that a class is out, or crosses now, given the counts belongs to
the rule alone: it is computed once and used for every vote law.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from suffice.rule import Counts, Rule

__all__ = ["NEGLIGIBLE", "Arrangements", "Crossings", "arrangements"]

Floats = NDArray[np.float64]
NEGLIGIBLE = 1e-15  # a share below this moves no probability by more


@dataclass(frozen=True, eq=False)
class Crossings:
    """The cells (n, j, k) at which two classes have both crossed, the second at n; shapes (X,)."""

    n: Counts
    first: Counts
    second: Counts
    share: Floats


@dataclass(frozen=True, eq=False)
class Arrangements:
    """Shares of the arrangements of n votes, by n and by the counts of one class or two."""

    crosses: Floats  # (n_max+1, n_max+1): [n, k], the class is declared at n, were it alone
    out: Floats  # (n_max+1, n_max+1): [n, k], the class is out by n
    both_out: list[Floats]  # [n][j, k], both classes are out by n; cut to the counts that matter
    crosses_second: Crossings  # the first class crossed before n, the second crosses at n


@lru_cache(maxsize=4)
def arrangements(rule: Rule) -> Arrangements:
    """Count the arrangements under `rule`, by recursion over the last vote.

    >>> table = arrangements(Rule([1, 2, 2], [0, 0, 0], "two votes"))
    >>> table.crosses[2]
    array([0., 0., 1.])
    """
    size = rule.n_max + 1
    declare, stop = rule.declare.tolist(), rule.stop.tolist()
    crosses, out = np.zeros((size, size)), np.zeros((size, size))
    alive = np.zeros(size)
    alive[0] = 1.0
    # The pair's states: [j, k] shares with both alive, the second out, both out, the first crossed.
    both = np.zeros((size, size))
    both[0, 0] = 1.0
    one_out, two_out, crossed = (np.zeros((size, size)) for _ in range(3))
    both_out, cells = [], []
    for n in range(size):
        if n:
            alive, out[n] = _step(alive, n), _step(out[n - 1], n)
            both, one_out, two_out, crossed = (
                _step_pair(state, n) for state in (both, one_out, two_out, crossed)
            )
        up, low = declare[n], stop[n]
        crosses[n, up:] = alive[up:]
        out[n, :low] += alive[:low]
        alive[:low] = 0.0
        alive[up:] = 0.0

        first, second = np.nonzero(crossed[:, up:])
        cells.append((np.full(first.size, n), first, second + up, crossed[first, second + up]))
        crossed[:, :low] = 0.0
        crossed[:, up:] = 0.0
        crossed[up:] += both[up:]
        crossed[:, :low] = 0.0
        both[up:] = 0.0
        both[:, up:] = 0.0
        one_out[up:] = 0.0
        # From both alive: low-low ends with both out, high-low leaves the first alone alive.
        two_out[:low, :low] += both[:low, :low]
        two_out[:low] += one_out[:low]
        two_out[:, :low] += one_out[:low].T
        one_out[:low] = 0.0
        one_out[low:, :low] += both[low:, :low]
        both[:low] = 0.0
        both[:, :low] = 0.0
        matter = np.flatnonzero((two_out > NEGLIGIBLE).any(axis=0))
        top = int(matter[-1]) + 1 if matter.size else 0
        both_out.append(two_out[:top, :top].copy())
    second_crossings = Crossings(*(np.concatenate(column) for column in zip(*cells, strict=True)))
    return Arrangements(crosses, out, both_out, second_crossings)


def _step(share: Floats, n: int) -> Floats:
    """Shares before the look at n from those after n-1: the last vote is the class's with k/n."""
    k = np.arange(share.size)
    after: Floats = np.maximum(n - k, 0) / n * share
    after[1:] += k[1:] / n * share[:-1]
    return after


def _step_pair(share: Floats, n: int) -> Floats:
    """The same for two classes: the last vote is the first's with j/n, the second's with k/n."""
    k = np.arange(len(share))
    after: Floats = np.maximum(n - k[:, None] - k, 0) / n * share
    after[1:] += (k[1:] / n)[:, None] * share[:-1]
    after[:, 1:] += k[1:] / n * share[:, :-1]
    return after
