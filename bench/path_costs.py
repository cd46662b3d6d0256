"""How far path costs are from what is predicted, and how much of that is the error in pi.

The paper's thirteen rows. On the reference logs the truth is what the rules cost on 32 votes a
pool (128 for the last row of the first block), and pi is estimated from the other 128 votes. With
votes drawn from the oracle's laws pi is known, and the estimate's share of the error is seen.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from suffice import Rule
from suffice.experiment import BLOCKS
from suffice.path import along
from suffice.reference import reference_log
from suffice.replay import Replay
from suffice.votes import VoteLog

REPEATS = {32: 50, 128: 12}  # of the simulated pools, so that their own error is about .4%


def drawn(pi: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """Votes drawn from the laws (I, T, C), (I, T, draws)."""
    generator = np.random.default_rng(seed)
    ends = pi.cumsum(axis=-1)[..., :-1]
    votes = np.empty((*pi.shape[:2], draws), dtype=np.uint8)
    for at in range(draws):
        votes[:, :, at] = (generator.random(pi.shape[:2])[..., None] > ends).sum(axis=-1)
    return votes


def estimated(votes: np.ndarray) -> np.ndarray:
    """The share of each class in each pool, (I, T, 10)."""
    return np.stack([(votes == c).mean(axis=2) for c in range(10)], axis=2)


def rows() -> list[tuple[str, float, Rule]]:
    """Name, tau and rule of each row of the paper's table."""
    return [
        (name, paper.tau, make(paper.tau)) for block in BLOCKS for name, make, paper in block.rows
    ]


def measured(logs: dict[int, Replay], rule: Rule) -> np.ndarray:
    """The samples of each image."""
    return logs[32 if rule.n_max <= 32 else 128].run(rule).samples


def reference() -> None:
    """The shipped DDRM votes."""
    logs = {draws: reference_log(draws) for draws in (32, 128)}
    replays = {draws: Replay(log) for draws, log in logs.items()}
    truth = logs[32].truth
    pi = logs[128].laws(10)
    # The votes of the 128 in four more pools: how far a cost varies on the same paths.
    blocks = [
        Replay(VoteLog(logs[128].images, truth, logs[128].votes[:, :, at : at + 32], {}))
        for at in range(0, 128, 32)
    ]
    # Estimates from votes drawn from the estimate: how far off estimating puts a cost.
    again = estimated(drawn(pi, 128, seed=0))
    print("DDRM: measured, and the paper's way and the whole pool's from 128 votes, error in %;")
    print("then how far estimating from 128 votes puts the pool's way off, by the bootstrap")
    print(f"{'row':<24}{'tau':>5}{'measured':>10}{'+- %':>6}{'paper':>8}{'pool':>8}{'128':>8}")
    for name, tau, rule in rows():
        samples = measured(replays, rule)
        spread = "-"
        if rule.n_max <= 32:
            pools = np.stack([samples, *(block.run(rule).samples for block in blocks)])
            error = np.sqrt(pools.var(axis=0, ddof=1).sum()) / samples.sum()
            spread = f"{196 * error:.1f}"
        costs = [along(rule, pi, truth, exact=way).mean.samples for way in (False, True)]
        off = [100 * (cost / samples.mean() - 1) for cost in costs]
        off.append(100 * (along(rule, again, truth, exact=True).mean.samples / costs[1] - 1))
        print(
            f"{name:<24}{tau:>5}{samples.mean():>10.1f}{spread:>6}"
            + "".join(f"{x:>8.1f}" for x in off),
            flush=True,
        )


def known(pi: np.ndarray, truth: np.ndarray) -> None:
    """Pools drawn from known laws, many times over."""
    replays = {
        draws: Replay(
            VoteLog(
                np.arange(repeats * len(pi)),
                np.tile(truth, repeats),
                np.concatenate([drawn(pi, draws, seed) for seed in range(repeats)]),
                {},
            )
        )
        for draws, repeats in REPEATS.items()
    }
    fresh = drawn(pi, 128, seed=1000)
    estimate = {n: estimated(fresh[:, :, :n]) for n in (32, 128)}
    print("\nKnown laws: error in % of the paper's way, of whole pools, and of whole pools from")
    print("128 and from 32 votes; the last two less the second are the error of the estimate")
    print(f"{'row':<24}{'tau':>5}{'measured':>10}{'paper':>8}{'pool':>8}{'128':>8}{'32':>8}")
    for name, tau, rule in rows():
        truth_cost = measured(replays, rule).mean()
        laws = [(pi, False), (pi, True), (estimate[128], True), (estimate[32], True)]
        off = [
            100 * (along(rule, law, truth, exact=way).mean.samples / truth_cost - 1)
            for law, way in laws
        ]
        print(
            f"{name:<24}{tau:>5}{truth_cost:>10.1f}" + "".join(f"{x:>8.1f}" for x in off),
            flush=True,
        )


def oracle_laws(images: int) -> tuple[np.ndarray, np.ndarray]:
    """The oracle's laws at the states of the reference log, (images, 24, 10), and the digits."""
    from importlib import resources

    import pyarrow.parquet as parquet

    with resources.as_file(resources.files("suffice") / "assets/oracle-laws.parquet") as path:
        table = parquet.read_table(path)
    pi = np.stack(table["pi"].to_numpy()).astype(np.float64).reshape(1000, 24, 10)
    pi /= pi.sum(axis=-1, keepdims=True)
    return pi[:images], reference_log(32).truth[:images]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=300, help="paths with known laws")
    images = parser.parse_args().images
    reference()
    known(*oracle_laws(images))


if __name__ == "__main__":
    sys.exit(main())
