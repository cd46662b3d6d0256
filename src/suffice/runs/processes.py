"""Workers that are processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from suffice.runs.parts import load_parts
from suffice.runs.shards import RunConfig, Shard
from suffice.runs.spread import Answer, Work

__all__ = ["Processes"]


class Processes:
    """A crew of processes that end with this one, however it ends."""

    def __init__(self, config: RunConfig, work: Work[Any], threads: int) -> None:
        self._task = (config, work, threads, os.getpid())
        self._workers: dict[Connection, Any] = {}

    def start(self) -> None:
        """Start one more process."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, *self._task), daemon=True)
        # Ctrl-C reaches all processes of a terminal: this one alone is to act on it. The tracker
        # comes first, since starting it lets the signal through again.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self._workers[ours] = process

    def give(self, worker: Connection, shard: Shard) -> None:
        """Send a shard; should the worker be gone, `wait` tells."""
        try:
            worker.send(shard)
        except OSError:
            return

    def wait(self) -> tuple[Connection, Answer]:
        """The next answer; a pipe that ends is a process that did."""
        worker = wait(list(self._workers))[0]
        if not isinstance(worker, Connection):
            raise TypeError(f"{worker!r} is no pipe")
        try:
            answer: Answer = worker.recv()
        except (EOFError, OSError):
            self._workers.pop(worker).join()
            return worker, Answer("gone")
        return worker, answer

    def close(self) -> None:
        """End all processes, whatever they do."""
        for process in self._workers.values():
            process.kill()
        for process in self._workers.values():
            process.join()


def _serve(pipe: Connection, config: RunConfig, work: Work[Any], threads: int, parent: int) -> None:
    """Load the parts, then do shards as they come."""
    threading.Thread(target=_die_with, args=(parent,), daemon=True).start()
    try:
        parts = load_parts(config, threads)
        pipe.send(Answer("ready"))
        while True:
            pipe.send(Answer("done", work(parts, pipe.recv())))
    except (EOFError, BrokenPipeError):
        return  # the parent has ended
    except MemoryError:
        os._exit(1)  # as if the system had killed it
    except Exception as error:
        pipe.send(Answer("failed", error))


def _die_with(parent: int) -> None:
    """End this process when the one that started it is gone."""
    while os.getppid() == parent:
        time.sleep(0.3)
    os._exit(1)
