"""Deterministic rules that meet the constraints: a local search, and a proof where it is cheap.

The vertices of the dual are seldom the best rules without randomisation: each spends a little too
much or too little of what the constraints allow. Moving single entries of the boundaries changes
the decision at single states, whose effect is known exactly from one pass forwards and one back.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.lattice import Floats
from suffice.priced import Problem, Totals, onward, solve
from suffice.rule import Counts

__all__ = ["Found", "exhaust", "improve", "still_open", "totals_of"]

Found = tuple[Totals, Counts, Counts]
TRIES = 24  # pairs of moves looked at exactly, of those that seem to help
DEAREST = 1e300  # no rule costs as much
CELLS = 2_000_000  # partial rules times counts held at once in the exhaustive search
NEGLIGIBLE = 1e-13  # a move that changes no total by more is none
GAIN = 1e-11  # relative; what counts as better


def improve(problem: Problem, declare: Counts, stop: Counts, most: int | None = None) -> Found:
    """Move one entry, or two at once, for as long as that helps; or one, at `most` so often."""
    declare, stop = declare.copy(), stop.copy()
    totals, moves = _look_around(problem, declare, stop)
    moved = 0
    while moved != most:
        step = _single(problem, totals, moves)
        if step is None and most is None:
            step = _pair(problem, totals, declare, stop, moves)
        if step is None:
            break
        moved += 1
        declare, stop = _moved(declare, stop, *(moves.entry(i) for i in step))
        totals, moves = _look_around(problem, declare, stop)
    return totals, declare, stop


def totals_of(problem: Problem, declare: Counts, stop: Counts) -> Totals:
    """What a rule costs, declares wrongly and misses, by one pass forwards."""
    totals = np.zeros(3)
    for n, share in enumerate(_reach(declare, stop)):
        up, low = int(declare[n]), int(stop[n]) if n < problem.n_max else n + 1
        low = min(low, up)
        totals[0] -= share[up:] @ problem.reward[n][up:]
        totals[0] += share[low:up] @ problem.cost[n][low:up]
        totals[1] += share[up:] @ problem.false[n][up:]
        totals[2] += share[:low] @ problem.missed[n][:low]
    return totals


class _Moves:
    """Changes of one entry by one, and what each alone adds to the totals, shape (X, 3)."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, int]] = []  # 0 declare or 1 stop, n, the change
        self.rows: list[Floats] = []

    def add(self, which: int, n: int, change: int, effect: Floats) -> None:
        if np.abs(effect).max() > NEGLIGIBLE:
            self.entries.append((which, n, change))
            self.rows.append(effect)

    def entry(self, index: int) -> tuple[int, int, int]:
        return self.entries[index]

    @property
    def effects(self) -> Floats:
        return np.array(self.rows).reshape(-1, 3)


def _moved(declare: Counts, stop: Counts, *entries: tuple[int, int, int]) -> tuple[Counts, Counts]:
    boundaries = declare.copy(), stop.copy()
    for which, n, change in entries:
        boundaries[which][n] += change
    return boundaries


def _look_around(problem: Problem, declare: Counts, stop: Counts) -> tuple[Totals, _Moves]:
    """The totals of a rule, and the exact effect of each change of one entry by one."""
    n_max = problem.n_max
    reach = _reach(declare, stop)
    moves = _Moves()
    after = np.zeros((3, n_max + 2))
    for n in range(n_max, -1, -1):
        declared, out = np.zeros((2, 3, n + 1))
        declared[0] = -problem.reward[n]
        declared[1], out[2] = problem.false[n], problem.missed[n]
        going = out
        if n < n_max:
            going = onward(after, n)
            going[0] += problem.cost[n]
        after = going.copy()
        if not problem.looks[n]:
            continue
        up, low = int(declare[n]), int(stop[n])
        after[:, up:], after[:, :low] = declared[:, up:], out[:, :low]
        share = reach[n]
        if up <= n:
            moves.add(0, n, 1, share[up] * (going - declared)[:, up])
        if up > max(low, 1):
            moves.add(0, n, -1, share[up - 1] * (declared - going)[:, up - 1])
        if low < min(up, n + 1):
            moves.add(1, n, 1, share[low] * (out - going)[:, low])
        if low > 0:
            moves.add(1, n, -1, share[low - 1] * (going - out)[:, low - 1])
    return after[:, 0], moves


def still_open(declare: Counts, stop: Counts) -> list[Floats]:
    """[n]: the share of the orders of k hits in n votes that go on beyond n, shape (n+1,)."""
    reach = _reach(declare, stop)
    for n, share in enumerate(reach):
        share[declare[n] :] = 0.0
        share[: stop[n]] = 0.0
    reach[-1][:] = 0.0
    return reach


def _reach(declare: Counts, stop: Counts) -> list[Floats]:
    """[n]: the share of the orders of k hits in n votes that come to a decision at (n, k)."""
    share = np.ones(1)
    reach = [share]
    for n in range(1, len(declare)):
        share = share.copy()
        share[declare[n - 1] :] = 0.0
        share[: stop[n - 1]] = 0.0
        k = np.arange(n + 1)
        after = np.zeros(n + 1)
        after[1:] = k[1:] / n * share
        after[:-1] += (n - k[:-1]) / n * share
        share = after
        reach.append(share)
    return reach


def _merit(problem: Problem, totals: Floats) -> tuple[Floats, Floats]:
    """How far the constraints are exceeded, and the cost; totals has shape (..., 3)."""
    over = np.maximum(totals[..., 1:] - problem.limits, 0.0) / [problem.eps, problem.miss]
    return over.sum(axis=-1), totals[..., 0]


def _better(problem: Problem, totals: Totals, options: Floats) -> NDArray[np.int64]:
    """The options that beat `totals`, best first: constraints before cost."""
    over, cost = _merit(problem, options)
    now_over, now_cost = _merit(problem, totals)
    if now_over > 0:
        good = np.flatnonzero(over < now_over * (1 - GAIN))
    else:
        good = np.flatnonzero((over <= 0) & (cost < now_cost - GAIN * abs(now_cost)))
    return good[np.lexsort((cost[good], over[good]))]


def _single(problem: Problem, totals: Totals, moves: _Moves) -> tuple[int, ...] | None:
    good = _better(problem, totals, totals + moves.effects)
    return (int(good[0]),) if good.size else None


def _pair(
    problem: Problem, totals: Totals, declare: Counts, stop: Counts, moves: _Moves
) -> tuple[int, ...] | None:
    """Two moves that help together; their effects add up but for what one does to the other."""
    effects = moves.effects
    first, second = np.triu_indices(len(effects), 1)
    good = _better(problem, totals, totals + effects[first] + effects[second])
    for index in good[:TRIES]:
        pair = int(first[index]), int(second[index])
        changed = _moved(declare, stop, *(moves.entry(i) for i in pair))
        if (changed[1] > changed[0]).any():
            continue
        exact, _ = _look_around(problem, *changed)
        if _better(problem, totals, exact[None]).size:
            return pair
    return None


def exhaust(problem: Problem, prices: Floats, found: Found | None) -> tuple[Found | None, bool]:
    """Go through all rules that may still be better than `found`; say whether that was possible.

    Rules grow vote by vote; at these prices what is still to come costs at least what the dual
    says, so a partial rule that is already dearer than `found` is dropped. Boundaries need not be
    tried that fall, or that jump: curtailed, they are among the others.
    """
    values = solve(problem, prices).values
    limit = found[0][0] if found else DEAREST
    # One row a partial rule: open interval of counts, shares of orders by count, totals so far.
    low, high = np.zeros((2, 1), dtype=np.int64)
    share, totals = np.ones((1, 1)), np.zeros((1, 3))
    history: list[tuple[NDArray[np.int64], Counts, Counts]] = []
    since = 0  # votes since the last look
    for n in range(problem.n_max + 1):
        if n:
            k = np.arange(n + 1)
            after = np.zeros((len(share), n + 1))
            after[:, 1:] = k[1:] / n * share
            after[:, :-1] += (n - k[:-1]) / n * share
            share, since = after, since + 1
        if not problem.looks[n]:
            totals[:, 0] += share @ problem.cost[n]
            history.append((np.arange(len(low)), np.full(len(low), n + 1), np.zeros_like(low)))
            continue
        steps = np.arange(since + 1)
        up, down = (axis.ravel() for axis in np.meshgrid(steps, steps))
        if n == 0:
            up, down = np.array([0, 0]), np.array([0, 1])
        if n == problem.n_max:
            up, down = steps, np.zeros_like(steps)
        parent = np.repeat(np.arange(len(low)), up.size)
        # Counts first..last go on; what lies above is declared, below out.
        last = high[parent] + np.tile(up, len(low))
        first = low[parent] + np.tile(down, len(low))
        if n == problem.n_max:
            first = last + 1
        fine = (first <= last + 1) & (last <= n)
        parent, first, last = parent[fine], first[fine], last[fine]
        if len(parent) * (n + 1) > CELLS:
            return found, False
        k = np.arange(n + 1)
        share, totals = share[parent], totals[parent]
        declares, out = k > last[:, None], k < first[:, None]
        if n == 0:
            declares[:] = False
        totals[:, 0] -= (share * declares) @ problem.reward[n]
        totals[:, 1] += (share * declares) @ problem.false[n]
        totals[:, 2] += (share * out) @ problem.missed[n]
        share = share * ~(declares | out)
        history.append((parent, np.minimum(last + 1, n + 1), np.minimum(first, n + 1)))
        over, _ = _merit(problem, totals)
        done = (first > last) & (over <= 0)
        if done.any():
            row = int(np.flatnonzero(done)[totals[done, 0].argmin()])
            if totals[row, 0] < limit - GAIN * abs(limit):
                limit = float(totals[row, 0])
                found = (totals[row].copy(), *_trace(problem, history, row))
        bound = share @ values[n] if n < problem.n_max else np.zeros(len(share))
        bound = bound + totals[:, 0] + (totals[:, 1:] - [problem.eps, problem.miss]) @ prices
        keep = (first <= last) & (over <= 0) & (bound < limit - GAIN * abs(limit))
        if not keep.any():
            break
        totals[:, 0] += share @ problem.cost[n]
        low, high, share, totals = first[keep], last[keep], share[keep], totals[keep]
        parent, declare, stop = history[-1]
        history[-1] = parent[keep], declare[keep], stop[keep]
        since = 0
    return found, True


def _trace(
    problem: Problem, history: list[tuple[NDArray[np.int64], Counts, Counts]], row: int
) -> tuple[Counts, Counts]:
    """The boundaries of a rule that has come to its end in the last step of the search."""
    declare, stop = np.zeros((2, problem.n_max + 1), dtype=np.int64)
    last = len(history) - 1
    declare[last:] = stop[last:] = history[last][1][row]
    for n in range(last, -1, -1):
        parent, up, low = history[n]
        declare[n], stop[n] = up[row], low[row]
        row = int(parent[row])
    return problem.at_looks(np.maximum(declare, 1), stop)
