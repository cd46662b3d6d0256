"""Sense images for real, under rules, and say what came of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from suffice.engine import Episode, Ledger
from suffice.errors import BadInput
from suffice.progress import Progress
from suffice.replay import NONE, Outcome
from suffice.rule import Rule
from suffice.runs.execute import spread
from suffice.runs.shards import Parts, RunConfig, Shard
from suffice.votes import INVALID

__all__ = ["Live", "run_live"]


@dataclass(frozen=True)
class Live:
    """The episodes of a live run, one ledger a worker, and the outcome as replay tells it."""

    episodes: tuple[Episode, ...]
    ledgers: tuple[Ledger, ...]
    outcome: Outcome

    def summary(self) -> dict[str, Any]:
        """What `suffice sense --json` prints."""
        ledgers, outcome = self.ledgers, self.outcome
        steps = sum(ledger.batches for ledger in ledgers)
        fill = sum(ledger.batches * ledger.batch_fill for ledger in ledgers)
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
            "seconds": max(ledger.seconds for ledger in ledgers),
            "sampler_seconds": max(ledger.sampler_seconds for ledger in ledgers),
            "batch_fill": fill / steps if steps else 0.0,
            "draining_from": min(ledger.draining_from for ledger in ledgers),
            "images": images,
        }


def run_live(
    config: RunConfig,
    rules: Rule | Sequence[Rule],
    on: str = "local",
    workers: int | None = None,
    batch: int | None = None,
) -> Live:
    """Sense the config's images under one rule for all rounds, or one rule a round."""
    listed = [rules] * config.rounds if isinstance(rules, Rule) else list(rules)
    if len(listed) != config.rounds:
        raise BadInput(f"{len(listed)} rules for {config.rounds} rounds; give one a round, or one")
    parts = 1 if on == "local" else (workers or 2)
    cuts = np.linspace(0, config.images, min(parts, config.images) + 1).astype(int)
    shards = [Shard(int(a), int(b)) for a, b in itertools.pairwise(cuts)]
    work = partial(_sense, rules=listed, batch=batch, total=config.images if parts == 1 else 0)
    done = dict(spread(config, shards, work, on, workers))
    episodes = tuple(episode for shard in shards for episode in done[shard][0])
    truth = np.concatenate([done[shard][2] for shard in shards])
    return Live(episodes, tuple(done[shard][1] for shard in shards), _outcome(episodes, truth))


Sensed = tuple[list[Episode], Ledger, Any]


def _sense(parts: Parts, shard: Shard, rules: list[Rule], batch: int | None, total: int) -> Sensed:
    names = np.arange(shard.first, shard.last)
    with Progress(total or len(names), "images") as progress:

        def tell(images: int, verdicts: int, samples: int) -> None:
            progress(images, declared=verdicts, samples=samples)

        episodes, ledger = parts.sense(rules, names, tell, batch)
    return episodes, ledger, parts.evaluation[1][names]


def _outcome(episodes: Sequence[Episode], truth: Any) -> Outcome:
    """The live run in the words of a replay; the final leader is that of the votes drawn."""
    leaders = []
    for episode in episodes:
        last = episode.votes[-1]
        counts = np.bincount(last[last != INVALID], minlength=1)
        leaders.append(int(counts.argmax()))
    return Outcome(
        label=np.array([NONE if e.label is None else e.label for e in episodes]),
        rounds=np.array([episode.rounds for episode in episodes]),
        samples=np.array([episode.samples for episode in episodes]),
        truth=truth,
        final_leader=np.array(leaders),
    )
