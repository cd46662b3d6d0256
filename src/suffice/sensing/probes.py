"""Which directions to measure, and what measuring them gives."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.errors import BadInput
from suffice.sensing.data import packaged_arrays

__all__ = ["AdaptivePCA", "FixedPCA", "Probes", "measure", "orthonormal", "principal_components"]

COMPONENTS = (
    "components.npz",
    "fe97cc63bfa493628cf1496dbb66b6fee886a961e5253713271bd3783446d160",
)
# Rows this far from orthonormal were meant to be so. Putting them right moves a measurement of a
# digit (norm about 20) by less than .02.
NEARLY = 1e-3
Floats = NDArray[np.float32]


class Probes(Protocol):
    """A policy that names the next directions to measure.

    `samples` is how many posterior samples of the round it looks at; 0 means that its directions
    are known before anything is measured. `digest` names the policy in a vote log.
    """

    @property
    def samples(self) -> int: ...

    @property
    def digest(self) -> str: ...

    def next(self, measured: Floats, values: Floats, samples: Floats) -> Floats:
        """The next direction(s), orthonormal rows ``(new, size)``.

        `measured` are the directions so far ``(t, size)``, `values` their measurements ``(t,)``,
        `samples` the posterior samples of this round ``(m, size)``, possibly none.
        """
        ...


@dataclass(frozen=True, eq=False)
class FixedPCA:
    """The training set's principal components in order, `per_round` of them a round.

    >>> probes = FixedPCA()
    >>> nothing = np.empty((0, 784), dtype=np.float32)
    >>> probes.next(nothing, np.empty(0, dtype=np.float32), nothing).shape
    (1, 784)
    """

    per_round: int = 1
    directions: Floats = field(default_factory=lambda: principal_components()[0], repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.per_round <= len(self.directions):
            raise BadInput(
                f"per_round {self.per_round} is not from 1 to the {len(self.directions)} "
                "components that there are"
            )
        object.__setattr__(self, "directions", orthonormal(self.directions))

    @property
    def samples(self) -> int:
        """It looks at no posterior sample."""
        return 0

    @property
    def digest(self) -> str:
        """What names these probes in a vote log."""
        return _digest(f"fixed-pca {self.per_round}", self.directions)

    def next(self, measured: Floats, values: Floats, samples: Floats) -> Floats:
        """The components that follow the ones measured."""
        done, there = len(measured), len(self.directions)
        if done + self.per_round > there:
            raise BadInput(
                f"probe {done + self.per_round} is asked for, but there are {there} components; "
                "sense fewer rounds"
            )
        return self.directions[done : done + self.per_round]


@dataclass(frozen=True, eq=False)
class AdaptivePCA:
    """The leading component of the round's first `samples` posterior samples.

    It is orthogonal to what is measured. Where the samples say nothing (none drawn before the
    first measurement, or all alike), the first row of `start` that is not yet measured serves.
    """

    samples: int = 16
    start: Floats = field(default_factory=lambda: principal_components()[0], repr=False)

    def __post_init__(self) -> None:
        if self.samples < 2:
            raise BadInput(f"samples {self.samples} is too few for a component; use 2 or more")
        object.__setattr__(self, "start", orthonormal(self.start))

    @property
    def digest(self) -> str:
        """What names these probes in a vote log."""
        return _digest(f"adaptive-pca {self.samples}", self.start)

    def next(self, measured: Floats, values: Floats, samples: Floats) -> Floats:
        """The direction ``(1, size)`` in which the samples differ most, what is measured aside."""
        if 0 < len(samples) < self.samples:
            raise BadInput(
                f"{len(samples)} posterior samples given, but the probe looks at {self.samples}; "
                "draw that many before the next measurement"
            )
        rows = np.asarray(samples[: self.samples], dtype=np.float64)
        rows = rows[np.isfinite(rows).all(axis=1)]  # an invalid sample is no evidence
        spread = _project_out(rows - rows.mean(axis=0), measured) if len(rows) > 1 else rows[:0]
        if np.abs(spread).max(initial=0.0) > NEARLY:
            # The leading right singular vector, from the small Gram matrix of the samples.
            _, left = np.linalg.eigh(spread @ spread.T)
            return _unit(left[:, -1] @ spread, measured)
        for row in self.start:
            if np.linalg.norm(_project_out(row[None], measured)) > 0.5:
                return _unit(row, measured)
        raise BadInput("the posterior samples are all alike; there is nothing left to measure")


def measure(x: Floats, directions: Floats, sigma_y: float, noise: Floats) -> Floats:
    """The measurements y = V x + sigma_y z ``(t,)`` of x ``(size,)`` along V ``(t, size)``.

    >>> measure(np.float32([3, 4]), np.float32([[0, 1]]), 0.5, np.float32([2])).tolist()
    [5.0]
    """
    if not (np.isfinite(sigma_y) and sigma_y >= 0):
        raise BadInput(f"sigma_y {sigma_y} must be a number of at least 0")
    if x.ndim != 1 or directions.ndim != 2 or directions.shape[1] != x.size:
        raise BadInput(
            f"directions of shape {directions.shape} do not fit an image of shape {x.shape}; "
            "give rows as long as the image"
        )
    if noise.shape != directions.shape[:1]:
        raise BadInput(f"noise of shape {noise.shape} needs one number for each direction")
    # Summed in double, row by row, so that a value does not depend on how many are measured.
    exact = np.array([float(np.dot(row, x)) for row in np.asarray(directions, dtype=np.float64)])
    values: Floats = (exact + sigma_y * noise).astype(np.float32)
    return values


def orthonormal(rows: Floats) -> Floats:
    """The rows ``(t, size)`` made orthonormal; refused where they are not nearly so already.

    >>> rows = orthonormal(np.float32([[1.0005, 0], [0.0005, 1]]))
    >>> np.allclose(rows @ rows.T, np.eye(2), atol=1e-6)
    True
    """
    given = np.asarray(rows, dtype=np.float64)
    if given.ndim != 2 or given.shape[0] > given.shape[1]:
        raise BadInput(f"probes of shape {given.shape} must be at most as many rows as pixels")
    if not np.isfinite(given).all():
        at = int(np.flatnonzero(~np.isfinite(given).all(axis=1))[0])
        raise BadInput(f"probe row {at} is not finite; give real directions")
    gram = given @ given.T
    off = np.abs(gram - np.eye(len(given)))
    for at in range(len(given)):
        if off[at, at] > 2 * NEARLY:
            raise BadInput(
                f"probe row {at} has length {np.sqrt(gram[at, at]):.4g}, not 1; "
                "scale the row, and its measurement with it"
            )
        if at and off[at, :at].max() > NEARLY:
            other = int(off[at, :at].argmax())
            raise BadInput(
                f"probe row {at} is not orthogonal to row {other} "
                f"(inner product {gram[at, other]:.4g}); orthogonalise the rows first"
            )
    if off.max(initial=0.0) < 1e-6:
        return np.ascontiguousarray(rows, dtype=np.float32)
    # The nearest orthonormal rows: the polar factor, which favours no row.
    left, _, right = np.linalg.svd(given, full_matrices=False)
    return np.ascontiguousarray(left @ right, dtype=np.float32)


def principal_components() -> tuple[Floats, Floats]:
    """The training split's first 32 components ``(32, 784)`` and its mean ``(784,)``.

    >>> directions, mean = principal_components()
    >>> directions.shape, mean.shape
    ((32, 784), (784,))
    """
    arrays = packaged_arrays(*COMPONENTS)
    return arrays["directions"], arrays["mean"]


def _project_out(rows: NDArray[np.float64], measured: Floats) -> NDArray[np.float64]:
    """The rows without their part in the span of the orthonormal `measured`."""
    basis = measured.astype(np.float64)
    return rows - (rows @ basis.T) @ basis


def _unit(row: NDArray[np.floating], measured: Floats) -> Floats:
    """The row ``(1, size)`` of length 1, orthogonal to `measured`, its largest entry positive."""
    rest = row[None].astype(np.float64)
    for _ in range(2):  # once leaves the rounding of the first pass
        rest = _project_out(rest / np.linalg.norm(rest), measured)
    rest /= np.linalg.norm(rest)
    sign = np.sign(rest[0, np.abs(rest[0]).argmax()])
    unit: Floats = (sign * rest).astype(np.float32)
    return unit


def _digest(name: str, directions: Floats) -> str:
    content = name.encode() + str(directions.shape).encode() + directions.tobytes()
    return hashlib.sha256(content).hexdigest()
