"""Draw votes from a user's function until the pool has its verdict."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

from suffice.errors import BadInput, RunFailed
from suffice.inputs import whole
from suffice.pool import Pool, Verdict
from suffice.rule import Rule

__all__ = ["DrawFailed", "Ledger", "apoll", "poll"]


class DrawFailed(RunFailed):
    """The user's function raised; `pool` holds the votes so far and can be polled on."""

    def __init__(self, message: str, pool: Pool) -> None:
        super().__init__(message)
        self.pool = pool


@dataclass(frozen=True)
class Ledger:
    """What was drawn, and why it stopped: drawn = used + wasted + cancelled."""

    pool: Pool
    drawn: int  # votes requested by this call
    used: int  # votes counted, invalid ones among them
    wasted: int  # votes that came back after the verdict and were not counted
    cancelled: int  # draws called off by the verdict before they came back
    failures: tuple[BaseException, ...] = ()  # why each failed draw became an invalid vote

    @property
    def verdict(self) -> Verdict:
        """The pool's verdict, with its reason."""
        return self.pool.verdict

    @property
    def reason(self) -> str | None:
        """Why the pool stopped: boundary, forced, out or cap."""
        return self.pool.verdict.reason

    @property
    def failed(self) -> int:
        """The number of counted draws that failed or timed out."""
        return len(self.failures)


def poll(
    rule: Rule | Pool,
    draw: Callable[..., Any],
    *,
    batch: int | None = None,
    at_least: int = 1,
) -> Ledger:
    """Call `draw` until the rule has a verdict; a pool instead of a rule is polled on.

    Without `batch`, ``draw()`` returns one label. With it, ``draw(size)`` returns exactly `size`
    labels, in a size of ``pool.sure`` but at most `batch`: such votes are drawn in any case, so
    none is wasted. `at_least` asks for no fewer at once (but never beyond n_max), at the risk of
    wasting some: ``at_least=batch`` always fills the batch. A draw that yields no label returns
    ``None``; it must not be drawn again, or the certificate is lost.

    >>> votes = iter("7177")
    >>> ledger = poll(Rule([1, 2, 2, 3], [0, 0, 0, 0], "small"), lambda: next(votes))
    >>> print(ledger.verdict, ledger.used, ledger.reason)
    undecided 3 cap
    """
    pool = _pool(rule, draw)
    if batch is not None:
        whole(batch, "batch")
    if not 1 <= whole(at_least, "at_least") <= (batch or 1):
        raise BadInput(f"at_least {at_least} exceeds the batch of {batch or 1}; give batch too")
    start, drawn = pool.n, 0
    while pool.open:
        size = min(batch or 1, max(pool.sure, at_least), pool.rule.n_max - pool.n)
        try:
            answer = draw() if batch is None else draw(size)
        except Exception as error:
            raise _failed(pool, error) from error
        if inspect.isawaitable(answer):
            raise BadInput("draw is an async function, whose labels must be awaited; use apoll")
        pool.add_many([answer] if batch is None else _labels(answer, size))
        drawn += size
    used = pool.n - start
    return Ledger(pool, drawn, used, wasted=drawn - used, cancelled=0)


async def apoll(
    rule: Rule | Pool,
    draw: Callable[[], Awaitable[Hashable]],
    *,
    concurrency: int,
    timeout: float | None = None,
) -> Ledger:
    """Await ``draw()`` with at most `concurrency` in flight until the rule has a verdict.

    Votes count in the order of their requests: a draw that finishes early may owe that to its
    answer. So an early one waits for those before it. Beyond ``pool.sure`` at most `concurrency`
    requests run ahead of the count, and what the verdict makes useless is cancelled. A draw that
    raises, or takes longer than `timeout` seconds, is an invalid vote and is not drawn again.

    >>> async def draw():
    ...     return "7"
    >>> ledger = asyncio.run(apoll(Rule([1, 2, 2], [0, 0, 0], "two"), draw, concurrency=4))
    >>> print(ledger.verdict, ledger.drawn)
    declared('7') 2
    """
    pool = _pool(rule, draw)
    whole(concurrency, "concurrency")
    if timeout is not None and not (isinstance(timeout, Real) and timeout > 0):
        raise BadInput(f"timeout {timeout!r} must be above 0 seconds, or None for no limit")
    start, drawn = pool.n, 0
    waiting: deque[asyncio.Task[Hashable]] = deque()  # in the order of their requests
    failures: list[BaseException] = []
    try:
        while pool.open:
            ahead = min(max(pool.sure, concurrency), pool.rule.n_max - pool.n)
            running = {task for task in waiting if not task.done()}
            while len(waiting) < ahead and len(running) < concurrency:
                task = asyncio.ensure_future(_drawn(draw, timeout))
                waiting.append(task)
                running.add(task)
                drawn += 1
            if not waiting[0].done():
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            while waiting and waiting[0].done() and pool.open:
                pool.add(_vote(waiting.popleft(), failures))
    finally:
        for task in waiting:
            task.cancel()
        # Answers that nobody counts must not be reported as errors that nobody read.
        await asyncio.gather(*waiting, return_exceptions=True)
    cancelled = sum(task.cancelled() for task in waiting)
    used = pool.n - start
    return Ledger(pool, drawn, used, drawn - used - cancelled, cancelled, tuple(failures))


async def _drawn(draw: Callable[[], Awaitable[Hashable]], timeout: float | None) -> Hashable:
    async with asyncio.timeout(timeout):
        answer = draw()
        if not inspect.isawaitable(answer):
            raise _NotAsync(f"draw returned {answer!r}, which cannot be awaited; use poll")
        return await answer


class _NotAsync(BadInput):
    """A mistake in the program, where any other error is a failed draw."""


def _vote(task: asyncio.Task[Hashable], failures: list[BaseException]) -> Hashable:
    """The label that a finished draw gave, or None where it failed."""
    if task.cancelled():
        failures.append(asyncio.CancelledError("the draw cancelled itself"))
        return None
    error = task.exception()
    if error is None:
        return task.result()
    if isinstance(error, _NotAsync):
        raise error
    failures.append(error)
    return None


def _pool(rule: Rule | Pool, draw: Any) -> Pool:
    if not callable(draw):
        raise BadInput(f"draw = {draw!r} cannot be called; give a function that returns a label")
    if isinstance(rule, Pool):
        return rule
    if isinstance(rule, Rule):
        return Pool(rule)
    raise BadInput(f"{rule!r} is neither a Rule nor a Pool; make one with suffice.sequential(...)")


def _labels(answer: Iterable[Hashable], size: int) -> list[Hashable]:
    """The labels of one batch; a batch with labels missing may be missing them for a reason."""
    if isinstance(answer, str) or not isinstance(answer, Iterable):
        raise BadInput(f"draw({size}) returned {answer!r}; return a list of {size} labels")
    labels = list(answer)
    if len(labels) != size:
        raise BadInput(
            f"draw({size}) returned {len(labels)} labels; return {size}, None for an invalid vote"
        )
    return labels


def _failed(pool: Pool, error: Exception) -> DrawFailed:
    return DrawFailed(
        f"draw raised {type(error).__name__} ({error}) after {pool.n} votes; "
        "they are kept in this error's `pool`, which poll() takes in place of the rule",
        pool,
    )
