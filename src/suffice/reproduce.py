"""The paper's experiment in one call: tables, verdicts on its claims, and what the figures show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from suffice.claims import Claim, claims
from suffice.comparison import added_table, frontier, matched_table
from suffice.experiment import Experiment, Row, papers_table
from suffice.reference import Designs
from suffice.schemes import SCHEMES
from suffice.votes import VoteLog

__all__ = ["STEPS", "Reproduction", "reproduce"]

STEPS = 13 + 17 + 8 + 30 + 8
"""How often `reproduce` calls `tell`."""


@dataclass(frozen=True, eq=False)
class Reproduction:
    """All that `suffice reproduce` tells."""

    experiment: Experiment
    table: Sequence[Row]
    """The paper's thirteen rows."""
    added: Sequence[Row]
    """The sequential rule and this library's rules at the certificate of each block."""
    matched: Sequence[Row]
    """Every scheme with its tau moved to the accuracy of each block."""
    claims: Sequence[Claim]
    frontiers: Mapping[str, Sequence[Mapping[str, float]]]
    """For each scheme: tau, accuracy, samples and rounds as tau rises."""

    def record(self) -> dict[str, Any]:
        """The reproduction as JSON holds it."""
        log = self.experiment.logs["32"]
        return {
            "images": len(log.images),
            "rounds": log.rounds,
            "log": dict(log.metadata),
            "table": [row.record() for row in self.table],
            "added": [row.record() for row in self.added],
            "matched": [row.record() for row in self.matched],
            "claims": [claim.record() for claim in self.claims],
            "frontiers": {name: list(points) for name, points in self.frontiers.items()},
        }


def reproduce(
    log_32: VoteLog,
    log_128: VoteLog,
    tell: Callable[[], None] = lambda: None,
    designs: Designs | None = None,
) -> Reproduction:
    """Run the paper's experiment on two logs of the same states; `tell` is called at each step.

    `designs` are rules that were fitted to these logs before, in place of fitting them again.
    """
    experiment = Experiment(log_32, log_128, designs)
    table = papers_table(experiment, tell)
    added = added_table(experiment, tell)
    matched = matched_table(experiment, tell)
    frontiers = {}
    for scheme in SCHEMES:
        frontiers[scheme.name] = frontier(experiment, scheme)
        tell()
    return Reproduction(
        experiment, table, added, matched, claims(experiment, table, matched), frontiers
    )
