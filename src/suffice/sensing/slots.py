"""Places for samples in flight: what the live loop keeps full."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from suffice.sensing.states import Floats, Sampler, States, Whole

__all__ = ["OneStep", "Slots"]


class Slots(Protocol):
    """Places for samples that start and end at different times (see `DDRMSlots`)."""

    capacity: int
    """How many samples may be in flight."""
    shape: int
    """Places come in groups of this size: what is short of a group is run as padding."""
    rows_filled: int
    """Places in use, summed over steps."""
    rows_run: int
    """Places run, padding among them, summed over steps."""

    def start(self, slots: Whole, states: States) -> None:
        """Begin one sample in each of the given free slots."""

    def stop(self, slots: Whole) -> None:
        """Give up the samples in these slots."""

    def step(self) -> tuple[Whole, Floats]:
        """Advance every sample; the slots that finished, and their samples."""


class OneStep:
    """Places for a sampler that draws whole samples: each ends at the step after its start.

    A sampler that pads its batches to a multiple of some number says so by an attribute `shape`;
    else only votes that are certain to be needed are drawn.
    """

    def __init__(self, sampler: Sampler, capacity: int) -> None:
        self.capacity = capacity
        self.shape: int = getattr(sampler, "shape", 1)
        self.rows_filled = self.rows_run = 0
        self._sampler = sampler
        self._begun: tuple[Whole, States] | None = None

    def start(self, slots: Whole, states: States) -> None:
        """Begin one sample in each of the given free slots."""
        self._begun = (slots, states)

    def stop(self, slots: Whole) -> None:
        """Nothing is in flight between steps."""

    def step(self) -> tuple[Whole, Floats]:
        """Draw all that was begun."""
        if self._begun is None:
            return np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.float32)
        (slots, states), self._begun = self._begun, None
        self.rows_filled += len(slots)
        self.rows_run += self.capacity
        return slots, self._sampler(states)
