"""What a sampler is given: measurement states, one row a vote to be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.errors import BadInput

__all__ = ["Classifier", "Sampler", "States"]

Floats = NDArray[np.float32]
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class States:
    """B votes to be drawn: what was measured before each, and which vote it is."""

    rows: Floats
    """Orthonormal directions: (T, d) shared by the batch, or (B, T, d) one set a vote."""
    values: Floats
    """The measurement along each direction, (B, T); 0 where not measured."""
    noise: Floats
    """Its standard deviation, (B, T); infinite where not measured."""
    seed: int
    image: Whole
    """With `round` and `draw`, (B,) each: which vote this is, and so which random numbers."""
    round: Whole
    draw: Whole

    def __post_init__(self) -> None:
        size, directions = len(self.image), self.rows.shape[-2]
        shapes = {"values": self.values.shape, "noise": self.noise.shape}
        for name, shape in shapes.items():
            if shape != (size, directions):
                raise BadInput(
                    f"{name} of shape {shape} does not fit {size} votes and {directions} "
                    f"directions; give one row a vote and one column a direction"
                )
        if self.rows.ndim == 3 and len(self.rows) != size:
            raise BadInput(f"{len(self.rows)} sets of directions for {size} votes; give one a vote")

    def __len__(self) -> int:
        return len(self.image)

    def pick(self, at: Sequence[int] | Whole) -> States:
        """The same states for some of the votes."""
        index = np.asarray(at, dtype=np.int64)
        rows = self.rows if self.rows.ndim == 2 else self.rows[index]
        return States(
            rows,
            self.values[index],
            self.noise[index],
            self.seed,
            self.image[index],
            self.round[index],
            self.draw[index],
        )


class Sampler(Protocol):
    """Draws one posterior sample (B, d) for each of B states; rows must not affect each other."""

    def __call__(self, states: States, /) -> Floats: ...


class Classifier(Protocol):
    """Turns images (B, d) into labels (B,): whole numbers below 255, or 255 for an invalid vote."""

    def __call__(self, images: Floats, /) -> NDArray[np.uint8]: ...
