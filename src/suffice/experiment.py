"""The paper's experiment on two vote logs: its table, with rules added, and at matched accuracy.

The log of 32 votes a pool is what the rules are replayed on; the log of 128 further votes at the
same measurement states estimates the vote laws a second time, and carries the rule with n_max=128.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.calibrate import certified_tau
from suffice.errors import BadInput
from suffice.path import PathMeans, along
from suffice.reference import Designs
from suffice.replay import Outcome, Replay
from suffice.rule import Rule
from suffice.rules import one_look, plug_in, sequential
from suffice.votes import VoteLog

__all__ = ["BLOCKS", "EPS", "Block", "Experiment", "Paper", "Row", "papers_table", "take"]

EPS = 0.05
S = 32
Rules = Rule | tuple[Rule, ...]
Images = NDArray[np.int64]


@dataclass(frozen=True)
class Paper:
    """A row of the paper's Table 2, as printed there."""

    tau: float
    certified_tau: float
    accuracy: tuple[float, float, float]
    """Measured, predicted from 32 votes, predicted from 128."""
    rounds: float
    samples: tuple[float, float, float]
    """Measured, predicted from 32 votes, predicted from 128."""


@dataclass(frozen=True)
class Block:
    """The rows of the paper's table with one target accuracy."""

    target: float
    rows: tuple[tuple[str, Callable[[float], Rule], Paper], ...]
    """The name, the maker from tau to a rule, and the paper's figures of each row."""

    @property
    def certificate(self) -> float:
        """The tau of the block's sequential rule."""
        return self.rows[3][2].tau


def _full(tau: float) -> Rule:
    return plug_in(tau, S, curtailed=False)


def _curtailed(tau: float) -> Rule:
    return plug_in(tau, S)


def _one_look(tau: float) -> Rule:
    return one_look(tau, EPS, S)


def _sequential(tau: float) -> Rule:
    return sequential(tau, EPS, n_max=S)


def _sequential_128(tau: float) -> Rule:
    return sequential(tau, EPS, n_max=128)


def _block(
    target: float,
    taus: tuple[float, float, float],
    certified: tuple[float, float, float],
    fixed: tuple[tuple[float, float, float], float],
    samples: Sequence[tuple[float, float, float]],
    last: tuple[tuple[float, float, float], float],
) -> Block:
    """A block from its figures: taus and tau's of plug-in, one-look and sequential."""
    names = ("Plug-in (full)", "Plug-in (curt.)", "One-look", "Sequential")
    makers = (_full, _curtailed, _one_look, _sequential)
    which = (0, 0, 1, 2)
    rows = tuple(
        (
            name,
            maker,
            Paper(taus[at], certified[at], *(last if at == 2 else fixed), cost),
        )
        for name, maker, at, cost in zip(names, makers, which, samples, strict=True)
    )
    return Block(target, rows)


BIG = Paper(0.78, 0.78, (0.98, 0.97, 0.98), 11.8, (542, 487, 521))
BLOCKS = (
    _block(
        1.00,
        (0.90, 0.75, 0.78),
        (0.77, 0.77, 0.78),
        ((0.98, 0.97, 0.98), 12.3),
        [(406, 384, 399), (154, 137, 144), (154, 137, 144), (118, 105, 110)],
        ((0.98, 0.98, 0.98), 12.5),
    ),
    _block(
        0.95,
        (0.80, 0.65, 0.65),
        (0.66, 0.66, 0.65),
        ((0.96, 0.94, 0.95), 10.5),
        [(339, 320, 333), (173, 156, 162), (173, 156, 162), (142, 125, 130)],
        ((0.96, 0.93, 0.95), 10.5),
    ),
    _block(
        0.90,
        (0.70, 0.55, 0.55),
        (0.56, 0.56, 0.55),
        ((0.92, 0.88, 0.91), 8.9),
        [(285, 263, 276), (176, 156, 163), (176, 156, 163), (149, 131, 138)],
        ((0.91, 0.87, 0.90), 8.8),
    ),
)
BIG_NAME = "Sequential (n_max=128)"
BLOCKS = (Block(1.00, (*BLOCKS[0].rows, (BIG_NAME, _sequential_128, BIG))), *BLOCKS[1:])
"""Table 2 of the paper: thirteen rows in three blocks."""


@dataclass(frozen=True, eq=False)
class Row:
    """One row: what a rule did on the log, and what was predicted that it would do."""

    block: float
    scheme: str
    tau: float
    rules: tuple[Rule, ...] = field(repr=False)
    """The rules of the row: one, or those of each half of the images, or one a round."""
    certified_tau: float
    """The least over the rules."""
    outcome: Outcome = field(repr=False)
    predicted: Mapping[str, PathMeans] = field(repr=False)
    """`32` and `128`, by the paper's formulas; `pool_128` by the law of the pool."""
    paper: Paper | None = None
    note: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The measured figures with their intervals."""
        return {key: _number(value) for key, value in self.outcome.summary().items()}

    def record(self) -> dict[str, Any]:
        """The row as JSON holds it; means over images count every image."""
        told = self.summary
        return {
            "block": self.block,
            "scheme": self.scheme,
            "tau": self.tau,
            "n_max": max(rule.n_max for rule in self.rules),
            "certified_tau": self.certified_tau,
            "accuracy": self._figures("accuracy"),
            "declared": told["declared"],
            "declared_interval": told["declared_interval"],
            "rounds": told["rounds"],
            "rounds_interval": told["rounds_interval"],
            "samples": self._figures("samples"),
            "paper": None if self.paper is None else _papers(self.paper),
            "note": self.note,
            **self.extra,
        }

    def _figures(self, name: str) -> dict[str, Any]:
        predicted = {
            f"predicted_{key}": _number(getattr(means, name))
            for key, means in self.predicted.items()
        }
        return {
            "measured": self.summary[name],
            "interval": self.summary[f"{name}_interval"],
            **predicted,
        }


class Experiment:
    """The two logs made ready; each rule is replayed and predicted once."""

    def __init__(self, log_32: VoteLog, log_128: VoteLog, designs: Designs | None = None) -> None:
        if not (np.array_equal(log_32.images, log_128.images) and log_32.rounds == log_128.rounds):
            raise BadInput("the two logs differ in images or rounds; make both from one run")
        _same_states(log_32, log_128)
        self.logs = {"32": log_32, "128": log_128}
        self.designs: Designs = designs or {}
        """What need not be fitted again."""
        self.truth = log_32.truth
        self.classes = int(max(log_32.classes, log_128.classes, self.truth.max() + 1))
        self.all = np.arange(len(log_32.images))
        self.fitted: dict[tuple[str, float], list[tuple[Rules, Images]]] = {}
        """What was fitted to the log: by scheme and tau, rules and the images reported on."""
        self._replays: dict[str, Replay] = {}
        self._masses: dict[str, NDArray[np.float64]] = {}
        self._outcomes: dict[Rules, Outcome] = {}
        self._predicted: dict[tuple[Rule, str], PathMeans] = {}

    def outcome(self, rules: Rules, images: Images | None = None) -> Outcome:
        """What the rules did on the smallest log that has votes enough."""
        if rules not in self._outcomes:
            listed = [rules] if isinstance(rules, Rule) else rules
            self._outcomes[rules] = self._replay_for(listed).run(rules)
        return take(self._outcomes[rules], images)

    def spent(self, rules: Rules) -> NDArray[np.int64]:
        """Votes that each image drew in each round, (I, T); 0 in rounds that it did not reach."""
        rounds = self.logs["32"].rounds
        listed = [rules] * rounds if isinstance(rules, Rule) else list(rules)
        replay, image = self._replay_for(listed), self.all * rounds
        drawn = np.stack(
            [replay.pools(rule, image + t)[1] for t, rule in enumerate(listed)], axis=1
        )
        return np.where(np.arange(rounds) < self.outcome(rules).rounds[:, None], drawn, 0)

    def _replay_for(self, rules: Sequence[Rule]) -> Replay:
        """The smallest log that has votes enough."""
        cap = max(rule.n_max for rule in rules)
        return self.replay("32" if cap <= self.logs["32"].draws else "128")

    def replay(self, name: str) -> Replay:
        """The log of this name, made ready."""
        if name not in self._replays:
            self._replays[name] = Replay(self.logs[name])
        return self._replays[name]

    def masses(self, name: str) -> NDArray[np.float64]:
        """The vote laws as the log of this name estimates them, (I, T, C)."""
        if name not in self._masses:
            self._masses[name] = self.logs[name].laws(self.classes)
        return self._masses[name]

    def predict(self, rule: Rule, pools: bool = False) -> dict[str, PathMeans]:
        """Predictions from both logs; with `pools`, from the second also by the law of the pool."""
        ways = {"32": False, "128": False} | ({"pool_128": True} if pools else {})
        for key, exact in ways.items():
            if (rule, key) not in self._predicted:
                masses = self.masses(key.removeprefix("pool_"))
                self._predicted[rule, key] = along(rule, masses, self.truth, exact).mean
        return {key: self._predicted[rule, key] for key in ways}

    def row(self, block: float, scheme: str, tau: float, rule: Rule, **more: Any) -> Row:
        """The row of one rule on all images."""
        predicted = self.predict(rule, more.pop("pools", False))
        tau_ = certified_tau(rule, EPS)
        return Row(block, scheme, tau, (rule,), tau_, self.outcome(rule), predicted, **more)


def _same_states(one: VoteLog, other: VoteLog) -> None:
    """Raise unless two logs hold different draws at the same measurement states."""
    if not np.array_equal(one.truth, other.truth):
        raise BadInput("the two logs differ in the truth of an image; make both from one run")
    for key in sorted({*one.metadata, *other.metadata} - {"draws", "first_draw", "versions"}):
        ours, theirs = one.metadata.get(key), other.metadata.get(key)
        if ours != theirs:
            raise BadInput(
                f"the two logs differ in {key}, {ours!r} and {theirs!r}; make both from one run"
            )
    first, second = (int(log.metadata.get("first_draw", 0)) for log in (one, other))
    known = "first_draw" in one.metadata and "first_draw" in other.metadata
    if known and first < second + other.draws and second < first + one.draws:
        raise BadInput(
            f"the two logs share draws: they begin at {first} and {second}; "
            f"make the second with --first-draw {first + one.draws}"
        )


def papers_table(experiment: Experiment, tell: Callable[[], None] = lambda: None) -> list[Row]:
    """The paper's thirteen rows on our logs, in its order."""
    rows = []
    for block in BLOCKS:
        for name, make, paper in block.rows:
            rule = make(paper.tau)
            rows.append(
                experiment.row(block.target, name, paper.tau, rule, paper=paper, pools=True)
            )
            tell()
    return rows


def take(outcome: Outcome, images: Images | None) -> Outcome:
    """The outcome on some of the images; None is all."""
    if images is None:
        return outcome
    return Outcome(
        outcome.label[images],
        outcome.rounds[images],
        outcome.samples[images],
        outcome.truth[images],
        outcome.final_leader[images],
    )


def _papers(paper: Paper) -> dict[str, Any]:
    keys = ("measured", "predicted_32", "predicted_128")
    return {
        "tau": paper.tau,
        "certified_tau": paper.certified_tau,
        "accuracy": dict(zip(keys, paper.accuracy, strict=True)),
        "rounds": paper.rounds,
        "samples": dict(zip(keys, paper.samples, strict=True)),
    }


def _number(value: Any) -> Any:
    """The value as JSON holds it: no nan."""
    if isinstance(value, tuple):
        return [_number(part) for part in value]
    return None if isinstance(value, float) and np.isnan(value) else value
