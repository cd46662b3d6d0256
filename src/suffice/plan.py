"""Which rule to deploy: from a log of votes and the prices of a sample and of a round.

Half of the images choose, the other half report: a design's figures come from images that had
no part in making or choosing it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.designs import Design, designs
from suffice.errors import BadInput, CalibrationInfeasible
from suffice.guarantee import Trial, declared_needed, fixed_sequence, upper_bound
from suffice.inputs import price, probability
from suffice.replay import Outcome, Replay
from suffice.votes import VoteLog, checked_log

__all__ = ["Plan", "Priced", "plan"]

SMALLEST = 20  # images; each half needs a few
FREE = 1e6  # a round that costs so many samples leaves nothing to weigh
DECLARED = 0.95  # the share of images that a design declares, if it is to count
RIVALS = ("plug-in full", "plug-in", "one-look", "sequential")
Tell = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Priced:
    """A design with what it did on the images that reported."""

    design: Design
    outcome: Outcome = field(repr=False)
    cost: Outcome = field(repr=False)
    """The outcome with the cost of each image in the place of its samples."""

    def record(self) -> dict[str, Any]:
        """The figures with 95% intervals, as JSON holds them."""
        told, priced = self.outcome.summary(), self.cost.summary()
        names = ("accuracy", "declared", "rounds", "samples")
        known = bool((self.outcome.truth >= 0).all())
        figures = {key: told[key] for name in names for key in (name, f"{name}_interval")}
        if not known:
            figures |= {"accuracy": None, "accuracy_interval": None}
        return {
            "rule": self.design.family,
            "tau": _tau(self.design),
            "n_max": max(rule.n_max for rule in self.design.each),
            "certified_tau": self.design.certified_tau,
            "cost": priced["samples"],
            "cost_interval": priced["samples_interval"],
            **figures,
        }

    def against(self, other: Priced) -> dict[str, Any]:
        """Its cost as a share of the other's, and its accuracy less the other's, paired."""
        pairs = self.cost.compare(other.cost)
        keys = ("samples_ratio", "samples_ratio_interval")
        told = {key.replace("samples", "cost"): pairs[key] for key in keys}
        if (self.outcome.truth >= 0).all():
            keys = ("accuracy_difference", "accuracy_difference_interval")
            told |= {key: pairs[key] for key in keys}
        return told


@dataclass(frozen=True, eq=False)
class Plan:
    """The design to deploy and what else could have been."""

    deploy: Priced
    frontier: tuple[Priced, ...]
    """From the cheapest on: no other design was both cheaper and more accurate."""
    rivals: tuple[Priced, ...]
    """The cheapest of each of the paper's rules with the accuracy asked for, or with no less than
    that of `deploy` where none was asked for or a guarantee was given."""
    trials: tuple[Trial, ...]
    """The tests behind a guarantee, in their order; empty where none was asked for."""
    given: Mapping[str, Any]
    """What was asked."""
    images: tuple[int, int]
    """How many chose, and how many reported."""

    def record(self) -> dict[str, Any]:
        """The plan as JSON holds it."""
        told: dict[str, Any] = {
            **self.given,
            "images_design": self.images[0],
            "images_held_out": self.images[1],
            "deploy": self.deploy.record(),
            "rivals": [
                {**rival.record(), "deployed_against_it": self.deploy.against(rival)}
                for rival in self.rivals
            ],
            "frontier": [each.record() for each in self.frontier],
        }
        if self.trials:
            told["tests"] = [vars(trial) for trial in self.trials]
        return told


def plan(
    log: VoteLog,
    sample_cost: float,
    round_cost: float,
    eps: float = 0.05,
    accuracy: float | None = None,
    guarantee: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Tell | None = None,
) -> Plan:
    """The cheapest design that keeps an accuracy, or that proves a bound on its errors.

    Every design certifies at least a majority at level `eps`. With `guarantee`, P(wrong |
    declared) of the deployed design is at most that with the `confidence`, for new images of the
    same kind. `progress` hears how many steps are done, of how many.
    """
    checked_log(log)
    prices = price(sample_cost, "sample_cost"), price(round_cost, "round_cost")
    if prices == (0.0, 0.0):
        raise BadInput("sample_cost and round_cost are both 0; give a price to one of them")
    level = float(probability(eps, "eps"))
    target = None if accuracy is None else float(probability(accuracy, "accuracy"))
    delta = None if guarantee is None else float(probability(guarantee, "guarantee"))
    sure = float(probability(confidence, "confidence"))
    known = bool((log.truth >= 0).all())
    if not known and (target is not None or delta is not None):
        what = "accuracy" if delta is None else "guarantee"
        without = log.images[log.truth < 0][0]
        raise BadInput(f"image {without} has no truth; a log without truths allows no {what}")
    choosing, reporting = _halves(log, seed)
    # Rules made for paths weigh rounds in samples, and what is declared wrong.
    dear = prices[1] > FREE * prices[0]  # samples cost next to nothing
    round_price = prices[1] / prices[0] if known and not dear else None
    grid = designs(choosing, round_price, level, progress or (lambda _done, _all: None))
    table = _Table(grid, Replay(choosing), prices, known)
    report = Replay(reporting)

    def priced(at: int) -> Priced:
        outcome = report.run(grid[at].rules)
        return Priced(grid[at], outcome, replace(outcome, samples=_cost(outcome, prices)))

    good = table.counts if target is None else table.counts & (table.merit >= target)
    if not good.any():
        best = float(np.max(table.merit, where=table.counts, initial=0.0))
        raise CalibrationInfeasible(
            f"accuracy = {accuracy}: no design reaches it on this log, the best has {best:.4g}; "
            "log more rounds or draws, or ask for less",
            best={"accuracy": best},
        )
    trials: tuple[Trial, ...] = ()
    if delta is None:
        chosen = int(np.flatnonzero(good)[table.cost[good].argmin()])
        deploy = priced(chosen)
    else:
        order = table.frontier(good, -upper_bound(table.wrong, table.declared, sure))[::-1]
        tested = [priced(at) for at in order]
        trials = tuple(fixed_sequence(*_counts(tested), delta, sure))
        passed = sum(trial.passed for trial in trials)
        if not passed:
            raise _unproven(table, int(order[0]), trials[0], delta, sure, len(reporting.images))
        chosen, deploy = int(order[passed - 1]), tested[passed - 1]
    least = target if target is not None and delta is None else table.merit[chosen]
    rivals = [
        table.cheapest(family, least)
        for family in RIVALS
        if known  # without truths there is no accuracy at which to compare
    ]
    given = {
        "sample_cost": prices[0],
        "round_cost": prices[1],
        "eps": level,
        "accuracy_asked": target,
        "guarantee": delta,
        "confidence": None if delta is None else sure,
        "seed": seed,
    }
    return Plan(
        deploy=deploy,
        frontier=tuple(priced(at) for at in table.frontier(table.counts, table.merit)),
        rivals=tuple(priced(at) for at in rivals if at is not None),
        trials=trials,
        given=given,
        images=(len(choosing.images), len(reporting.images)),
    )


class _Table:
    """What each design of the grid did on the images that choose; each column has shape (G,)."""

    def __init__(
        self, grid: Sequence[Design], log: Replay, prices: tuple[float, float], known: bool
    ) -> None:
        outcomes = [log.run(design.rules) for design in grid]
        self.families = np.array([design.family for design in grid])
        self.cost = np.array([_cost(outcome, prices).mean() for outcome in outcomes])
        self.declared = np.array([outcome.declared.sum() for outcome in outcomes])
        self.wrong = self.declared - [outcome.right.sum() for outcome in outcomes]
        right = 1.0 - self.wrong / np.maximum(self.declared, 1)
        # What is weighed against the cost: the accuracy, or without truths the certificate.
        self.merit = right if known else np.array([design.certified_tau for design in grid])
        self.counts = self.declared >= DECLARED * len(log.log.images)
        if not self.counts.any():
            most = self.declared.max() / len(log.log.images)
            raise BadInput(
                f"no design declares on {DECLARED:.0%} of the images, the best on {most:.1%}; "
                "log more rounds or draws"
            )

    def frontier(self, good: NDArray[np.bool_], merit: NDArray[np.float64]) -> NDArray[np.int64]:
        """Of the good designs those that none beats in cost and merit, from the cheapest on."""
        order = np.lexsort((-merit, self.cost))
        order = order[good[order]]
        best = np.maximum.accumulate(np.concatenate([[-np.inf], merit[order][:-1]]))
        return np.asarray(order[merit[order] > best])

    def cheapest(self, family: str, merit: float) -> int | None:
        """The cheapest of a family with at least this merit."""
        fits = np.flatnonzero(self.counts & (self.families == family) & (self.merit >= merit))
        return int(fits[self.cost[fits].argmin()]) if fits.size else None


def _halves(log: VoteLog, seed: int) -> tuple[VoteLog, VoteLog]:
    if len(log.images) < SMALLEST:
        raise BadInput(
            f"{len(log.images)} images are too few to choose on one half and report on the other; "
            f"log at least {SMALLEST}"
        )
    try:
        order = np.random.Generator(np.random.Philox(seed)).permutation(len(log.images))
    except (TypeError, ValueError):
        raise BadInput(f"seed = {seed!r} is not a whole number of at least 0") from None
    parts = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    one, other = (
        VoteLog(log.images[part], log.truth[part], log.votes[part], log.metadata) for part in parts
    )
    return one, other


def _cost(outcome: Outcome, prices: tuple[float, float]) -> NDArray[Any]:
    """What each image cost, (I,)."""
    return np.asarray(prices[0] * outcome.samples + prices[1] * outcome.rounds)


def _counts(tested: Sequence[Priced]) -> tuple[list[int], list[int]]:
    """How many were wrong among those declared, and how many were declared, for each design."""
    declared = [int(each.outcome.declared.sum()) for each in tested]
    right = [int(each.outcome.right.sum()) for each in tested]
    return [m - r for m, r in zip(declared, right, strict=True)], declared


def _unproven(
    table: _Table, at: int, trial: Trial, delta: float, confidence: float, images: int
) -> CalibrationInfeasible:
    """No design passed: what the first one showed, and the images that would be needed."""
    declared = int(table.declared[at]) + trial.declared
    rate = (int(table.wrong[at]) + trial.wrong) / max(declared, 1)
    needed = declared_needed(rate, delta, confidence)
    total = None if needed is None else 2 * math.ceil(needed * images / max(trial.declared, 1))
    remedy = (
        "no number of images would prove it; raise the guarantee, or log more rounds or draws"
        if total is None
        else f"about {total} images would prove it"
    )
    return CalibrationInfeasible(
        f"guarantee = {delta:g}: no design passes at confidence {confidence:g}; the most "
        f"conservative was wrong on {trial.wrong} of the {trial.declared} held-out images that it "
        f"declared and on {rate:.3g} of all: {remedy}",
        best={
            "wrong": trial.wrong,
            "declared": trial.declared,
            "upper_bound": trial.upper_bound,
            "rate": rate,
            "images_needed": total,
        },
    )


def _tau(design: Design) -> float | None:
    """The threshold that the design was made for; None where its rules differ in it."""
    taus = {rule.parameters.get("tau") for rule in design.each}
    return taus.pop() if len(taus) == 1 else None
