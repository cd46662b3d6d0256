"""What is sensed, and what came of it: the data of the live loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.errors import BadInput
from suffice.rule import Rule
from suffice.sensing.probes import Probes
from suffice.sensing.states import Floats, Whole

__all__ = ["Episode", "Ledger", "Scene"]


@dataclass(frozen=True, eq=False)
class Scene:
    """What is sensed, and how: images, probes, noise and the rule of each round."""

    images: Floats
    """(n, d)"""
    names: Whole
    """(n,): the number of each image, which keys its random numbers."""
    probes: Probes
    rules: Sequence[Rule]
    """One rule a round; their number is the sensing budget."""
    sigma_y: float
    seed: int = 0
    first_draw: int = 0
    """The number of a pool's first draw: another one gives other votes at the same states."""

    def __post_init__(self) -> None:
        if self.images.ndim != 2 or not len(self.images):
            raise BadInput(f"images of shape {self.images.shape}; give at least one, a row each")
        if len(self.images) != len(self.names):
            raise BadInput(f"{len(self.images)} images but {len(self.names)} names; give one each")
        if len(np.unique(self.names)) != len(self.names):
            raise BadInput("two images have one name, so they would have the same random numbers")
        if not self.rules:
            raise BadInput("no rounds to sense; give one rule a round, at least one")
        if not (np.isfinite(self.sigma_y) and self.sigma_y >= 0):
            raise BadInput(f"sigma_y {self.sigma_y} must be a number of at least 0")

    def prefix(self, round_: int) -> int:
        """How many samples of the round the next round's probes look at."""
        return self.probes.samples if round_ < len(self.rules) else 0


@dataclass(frozen=True, eq=False)
class Episode:
    """How one image was sensed."""

    name: int
    label: int | None
    """The declared class; None where no round declared."""
    rounds: int
    """Rounds sensed: the declaring one, or all."""
    samples: int
    """Votes charged: those that the pools counted, and those that only the probes needed."""
    votes: tuple[NDArray[np.uint8], ...]
    """The votes of each round's pool, in draw order; 255 is an invalid vote."""


@dataclass(frozen=True)
class Ledger:
    """What a run drew, and what became of it."""

    drawn: int
    """Samples begun."""
    used: int
    """Samples that were charged to an episode."""
    invalid: int
    """Votes for no class."""
    broken: tuple[tuple[int, int, int], ...]
    """(image, round, draw) of each sample that was not finite."""
    batches: int
    """Steps of the whole batch."""
    batch_fill: float | None
    """Mean share of the network's places in use, until draining starts; None if never full."""
    draining_from: float
    """The share of the run's steps after which the batch was never full again."""
    seconds: float
    sampler_seconds: float
    """Of these, in the sampler's steps and the classifier."""

    @property
    def wasted(self) -> int:
        """Samples begun that no episode needed."""
        return self.drawn - self.used
