"""Random numbers that belong to a vote, not to the batch in which it was drawn.

A stream is Philox with key (seed, image) and counter (0, kind, round, draw): the first word of
the counter counts the blocks drawn. Streams are equal to the bit on every machine. So are
measurement and oracle noise; vote noise passes through the machine's float32 logarithm, sine and
cosine, which may differ in the last bit from one kind of processor to another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.errors import BadInput

__all__ = ["measurement_noise", "oracle_noise", "streams", "vote_noise"]

VOTE, MEASUREMENT, ORACLE = 0, 1, 2  # the kinds of stream
Floats = NDArray[np.float32]


def vote_noise(
    seed: ArrayLike,
    images: ArrayLike,
    rounds: ArrayLike,
    draws: ArrayLike,
    steps: int,
    size: int = 784,
) -> Floats:
    """Standard normals ``(B, steps, size)``: all that B votes of `steps` network steps need.

    Each of the first four arguments is one number or an array ``(B,)``.

    >>> both = vote_noise(0, [7, 8], 1, [0, 5], steps=3, size=4)
    >>> alone = vote_noise(0, 8, 1, 5, steps=3, size=4)
    >>> both.shape, bool((both[1] == alone[0]).all())
    ((2, 3, 4), True)
    """
    count = _positive(steps, "steps") * _positive(size, "size")
    keys = _keys(seed, images, rounds, draws)
    noise = np.empty((len(keys), count), dtype=np.float32)
    normals = _Normals(count)
    for row, stream in zip(noise, streams(VOTE, keys), strict=True):
        normals.fill(row, stream)
    return noise.reshape(len(keys), steps, size)


def measurement_noise(
    seed: ArrayLike, images: ArrayLike, rounds: ArrayLike, size: int = 1
) -> Floats:
    """Standard normals ``(B, size)``, one for each of the `size` measurements of a round.

    >>> measurement_noise(0, 7, [1, 2, 3]).shape
    (3, 1)
    """
    keys = _keys(seed, images, rounds, 0)
    noise = np.empty((len(keys), _positive(size, "size")), dtype=np.float32)
    for row, stream in zip(noise, streams(MEASUREMENT, keys), strict=True):
        stream.standard_normal(dtype=np.float32, out=row)
    return noise


def oracle_noise(
    seed: ArrayLike, images: ArrayLike, rounds: ArrayLike, draws: ArrayLike, size: int = 0
) -> tuple[NDArray[np.float64], Floats]:
    """For each of B draws a uniform number ``(B,)``, and standard normals ``(B, size)``.

    >>> uniform, normals = oracle_noise(0, 7, 1, [0, 1], size=3)
    >>> bool((uniform == oracle_noise(0, 7, 1, [0, 1])[0]).all()), normals.shape
    (True, (2, 3))
    """
    keys = _keys(seed, images, rounds, draws)
    uniform = np.empty(len(keys))
    normals = np.empty((len(keys), size), dtype=np.float32)
    for at, stream in enumerate(streams(ORACLE, keys)):
        uniform[at] = stream.random()
        if size:
            stream.standard_normal(dtype=np.float32, out=normals[at])
    return uniform, normals


def streams(kind: int, keys: NDArray[np.uint64]) -> Iterator[np.random.Generator]:
    """A generator at the start of the stream of each (seed, image, round, draw), in turn.

    It is one generator that moves: making one for each vote would cost 20 times as much.
    """
    bits = np.random.Philox()
    generator = np.random.Generator(bits)
    key = np.zeros(2, dtype=np.uint64)
    counter = np.zeros(4, dtype=np.uint64)
    counter[1] = kind
    state: Any = {
        "bit_generator": "Philox",
        "state": {"counter": counter, "key": key},
        "buffer": np.zeros(4, dtype=np.uint64),
        "buffer_pos": 4,  # nothing is left in the buffer
        "has_uint32": 0,
        "uinteger": 0,
    }
    for row in keys:
        key[:] = row[:2]
        counter[2:] = row[2:]
        bits.state = state
        yield generator


class _Normals:
    """Box and Muller's transform on whole rows; three times as fast as numpy's own normals."""

    def __init__(self, count: int) -> None:
        self._pairs = (count + 1) // 2
        self._radius, self._angle, self._part = np.empty((3, self._pairs), dtype=np.float32)

    def fill(self, row: Floats, stream: np.random.Generator) -> None:
        """Fill the row ``(count,)`` from the stream."""
        radius, angle, part, pairs = self._radius, self._angle, self._part, self._pairs
        words = stream.bit_generator.random_raw(pairs).view(np.uint32)
        # (word + 1/2) / 2^32 lies in (0, 1], so the logarithm is finite.
        np.add(words[:pairs], np.float32(0.5), out=radius, casting="unsafe", dtype=np.float32)
        np.multiply(radius, np.float32(2**-32), out=radius)
        np.log(radius, out=radius)
        np.multiply(radius, np.float32(-2), out=radius)
        np.sqrt(radius, out=radius)
        factor = np.float32(2 * np.pi / 2**32)
        np.multiply(words[pairs:], factor, out=angle, casting="unsafe", dtype=np.float32)
        np.multiply(radius, np.cos(angle, out=part), out=row[:pairs])
        rest = row.size - pairs
        np.sin(angle, out=part)
        np.multiply(radius[:rest], part[:rest], out=row[pairs:])


def _keys(
    seed: ArrayLike, images: ArrayLike, rounds: ArrayLike, draws: ArrayLike
) -> NDArray[np.uint64]:
    """The four numbers of each stream, ``(B, 4)``."""
    columns = []
    names = ("seed", "images", "rounds", "draws")
    for name, given in zip(names, (seed, images, rounds, draws), strict=True):
        column = np.asarray(given)
        if column.size and column.dtype.kind not in "iu":
            raise BadInput(f"{name} must be whole numbers, not {column.dtype}")
        if column.size and column.dtype.kind == "i" and column.min() < 0:
            raise BadInput(f"{name} holds {column.min()}; use whole numbers of at least 0")
        columns.append(np.atleast_1d(column.astype(np.uint64)))
    try:
        return np.stack(np.broadcast_arrays(*columns), axis=-1).reshape(-1, 4)
    except ValueError:
        lengths = ", ".join(str(column.size) for column in columns)
        raise BadInput(f"{', '.join(names)} have lengths {lengths}; use one length") from None


def _positive(number: int, name: str) -> int:
    if number < 1:
        raise BadInput(f"{name} {number} must be at least 1")
    return number
