"""Votes in, verdict out: one pool of votes under one rule."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from suffice.errors import BadInput
from suffice.inputs import parsed
from suffice.interval import interval
from suffice.rule import Rule

__all__ = ["Pool", "Verdict"]

SCHEMA = 1
Kind = Literal["open", "declared", "undecided"]
Reason = Literal["boundary", "forced", "out", "cap"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a pool says after n votes, and why.

    The reason of a closed pool is one of

    - ``boundary``: a class was declared, because its count met ``declare[n]``;
    - ``cap``: all n_max votes were drawn and no class was declared;
    - ``forced``: every class is out, and no further votes could have brought any count to
      ``declare``, even if no class had been put out;
    - ``out``: every class is out, while further votes could have brought some count there.

    >>> str(Verdict("declared", 5, "7", 5, "boundary"))
    "declared('7')"
    """

    kind: Kind
    n: int  # votes drawn
    label: Hashable = None  # the declared class
    count: int | None = None  # its votes
    reason: Reason | None = None  # None while the pool is open

    def __str__(self) -> str:
        return f"declared({self.label!r})" if self.kind == "declared" else self.kind


class Pool:
    """The votes of one measurement state, counted until the rule has a verdict.

    Any hashable object is a label; ``None`` is an invalid vote, which counts for no class.

    >>> pool = Pool(Rule([1, 2, 2, 2], [0, 0, 0, 0], "two votes"))
    >>> for label in ["7", None, "7"]:
    ...     pool.add(label)
    >>> print(pool.verdict, pool.verdict.reason, pool.n, pool.counts)
    declared('7') boundary 3 {'7': 2}
    """

    __slots__ = ("_alive", "_best", "_counts", "_lattice", "_verdict", "_votes", "rule")

    def __init__(self, rule: Rule) -> None:
        if not isinstance(rule, Rule):
            raise BadInput(f"{rule!r} is no Rule; make one with suffice.sequential(...)")
        self.rule = rule
        self._lattice = _lattice(rule)
        self._votes: list[Hashable] = []
        self._counts: dict[Hashable, int] = {}
        self._alive: set[Hashable] = set()  # the labels seen that are not out
        self._best = 0  # the largest count among them; only the lowest ever go out
        self._verdict: Verdict | None = None
        if rule.n_max == 0 or rule.stop[0] > 0:
            self._close(0)

    @property
    def open(self) -> bool:
        """Whether another vote can change the verdict."""
        return self._verdict is None

    @property
    def verdict(self) -> Verdict:
        """Open, declared or undecided, with the reason and the count."""
        return self._verdict or Verdict("open", len(self._votes))

    @property
    def n(self) -> int:
        """The number of votes counted, invalid ones among them."""
        return len(self._votes)

    @property
    def votes(self) -> tuple[Hashable, ...]:
        """The votes counted, in order."""
        return tuple(self._votes)

    @property
    def counts(self) -> dict[Hashable, int]:
        """The number of votes for each label seen."""
        return dict(self._counts)

    @property
    def sure(self) -> int:
        """The number of further votes that will be drawn whatever they are.

        The pool cannot end sooner than by giving every vote to the best class, or none to any.

        >>> Pool(Rule([1, 2, 3, 4, 3], [0, 0, 0, 0, 0], "a full pool of four")).sure
        4
        """
        if self._verdict is not None:
            return 0
        n, lattice = len(self._votes), self._lattice
        return min(lattice.crossing[n - self._best], lattice.leaving[self._best]) - n

    def add(self, label: Hashable) -> None:
        """Count one vote; ``None`` is an invalid vote."""
        if self._verdict is not None:
            raise BadInput(
                f"vote {label!r} came after the pool closed ({self._verdict} at vote "
                f"{self._verdict.n}); check `pool.open` first, or use `add_many`"
            )
        lattice = self._lattice
        n = len(self._votes) + 1
        declared = None
        if label is not None:
            try:
                k = self._counts.get(label, 0) + 1
            except TypeError:
                raise BadInput(
                    f"label {label!r} cannot be hashed; use a string, number or tuple"
                ) from None
            if k == 1:
                _check_new(label)
                if not lattice.unseen_out[n - 1]:
                    self._alive.add(label)
            self._counts[label] = k
            if label in self._alive:
                if k > self._best:
                    self._best = k
                if k >= lattice.declare[n]:
                    declared = label
        self._votes.append(label)
        if lattice.falls[n]:  # a class may cross without a vote of its own
            level = lattice.declare[n]
            declared = next((c for c in self._alive if self._counts[c] >= level), None)
        if declared is not None:
            k = self._counts[declared]
            self._verdict = Verdict("declared", n, declared, k, "boundary")
            return
        level = lattice.sweep[n]
        if level:
            self._alive = {c for c in self._alive if self._counts[c] >= level}
            if not self._alive:
                self._close(n)
                return
        if n == lattice.n_max:
            self._close(n)

    def add_many(self, labels: Iterable[Hashable]) -> int:
        """Count votes in order until the pool closes; return how many came after that.

        Those are not counted. A label that cannot be a vote raises, and those before it count.

        >>> Pool(Rule([1, 2, 2], [0, 0, 0], "two votes")).add_many("7777")
        2
        """
        late = 0
        for label in labels:
            if self._verdict is None:
                self.add(label)
            else:
                late += 1
        return late

    def interval(self, label: Hashable, level: float, classes: int = 1) -> tuple[float, float]:
        """A range for the mass of `label` that is valid whenever the pool is looked at.

        The label must be named in advance; ``classes=C`` covers all of C labels at once.
        """
        return interval(self._counts.get(label, 0), self.n, level, classes)

    def to_json(self) -> str:
        """The rule and the votes so far as one JSON object, readable by `from_json`."""
        votes = [_plain(label) for label in self._votes]
        record = {"schema": SCHEMA, "rule": json.loads(self.rule.to_json()), "votes": votes}
        return json.dumps(record)

    @classmethod
    def from_json(cls, text: str) -> Pool:
        """The pool that `to_json` wrote, its votes counted anew; JSON lists become tuples.

        >>> pool = Pool(Rule([1, 2, 2], [0, 0, 0], "two votes"))
        >>> pool.add("7")
        >>> Pool.from_json(pool.to_json()).counts
        {'7': 1}
        """
        record = parsed(text, "pool", "write it again with `Pool.to_json`")
        if not isinstance(record, dict) or record.get("schema") != SCHEMA:
            found = record.get("schema") if isinstance(record, dict) else None
            raise BadInput(
                f"pool: schema {found!r} is not the pool schema {SCHEMA}; "
                "write it again with `Pool.to_json`"
            )
        if not isinstance(record.get("votes"), list):
            raise BadInput("pool: 'votes' must be a list; write it again with `Pool.to_json`")
        pool = cls(Rule.from_json(json.dumps(record.get("rule")), source="pool: rule"))
        late = pool.add_many(_label(vote) for vote in record["votes"])
        if late:
            raise BadInput(
                f"pool: {late} of its votes came after the rule closed it; "
                "votes and rule do not belong together"
            )
        return pool

    def __repr__(self) -> str:
        return f"Pool({self.rule.name!r}, n={self.n}, verdict={self.verdict})"

    def _close(self, n: int) -> None:
        """End the pool undecided and say why."""
        reason: Reason
        if n == self._lattice.n_max:
            reason = "cap"
        else:
            misses = n - max(self._counts.values(), default=0)
            reason = "out" if misses <= self._lattice.room[n] else "forced"
        self._verdict = Verdict("undecided", n, reason=reason)


@dataclass(frozen=True, slots=True)
class _Lattice:
    """A rule as plain lists, shared by all its pools: lists are read faster than arrays.

    Misses are n - k. A class that is neither declared nor out meets each boundary for the first
    time ahead of it, so first crossings depend on its misses or its count alone, not on n.
    """

    n_max: int
    declare: list[int]
    falls: list[bool]  # at n, declare is lower than before
    sweep: list[int]  # stop[n] where it is higher than ever before, else 0
    unseen_out: list[bool]  # after n votes, a label not seen yet is out
    crossing: list[int]  # by misses: the first n with n - declare[n] >= misses, or n_max
    leaving: list[int]  # by count: the first n with stop[n] > count, or n_max
    room: list[int]  # the most misses with which a class can meet declare at n or later


@lru_cache(maxsize=128)
def _lattice(rule: Rule) -> _Lattice:
    n_max = rule.n_max
    n = np.arange(n_max + 1)
    allowed = n - rule.declare
    highest = np.maximum.accumulate(rule.stop)
    before = np.concatenate([[0], highest[:-1]])
    crossing = np.searchsorted(np.maximum.accumulate(allowed), n)
    leaving = np.searchsorted(highest, n, side="right")
    return _Lattice(
        n_max=n_max,
        declare=rule.declare.tolist(),
        falls=(np.diff(rule.declare, prepend=rule.declare[0]) < 0).tolist(),
        sweep=np.where(highest > before, highest, 0).tolist(),
        unseen_out=(highest > 0).tolist(),
        crossing=np.minimum(crossing, n_max).tolist(),
        leaving=np.minimum(leaving, n_max).tolist(),
        room=np.maximum.accumulate(allowed[::-1])[::-1].tolist(),
    )


def _check_new(label: Any) -> None:
    """Refuse labels that never equal themselves when drawn again."""
    if hasattr(label, "__array__") and not isinstance(label, np.generic):
        raise BadInput(f"a label is a {type(label).__name__}, hashed by identity; use its .item()")
    if label != label:
        raise BadInput(f"label {label!r} does not equal itself; use None for an invalid vote")


def _plain(label: Any) -> Any:
    """A label as JSON can hold it; a tuple becomes a list, which no label can be."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return [_plain(part) for part in label]
    if label is None or isinstance(label, (str, int, float)):
        return label
    raise BadInput(f"label {label!r} cannot be saved as JSON; use strings, numbers or tuples")


def _label(value: Any) -> Any:
    return tuple(_label(part) for part in value) if isinstance(value, list) else value
