"""What the optimal rules save and take to solve, and how fast whole pools are predicted."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from suffice.calibrate import calibrate_alpha, sequential_rule
from suffice.lattice import expected_samples
from suffice.optimal import optimal
from suffice.pool_law import pool_laws
from suffice.rule import Rule

MASSES = [0.30, 0.50, 0.70, 0.85]
SOLVE_LIMIT = 3.0  # seconds at n_max = 128
LAWS = 24_000
LAWS_LIMIT = 30.0  # seconds at n_max = 32


def timed(call: Callable[[], object]) -> tuple[object, float]:
    """What the call gives, and the processor seconds it took: one core's, whoever else runs."""
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def row(name: str, values: list[float], more: str = "") -> None:
    print(f"{name:<34}" + "".join(f"{value:8.2f}" for value in values) + more)


def designs() -> None:
    """E[N] at some vote masses; tau=.70, size <= .0495, power >= .9248 at .85."""
    print(f"{'E[N] at q =':<34}" + "".join(f"{q:8.2f}" for q in MASSES))
    paper = sequential_rule(0.70, 0.0091, 97)
    row("sequential, n_max 97", expected_samples(paper, MASSES).tolist())
    half = [(0.85, 0.5), (0.70, 0.5)]
    for n_max, name, weights in (
        (97, "weight at .85", 0.85),
        (97, "half at .85, half at .70", half),
        (128, "weight at .85", 0.85),
        (300, "weight at .85", 0.85),
    ):
        solve = [
            timed(lambda n=n_max, w=weights: optimal(0.70, 0.0495, 0.85, 0.9248, n, w))
            for _ in range(3)
        ]
        result, seconds = min(solve, key=lambda pair: pair[1])
        note = f"  bound {result.lower_bound:.3f}, gap {result.gap:.4%}, {seconds:.2f} s"
        row(f"optimal, {n_max}, {name}", expected_samples(result.rule, MASSES).tolist(), note)
        if n_max == 128 and seconds > SOLVE_LIMIT:
            raise SystemExit(f"solved in {seconds:.1f} s, more than {SOLVE_LIMIT} s")


def simulated(rule: Rule, pi: np.ndarray, pools: int, seed: int) -> tuple[float, float]:
    """Mean N of simulated pools, and its standard error."""
    random = np.random.default_rng(seed)
    edges = np.cumsum(pi)
    counts, out = np.zeros((2, pools, pi.size + 1), dtype=np.int64)
    length, going = np.full(pools, rule.n_max), np.ones(pools, dtype=bool)
    for n in range(rule.n_max + 1):
        if n:
            label = np.searchsorted(edges, random.random(pools), side="right")
            np.add.at(counts, (np.arange(pools), label), 1)
            counts[:, -1] = 0  # invalid votes, and the classes not seen yet
        crossed = ((counts >= rule.declare[n]) & (out == 0)).any(axis=1)
        out |= counts < rule.stop[n]
        ends = going & (crossed | out.all(axis=1))
        length[ends] = n
        going &= ~ends
    return float(length.mean()), float(length.std() / np.sqrt(pools))


def pools() -> None:
    """Ten classes, from concentrated laws to even ones."""
    laws = np.random.default_rng(0).dirichlet(np.full(10, 0.3), LAWS)
    weights = [(0.3, 0.3), (0.5, 0.3), (0.9, 0.4)]
    for tau, q_alt, power, n_max, some in (
        (0.55, 0.80, 0.90, 32, LAWS),
        (0.78, 0.95, 0.80, 32, LAWS),
        (0.78, 0.90, 0.90, 128, LAWS // 10),
    ):
        sequential = sequential_rule(tau, calibrate_alpha(tau, 0.05, n_max).alpha, n_max)
        best = optimal(tau, 0.05, q_alt, power, n_max, weights).rule
        for rule in (sequential, best):
            result, seconds = timed(lambda r=rule, s=some: pool_laws(r, laws[:s]))
            stated = result.error / result.expected_samples
            each = [simulated(rule, pi, 4000, seed) for seed, pi in enumerate(laws[:100])]
            mean = np.mean([m for m, _ in each])
            noise = np.sqrt(np.sum([s**2 for _, s in each])) / len(each)
            off = result.expected_samples[:100].mean() / mean - 1
            print(
                f"{rule.name:<11} tau {tau} n_max {n_max:<4} {some} laws in {seconds:6.1f} s; "
                f"stated error {stated.mean():.3%} (worst {stated.max():.2%}); "
                f"against simulation {off:+.3%} (noise {noise / mean:.3%})"
            )
            if n_max == 32 and seconds > LAWS_LIMIT:
                raise SystemExit(f"{some} laws took {seconds:.0f} s, more than {LAWS_LIMIT} s")


if __name__ == "__main__":
    designs()
    pools()
