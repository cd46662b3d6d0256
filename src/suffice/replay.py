"""Rules over a vote log, all pools at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import BadInput
from suffice.rule import Rule
from suffice.votes import NONE, VoteLog, checked_log

__all__ = ["Outcome", "Replay"]

RESAMPLES = 2000


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a rule did on each image of a log, and in sum.

    Means over images count every image: one that never declares counts all its rounds and
    samples, and is never counted as declared.
    """

    label: NDArray[np.int64]
    """The declared class of each image, (I,); -1 where none was declared."""
    rounds: NDArray[np.int64]
    """Rounds sensed, (I,)."""
    samples: NDArray[np.int64]
    """Votes drawn, (I,)."""
    truth: NDArray[np.int64]
    """The true labels, (I,)."""
    final_leader: NDArray[np.int64]
    """The leader of the votes at hand of the last round, (I,); -1 where none is valid."""

    @cached_property
    def declared(self) -> NDArray[np.bool_]:
        """Whether a class was declared, (I,)."""
        declared: NDArray[np.bool_] = self.label != NONE
        return declared

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """Whether the true class was declared, (I,)."""
        right: NDArray[np.bool_] = self.declared & (self.label == self.truth)  # never where unknown
        return right

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Whether the truth is known, (I,)."""
        known: NDArray[np.bool_] = self.truth != NONE
        return known

    @property
    def accuracy(self) -> float | None:
        """The share of right declarations; None where none can be judged."""
        judged = int((self.declared & self.known).sum())
        return int(self.right.sum()) / judged if judged else None

    def summary(self, seed: int = 0) -> dict[str, Any]:
        """Accuracy given a declaration, share declared, mean rounds and samples, with intervals.

        Intervals hold 95% of the bootstrap over images. Images without a truth tell nothing of
        accuracies, which are None where none tells.
        """
        rest = ~self.declared & self.known
        right, judged, declared, rounds, samples = self._resampled(seed)
        return {
            "accuracy": self.accuracy,
            "accuracy_interval": _interval(_ratio(right, judged)),
            "declared": float(self.declared.mean()),
            "declared_interval": _interval(declared),
            "rounds": float(self.rounds.mean()),
            "rounds_interval": _interval(rounds),
            "samples": float(self.samples.mean()),
            "samples_interval": _interval(samples),
            "undeclared_leader_accuracy": (
                float((self.final_leader == self.truth)[rest].mean()) if rest.any() else None
            ),
        }

    def _resampled(self, seed: int) -> NDArray[np.float64]:
        """Means over each bootstrap resample, (5, RESAMPLES).

        They are of: right; declared and the truth known; declared; rounds; samples.
        """
        judged = self.declared & self.known
        columns = np.stack([self.right, judged, self.declared, self.rounds, self.samples], axis=1)
        means: NDArray[np.float64] = (_resamples(len(self.label), seed) @ columns.astype(float)).T
        return means

    def compare(self, other: Outcome, seed: int = 0) -> dict[str, Any]:
        """This outcome against another one of the same images, with paired intervals.

        The ratio of mean samples, and the differences in accuracy given a declaration and in the
        share declared.
        """
        if not np.array_equal(self.truth, other.truth):
            raise BadInput("outcomes of different images cannot be paired; replay one log")
        right, judged, declared, _, samples = self._resampled(seed)
        right_other, judged_other, declared_other, _, samples_other = other._resampled(seed)
        ours, theirs, total = self.accuracy, other.accuracy, float(other.samples.sum())
        apart = None if ours is None or theirs is None else ours - theirs
        return {
            "samples_ratio": float(self.samples.sum()) / total if total > 0 else None,
            "samples_ratio_interval": _interval(_ratio(samples, samples_other)),
            "accuracy_difference": apart,
            "accuracy_difference_interval": _interval(
                _ratio(right, judged) - _ratio(right_other, judged_other)
            ),
            "declared_difference": float(self.declared.mean() - other.declared.mean()),
            "declared_difference_interval": _interval(declared - declared_other),
        }


class Replay:
    """A log made ready: the counts of every class after every vote, shared by all rules.

    >>> votes = np.array([[[7, 7, 1, 7]]], dtype=np.uint8)
    >>> log = VoteLog(np.array([0]), np.array([7]), votes, {})
    >>> outcome = Replay(log).run(Rule([1, 2, 2], [0, 0, 0], "two votes"))
    >>> outcome.label.tolist(), outcome.samples.tolist()
    ([7], [2])
    """

    def __init__(self, log: VoteLog) -> None:
        self.log = checked_log(log)
        votes = np.ascontiguousarray(log.votes.reshape(-1, log.draws).T)
        classes = np.arange(log.classes, dtype=np.uint8)[:, None]
        kind = np.uint8 if log.draws < 256 else np.int32
        shape = (log.draws + 1, log.classes, votes.shape[1])
        self._counts: NDArray[Any] = np.zeros(shape, dtype=kind)
        for n, vote in enumerate(votes):
            np.add(self._counts[n], vote == classes, out=self._counts[n + 1])

    def run(self, rule: Rule | Sequence[Rule]) -> Outcome:
        """Replay one rule for all rounds, or a list with one rule a round."""
        log = self.log
        rules = [rule] * log.rounds if isinstance(rule, Rule) else list(rule)
        if not 0 < len(rules) <= log.rounds:
            raise BadInput(
                f"{len(rules)} rules, one a round, but the log has {log.rounds} rounds; "
                f"give 1 to {log.rounds}"
            )
        short = [one for one in rules if one.n_max < log.prefix]
        if short:
            raise BadInput(
                f"rule {short[0].name!r} draws up to {short[0].n_max} votes, but the log's probes "
                f"looked at {log.prefix} a round; use a rule with n_max {log.prefix} to {log.draws}"
            )
        shape = (len(log.images), log.rounds)
        label, drawn = np.full(shape, NONE), np.zeros(shape, dtype=np.int64)
        if all(other is rules[0] for other in rules):
            first, count = self.pools(rules[0])
            label, drawn = first.reshape(shape), count.reshape(shape)
        else:
            for t, one in enumerate(rules):
                pools = np.arange(shape[0]) * log.rounds + t
                label[:, t], drawn[:, t] = self.pools(one, pools)
        label, drawn = label[:, : len(rules)], drawn[:, : len(rules)]
        # The probes of a round looked at the first draws of the round before: they are charged.
        before = drawn[:, :-1]
        before[:] = np.where(label[:, :-1] == NONE, np.maximum(before, log.prefix), before)
        declared = (label != NONE).any(axis=1)
        last = np.where(declared, (label != NONE).argmax(axis=1), len(rules) - 1)
        images = np.arange(shape[0])
        return Outcome(
            label=label[images, last],
            rounds=last + 1,
            samples=np.cumsum(drawn, axis=1)[images, last],
            truth=log.truth,
            final_leader=self.leaders[:, len(rules) - 1],
        )

    @cached_property
    def leaders(self) -> NDArray[np.int64]:
        """The leader of all votes of each pool, (I, T)."""
        return self.log.leaders()

    def pools(
        self, rule: Rule, pools: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The declared class (-1 for none) and the votes drawn, for each pool of the log."""
        if rule.n_max > self.log.draws:
            raise BadInput(
                f"rule {rule.name!r} draws up to {rule.n_max} votes, but the log has "
                f"{self.log.draws} a pool; use a rule with n_max {self.log.draws} or less"
            )
        counts = self._counts if pools is None else self._counts[:, :, pools]
        size = counts.shape[2]
        label = np.full(size, NONE, dtype=np.int64)
        if rule.stop[0] > 0:
            return label, np.zeros(size, dtype=np.int64)
        drawn = np.full(size, rule.n_max, dtype=np.int64)
        pool_open = np.ones(size, dtype=bool)
        # A class is out once its count was below a stop, so below the highest so far. Those that
        # are not, and only those, keep their counts here; the best of them decides.
        highest = np.maximum.accumulate(rule.stop)
        alive = np.ones(counts.shape[1:], dtype=np.uint8)
        for n in range(1, rule.n_max + 1):
            declares, stops = rule.declare[n] <= n, highest[n] > highest[n - 1]
            if not declares and not stops:
                continue
            held = counts[n] * alive if highest[n - 1] else counts[n]
            best = held.max(axis=0)
            ended = np.zeros(size, dtype=bool)
            if declares:
                ended = (best >= rule.declare[n]) & pool_open
                label[ended] = held[:, ended].argmax(axis=0)
            if stops:
                ended |= (best < highest[n]) & pool_open
                alive &= (counts[n] >= highest[n]).view(np.uint8)
            drawn[ended] = n
            pool_open &= ~ended
            if not pool_open.any():
                break
        return label, drawn


@lru_cache(maxsize=2)
def _resamples(count: int, seed: int) -> NDArray[np.float64]:
    """The share of each image in each bootstrap resample, (RESAMPLES, count)."""
    generator = np.random.Generator(np.random.Philox(seed))
    return generator.multinomial(count, np.full(count, 1 / count), size=RESAMPLES) / count


def _interval(values: NDArray[Any]) -> tuple[float, float] | None:
    """Where 95% of the values lie, of resamples that have one."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    low, high = np.quantile(finite, [0.025, 0.975])
    return float(low), float(high)


def _ratio(top: Any, bottom: Any) -> Any:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.divide(top, bottom)
