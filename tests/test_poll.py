"""Polling counts votes in request order, wastes what it says, and loses nothing."""

import asyncio
import itertools

import numpy as np
import pytest

from suffice import BadInput, Rule, RunFailed
from suffice.poll import DrawFailed, apoll, poll
from suffice.pool import Pool

N = np.arange(33)
RULE = Rule(  # declared with 60% and 4 votes more, out with fewer than 60% less 5
    np.minimum(np.maximum(1, (0.6 * N + 4).astype(int)), N + 1),
    np.maximum(0, (0.6 * N - 5).astype(int)),
    "band",
)


def source(seed: int, q: float = 0.8):
    random = np.random.default_rng(seed)
    return random.choice(["7", "1", None], p=[q, 0.9 - q, 0.1], size=64).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_batches_change_what_is_drawn_never_the_verdict(seed: int) -> None:
    one = poll(RULE, iter(source(seed)).__next__)
    assert (one.drawn, one.wasted, one.cancelled, one.failed) == (one.used, 0, 0, 0)
    for batch, at_least in itertools.product([1, 3, 8, 100], [1, 3, 8]):
        if at_least > batch:
            continue
        sizes, votes = [], iter(source(seed))

        def draw(size, sizes=sizes, votes=votes):
            sizes.append(size)
            return list(itertools.islice(votes, size))

        ledger = poll(RULE, draw, batch=batch, at_least=at_least)
        assert ledger.verdict == one.verdict
        assert ledger.pool.votes == one.pool.votes
        assert ledger.drawn == sum(sizes) == ledger.used + ledger.wasted
        assert max(sizes) <= batch
        assert ledger.drawn <= RULE.n_max
        if at_least == 1:
            assert ledger.wasted == 0
        assert all(size >= at_least for size in sizes[:-1])


def test_a_failing_draw_keeps_the_votes_and_the_pool_goes_on() -> None:
    votes = iter(["7", "7", "7"])

    def draw():
        try:
            return next(votes)
        except StopIteration:
            raise OSError("no more power") from None

    with pytest.raises(DrawFailed, match=r"OSError \(no more power\) after 3 votes") as caught:
        poll(RULE, draw)
    assert isinstance(caught.value, RunFailed)
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.pool.votes == ("7", "7", "7")
    ledger = poll(caught.value.pool, lambda: "7")
    assert str(ledger.verdict) == "declared('7')"
    assert ledger.used == ledger.verdict.n - 3


def test_bad_input_of_poll() -> None:
    async def later() -> int:
        return 7

    for call, said in [
        (lambda: poll(RULE, lambda n: "77", batch=2), r"returned '77'; return a list of 2"),
        (lambda: poll(RULE, lambda n: ["7"], batch=2), r"returned 1 labels; return 2"),
        (lambda: poll(RULE, lambda n: 7, batch=2), r"returned 7; return a list"),
        (lambda: poll(RULE, lambda: [7]), "cannot be hashed"),
        (lambda: poll(RULE, lambda: 7, batch=0), "batch = 0 is not a whole"),
        (lambda: poll(RULE, lambda: 7, at_least=2), "at_least 2 exceeds the batch of 1"),
        (lambda: poll("rule.json", lambda: 7), "neither a Rule nor a Pool"),
        (lambda: poll(RULE, 7), "draw = 7 cannot be called"),
        (lambda: asyncio.run(apoll(RULE, 7, concurrency=1)), "draw = 7 cannot be called"),
        (lambda: asyncio.run(apoll(RULE, lambda: 7, concurrency=2)), "returned 7, which cannot be"),
        (lambda: asyncio.run(apoll(RULE, later, concurrency=0)), "concurrency = 0 is not"),
        (lambda: asyncio.run(apoll(RULE, later, concurrency=1, timeout=-1)), "timeout -1 must be"),
    ]:
        with pytest.raises(BadInput, match=said):
            call()


def test_an_async_function_is_no_draw_for_poll() -> None:
    answers = []

    async def later() -> int:
        return 7

    def draw():
        answers.append(later())
        return answers[-1]

    with pytest.raises(BadInput, match="use apoll"):
        poll(RULE, draw)
    answers[0].close()


class Sampler:
    """Answers each request after its own delay, and knows how many were in flight."""

    def __init__(self, votes, delays) -> None:
        self.answers = iter(zip(votes, delays, strict=False))
        self.flying = self.most = self.started = self.finished = 0

    async def __call__(self):
        vote, delay = next(self.answers)
        self.started += 1
        self.flying += 1
        self.most = max(self.most, self.flying)
        try:
            for _ in range(delay):
                await asyncio.sleep(0)
            self.finished += 1
        finally:
            self.flying -= 1
        if isinstance(vote, BaseException):
            raise vote
        return vote


@pytest.mark.parametrize("concurrency", [1, 2, 5, 40])
@pytest.mark.parametrize("seed", range(8))
def test_votes_count_in_request_order_whatever_finishes_first(seed: int, concurrency: int) -> None:
    votes = source(seed)
    # The slow draws are those for "7": counting by arrival would favour the others.
    delays = [9 if vote == "7" else 1 for vote in votes]
    sampler = Sampler(votes, delays)
    ledger = asyncio.run(apoll(RULE, sampler, concurrency=concurrency))
    one = poll(RULE, iter(votes).__next__)
    assert ledger.verdict == one.verdict
    assert ledger.pool.votes == one.pool.votes
    assert sampler.most <= concurrency
    assert ledger.drawn == ledger.used + ledger.wasted + ledger.cancelled <= RULE.n_max
    assert ledger.wasted + ledger.cancelled < concurrency
    assert sampler.finished == ledger.used + ledger.wasted
    assert sampler.flying == 0


def test_useless_draws_are_cancelled_at_the_verdict() -> None:
    at = poll(RULE, lambda: "7").used
    sampler = Sampler(["7"] * 32, [1] * at + [10_000] * 32)
    ledger = asyncio.run(apoll(RULE, sampler, concurrency=at + 6))
    assert (ledger.used, ledger.drawn, ledger.cancelled, ledger.wasted) == (at, at + 6, 6, 0)


def test_failed_and_late_draws_are_invalid_votes_and_are_not_drawn_again() -> None:
    async def draw():
        nonlocal drawn
        drawn += 1
        if drawn == 2:
            raise ValueError("no answer could be read")
        if drawn == 4:
            await asyncio.sleep(60)
        if drawn == 5:
            raise asyncio.CancelledError
        return "7"

    drawn = 0
    ledger = asyncio.run(apoll(RULE, draw, concurrency=3, timeout=0.05))
    assert ledger.pool.votes[:6] == ("7", None, "7", None, None, "7")
    assert ledger.failed == 3
    assert [type(error) for error in ledger.failures] == [
        ValueError,
        TimeoutError,
        asyncio.CancelledError,
    ]
    assert drawn == ledger.drawn


def test_cancelling_apoll_cancels_its_draws_and_keeps_the_callers_pool() -> None:
    async def main() -> None:
        pool = Pool(RULE)
        sampler = Sampler(["7"] * 32, [0, 0] + [10_000] * 30)
        task = asyncio.create_task(apoll(pool, sampler, concurrency=4))
        while pool.n < 2:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sampler.flying == 0
        assert pool.votes == ("7", "7")
        assert pool.open

    asyncio.run(main())


def test_a_closed_pool_draws_nothing() -> None:
    never = Rule([1, 2], [1, 0], "never")
    ledger = poll(never, lambda: "7")
    assert (ledger.drawn, ledger.reason) == (0, "forced")
    assert asyncio.run(apoll(never, Sampler("7", [0]), concurrency=2)).drawn == 0
