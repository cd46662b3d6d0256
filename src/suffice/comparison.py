"""This library's rules beside the paper's: at the same certificate, and at matched accuracy.

A rule that is fitted to a log is designed on every second image and reported on the others, both
ways round: every image is reported under a rule that was designed without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from suffice.calibrate import certified_tau
from suffice.errors import BadInput
from suffice.experiment import BLOCKS, EPS, Experiment, Images, Row, Rules
from suffice.path import PathMeans, along
from suffice.replay import Outcome
from suffice.rule import Rule
from suffice.schemes import ADDED, LARGE, SCHEMES, SEQUENTIAL, SEQUENTIAL_128, TAU_FREE, Scheme

__all__ = [
    "added_table",
    "against",
    "frontier",
    "matched_table",
    "outcome_of",
    "row_of",
    "spent_by_round",
]

CLOSE = 0.005  # measured accuracies this close are matched
DECLARED = 0.95  # the share of images that a design declares, if it is to count
HUNDREDTHS = 100
LOWEST = 0.30  # no threshold below this is tried


def added_table(
    experiment: Experiment,
    tell: Callable[[], None] = lambda: None,
    schemes: Sequence[Scheme] = ADDED,
    large: Sequence[Scheme] = LARGE,
) -> list[Row]:
    """For each block the sequential rule and this library's rules, all with its certificate.

    In the first block, as in the paper's table, also with n_max=128.
    """
    rows = []
    for block in BLOCKS:
        at = block.target, block.certificate
        base = row_of(experiment, SEQUENTIAL, *at, pools=True)
        rows.append(base)
        for scheme in schemes:
            rows.append(against(row_of(experiment, scheme, *at, pools=True), base))
            tell()
        if block is BLOCKS[0] and large:
            base = row_of(experiment, SEQUENTIAL_128, *at, pools=True)
            rows.append(base)
            for scheme in large:
                rows.append(against(row_of(experiment, scheme, *at, pools=True), base))
                tell()
    return rows


def matched_table(
    experiment: Experiment,
    tell: Callable[[], None] = lambda: None,
    free: Sequence[Scheme] = TAU_FREE,
) -> list[Row]:
    """Every scheme with its tau moved until its measured accuracy is that of the block.

    Where 1.00 is out of reach, the first block is the highest accuracy that all schemes reach.
    Rules for whole runs are designed to keep what the sequential rule has there.
    """
    tops: dict[str, tuple[float, float]] = {}
    for scheme in SCHEMES:
        start = tops[SEQUENTIAL.name][0] + 0.03 if SEQUENTIAL.name in tops else 0.99
        tops[scheme.name] = _top(experiment, scheme, start)
        tell()
    reachable = min(accuracy for _, accuracy in tops.values())
    rows: list[Row] = []
    for block in BLOCKS:
        target = block.target if reachable >= block.target - CLOSE else reachable
        taus: dict[str, float] = {}
        part = []
        for scheme in SCHEMES:
            start = taus.get(SEQUENTIAL.name, block.certificate)
            top = tops[scheme.name][0]
            tau, off = _match(experiment, scheme, target, min(start, top), top)
            taus[scheme.name] = tau
            note = "" if abs(off) <= CLOSE else f"{off:+.3f} from the target is its nearest"
            extra = {"target": target, "matched": abs(off) <= CLOSE}
            row = row_of(experiment, scheme, block.target, tau)
            part.append(replace(row, note="; ".join(filter(None, [row.note, note])), extra=extra))
            tell()
        for scheme in free:
            row = row_of(experiment, scheme, block.target, taus[SEQUENTIAL.name])
            matched = abs(_accuracy(row.outcome) - target) <= CLOSE
            part.append(replace(row, extra={"target": target, "matched": matched}))
            tell()
        base = next(row for row in part if row.scheme == SEQUENTIAL.name)
        rows += [row if row is base else against(row, base) for row in part]
    return rows


def frontier(experiment: Experiment, scheme: Scheme, step: float = 0.04) -> list[dict[str, float]]:
    """Accuracy, samples and rounds of a scheme as tau rises."""
    points = []
    for tau in np.round(np.arange(0.34, 0.99, step), 2).tolist():
        try:
            outcome = outcome_of(experiment, scheme, tau)
        except BadInput:
            continue
        if outcome.declared.mean() < DECLARED:
            continue
        points.append(
            {
                "tau": tau,
                "accuracy": _accuracy(outcome),
                "samples": float(outcome.samples.mean()),
                "rounds": float(outcome.rounds.mean()),
            }
        )
    return points


def row_of(
    experiment: Experiment, scheme: Scheme, block: float, tau: float, pools: bool = False
) -> Row:
    """The row of a scheme at one tau; a fitted scheme is fitted twice, on each half."""
    if scheme.make is not None:
        return experiment.row(block, scheme.name, tau, scheme.make(tau), pools=pools)
    designs = _designs(experiment, scheme, tau)
    rules = [rule for fitted, _ in designs for rule in _listed(fitted)]
    predicted = {}
    for name in ("32", "128", *(["pool_128"] if pools else [])):
        masses, truth = experiment.masses(name.removeprefix("pool_")), experiment.truth
        parts = [
            along(fitted, masses[images], truth[images], name.startswith("pool_")).mean
            for fitted, images in designs
        ]
        predicted[name] = _joined_means(parts, [len(images) for _, images in designs])
    return Row(
        block,
        scheme.name,
        tau,
        tuple(rules),
        min(certified_tau(rule, EPS) for rule in rules if rule.stop[0] == 0),
        _joined(experiment, designs),
        predicted,
        note="designed on one half of the images, reported on the other, both ways round",
    )


def outcome_of(experiment: Experiment, scheme: Scheme, tau: float) -> Outcome:
    """What a scheme does at one tau."""
    if scheme.make is not None:
        return experiment.outcome(scheme.make(tau))
    return _joined(experiment, _designs(experiment, scheme, tau))


def spent_by_round(experiment: Experiment, scheme: Scheme, tau: float) -> NDArray[np.float64]:
    """Mean samples an image in each round, (T,)."""
    if scheme.make is not None:
        return np.asarray(experiment.spent(scheme.make(tau)).mean(axis=0))
    designs = _designs(experiment, scheme, tau)
    parts = [experiment.spent(rules)[images] for rules, images in designs]
    return np.asarray(np.concatenate(parts).mean(axis=0))


def against(row: Row, base: Row) -> Row:
    """The row with its samples and rounds as shares of another's on the same images."""
    shares = {
        **row.outcome.compare(base.outcome),
        "rounds_ratio": float(row.outcome.rounds.sum() / base.outcome.rounds.sum()),
    }
    return replace(row, extra={**row.extra, **shares})


Designs = Sequence[tuple[Rules, Images]]


def _designs(experiment: Experiment, scheme: Scheme, tau: float) -> Designs:
    """The rules fitted on each half, with the half that they are reported on."""
    if scheme.fit is None:
        raise BadInput(f"scheme {scheme.name!r} makes no rules; give it `make` or `fit`")
    key = (scheme.name, tau)
    if key not in experiment.fitted:
        halves = experiment.all[::2], experiment.all[1::2]
        fit = scheme.fit
        rules = experiment.designs.get(key) or [fit(experiment, tau, half) for half in halves]
        experiment.fitted[key] = list(zip(rules, halves[::-1], strict=True))
    return experiment.fitted[key]


def _joined(experiment: Experiment, designs: Designs) -> Outcome:
    """The outcomes on the two halves as one, in the order of the images."""
    order = np.argsort(np.concatenate([images for _, images in designs]))
    parts = [experiment.outcome(rules, images) for rules, images in designs]
    names = [entry.name for entry in fields(Outcome)]
    return Outcome(
        **{name: np.concatenate([getattr(part, name) for part in parts])[order] for name in names}
    )


def _joined_means(parts: Sequence[PathMeans], sizes: Sequence[int]) -> PathMeans:
    """The means over all images from those over each part of them."""
    shares = np.array(sizes) / sum(sizes)
    declared = shares @ [part.declared for part in parts]
    right = shares @ [part.declared * part.accuracy for part in parts]
    return PathMeans(
        accuracy=float(right / declared),
        declared=float(declared),
        rounds=float(shares @ [part.rounds for part in parts]),
        samples=float(shares @ [part.samples for part in parts]),
    )


def _listed(rules: Rules) -> list[Rule]:
    return [rules] if isinstance(rules, Rule) else list(rules)


def _accuracy(outcome: Outcome) -> float:
    return float(outcome.right.sum() / max(outcome.declared.sum(), 1))


def _top(experiment: Experiment, scheme: Scheme, start: float) -> tuple[float, float]:
    """The largest tau in hundredths at which a scheme declares nearly all, and its accuracy."""
    for at in range(min(round(start * HUNDREDTHS), 99), 49, -1):
        tau = at / HUNDREDTHS
        try:
            outcome = outcome_of(experiment, scheme, tau)
        except BadInput:
            continue
        if outcome.declared.mean() >= DECLARED:
            return tau, _accuracy(outcome)
    raise BadInput(f"{scheme.name} declares less than {DECLARED:.0%} of the images at every tau")


def _match(
    experiment: Experiment, scheme: Scheme, target: float, start: float, top: float
) -> tuple[float, float]:
    """The tau whose measured accuracy is nearest to the target, and how far off it is.

    Walks from `start` by hundredths until the target lies between two steps, then by thousandths.
    """

    def off(tau: float) -> float:
        return _accuracy(outcome_of(experiment, scheme, tau)) - target

    tried = {start: off(start)}
    for step in (0.01, 0.001):
        tau = min(tried, key=lambda tau: (abs(tried[tau]), len(str(tau)), tau))
        if step < 0.01 and abs(tried[tau]) <= CLOSE:
            break
        towards = step if tried[tau] < 0 else -step
        while tried[tau] * towards < 0:
            tau = round(tau + towards, 3)
            if not LOWEST <= tau <= top:
                break
            try:
                tried[tau] = off(tau)
            except BadInput:  # fixed pools need a majority
                break
    best = min(tried, key=lambda tau: (abs(tried[tau]), len(str(tau)), tau))
    return best, tried[best]
