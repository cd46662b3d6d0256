"""Make the vote log of a run, shard by shard, in a folder that survives anything.

Workers only make votes; this process alone writes, each shard whole or not at all. So a run that
was stopped, however hard, goes on when the same command is given again.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from suffice.errors import BadInput
from suffice.files import write_whole
from suffice.progress import note
from suffice.runs.parts import make_shard, versions
from suffice.runs.shards import RunConfig
from suffice.runs.spread import spread
from suffice.votes import MANIFEST, sha256, write_log

__all__ = ["execute"]


def execute(
    config: RunConfig,
    folder: str | Path,
    on: str = "local",
    workers: int | None = None,
    batch: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Make the shards of the run's vote log that are missing in `folder`; return the folder.

    `on` and `workers` are those of `spread`; `batch` is how many samples a worker has in flight.
    `progress` is called with images done in all and votes drawn by this call.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"{folder}: cannot be made a folder ({error.strerror}); name another"
        ) from None
    with _alone(folder):
        _fill(config, folder, on, workers, batch, progress or (lambda images, votes: None))
    return folder


def _fill(
    config: RunConfig,
    folder: Path,
    on: str,
    workers: int | None,
    batch: int | None,
    progress: Callable[[int, int], None],
) -> None:
    manifest = _open_manifest(folder, config)
    done = manifest["shards"]
    missing = [shard for shard in config.shards() if shard.name not in done]
    images = config.images - sum(len(shard) for shard in missing)
    votes = 0

    def tell(more: int, _: int, drawn: int) -> None:
        progress(images + more, votes + drawn)

    progress(images, votes)
    work = partial(make_shard, progress=tell if on == "local" else None, batch=batch)
    began = time.monotonic()
    with closing(spread(config, lambda _: missing, work, on, workers)) as made:
        for shard, (log, ledger) in made:
            hashes = log.metadata["hashes"]
            if manifest["hashes"] not in ({}, hashes):
                raise BadInput(
                    f"{folder}: holds shards of other weights or probes than are installed now; "
                    "name another folder"
                )
            write_log(log, folder / shard.name)
            for image, round_, draw in ledger.broken:
                note(f"image {image}, round {round_}, draw {draw}: not finite, so an invalid vote")
            done[shard.name] = {
                "sha256": sha256(folder / shard.name),
                "seconds": round(time.monotonic() - began, 3),
                "broken": ledger.broken,
            }
            manifest["hashes"] = hashes
            _write_manifest(folder, manifest)
            began = time.monotonic()
            images, votes = images + len(shard), votes + log.votes.size
            progress(images, votes)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder, so that no second run writes there; the system frees it when we end."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise BadInput(f"{folder}: another run writes there; wait or name another") from None
    finally:
        os.close(handle)


def _open_manifest(folder: Path, config: RunConfig) -> dict[str, Any]:
    """What the folder says is done already; shards that are not what it says are made again."""
    for part in folder.glob(".*.part"):
        part.unlink(missing_ok=True)
    path, record = folder / MANIFEST, config.record()
    if not path.exists():
        if any(folder.glob("*.parquet")):
            raise BadInput(f"{folder}: holds Parquet files but no {MANIFEST}; name an empty folder")
        fresh = {"config": record, "versions": versions(), "hashes": {}, "shards": {}}
        _write_manifest(folder, fresh)
        return fresh
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        theirs, done, _ = manifest["config"], manifest["shards"], manifest["hashes"]
        different = [key for key in record if record[key] != theirs[key]]
        whole = {name: sha for name in done if (sha := done[name]["sha256"])}
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(f"{path}: not a whole manifest; name another folder") from None
    if different and not done and not any(folder.glob("*.parquet")):
        path.unlink()
        return _open_manifest(folder, config)
    if different:
        key = different[0]
        raise BadInput(
            f"{folder}: holds a run with {key} {theirs[key]!r}, not {record[key]!r}; "
            "name another folder, or the same values to go on"
        )
    for name, sha in whole.items():
        if not (folder / name).exists() or sha256(folder / name) != sha:
            del done[name]
    return manifest


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    write_whole(folder / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True) + "\n")
