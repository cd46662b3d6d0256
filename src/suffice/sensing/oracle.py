"""The exact posterior under a smoothed empirical prior: a sampler whose vote law is known.

The prior is x = training image + h z, each image as likely as another. For orthonormal probe rows
V and y = V x + sigma_y z,

    P(image i | y)  is proportional to  exp(-|y - V x_i|^2 / (2 (h^2 + sigma_y^2)))
    x | image i, y  is normal: along V its mean is x_i moved towards y by h^2 / (h^2 + sigma_y^2)
                    and its variance h^2 sigma_y^2 / (h^2 + sigma_y^2); elsewhere x_i + h z

The label of a draw is its training image's label, so the vote law pi(y) is a sum of weights. It
is exact for this prior, in which a label is never in doubt once the image is known; it is not
the law of the real digits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from suffice.errors import BadInput
from suffice.sensing.data import load_mnist, scaled
from suffice.sensing.probes import orthonormal

__all__ = ["Along", "Oracle", "choose_h", "mnist_oracle", "votes"]

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
# From choose_h along the first 24 components; scripts/make_assets.py prints it.
MNIST_H = 0.933
CHUNK = 4096  # images projected at once
# exp(-80) of the largest weight is the least that a weight is given: below lie float32's
# denormal numbers, which are slow, and no mass that counts.
FLOOR = np.float32(-80)


class Oracle:
    """The prior: images ``(n, size)`` in [-1, 1], labels ``(n,)``, and the smoothing h.

    >>> corners = np.float32([[1, 1], [1, -1], [-1, -1]])
    >>> oracle = Oracle(corners, np.array([0, 1, 1]), h=0.5)
    >>> along = oracle.along(np.float32([[1, 0], [0, 1]]), sigma_y=0.5)
    >>> along.masses(np.float32([-1, 0])).round(2).tolist()  # measured: nothing, one, two
    [[0.33, 0.67], [0.02, 0.98], [0.02, 0.98]]
    """

    def __init__(self, images: Floats, labels: NDArray[np.integer], h: float) -> None:
        if images.ndim != 2 or labels.shape != images.shape[:1] or not len(images):
            raise BadInput(
                f"images of shape {images.shape} and labels of shape {labels.shape} do not fit; "
                "use (n, size) and (n,)"
            )
        if not (np.isfinite(h) and h > 0):
            raise BadInput(f"h {h} must be a number above 0; choose_h finds one")
        # In the order of their labels, so that a class is one slice.
        order = np.argsort(labels, kind="stable")
        self.images: Floats = np.ascontiguousarray(images[order], dtype=np.float32)
        self.labels = labels[order]
        self.h = float(h)
        self.classes = int(labels.max()) + 1
        self.slices = np.searchsorted(self.labels, np.arange(self.classes + 1))

    @property
    def digest(self) -> str:
        """What names this prior in a vote log."""
        content = hashlib.sha256(f"oracle {self.h}".encode())
        content.update(self.images.tobytes())
        content.update(self.labels.astype(np.int64).tobytes())
        return content.hexdigest()

    def along(self, directions: Floats, sigma_y: float) -> Along:
        """The posterior given measurements along orthonormal rows ``(T, size)``."""
        if not (np.isfinite(sigma_y) and sigma_y >= 0):
            raise BadInput(f"sigma_y {sigma_y} must be a number of at least 0")
        directions = self._fitting(directions)
        return Along(self, directions, sigma_y, self.project(directions))

    def project(self, directions: Floats) -> Floats:
        """The coordinates of every image, ``(T, n)``; summed in double, as weights are steep."""
        rows = directions.astype(np.float64)
        result = np.empty((len(rows), len(self.images)), dtype=np.float32)
        for at in range(0, len(self.images), CHUNK):
            result[:, at : at + CHUNK] = rows @ self.images[at : at + CHUNK].T
        return result

    def _fitting(self, directions: Floats) -> Floats:
        """The directions, orthonormal."""
        if directions.ndim != 2 or directions.shape[1] != self.images.shape[1]:
            raise BadInput(
                f"directions of shape {directions.shape} do not fit images of "
                f"{self.images.shape[1]} pixels"
            )
        return orthonormal(directions)


class Along:
    """The posterior given the first t measurements along fixed rows, for any t up to T."""

    def __init__(
        self, oracle: Oracle, directions: Floats, sigma_y: float, projections: Floats
    ) -> None:
        self.oracle = oracle
        self.directions = directions
        self.sigma_y = float(sigma_y)
        self.projections = projections
        self.variance = oracle.h**2 + self.sigma_y**2

    def masses(self, values: Floats) -> Doubles:
        """The vote laws ``(t + 1, C)`` after none, one, ..., all of `values` ``(t,)``.

        Each measurement adds one square to each image's distance, so a path costs no more than
        its last state.
        """
        laws: Doubles = np.array([self._law(distance) for distance in self._distances(values)])
        return laws

    def law(self, values: Floats) -> Doubles:
        """The vote law ``(C,)`` given all of `values` ``(t,)``: the last row of `masses`."""
        *_, distance = self._distances(values)
        return self._law(distance)

    def weights(self, values: Floats) -> Doubles:
        """P(image i | y) ``(n,)`` given all of `values` ``(t,)``, in the oracle's order."""
        *_, distance = self._distances(values)
        weights = self._weights(distance).astype(np.float64)
        weights /= weights.sum()
        return weights

    def draw(
        self, values: Floats, uniform: Doubles, normals: Floats
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Exact draws ``(B, size)`` given `values` ``(t,)``, and their labels ``(B,)``.

        They come from uniform numbers ``(B,)``, which choose the images, and normals
        ``(B, size)``. The labels are those that `votes` gives for the same uniform numbers.
        """
        chosen, labels = self._choose(values, uniform)
        t = len(values)
        rows, h = self.directions[:t], self.oracle.h
        shrink = h**2 / self.variance
        spread = h * self.sigma_y / np.sqrt(self.variance)
        along = shrink * (values - self.projections[:t, chosen].T)
        along += (spread - h) * (normals @ rows.T)
        draws: Floats = self.oracle.images[chosen] + np.float32(h) * normals
        draws += (along @ rows).astype(np.float32)
        return draws, labels

    def _choose(
        self, values: Floats, uniform: Doubles
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Images ``(B,)`` by their weights, and labels; first the class, then one of its images."""
        law = self.law(values)
        labels = votes(law, uniform)
        weights, edges = self.weights(values), self.oracle.slices
        ends = np.cumsum(law)
        chosen = np.empty(len(uniform), dtype=np.int64)
        for label in np.unique(labels):
            among = labels == label
            sums = np.cumsum(weights[edges[label] : edges[label + 1]])
            # What is left of the uniform number, once it chose the class, is uniform again.
            left = (uniform[among] * ends[-1] - (ends[label] - law[label])) / law[label]
            place = np.searchsorted(sums, left * sums[-1], side="right")
            chosen[among] = edges[label] + np.minimum(place, len(sums) - 1)
        return chosen, labels

    def _distances(self, values: Floats) -> Iterator[Floats]:
        """Each image's squared distance after none, one, ..., all values, in one buffer."""
        values = self._fitting(values)
        distance = np.zeros(len(self.oracle.images), dtype=np.float32)
        part = np.empty_like(distance)
        yield distance
        for row, value in zip(self.projections, values, strict=False):
            np.subtract(row, value, out=part)
            np.multiply(part, part, out=part)
            np.add(distance, part, out=distance)
            yield distance

    def _weights(self, distance: Floats) -> Floats:
        """Each image's weight; the largest is 1."""
        weights: Floats = distance.min() - distance
        weights *= np.float32(0.5 / self.variance)
        np.maximum(weights, FLOOR, out=weights)
        np.exp(weights, out=weights)
        return weights

    def _law(self, distance: Floats) -> Doubles:
        weights = self._weights(distance)
        sums = [weights[a:b].sum() for a, b in pairwise(self.oracle.slices)]
        law = np.array(sums, dtype=np.float64)
        law /= law.sum()
        return law

    def _fitting(self, values: Floats) -> Floats:
        values = np.asarray(values, dtype=np.float32)
        if values.ndim != 1 or len(values) > len(self.directions):
            raise BadInput(
                f"values of shape {values.shape} do not fit {len(self.directions)} directions; "
                "use one number for each direction measured"
            )
        if not np.isfinite(values).all():
            raise BadInput("a measurement is not finite; measure again")
        return values


def mnist_oracle(data_dir: str | Path | None = None, h: float = MNIST_H) -> Oracle:
    """The oracle over MNIST's 60,000 training images; `load_mnist` says where they come from."""
    images, labels = load_mnist("train", data_dir)
    return Oracle(scaled(images), labels, h)


def votes(laws: Doubles, uniform: Doubles) -> NDArray[np.int64]:
    """One label for each uniform number ``(B,)``, from one law ``(C,)`` or a law each ``(B, C)``.

    >>> votes(np.array([0.2, 0.5, 0.3]), np.array([0.1, 0.2, 0.69, 0.7])).tolist()
    [0, 1, 1, 2]
    """
    ends = np.cumsum(laws, axis=-1)
    labels: NDArray[np.int64] = (ends <= uniform[:, None] * ends[..., -1:]).sum(axis=-1)
    return labels


def choose_h(images: Floats, held_out: Floats, directions: Floats | None = None) -> float:
    """The h with the highest mean log density of held-out images ``(m, size)``.

    With directions ``(T, size)`` it is the density of the coordinates along them, which are all
    that a measurement sees, and the h to use. Without, it is the density of all pixels: there
    most coordinates hardly vary, so h comes out small and the vote laws too sure.

    >>> generator = np.random.default_rng(0)
    >>> centres = 10 * generator.standard_normal((50, 3)).astype(np.float32)
    >>> near = centres + 0.5 * generator.standard_normal((50, 3)).astype(np.float32)
    >>> abs(choose_h(centres, near) - 0.5) < 0.1
    True
    """
    from scipy.optimize import minimize_scalar

    if images.ndim != 2 or held_out.ndim != 2 or images.shape[1] != held_out.shape[1]:
        raise BadInput(
            f"held-out images of shape {held_out.shape} do not fit images of shape {images.shape}"
        )
    centre = images.mean(axis=0)
    near, far = held_out - centre, images - centre
    if directions is not None:
        rows = orthonormal(directions)
        near, far = near @ rows.T, far @ rows.T
    squares = _squared_distances(near, far)
    nearest = squares.min(axis=1, keepdims=True)
    if nearest.mean() < 1e-6 * squares.mean():
        raise BadInput("every held-out image is among the images; hold other images out")
    squares -= nearest
    typical = 0.5 * np.log(nearest.mean() / near.shape[1])

    def loss(log_h: float) -> float:
        scale = 0.5 * np.exp(-2 * log_h)
        rivals = np.exp(np.maximum(squares * np.float32(-scale), FLOOR)).sum(axis=1)
        return float(scale * nearest.mean() + near.shape[1] * log_h - np.log(rivals).mean())

    # Were each image's nearest one its source, h would be the typical distance a coordinate;
    # farther sources make it less, never much more.
    found = minimize_scalar(
        loss, bounds=(typical - 3, typical + 1), method="bounded", options={"xatol": 1e-3}
    )
    return float(np.exp(found.x))


def _squared_distances(near: Floats, far: Floats) -> Floats:
    squares = (near**2).sum(axis=1)[:, None] + (far**2).sum(axis=1) - 2 * (near @ far.T)
    distances: Floats = np.maximum(squares, 0).astype(np.float32)
    return distances
