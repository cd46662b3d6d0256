"""The oracle in a sensing loop: exact posterior votes, whose law is known."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from suffice.errors import BadInput
from suffice.sensing.noise import oracle_noise
from suffice.sensing.oracle import Along, Oracle, votes
from suffice.sensing.states import Floats, States

__all__ = ["OracleSampler", "read_label"]


class OracleSampler:
    """Draws labels from the exact posterior; its `images` (B, 1) hold nothing but the label.

    The label of a draw does not depend on its pixels, so they are left out: `Oracle` draws them
    where they are wanted.
    """

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self._along: Along | None = None
        self._laws: dict[tuple[int, int], NDArray[np.float64]] = {}

    @property
    def digest(self) -> str:
        """What names this prior in a vote log."""
        content = hashlib.sha256(f"oracle {self.oracle.h}".encode())
        content.update(self.oracle.images.tobytes())
        content.update(self.oracle.labels.tobytes())
        return content.hexdigest()

    def __call__(self, states: States) -> Floats:
        """One label for each of B states."""
        laws = np.stack([self.law(states, row) for row in range(len(states))])
        uniform, _ = oracle_noise(states.seed, states.image, states.round, states.draw)
        return votes(laws, uniform).astype(np.float32)[:, None]

    def law(self, states: States, row: int) -> NDArray[np.float64]:
        """The exact vote law pi (C,) at one state; computed once for each image and round."""
        key = (int(states.image[row]), int(states.round[row]))
        if key not in self._laws:
            if states.rows.ndim == 3:
                raise BadInput("the oracle needs probes that do not depend on samples; use pca")
            measured = np.isfinite(states.noise[row])
            sigma_y = float(states.noise[row][measured].max(initial=0.0))
            if self._along is None or self._along.sigma_y != sigma_y:
                self._along = self.oracle.along(states.rows, sigma_y)
                self._laws.clear()
            self._laws[key] = self._along.law(states.values[row][measured])
        return self._laws[key]


def read_label(images: Floats) -> NDArray[np.uint8]:
    """The classifier that goes with `OracleSampler`."""
    labels: NDArray[np.uint8] = images[:, 0].astype(np.uint8)
    return labels
