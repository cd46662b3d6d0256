"""The vote log: every vote of a sensing run, one row a pool, in Parquet."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import BadInput
from suffice.files import replacing
from suffice.inputs import INVALID

__all__ = [
    "MANIFEST",
    "NONE",
    "VoteLog",
    "checked_log",
    "merge_logs",
    "read_log",
    "sha256",
    "write_log",
]

SCHEMA = 1
MANIFEST = "manifest.json"
"""The file in a log's folder that says what run it is and which shards are done."""
NONE = -1
"""No class, where labels are signed."""
COLUMNS = {"image": "int32", "round": "int16", "truth": "int16", "votes": "list<uint8>"}
KEY = b"suffice"
GO_ON = "give the command that made it again, and it goes on"
AGAIN = "make it again with `suffice log`"


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
        for name, kind in (("images", np.int64), ("truth", np.int64), ("votes", np.uint8)):
            object.__setattr__(self, name, _integers(getattr(self, name), name, kind))
        if self.votes.ndim != 3 or self.votes.shape[0] != len(self.images) or not self.votes.size:
            raise BadInput(
                f"votes of shape {self.votes.shape} for {len(self.images)} images are no log; "
                "give images x rounds x draws, each at least 1"
            )
        if len(self.truth) != len(self.images):
            raise BadInput(f"{len(self.truth)} true labels for {len(self.images)} images")

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

    def laws(self, classes: int | None = None) -> NDArray[np.float64]:
        """The share of each class in each pool, (I, T, C): an estimate of the vote laws."""
        count = classes or self.classes
        return np.stack([(self.votes == c).mean(axis=2) for c in range(count)], axis=2)

    def leaders(self) -> NDArray[np.int64]:
        """The class with the most votes in each pool, (I, T); the lowest of those that tie.

        -1 where no vote is valid.
        """
        laws = self.laws()
        return np.where(laws.any(axis=2), laws.argmax(axis=2), NONE)


def _integers(values: Any, name: str, kind: type[np.integer[Any]]) -> NDArray[Any]:
    """The values as whole numbers of this kind, refused where one does not fit."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise BadInput(
            f"{name} hold {array.flat[0]!r}, no whole number; number the classes from 0, "
            f"with {INVALID} for an invalid vote and {NONE} for a truth that is not known"
        )
    limits = np.iinfo(kind)
    for value in (array.min(initial=0), array.max(initial=0)):
        if not limits.min <= value <= limits.max:
            raise BadInput(f"{name} hold {value}; use {limits.min} to {limits.max}")
    return array.astype(kind, copy=False)


def checked_log(log: Any) -> VoteLog:
    """The log, if it is one."""
    if not isinstance(log, VoteLog):
        raise BadInput(f"{log!r} is no VoteLog; read one with suffice.votes.read_log")
    return log


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
    if not path.is_dir():
        return _read_file(path)
    files = sorted(path.glob("*.parquet"))
    manifest = path / MANIFEST
    if not files:
        remedy = GO_ON if manifest.exists() else f"make one with `suffice log --out {path}`"
        raise BadInput(f"{path}: no vote log there; {remedy}")
    wanted = _check_files(manifest, files) if manifest.exists() else None
    log = merge_logs([_read_file(file) for file in files], [str(file) for file in files])
    if wanted is not None and len(log.images) != wanted:
        raise BadInput(f"{path}: {len(log.images)} of {wanted} images are done; {GO_ON}")
    return log


def merge_logs(logs: Sequence[VoteLog], names: Sequence[str] | None = None) -> VoteLog:
    """One log of the images of several, which must come from the same run."""
    if not logs:
        raise BadInput("no logs to merge; give one or more")
    names = names or [f"log {at}" for at in range(len(logs))]
    first, facts = logs[0], _facts(logs[0])
    for log, name in zip(logs[1:], names[1:], strict=True):
        others = _facts(log)
        for key in sorted({*facts, *others}):
            ours, theirs = facts.get(key), others.get(key)
            if ours != theirs:
                raise BadInput(
                    f"{name}: {key} is {theirs!r}, but {ours!r} in {names[0]}; "
                    "logs of different runs do not merge"
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


def sha256(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _facts(log: VoteLog) -> dict[str, Any]:
    """All that logs of one run have in common; the software may differ."""
    facts: dict[str, Any] = {"rounds": log.rounds, "draws": log.draws}
    for key, value in log.metadata.items():
        if isinstance(value, Mapping):
            facts |= {f"{key}.{name}": part for name, part in value.items()}
        else:
            facts[key] = value
    return {key: value for key, value in facts.items() if not key.startswith("versions.")}


def _check_files(manifest: Path, files: Sequence[Path]) -> int:
    """Refuse files that are not those that the manifest tells of; how many images it is to have."""
    try:
        record = json.loads(manifest.read_text(encoding="utf-8"))
        wanted = {name: shard["sha256"] for name, shard in record["shards"].items()}
        images = int(record["config"]["images"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BadInput(f"{manifest}: not a whole manifest; {AGAIN} in another folder") from None
    for file in files:
        if file.name not in wanted:
            raise BadInput(f"{file}: {MANIFEST} does not tell of it; remove it")
        if wanted.get(file.name) != sha256(file):
            raise BadInput(f"{file}: not the file that {MANIFEST} tells of; {GO_ON}")
    return images


def _read_file(path: Path) -> VoteLog:
    arrow, parquet = _pyarrow()
    try:
        # By a handle: a path would take a name such as `image=3` for a column.
        with path.open("rb") as file:
            table = parquet.read_table(file)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; name a vote log or a folder of them") from None
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise BadInput(f"{path}: not a whole Parquet file ({reason}); {AGAIN}") from None
    try:
        metadata = json.loads((table.schema.metadata or {})[KEY])
        schema = metadata.pop("schema", None)
    except (KeyError, ValueError, AttributeError, TypeError):
        raise BadInput(f"{path}: a Parquet file, but not a vote log; {AGAIN}") from None
    if schema != SCHEMA:
        raise BadInput(f"{path}: schema {schema!r} is not the log schema {SCHEMA}; {AGAIN}")
    for name, kind in COLUMNS.items():
        if name not in table.column_names:
            raise BadInput(f"{path}: column {name!r} is missing; {AGAIN}")
        column = table[name]
        found = re.sub(r"\w+: ", "", str(column.type))  # writers name a list's items differently
        if found != kind or column.null_count:
            raise BadInput(f"{path}: column {name!r} is {found}, not {kind} without gaps; {AGAIN}")
    if not table.num_rows:
        raise BadInput(f"{path}: the log is empty; {AGAIN}")
    return _from_table(table, metadata, path)


def _from_table(table: Any, metadata: dict[str, Any], path: Path) -> VoteLog:
    """The log in a table of the right columns, if it has all rows."""
    lists = table["votes"].combine_chunks()
    lengths = np.diff(lists.offsets.to_numpy())
    image, truth = table["image"].to_numpy(), table["truth"].to_numpy()
    images, first = np.unique(image, return_index=True)
    rounds, draws = table.num_rows // len(images), int(lengths[0])
    if (
        lists.values.null_count
        or np.any(lengths != draws)
        or not np.array_equal(image, np.repeat(images, rounds))
        or not np.array_equal(table["round"], np.tile(np.arange(1, rounds + 1), len(images)))
        or not np.array_equal(truth, np.repeat(truth[first], rounds))
    ):
        raise BadInput(f"{path}: rows are missing, doubled or uneven; {AGAIN}")
    for key, found in (("rounds", rounds), ("draws", draws)):
        if metadata.get(key, found) != found:
            raise BadInput(f"{path}: {found} {key}, but its metadata says {metadata[key]}; {AGAIN}")
    votes = lists.flatten().to_numpy().reshape(len(images), rounds, draws)
    return VoteLog(images.astype(np.int64), truth[first].astype(np.int64), votes, metadata)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise BadInput("vote logs need the extra `logs`: pip install 'suffice[logs]'") from None
    return pyarrow, pyarrow.parquet
