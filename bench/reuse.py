"""Reuse across rounds: what is kept, what it saves, and what it does to the certificate.

A posterior sample x of round t is kept for round t+1 with probability
exp(-(y - <v, x>)^2 / (2 sigma_y^2)), where v, y is the new measurement. The oracle draws exactly
and its vote laws are known, so every rate is measured against the truth. `docs/reuse.md` tells
what was found.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from suffice import Pool, Rule, oc, sequential
from suffice.replay import Replay
from suffice.sensing.data import evaluation_set, load_mnist, scaled
from suffice.sensing.oracle import MNIST_H, Along, Oracle
from suffice.sensing.probes import principal_components
from suffice.votes import VoteLog

ROUNDS = 24
CAP = 32
NEAR = 0.1  # a class whose mass is at most this far below tau is near it
POOLS = 400_000  # in the search for the worst selection


@dataclass(frozen=True)
class Way:
    """A way of reuse: how many samples are drawn at once, and which of them may be kept."""

    name: str
    batch: int
    keeps: str  # "nothing", "all", or "unseen": drawn with its batch, but after the verdict


WAYS = (
    Way("fresh, one by one", 1, "nothing"),
    Way("all may be kept", 1, "all"),
    Way("fresh, batches of 8", 8, "nothing"),
    Way("unseen may be kept", 8, "unseen"),
    Way("all, batches of 8", 8, "all"),
)


@dataclass
class Tally:
    """Sums over the runs of one way."""

    runs: int = 0
    samples: int = 0
    rounds: int = 0
    declared: int = 0
    right: int = 0
    near: int = 0
    near_declared: int = 0
    near_alone: float = 0.0
    offered: np.ndarray = field(default_factory=lambda: np.zeros(ROUNDS))
    kept: np.ndarray = field(default_factory=lambda: np.zeros(ROUNDS))

    def line(self) -> str:
        """The means, and what the classes near tau suffered."""
        kept = f"{self.kept.sum() / self.offered.sum():.4f}" if self.offered.any() else "-"
        return (
            f"{self.samples / self.runs:>9.2f}{self.rounds / self.runs:>8.3f}"
            f"{self.right / self.declared:>10.4f}{kept:>8}"
            f"{self.near_declared / self.near:>10.4f}{self.near_alone / self.near:>8.4f}"
            f"{self.near:>9}"
        )


class States:
    """The states of one image, with draws for many runs: coordinates along the probes, labels.

    What a draw is across the probes decides neither its label nor whether it is kept.
    """

    def __init__(
        self, along: Along, values: np.ndarray, runs: int, generator: np.random.Generator
    ) -> None:
        self.sigma_y, self.values, self.generator = along.sigma_y, values, generator
        self.laws = along.masses(values)[1:]
        count = runs * CAP
        self.draws = [
            along.draw(
                values[:t],
                generator.random(count),
                generator.standard_normal((count, ROUNDS), dtype=np.float32),
            )
            for t in range(1, ROUNDS + 1)
        ]

    def fresh(self, t: int, run: int) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates (CAP, ROUNDS) and labels (CAP,) of draws after t measurements."""
        part = slice(run * CAP, (run + 1) * CAP)
        draws, labels = self.draws[t - 1]
        return draws[part], labels[part]

    def stays(self, draws: np.ndarray, t: int) -> np.ndarray:
        """Which draws of round t are draws of round t+1, (B,)."""
        off = (self.values[t] - draws[:, t]) / self.sigma_y
        return self.generator.random(len(draws)) < np.exp(-(off**2) / 2)


def sensed(
    states: States, run: int, truth: int, rule: Rule, tau: float, way: Way, tally: Tally
) -> None:
    """One sensing run: kept votes first, in the order in which they were drawn, then fresh ones."""
    kept = np.empty((0, ROUNDS), dtype=np.float32), np.empty(0, dtype=np.int64)
    tally.runs += 1
    for t in range(1, ROUNDS + 1):
        more = states.fresh(t, run)
        draws, labels = np.concatenate([kept[0], more[0]]), np.concatenate([kept[1], more[1]])
        had = len(kept[0])
        pool = Pool(rule)
        while pool.open:
            pool.add(int(labels[pool.n]))
        paid = -(-max(pool.n - had, 0) // way.batch) * way.batch
        tally.samples += paid
        tally.rounds += 1
        label = pool.verdict.label if pool.verdict.kind == "declared" else None
        law = states.laws[t - 1]
        for c in np.flatnonzero((law <= tau) & (law > tau - NEAR)):
            tally.near += 1
            tally.near_declared += label == c
            tally.near_alone += alone(rule, float(law[c]))
        if label is not None:
            tally.declared += 1
            tally.right += label == truth
            return
        if t < ROUNDS:
            offered = slice(pool.n if way.keeps == "unseen" else 0, had + paid)
            stays = states.stays(draws[offered], t) & (way.keeps != "nothing")
            kept = draws[offered][stays], labels[offered][stays]
            if way.keeps != "nothing":
                tally.offered[t - 1] += stays.size
                tally.kept[t - 1] += stays.sum()


@cache
def alone(rule: Rule, q: float) -> float:
    """OC(q), remembered."""
    return float(oc(rule, q))


def loop(oracle: Oracle, images: np.ndarray, digits: np.ndarray, sigma_y: float, runs: int) -> None:
    """The five ways over the same paths and the same fresh draws."""
    generator = np.random.default_rng(0)
    along = oracle.along(np.eye(ROUNDS, dtype=np.float32), sigma_y)
    designs = {tau: sequential(tau, 0.05, n_max=CAP) for tau in (0.55, 0.78)}
    tallies = {(tau, way): Tally() for tau in designs for way in WAYS}
    for x, digit in zip(images, digits, strict=True):
        noise = generator.standard_normal(ROUNDS, dtype=np.float32)
        states = States(along, x + np.float32(sigma_y) * noise, runs, generator)
        for (tau, way), tally in tallies.items():
            for at in range(runs):
                sensed(states, at, int(digit), designs[tau], tau, way, tally)
    for (tau, way), tally in tallies.items():
        print(f"{sigma_y:>7}{tau:>6}  {way.name:<20}{tally.line()}", flush=True)
    rates = tallies[0.78, WAYS[1]]
    with np.errstate(invalid="ignore"):
        by_round = rates.kept / rates.offered
    print("kept by round, tau .78:", " ".join(f"{rate:.3f}" for rate in by_round[:-1]), flush=True)


def second_round(
    rule: Rule, first: np.ndarray, second: np.ndarray, seed: int = 0
) -> tuple[float, float, float]:
    """P(round 2 is reached), P(class 1 is declared there), and that given that it is reached.

    A vote for c is kept with a probability in proportion to second / first, the largest being 1:
    the most that any measurement can keep which moves one law to the other.
    """
    generator = np.random.default_rng(seed)
    size = (POOLS, CAP)
    votes = (generator.random(size) < first[1]).astype(np.uint8)
    fresh = (generator.random(size) < second[1]).astype(np.uint8)
    label, drawn = verdicts(rule, votes)
    ratio = second / first
    keep = generator.random(size) < (ratio / ratio.max())[votes]
    keep &= np.arange(CAP) < drawn[:, None]
    order = np.argsort(~np.hstack([keep, np.ones(size, dtype=bool)]), axis=1, kind="stable")
    both = np.take_along_axis(np.hstack([votes, fresh]), order[:, :CAP], axis=1)
    later, _ = verdicts(rule, both)
    reached = label < 0
    ended = reached & (later == 1)
    return reached.mean(), ended.mean(), ended.sum() / max(reached.sum(), 1)


def verdicts(rule: Rule, votes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The declared class and the votes drawn of each pool."""
    nothing = np.zeros(len(votes), dtype=np.int64)
    return Replay(VoteLog(np.arange(len(votes)), nothing, votes[:, None], {})).pools(rule)


def selection() -> None:
    """A class of mass tau in round 2, after a round 1 in which its rival led."""
    print(
        f"\n{'tau':>5}{'rival before':>14}{'reached':>9}{'declared':>10}{'if reached':>12}{'OC':>8}"
    )
    for tau in (0.55, 0.78):
        rule = sequential(tau, 0.05, n_max=CAP)
        for rival in (0.3, 0.5, 0.6, 0.7, 0.8, 0.9):
            first, second = np.array([rival, 1 - rival]), np.array([1 - tau, tau])
            reached, declared, given = second_round(rule, first, second)
            print(
                f"{tau:>5}{rival:>14}{reached:>9.4f}{declared:>10.4f}{given:>12.4f}"
                f"{float(oc(rule, tau)):>8.4f}",
                flush=True,
            )


def main() -> None:
    """Print what is kept and saved, and what the selection does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=100, help="digits that are sensed")
    parser.add_argument("--runs", type=int, default=20, help="runs for each")
    parser.add_argument("--mnist", help="folder of MNIST, for a prior of its 60,000 digits")
    parser.add_argument("--sigma-y", type=float, nargs="+", default=[0.1, 0.3, 1.0])
    given = parser.parse_args()
    digits, labels = evaluation_set()
    sensed_digits = digits[: given.images], labels[: given.images]
    prior, names = digits[given.images :], labels[given.images :]
    if given.mnist:
        raw, names = load_mnist("train", given.mnist)
        prior = scaled(raw)
    rows = principal_components()[0][:ROUNDS].astype(np.float64)
    # Along the probes the prior is the same kind of prior, in their coordinates.
    oracle = Oracle((prior @ rows.T).astype(np.float32), names, MNIST_H)
    seen = (sensed_digits[0] @ rows.T).astype(np.float32)
    print(
        f"{'sigma_y':>7}{'tau':>6}  {'way':<20}{'samples':>9}{'rounds':>8}{'accuracy':>10}", end=""
    )
    print(f"{'kept':>8}{'near tau':>10}{'OC':>8}{'of':>9}")
    for sigma_y in given.sigma_y:
        loop(oracle, seen, sensed_digits[1], sigma_y, given.runs)
    selection()


if __name__ == "__main__":
    main()
