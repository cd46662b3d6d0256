"""The interval holds the true mass at every stopping time, with the promised probability."""

import numpy as np
import pytest

from suffice import BadInput, Rule
from suffice.interval import interval
from suffice.pool import Pool


def ever_missed(p: float, n_max: int, level: float, classes: int = 1) -> float:
    """P(some interval up to n_max misses p), summed over all counts of all lengths."""
    holds = np.array([1.0])  # by k: the probability that no interval has missed p so far
    missed = 0.0
    for n in range(1, n_max + 1):
        step = np.zeros(n + 1)
        step[1:] += holds * p
        step[:-1] += holds * (1 - p)
        for k in range(n + 1):
            low, high = interval(k, n, level, classes)
            if not low <= p <= high:
                missed += step[k]
                step[k] = 0
        holds = step
    return missed


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("p", [0.0, 0.01, 0.3, 0.5, 0.85, 1.0])
def test_the_true_mass_is_ever_missed_as_rarely_as_promised(p: float, level: float) -> None:
    assert ever_missed(p, 60, level) <= 1 - level


def test_the_interval_is_not_idle() -> None:
    """At level one half a third of all histories miss some time: the promise is really used."""
    assert ever_missed(0.5, 200, 0.5) > 0.2


def test_all_classes_at_once_by_simulation() -> None:
    """The largest miss over stopping times and classes: every class watched to the end."""
    random = np.random.default_rng(7)
    masses = np.array([0.6, 0.3, 0.1])
    level, n_max, runs = 0.8, 80, 400
    table = np.array(
        [[interval(min(k, n), n, level, 3) for k in range(n_max + 1)] for n in range(n_max + 1)]
    )
    votes = random.choice(3, size=(runs, n_max), p=masses)
    counts = np.cumsum(votes[:, :, None] == np.arange(3), axis=1)
    low, high = np.moveaxis(table[np.arange(1, n_max + 1)[:, None], counts], -1, 0)
    missed = ((masses < low) | (masses > high)).any(axis=(1, 2)).mean()
    assert missed <= (1 - level) + 3 * np.sqrt(level * (1 - level) / runs)


def test_ends_are_where_the_density_meets_the_level() -> None:
    from scipy.special import betaln

    for k, n in [(1, 9), (5, 7), (40, 64), (9_999, 10_000)]:
        for end in interval(k, n, 0.95):
            density = np.exp(k * np.log(end) + (n - k) * np.log1p(-end) - betaln(k + 1, n - k + 1))
            assert density == pytest.approx(0.05, rel=1e-6)


def test_extremes() -> None:
    assert interval(0, 0, 0.95) == (0.0, 1.0)
    assert interval(0, 10, 0.95)[0] == 0.0
    assert interval(10, 10, 0.95)[1] == 1.0
    assert interval(3, 10, 0.95, classes=10)[0] < interval(3, 10, 0.95)[0]


def test_a_pool_gives_the_interval_of_its_counts() -> None:
    pool = Pool(Rule(np.arange(1, 12), [0] * 11, "never declares"))
    pool.add_many(["a", "b", None, "a"])
    assert pool.interval("a", 0.9) == interval(2, 4, 0.9)
    assert pool.interval("unseen", 0.9, classes=3) == interval(0, 4, 0.9, 3)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ((1, 2, 0.0), "level = 0.0 is outside"),
        ((1, 2, 95), "level = 95 is outside"),
        ((3, 2, 0.9), "k = 3 of n = 2"),
        ((1, 2, 0.9, 0), "classes = 0 is not"),
        ((1, 2, 0.9, 2.5), "classes = 2.5 is not"),
    ],
)
def test_bad_input(bad: tuple, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        interval(*bad)
