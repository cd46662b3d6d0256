"""What one vote costs: `Pool.add` at n_max 128 and as n_max and the number of labels grow."""

from __future__ import annotations

import time

import numpy as np

from suffice import Rule
from suffice.pool import Pool

REPEATS = 7
LIMIT = 2.0  # microseconds for one vote at n_max = 128


def band(n_max: int) -> Rule:
    """A rule that neither declares nor stops early on three votes in four: pools stay long."""
    n = np.arange(n_max + 1)
    declare = np.clip((0.75 * n + 3 * np.sqrt(n) + 2).astype(int), 1, n + 1)
    return Rule(declare, np.maximum(0, (0.75 * n - 3 * np.sqrt(n)).astype(int)), "band")


def microseconds(rule: Rule, labels: int) -> float:
    """The median over repeats of the mean time of one add, the making of its pool included."""
    random = np.random.default_rng(1)
    masses = np.full(labels, 0.25 / max(labels - 1, 1))
    masses[0] = 0.75
    masses /= masses.sum()
    pools = max(20, 20_000 // rule.n_max)
    votes = random.choice(labels, size=(pools, rule.n_max), p=masses).tolist()
    times = []
    for _ in range(REPEATS):
        added = 0
        start = time.perf_counter()
        for row in votes:
            pool = Pool(rule)
            for vote in row:
                if not pool.open:
                    break
                pool.add(vote)
            added += pool.n
        times.append((time.perf_counter() - start) / added * 1e6)
    return float(np.median(times))


def main() -> None:
    """Print the table and say whether the limit holds."""
    print(f"{'n_max':>7} {'labels':>7} {'us/vote':>8} {'ratio':>6}")
    first = microseconds(band(128), 10)
    for n_max, labels in [(128, 10), (128, 1000), (1024, 10), (16_384, 10)]:
        each = microseconds(band(n_max), labels)
        print(f"{n_max:>7} {labels:>7} {each:>8.2f} {each / first:>6.2f}")
    verdict = "within" if first < LIMIT else "ABOVE"
    print(f"one vote at n_max = 128: {first:.2f} us, {verdict} the limit of {LIMIT} us")


if __name__ == "__main__":
    main()
