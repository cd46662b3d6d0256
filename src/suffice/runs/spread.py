"""Spread shards over workers: this process, several, or a Ray cluster."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from suffice.errors import BadInput, RunFailed
from suffice.runs.parts import Parts, load_parts
from suffice.runs.shards import RunConfig, Shard

__all__ = ["Answer", "Crew", "Work", "spread"]

LOSSES = 5
"""Workers that may be lost one after another, with no shard done between them."""
WORKER_BYTES = {"ddrm": 400 * 2**20, "oracle": 500 * 2**20, "toy": 100 * 2**20}
"""What one worker with its parts takes at its peak, by sampler."""

T = TypeVar("T")
Work = Callable[[Parts, Shard], T]


@dataclass(frozen=True)
class Answer:
    """What a worker says: its parts are loaded, a shard is done, an error; or that it is gone."""

    kind: str
    """`ready`, `done`, `failed` or `gone`."""
    result: Any = None
    """What the work gave, or the exception."""


class Crew(Protocol):
    """Workers that hold the parts of a run and do one shard at a time."""

    def start(self) -> None:
        """Start one more worker."""

    def give(self, worker: Any, shard: Shard) -> None:
        """Let a worker that answered do a shard."""

    def wait(self) -> tuple[Any, Answer]:
        """The next worker that answers, and its answer."""

    def close(self) -> None:
        """End all workers."""


def spread(
    config: RunConfig,
    cut: Callable[[int], Sequence[Shard]],
    work: Work[T],
    on: str = "local",
    workers: int | None = None,
) -> Generator[tuple[Shard, T], None, None]:
    """Do `work(parts, shard)` for every shard and give the results as they finish.

    `cut` makes the shards, once it is known for how many workers. `on` is `local` (this process),
    `processes`, or `ray` or `ray:HOST:PORT` for a cluster. A script that uses `processes` needs
    the usual guard `if __name__ == "__main__"`. Closing the generator ends the workers.
    """
    way, _, address = on.partition(":")
    if way not in ("local", "processes", "ray") or (address and way != "ray"):
        raise BadInput(f"on {on!r} is unknown; use local, processes, ray or ray:HOST:PORT")
    if workers is not None and workers < 1:
        raise BadInput(f"workers {workers} must be at least 1")
    if workers is not None and way == "local":
        raise BadInput(f"workers {workers} do not go with local; use processes or ray")
    if way == "local":
        if shards := cut(1):
            parts = load_parts(config)
            for shard in shards:
                yield shard, work(parts, shard)
        return
    if way == "processes":
        from suffice.runs.processes import Processes

        count = _fitting(workers, WORKER_BYTES[config.sampler])
        if shards := cut(count):
            busy = min(count, len(shards))
            crew: Crew = Processes(config, work, threads=max(1, _cores() // busy))
            yield from _share_out(crew, busy, shards)
        return
    if not cut(1):
        return  # a run that is done needs no cluster
    from suffice.runs.cluster import Cluster

    cluster = Cluster(config, work, address)
    count = workers or cluster.room
    yield from _share_out(cluster, count, cut(count))


def _share_out(
    crew: Crew, count: int, shards: Sequence[Shard]
) -> Generator[tuple[Shard, Any], None, None]:
    """Give shards to idle workers; a lost worker is replaced, and its shard given to another."""
    queue, idle, busy, losses = deque(shards), deque[Any](), dict[Any, Shard](), 0
    try:
        for _ in range(min(count, len(shards))):
            crew.start()
        while queue or busy:
            worker, answer = crew.wait()
            shard = busy.pop(worker, None)
            if answer.kind == "failed":
                raise answer.result
            if answer.kind == "gone":
                if shard is not None:
                    queue.appendleft(shard)
                if worker in idle:
                    idle.remove(worker)
                losses += 1
                if losses == LOSSES:
                    raise RunFailed(
                        f"{losses} workers died one after another, {len(queue) + len(busy)} shards "
                        "are missing; run again with fewer workers (is memory short?)"
                    )
                crew.start()
            else:
                idle.append(worker)
            # Work first, then tell: the caller may take its time to write a result.
            while queue and idle:
                free = idle.popleft()
                busy[free] = queue.popleft()
                crew.give(free, busy[free])
            if answer.kind == "done" and shard is not None:
                losses = 0
                yield shard, answer.result
    finally:
        crew.close()


def _fitting(workers: int | None, each: int) -> int:
    """As many workers as asked for, if there is memory for them; else one a core, if there is."""
    room = max(1, _free_bytes() // each)
    if workers is None:
        return min(_cores(), room)
    if workers > room:
        raise BadInput(
            f"workers {workers} need about {workers * each / 2**30:.1f} GiB of memory and there is "
            f"room for {room}; use --workers {room}"
        )
    return workers


def _free_bytes() -> int:
    """Memory at hand; without a word from the system, enough."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 2**60
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
