"""Slow and obvious: what DESIGN.md says, played on every vote sequence."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Sequence

from suffice.rule import Rule

__all__ = ["first_forced", "one_class_law", "play", "play_alone", "pool_law", "sequences"]

UNSEEN = object()
Vote = Hashable | None
Verdict = Hashable | None


def play(rule: Rule, votes: Sequence[Vote]) -> tuple[Verdict, int]:
    """The verdict of a pool on a whole vote sequence (None: undecided) and the votes it drew."""
    classes = {vote for vote in votes if vote is not None} | {UNSEEN}
    count = dict.fromkeys(classes, 0)
    out: set[Hashable] = set()
    for n in range(rule.n_max + 1):
        if n and votes[n - 1] is not None:
            count[votes[n - 1]] += 1
        crossing = [c for c in classes if c not in out and count[c] >= rule.declare[n]]
        if crossing:
            (label,) = crossing  # a valid rule lets one class cross at a time
            return label, n
        out |= {c for c in classes if count[c] < rule.stop[n]}
        if out == classes:
            return None, n
    return None, rule.n_max


def play_alone(rule: Rule, hits: Sequence[bool]) -> tuple[bool, int]:
    """Whether one class is declared, and the votes that the pool of that class alone drew."""
    for n in range(rule.n_max + 1):
        k = sum(hits[:n])
        if k >= rule.declare[n]:
            return True, n
        if k < rule.stop[n]:
            return False, n
    return False, rule.n_max


def one_class_law(rule: Rule, q: float) -> tuple[list[float], list[float]]:
    """P(declared at n) and P(undecided at n), for n = 0..n_max, over all binary sequences."""
    declared, undecided = [0.0] * (rule.n_max + 1), [0.0] * (rule.n_max + 1)
    for hits in itertools.product((False, True), repeat=rule.n_max):
        crossed, n = play_alone(rule, hits)
        chance = math.prod(q if hit else 1 - q for hit in hits)
        (declared if crossed else undecided)[n] += chance
    return declared, undecided


def sequences(n_max: int, labels: Sequence[Vote]) -> Iterator[tuple[Vote, ...]]:
    """All vote sequences of length n_max; put None among the labels for invalid votes."""
    return itertools.product(labels, repeat=n_max)


def pool_law(rule: Rule, pi: Sequence[float]) -> tuple[list[float], float, list[float]]:
    """P(c declared) for each class, P(undecided), P(N = n); masses short of 1 are invalid votes."""
    labels: list[Vote] = [*range(len(pi)), None]
    masses = [*pi, 1 - sum(pi)]
    declared, undecided, samples = [0.0] * len(pi), 0.0, [0.0] * (rule.n_max + 1)
    for votes in sequences(rule.n_max, labels):
        label, n = play(rule, votes)
        chance = math.prod(masses[len(pi) if vote is None else int(str(vote))] for vote in votes)
        samples[n] += chance
        if label is None:
            undecided += chance
        else:
            declared[int(str(label))] += chance
    return declared, undecided, samples


def first_forced(
    rule: Rule, labels: Sequence[Vote], every: int = 1
) -> dict[tuple[Vote, ...], tuple[Verdict, int]]:
    """For each vote sequence its verdict, and the first look after which that verdict is forced.

    Forced: no continuation changes it. Looks are at each `every`-th vote and at the cap.
    """
    verdicts = {votes: {play(rule, votes)[0]} for votes in sequences(rule.n_max, labels)}
    for n in range(rule.n_max, 0, -1):
        for votes in sequences(n, labels):
            verdicts.setdefault(votes[:-1], set()).update(verdicts[votes])
    looks = [n for n in range(rule.n_max + 1) if n % every == 0 or n == rule.n_max]
    return {
        votes: (
            next(iter(verdicts[votes])),
            next(n for n in looks if len(verdicts[votes[:n]]) == 1),
        )
        for votes in sequences(rule.n_max, labels)
    }
