"""Workers that are Ray actors, on any machines of a cluster."""

from __future__ import annotations

import os
import socket
from typing import Any

from suffice.errors import BadInput
from suffice.runs.parts import Parts, load_parts
from suffice.runs.shards import RunConfig, Shard
from suffice.runs.spread import Answer, Work

__all__ = ["Cluster"]

START = "start one with `ray start --head`, or use --on processes"
PATIENCE = 5.0  # seconds for a cluster to answer at its port


class Cluster:
    """A crew of actors that keep the parts loaded, each with a GPU where the cluster has some."""

    def __init__(self, config: RunConfig, work: Work[Any], address: str) -> None:
        self._ray = _connect(address)
        resources = self._ray.cluster_resources()
        gpus = int(resources.get("GPU", 0))
        self.room = max(1, gpus or int(resources.get("CPU", 1)))
        """How many actors the cluster has room for."""
        # A lost actor is not restarted: the loop starts another one, which may wait for room
        # while the rest goes on.
        options = {"num_cpus": 1, "num_gpus": 1 if gpus else 0, "max_restarts": 0}
        kind: Any = self._ray.remote(_Actor)
        self._actor = kind.options(**options)
        self._task = (config, work)
        self._asked: dict[Any, Any] = {}  # reference to an answer -> actor

    def start(self) -> None:
        """Start one more actor, as soon as the cluster has room for it."""
        actor = self._actor.remote(*self._task)
        self._asked[actor.load.remote()] = actor

    def give(self, worker: Any, shard: Shard) -> None:
        """Send a shard."""
        self._asked[worker.do.remote(shard)] = worker

    def wait(self) -> tuple[Any, Answer]:
        """The next answer; an actor that cannot be reached is given up."""
        ray = self._ray
        (reference,), _ = ray.wait(list(self._asked), num_returns=1)
        actor = self._asked.pop(reference)
        try:
            return actor, ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            return actor, Answer("failed", error.cause)
        except ray.exceptions.RayError:
            ray.kill(actor)
            return actor, Answer("gone")

    def close(self) -> None:
        """Leave the cluster, and with that end the actors."""
        self._ray.shutdown()


class _Actor:
    def __init__(self, config: RunConfig, work: Work[Any]) -> None:
        self.config, self.work = config, work
        self.parts: Parts | None = None

    def load(self) -> Answer:
        self.parts = load_parts(self.config, threads=1)
        return Answer("ready")

    def do(self, shard: Shard) -> Answer:
        if self.parts is None:
            self.load()
        return Answer("done", self.work(self.parts, shard))  # type: ignore[arg-type]


def _connect(address: str) -> Any:
    """The module ray, connected to the cluster at HOST:PORT, or to this machine's."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # or it warns
    try:
        import ray
    except ImportError:
        raise BadInput(
            "--on ray needs the extra `cluster`: pip install 'suffice[cluster]'"
        ) from None
    if address:
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise BadInput(f"Ray address {address!r} is not HOST:PORT, such as 10.0.0.1:6379")
        try:  # Ray itself would take minutes to give up
            socket.create_connection((host, int(port)), timeout=PATIENCE).close()
        except (OSError, OverflowError) as error:
            raise BadInput(f"no Ray cluster answers at {address} ({error}); {START}") from None
    try:
        ray.init(address=address or "auto", log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = address or "this machine"
        reason = str(error).splitlines()[0].rstrip(".")
        raise BadInput(f"no Ray cluster answers at {where} ({reason}); {START}") from None
    return ray
