"""Families of rules over tau: the paper's, and this library's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from suffice.errors import BadInput, CalibrationInfeasible
from suffice.experiment import EPS, Experiment, Images, Rules, S
from suffice.lattice import oc
from suffice.optimal import optimal
from suffice.optimal_path import OptimalPath, optimal_like
from suffice.rule import Rule
from suffice.rules import e_process, one_look, plug_in, sequential, sprt

__all__ = [
    "ADDED",
    "LARGE",
    "SCHEMES",
    "SEQUENTIAL",
    "SEQUENTIAL_128",
    "TAU_FREE",
    "WHOLE_RUN",
    "Scheme",
]

POWER = 0.9  # the power of the sequential rule at the q_alt that it shares with its rivals
MORE_ROUNDS = (0.015, 0.03, 0.06)  # shares of the sequential rule's, the first that can be had
FREE_STEPS = (-0.1, -0.05, 0.0, 0.05, 0.1)  # from the sequential rule's tau


@dataclass(frozen=True)
class Scheme:
    """A family of rules over tau; a fitted one also looks at the images that it is given."""

    name: str
    make: Callable[[float], Rule] | None = None
    fit: Callable[[Experiment, float, Images], Rules] | None = None


@cache
def _rival(tau: float, n_max: int) -> tuple[float, float]:
    """The sequential rule's power, and the q_alt at which it is about POWER."""
    rule = sequential(tau, EPS, n_max=n_max)
    masses = np.arange(1, 1000) / 1000
    masses = masses[masses > tau]
    powers = oc(rule, masses)
    at = min(int(np.searchsorted(powers, POWER)), len(masses) - 1)
    # A hair less than its power, which a rule can miss by rounding alone.
    return float(masses[at]), float(np.floor(powers[at] * 1e6) / 1e6)


@cache
def _sprt(tau: float) -> Rule:
    q_alt, power = _rival(tau, S)
    try:
        return sprt(tau, q_alt, EPS, power, S)
    except CalibrationInfeasible as error:  # its family stops short of that power: take the most
        return sprt(tau, q_alt, EPS, np.floor(error.best["power"] * 1e6) / 1e6, S)


def _one_class(experiment: Experiment, tau: float, images: Images) -> Rule:
    """The optimal rule for the leader masses of the pools that the sequential rule reaches."""
    reached = experiment.outcome(sequential(tau, EPS, n_max=S), images).rounds
    leaders = experiment.masses("32")[images].max(axis=-1)
    rounds = np.arange(leaders.shape[1])
    masses, counts = np.unique(leaders[rounds < reached[:, None]], return_counts=True)
    q_alt, power = _rival(tau, S)
    weights = np.column_stack([masses, counts / counts.sum()])
    return optimal(tau, EPS, q_alt, power, S, weights).rule


def _whole_run(
    experiment: Experiment,
    tau: float,
    images: Images,
    n_max: int = S,
    each_round: bool = False,
) -> Rules:
    """The fewest samples on the images' paths with the sequential rule's rounds and accuracy."""
    return _run_like(experiment, tau, images, tau, n_max, each_round).rules


def _tau_free(
    experiment: Experiment, tau: float, images: Images, each_round: bool = False
) -> Rules:
    """The same, certified at whichever tau needs the fewest samples with one rule for all."""
    at, one = _cheapest_tau(experiment, tau, tuple(images.tolist()))
    return _run_like(experiment, tau, images, at, each_round=True).rules if each_round else one


@cache
def _cheapest_tau(
    experiment: Experiment, tau: float, listed: tuple[int, ...]
) -> tuple[float, Rules]:
    found: dict[float, OptimalPath] = {}
    images = np.array(listed)
    for step in FREE_STEPS:
        at = round(tau + step, 3)
        try:
            found[at] = _run_like(experiment, tau, images, at)
        except BadInput:  # no rule certified there keeps the rounds and the accuracy
            continue
    best = min(found, key=lambda at: found[at].means.samples)
    return best, found[best].rules


def _run_like(
    experiment: Experiment,
    tau: float,
    images: Images,
    certified: float,
    n_max: int = S,
    each_round: bool = False,
) -> OptimalPath:
    """`optimal_like` for the sequential rule with this tau, on the laws of 128 votes."""
    rule, masses = sequential(tau, EPS, n_max=n_max), experiment.masses("128")[images]
    paths = masses, experiment.truth[images], certified, EPS, each_round
    for more_rounds in MORE_ROUNDS[:-1]:
        try:
            return optimal_like(rule, *paths, more_rounds=more_rounds)
        except BadInput:  # no design keeps so close to the rounds: allow more
            continue
    return optimal_like(rule, *paths, more_rounds=MORE_ROUNDS[-1])


SEQUENTIAL = Scheme("Sequential", lambda tau: sequential(tau, EPS, n_max=S))
SEQUENTIAL_128 = Scheme("Sequential (n_max=128)", lambda tau: sequential(tau, EPS, n_max=128))
SCHEMES = (
    Scheme("Plug-in (full)", lambda tau: plug_in(tau, S, curtailed=False)),
    Scheme("Plug-in (curt.)", lambda tau: plug_in(tau, S)),
    Scheme("One-look", lambda tau: one_look(tau, EPS, S)),
    SEQUENTIAL,
    SEQUENTIAL_128,
    Scheme("e-process", lambda tau: e_process(tau, EPS, S, curtailed=True)),
    Scheme("SPRT", _sprt),
    Scheme("Optimal (one class)", fit=_one_class),
)
"""The families whose tau is moved: the paper's, then this library's."""
WHOLE_RUN = (
    Scheme("Optimal (one rule)", fit=_whole_run),
    Scheme("Optimal (one rule a round)", fit=partial(_whole_run, each_round=True)),
)
"""Designed for whole sensing runs, with the certificate of the sequential rule of that tau."""
LARGE = (
    Scheme("Optimal (one rule, n_max=128)", fit=partial(_whole_run, n_max=128)),
    Scheme(
        "Optimal (one rule a round, n_max=128)",
        fit=partial(_whole_run, n_max=128, each_round=True),
    ),
)
"""The same beside the sequential rule with n_max=128."""
TAU_FREE = (
    Scheme("Optimal (one rule, tau free)", fit=_tau_free),
    Scheme("Optimal (one rule a round, tau free)", fit=partial(_tau_free, each_round=True)),
)
"""Designed for whole runs with the rounds and the accuracy of the sequential rule of that tau."""
ADDED = (*SCHEMES[5:], *WHOLE_RUN)
"""This library's rules at the certificate of the sequential rule."""
