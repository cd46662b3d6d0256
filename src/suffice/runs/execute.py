"""Run the shards of a config: in this process, in several, or on a Ray cluster.

Workers only make votes; this process alone writes, each shard whole or not at all. So a run that
was stopped, however hard, goes on when the same command is given again.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, TypeVar

from suffice.errors import BadInput, RunFailed
from suffice.files import write_whole
from suffice.runs.shards import Parts, RunConfig, Shard, load_parts, make_shard, versions
from suffice.votes import write_log

__all__ = ["execute", "spread"]

MANIFEST = "manifest.json"
WORKER_BYTES = 900 * 2**20
"""What one worker with its model takes at its peak."""
TRIES = 5

T = TypeVar("T")
Work = Callable[[Parts, Shard], T]


def execute(
    config: RunConfig,
    folder: str | Path,
    on: str = "local",
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Make the shards of the run's vote log that are missing in `folder`; return the folder.

    `on` is `local` (this process), `processes`, or `ray` or `ray:ADDRESS` for a cluster;
    `progress` is called with shards done and shards in all.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"{folder}: cannot be made a folder ({error.strerror}); name another"
        ) from None
    manifest = _open_manifest(folder, config)
    shards = config.shards()
    missing = [shard for shard in shards if shard.name not in manifest["shards"]]
    report = progress or (lambda done, total: None)
    report(len(shards) - len(missing), len(shards))
    began = time.monotonic()
    for shard, log in spread(config, missing, make_shard, on, workers):
        write_log(log, folder / shard.name)
        manifest["shards"][shard.name] = _sha256(folder / shard.name)
        manifest["hashes"] = log.metadata["hashes"]
        manifest["seconds"] += time.monotonic() - began
        began = time.monotonic()
        _write_manifest(folder, manifest)
        report(len(manifest["shards"]), len(shards))
    return folder


def spread(
    config: RunConfig,
    shards: Sequence[Shard],
    work: Work[T],
    on: str = "local",
    workers: int | None = None,
) -> Iterator[tuple[Shard, T]]:
    """Do `work(parts, shard)` for every shard and give the results as they finish."""
    way, _, address = on.partition(":")
    if way not in ("local", "processes", "ray") or (address and way != "ray"):
        raise BadInput(f"on {on!r} is unknown; use local, processes, ray or ray:ADDRESS")
    if workers is not None and workers < 1:
        raise BadInput(f"workers {workers} must be at least 1")
    if not shards:
        return iter(())
    if way == "local":
        return _local(config, shards, work)
    if way == "processes":
        return _processes(config, shards, work, workers)
    return _ray(config, shards, work, workers, address)


def _open_manifest(folder: Path, config: RunConfig) -> dict[str, Any]:
    """What the folder says is done already; shards that are not what it says are made again."""
    fresh: dict[str, Any] = {
        "config": config.record(),
        "versions": versions(),
        "hashes": {},
        "seconds": 0.0,
        "shards": {},
    }
    for part in folder.glob(".*.part"):
        part.unlink(missing_ok=True)
    path = folder / MANIFEST
    if not path.exists():
        if any(folder.glob("*.parquet")):
            raise BadInput(f"{folder}: holds Parquet files but no {MANIFEST}; name an empty folder")
        _write_manifest(folder, fresh)
        return fresh
    try:
        manifest: dict[str, Any] = json.loads(path.read_text())
        for key in fresh["config"]:
            ours, theirs = fresh["config"][key], manifest["config"].get(key)
            if ours != theirs:
                raise BadInput(
                    f"{folder}: holds a run with {key} {theirs!r}, not {ours!r}; "
                    "name another folder, or the same values to go on"
                )
        done = manifest["shards"]
        manifest["shards"] = {
            name: sha
            for name, sha in done.items()
            if (folder / name).exists() and _sha256(folder / name) == sha
        }
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError):
        raise BadInput(f"{path}: not a whole manifest; name another folder") from None
    return manifest


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    write_whole(folder / MANIFEST, json.dumps(manifest, indent=2, sort_keys=True) + "\n")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _local(config: RunConfig, shards: Sequence[Shard], work: Work[T]) -> Iterator[tuple[Shard, T]]:
    parts = load_parts(config)
    for shard in shards:
        yield shard, work(parts, shard)


def _processes(
    config: RunConfig, shards: Sequence[Shard], work: Work[T], workers: int | None
) -> Iterator[tuple[Shard, T]]:
    cores = len(os.sched_getaffinity(0))
    count = workers or cores
    room = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // WORKER_BYTES
    if count > max(room, 1):
        raise BadInput(
            f"workers {count} need about {count * WORKER_BYTES / 2**30:.1f} GiB and there is room "
            f"for {room}; use --workers {max(room, 1)}"
        )
    left = list(shards)
    for _ in range(TRIES):
        # Threads of several workers would spin against each other: share the cores out.
        pool = ProcessPoolExecutor(
            min(count, len(left)),
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_begin_worker,
            initargs=(config, max(1, cores // count), os.getpid()),
        )
        try:
            futures = {pool.submit(_work, work, shard): shard for shard in left}
            for future in as_completed(futures):
                shard = futures[future]
                result = future.result()
                left.remove(shard)
                yield shard, result
            return
        except BrokenProcessPool:
            continue  # a worker was killed: what it had not finished is made again
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    raise RunFailed(
        f"workers died {TRIES} times, {len(left)} shards are missing; "
        "run again with fewer workers (is memory short?)"
    )


_PARTS: Parts | None = None


def _begin_worker(config: RunConfig, threads: int, parent: int) -> None:
    global _PARTS
    threading.Thread(target=_die_with, args=(parent,), daemon=True).start()
    _PARTS = load_parts(config, threads=threads)


def _die_with(parent: int) -> None:
    """End this worker when the process that started it is gone, however it ended."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _work(work: Work[T], shard: Shard) -> T:
    if _PARTS is None:
        raise RunFailed("the worker has no parts loaded")
    return work(_PARTS, shard)


def _ray(
    config: RunConfig, shards: Sequence[Shard], work: Work[T], workers: int | None, address: str
) -> Iterator[tuple[Shard, T]]:
    try:
        import ray
    except ImportError:
        raise BadInput(
            "--on ray needs the extra `cluster`: pip install 'suffice[cluster]'"
        ) from None
    try:
        ray.init(address=address or None, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError, TimeoutError):
        raise BadInput(
            f"no Ray cluster answers at {address or 'this machine'}; start one with "
            "`ray start --head`, or use --on processes"
        ) from None
    gpus = 1 if ray.cluster_resources().get("GPU", 0) else 0
    count = workers or int(ray.cluster_resources()["GPU" if gpus else "CPU"])

    @ray.remote(num_cpus=1, num_gpus=gpus, max_restarts=-1, max_task_retries=-1)
    class Worker:
        """Keeps the model loaded; restarted elsewhere when its node is lost."""

        def __init__(self) -> None:
            self.parts = load_parts(config, threads=1)

        def work(self, shard: Shard) -> T:
            return work(self.parts, shard)

    try:
        start: Any = Worker  # the decorator made it an actor class
        actors = [start.remote() for _ in range(min(count, len(shards)))]
        idle, queue = actors, list(shards[::-1])
        running: dict[Any, tuple[Any, Shard]] = {}
        while queue or running:
            while idle and queue:
                actor, shard = idle.pop(), queue.pop()
                running[actor.work.remote(shard)] = (actor, shard)
            (ready,), _ = ray.wait(list(running), num_returns=1)
            actor, shard = running.pop(ready)
            idle.append(actor)
            yield shard, ray.get(ready)
    finally:
        ray.shutdown()
