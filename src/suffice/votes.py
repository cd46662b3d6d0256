"""The vote log: every vote of a sensing run, one row a pool, in Parquet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import BadInput
from suffice.files import replacing

__all__ = ["INVALID", "VoteLog", "merge_logs", "read_log", "write_log"]

SCHEMA = 1
INVALID = 255
"""A vote for no class."""
COLUMNS = ("image", "round", "truth", "votes")
KEY = b"suffice"


@dataclass(frozen=True, eq=False)
class VoteLog:
    """The votes of I images, T rounds and D draws.

    >>> votes = np.zeros((1, 2, 3), dtype=np.uint8)
    >>> log = VoteLog(np.array([7]), np.array([0]), votes, {})
    >>> log.rounds, log.draws
    (2, 3)
    """

    images: NDArray[np.int64]
    """The number of each image, (I,), rising."""
    truth: NDArray[np.int64]
    """Its true label, (I,); -1 where it is not known."""
    votes: NDArray[np.uint8]
    """(I, T, D): labels, 255 for an invalid vote."""
    metadata: Mapping[str, Any]
    """What was run: seed, draws, rounds, sigma_y, probes, hashes, versions."""

    def __post_init__(self) -> None:
        if self.votes.ndim != 3 or self.votes.shape[0] != len(self.images) or not self.votes.size:
            raise BadInput(f"votes of shape {self.votes.shape} are no log; images x rounds x draws")

    @property
    def rounds(self) -> int:
        """Rounds logged for every image."""
        return int(self.votes.shape[1])

    @property
    def draws(self) -> int:
        """Votes logged in every round."""
        return int(self.votes.shape[2])

    @property
    def prefix(self) -> int:
        """How many draws of a round its probes looked at; a rule that replays draws as many."""
        return int(self.metadata.get("prefix", 0))

    @property
    def classes(self) -> int:
        """One more than the largest label."""
        return int(self.votes[self.votes != INVALID].max(initial=0)) + 1

    def pick(self, at: NDArray[Any]) -> VoteLog:
        """The log of some of the images."""
        return VoteLog(self.images[at], self.truth[at], self.votes[at], self.metadata)

    def laws(self, classes: int | None = None) -> NDArray[np.float64]:
        """The share of each class in each pool, (I, T, C): an estimate of the vote laws."""
        count = classes or self.classes
        return np.stack([(self.votes == c).mean(axis=2) for c in range(count)], axis=2)

    def leaders(self) -> NDArray[np.int64]:
        """The class with the most votes in each pool, (I, T); the lowest of those that tie."""
        leaders: NDArray[np.int64] = self.laws().argmax(axis=2)
        return leaders


def write_log(log: VoteLog, path: str | Path) -> None:
    """Write a log as one Parquet file, whole or not at all."""
    arrow, parquet = _pyarrow()
    count = len(log.images)
    flat = log.votes.reshape(-1, log.draws)
    offsets = np.arange(len(flat) + 1, dtype=np.int32) * log.draws
    table = arrow.table(
        {
            "image": arrow.array(np.repeat(log.images, log.rounds).astype(np.int32)),
            "round": arrow.array(np.tile(np.arange(1, log.rounds + 1), count).astype(np.int16)),
            "truth": arrow.array(np.repeat(log.truth, log.rounds).astype(np.int16)),
            "votes": arrow.ListArray.from_arrays(offsets, arrow.array(flat.reshape(-1))),
        }
    )
    record = {"schema": SCHEMA, **log.metadata}
    table = table.replace_schema_metadata({KEY: json.dumps(record, sort_keys=True).encode()})
    with replacing(path) as part:
        parquet.write_table(table, part, compression="zstd")


def read_log(path: str | Path) -> VoteLog:
    """Read one Parquet file, or all of a folder as one log."""
    path = Path(path)
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise BadInput(f"{path}: no vote log there; make one with `suffice log --out {path}`")
    return merge_logs([_read_file(file) for file in files], [str(file) for file in files])


def merge_logs(logs: Sequence[VoteLog], names: Sequence[str] | None = None) -> VoteLog:
    """One log of the images of several, which must come from the same run."""
    names = names or [f"log {at}" for at in range(len(logs))]
    first = logs[0]
    for log, name in zip(logs[1:], names[1:], strict=True):
        for key in sorted({*first.metadata, *log.metadata} - {"versions"}):
            ours, theirs = first.metadata.get(key), log.metadata.get(key)
            if ours != theirs:
                raise BadInput(
                    f"{name}: {key} is {theirs!r}, but {ours!r} in {names[0]}; "
                    "logs of different runs do not merge"
                )
        if log.votes.shape[1:] != first.votes.shape[1:]:
            raise BadInput(
                f"{name}: {log.rounds} rounds of {log.draws} draws, but {first.rounds} of "
                f"{first.draws} in {names[0]}; logs of different runs do not merge"
            )
    images = np.concatenate([log.images for log in logs])
    order = np.argsort(images, kind="stable")
    twice = np.flatnonzero(np.diff(images[order]) == 0)
    if len(twice):
        raise BadInput(f"image {images[order][twice[0]]} is in two of the logs; leave one out")
    return VoteLog(
        images[order],
        np.concatenate([log.truth for log in logs])[order],
        np.concatenate([log.votes for log in logs])[order],
        first.metadata,
    )


def _read_file(path: Path) -> VoteLog:
    arrow, parquet = _pyarrow()
    again = "make it again with `suffice log`"
    try:
        table = parquet.read_table(path)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; name a vote log or a folder of them") from None
    except (arrow.ArrowInvalid, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise BadInput(f"{path}: not a whole Parquet file ({reason}); {again}") from None
    try:
        metadata = json.loads((table.schema.metadata or {})[KEY])
    except (KeyError, json.JSONDecodeError):
        raise BadInput(f"{path}: a Parquet file, but not a vote log; {again}") from None
    if metadata.get("schema") != SCHEMA:
        raise BadInput(
            f"{path}: schema {metadata.get('schema')!r} is not the log schema {SCHEMA}; {again}"
        )
    del metadata["schema"]
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        raise BadInput(f"{path}: column {missing[0]!r} is missing; {again}")
    if not table.num_rows:
        raise BadInput(f"{path}: the log is empty; {again}")
    votes = table["votes"].combine_chunks()
    draws, flat = len(votes[0]), votes.flatten().to_numpy().astype(np.uint8)
    images, first = np.unique(table["image"].to_numpy(), return_index=True)
    rounds = table.num_rows // len(images)
    shape = (len(images), rounds, draws)
    whole = np.array_equal(
        table["round"].to_numpy(), np.tile(np.arange(1, rounds + 1), len(images))
    ) and np.array_equal(table["image"].to_numpy(), np.repeat(images, rounds))
    if not whole or flat.size != np.prod(shape):
        raise BadInput(f"{path}: rows are missing, doubled or uneven; {again}")
    for key, found in (("rounds", rounds), ("draws", draws)):
        if metadata.get(key, found) != found:
            raise BadInput(f"{path}: {found} {key}, but its metadata says {metadata[key]}; {again}")
    truth = table["truth"].to_numpy()[first].astype(np.int64)
    return VoteLog(images.astype(np.int64), truth, flat.reshape(shape), metadata)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise BadInput("vote logs need the extra `logs`: pip install 'suffice[logs]'") from None
    return pyarrow, pyarrow.parquet
