"""The live loop against the replay, image by image: the same votes must give the same ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from suffice.errors import BadInput
from suffice.experiment import Row, take
from suffice.replay import Outcome
from suffice.rule import Rule
from suffice.runs.live import Live, run_live
from suffice.runs.shards import RunConfig
from suffice.votes import VoteLog

__all__ = ["Agreement", "Differing", "compare", "config_of", "live_rows"]


@dataclass(frozen=True)
class Differing:
    """A vote that is not what the log holds."""

    image: int
    round: int
    draw: int
    live: int
    logged: int


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far one row's live run agrees with its replay."""

    schemes: tuple[str, ...]
    """The rows of the paper's table whose rule this is."""
    block: float
    images: int
    agree: int
    """Images with the same verdict, round and number of samples."""
    votes: int
    """Votes that the live pools counted."""
    differing: tuple[Differing, ...]
    """The votes among them that differ from the log's."""
    disagreements: tuple[Differing, ...]
    """For each image that ends otherwise, the first vote that differs."""
    summary: dict[str, Any]
    """The live run's own figures."""

    def record(self) -> dict[str, Any]:
        """The agreement as JSON holds it."""
        return asdict(self)


def config_of(log: VoteLog, images: int) -> RunConfig:
    """The run that made a log, for its first images."""
    if images > len(log.images):
        raise BadInput(f"live {images} is more than the {len(log.images)} images of the log")
    if not np.array_equal(log.images[:images], np.arange(images)):
        raise BadInput("the log does not hold the first evaluation images; use the reference logs")
    known = {field.name for field in fields(RunConfig)} - {"images"}
    given = {key: value for key, value in log.metadata.items() if key in known}
    return RunConfig(images=images, **given)


def live_rows(log: VoteLog, rows: Sequence[Row], images: int) -> list[Agreement]:
    """Sense the first images live under the rule of each row; rows of one rule share a run."""
    config = config_of(log, images)
    shared: dict[Rule, list[Row]] = {}
    for row in rows:
        shared.setdefault(row.rules[0], []).append(row)
    found = []
    for rule, alike in shared.items():
        live = run_live(config, rule)
        outcome = take(alike[0].outcome, np.arange(images))
        names = tuple(row.scheme for row in alike)
        found.append(compare(live, log, outcome, names, alike[0].block))
    return found


def compare(
    live: Live, log: VoteLog, outcome: Outcome, schemes: tuple[str, ...], block: float
) -> Agreement:
    """Hold a live run against the log's votes and the outcome of the replay, image by image."""
    differing: list[Differing] = []
    disagreements: list[Differing] = []
    agree = votes = 0
    start = int(log.metadata.get("first_draw", 0))
    for at, episode in enumerate(live.episodes):
        row = int(np.flatnonzero(log.images == episode.name)[0])
        first = len(differing)
        for t, pool in enumerate(episode.votes):
            logged = log.votes[row, t, : len(pool)]
            votes += len(pool)
            differing += [
                Differing(episode.name, t + 1, start + int(n), int(pool[n]), int(logged[n]))
                for n in np.flatnonzero(pool != logged)
            ]
        same = (
            live.outcome.label[at] == outcome.label[at]
            and episode.rounds == outcome.rounds[at]
            and episode.samples == outcome.samples[at]
        )
        agree += int(same)
        if not same:
            # A vote must differ; where none does the loop itself is wrong: say so with zeros.
            none = Differing(episode.name, 0, 0, -1, -1)
            disagreements.append(differing[first] if len(differing) > first else none)
    return Agreement(
        schemes, block, len(live.episodes), agree, votes, tuple(differing), tuple(disagreements),
        {key: value for key, value in live.summary().items() if key != "images"},
    )  # fmt: skip
