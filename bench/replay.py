"""What replay costs: 1000 images x 24 rounds x 128 votes under one rule, and under 200."""

from __future__ import annotations

import os
import time

import numpy as np

from suffice.replay import Replay
from suffice.rules import one_look, plug_in, sequential
from suffice.votes import VoteLog

ONE_RULE, MANY_RULES = 0.2, 20.0  # seconds
REPEATS = 5


def simulated() -> VoteLog:
    """A log whose leaders' masses grow with the round, as in a sensing run."""
    random = np.random.default_rng(0)
    leader = np.minimum(random.beta(2, 3, (1000, 1)) + np.linspace(0, 0.7, 24), 0.99)[:, :, None]
    rest = random.integers(1, 10, (1000, 24, 128))
    votes = np.where(random.random((1000, 24, 128)) < leader, 0, rest).astype(np.uint8)
    return VoteLog(np.arange(1000), np.zeros(1000, dtype=np.int64), votes, {})


def main() -> None:
    """Print the times and say whether the limits hold."""
    log = simulated()
    rules = [sequential(0.7, 0.05, n_max=128), one_look(0.7, 0.05, 128), plug_in(0.7, 128)]
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        Replay(log).run(rules[0])
        times.append(time.perf_counter() - start)
    one = float(np.median(times))
    print(f"one rule, the log made ready: {one:.3f} s, limit {ONE_RULE} s")
    start = time.perf_counter()
    replay = Replay(log)
    taus = [tau / 1000 for tau in range(500, 900, 6)]
    many = [sequential(tau, 0.05, n_max=128) for tau in taus]
    many += [one_look(tau, 0.05, 128) for tau in taus] + [plug_in(tau, 128) for tau in taus]
    many = many[:200]
    made = time.perf_counter()
    for rule in many:
        replay.run(rule).summary()
    end = time.perf_counter()
    print(
        f"{len(many)} rules with intervals: {end - made:.1f} s, limit {MANY_RULES} s "
        f"(designing them took {made - start:.1f} s)"
    )
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("within" if one < ONE_RULE and end - made < MANY_RULES else "ABOVE")


if __name__ == "__main__":
    main()
