"""The oracle in a sensing loop, in the place of a sampler and a classifier."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.errors import BadInput
from suffice.sensing.noise import oracle_noise
from suffice.sensing.oracle import Along, Doubles, Oracle, votes
from suffice.sensing.states import Floats, States

__all__ = ["OracleSampler"]

KEPT = 10_000  # vote laws remembered


class OracleSampler:
    """Votes drawn from the exact law of each state; a sample is its label, ``(B, 1)``.

    Pictures are not drawn: the vote needs none, and `Along.draw` gives them. So this is for
    probes that do not look at samples. `classify` reads the labels.

    >>> from suffice.sensing.data import evaluation_set
    >>> from suffice.sensing.probes import principal_components
    >>> sampler = OracleSampler(Oracle(*evaluation_set(), h=0.93))
    >>> image = np.arange(3)
    >>> y, noise = np.zeros((3, 2), dtype=np.float32), np.full((3, 2), 0.1, dtype=np.float32)
    >>> rows = principal_components()[0][:2]
    >>> sampler.classify(sampler(States(rows, y, noise, 0, image, image, image))).shape
    (3,)
    """

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self._at_hand: tuple[Floats, Along] | None = None
        self._laws: dict[bytes, Doubles] = {}

    def __call__(self, states: States) -> Floats:
        """One label ``(B, 1)`` for each of B states."""
        measured = np.isfinite(states.noise)
        levels = np.unique(states.noise[measured])
        if len(levels) > 1 or (measured[:, 1:] > measured[:, :-1]).any():
            raise BadInput(
                "the oracle takes states measured along the first rows with one sigma_y; "
                "draw other states apart, with `Oracle.along`"
            )
        along = self._at(states.rows, float(levels[0]) if len(levels) else 0.0)
        counts = measured.sum(axis=1)
        laws = np.array(
            [self._law(along, y[:t]) for y, t in zip(states.values, counts, strict=True)]
        ).reshape(len(states), self.oracle.classes)
        uniform, _ = oracle_noise(states.seed, states.image, states.round, states.draw)
        return votes(laws, uniform)[:, None].astype(np.float32)

    def classify(self, samples: Floats) -> NDArray[np.uint8]:
        """The labels ``(B,)`` that the samples ``(B, 1)`` are."""
        return samples[:, 0].astype(np.uint8)

    def _at(self, rows: Floats, sigma_y: float) -> Along:
        if rows.ndim != 2:
            raise BadInput(
                "the oracle's votes have no pictures for adaptive probes to look at; "
                "use probes that are fixed"
            )
        if self._at_hand is not None:
            given, along = self._at_hand
            if along.sigma_y == sigma_y and np.array_equal(given, rows):
                return along
        self._laws.clear()
        self._at_hand = (rows, self.oracle.along(rows, sigma_y))
        return self._at_hand[1]

    def _law(self, along: Along, values: Floats) -> Doubles:
        """The law of one state, worked out when its first vote is drawn."""
        key = values.tobytes()
        if key not in self._laws:
            if len(self._laws) == KEPT:
                self._laws.clear()
            self._laws[key] = along.law(values)
        return self._laws[key]
