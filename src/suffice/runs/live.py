"""Sense images for real, under rules, and say what came of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from suffice.engine import Progress
from suffice.errors import BadInput
from suffice.inputs import INVALID
from suffice.progress import note
from suffice.replay import Outcome
from suffice.rule import Rule
from suffice.runs.parts import Parts
from suffice.runs.shards import RunConfig, Shard
from suffice.runs.spread import spread
from suffice.scene import Episode, Ledger
from suffice.votes import NONE

__all__ = ["Live", "run_live"]


@dataclass(frozen=True, eq=False)
class Live:
    """The episodes of a live run, one ledger a worker, and the outcome as replay tells it."""

    episodes: tuple[Episode, ...]
    ledgers: tuple[Ledger, ...]
    outcome: Outcome

    def summary(self) -> dict[str, Any]:
        """What `suffice sense --json` prints."""
        ledgers, outcome = self.ledgers, self.outcome
        full = [ledger for ledger in ledgers if ledger.batch_fill is not None]
        steps = sum(ledger.batches for ledger in full)
        fill = sum(ledger.batches * (ledger.batch_fill or 0.0) for ledger in full)
        images = [
            {
                "image": episode.name,
                "truth": int(truth),
                "label": episode.label,
                "round": episode.rounds,
                "samples": episode.samples,
            }
            for episode, truth in zip(self.episodes, outcome.truth, strict=True)
        ]
        return {
            **outcome.summary(),
            "drawn": sum(ledger.drawn for ledger in ledgers),
            "wasted": sum(ledger.wasted for ledger in ledgers),
            "invalid": sum(ledger.invalid for ledger in ledgers),
            "broken": [list(vote) for ledger in ledgers for vote in ledger.broken],
            "seconds": max(ledger.seconds for ledger in ledgers),
            "sampler_seconds": max(ledger.sampler_seconds for ledger in ledgers),
            "batch_fill": fill / steps if full else None,
            "draining_from": min((ledger.draining_from for ledger in full), default=None),
            "images": images,
        }


def run_live(
    config: RunConfig,
    rules: Rule | Sequence[Rule],
    on: str = "local",
    workers: int | None = None,
    batch: int | None = None,
    progress: Progress | None = None,
) -> Live:
    """Sense the config's images under one rule for all rounds, or one rule a round.

    Each worker takes one part of the images. Progress is told in this process only.
    """
    listed = [rules] * config.rounds if isinstance(rules, Rule) else list(rules)
    if len(listed) != config.rounds:
        raise BadInput(f"{len(listed)} rules for {config.rounds} rounds; give one a round, or one")

    def cut(count: int) -> list[Shard]:
        ends = np.linspace(0, config.images, min(count, config.images) + 1).astype(int)
        return [Shard(int(first), int(last)) for first, last in itertools.pairwise(ends)]

    work = partial(_sense, rules=listed, batch=batch, progress=progress if on == "local" else None)
    with closing(spread(config, cut, work, on, workers)) as made:
        done = dict(made)
    shards = sorted(done, key=lambda shard: shard.first)
    for shard in shards:
        for image, round_, draw in done[shard][1].broken:
            note(f"image {image}, round {round_}, draw {draw}: not finite, so an invalid vote")
    episodes = tuple(episode for shard in shards for episode in done[shard][0])
    truth = np.concatenate([done[shard][2] for shard in shards])
    return Live(episodes, tuple(done[shard][1] for shard in shards), _outcome(episodes, truth))


Sensed = tuple[list[Episode], Ledger, Any]


def _sense(
    parts: Parts, shard: Shard, rules: list[Rule], batch: int | None, progress: Progress | None
) -> Sensed:
    names = np.arange(shard.first, shard.last)
    return *parts.sense(rules, names, progress, batch), parts.labels[names]


def _outcome(episodes: Sequence[Episode], truth: Any) -> Outcome:
    """The live run in the words of a replay; the final leader is that of the votes drawn."""
    return Outcome(
        label=np.array([NONE if e.label is None else e.label for e in episodes]),
        rounds=np.array([episode.rounds for episode in episodes]),
        samples=np.array([episode.samples for episode in episodes]),
        truth=truth,
        final_leader=np.array([_leader(episode.votes[-1]) for episode in episodes]),
    )


def _leader(votes: Any) -> int:
    valid = votes[votes != INVALID]
    return int(np.bincount(valid).argmax()) if valid.size else NONE
