"""What a certificate says about a whole sensing run: errors over T rounds.

Pools restart at every round, so rounds are independent given the path. A rule certified in each
round may still declare a class that never deserves it somewhere along the way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from suffice.errors import BadInput
from suffice.inputs import probability, whole
from suffice.lattice import Floats, oc, vote_masses
from suffice.pool_law import pool_laws, vote_laws
from suffice.rule import Rule

__all__ = ["declared_on_path", "ever_declared", "ever_declared_bound", "split_eps"]

Rules = Rule | Sequence[Rule]


def ever_declared(rules: Rules, masses: ArrayLike) -> float:
    """P(a class of these vote masses, shape (T,), would be declared in some round), exactly.

    One rule for all rounds, or one a round. Rivals are left out: they can only end the run before
    this class is declared, so with rivals the probability is at most this.

    >>> round(ever_declared(Rule([1, 2, 2], [0, 0, 1], "two in a row"), [0.5, 0.5]), 4)
    0.4375
    """
    q = vote_masses(masses)
    if q.ndim != 1 or not q.size:
        raise BadInput(f"masses has shape {q.shape}; give one row, one vote mass a round")
    chances = [oc(rule, float(mass)) for rule, mass in zip(_each(rules, q.size), q, strict=True)]
    return _union(np.array(chances))


def ever_declared_bound(rules: Rules, tau: float, rounds: int) -> float:
    """The most that `ever_declared` can be over T rounds while the mass stays at or below tau.

    OC grows with q, so the bound is the path that stays at tau: 1 - prod_t (1 - size_t).

    >>> round(ever_declared_bound(Rule([1, 2, 2], [0, 0, 1], "two in a row"), 0.2, 3), 4)
    0.1153
    """
    mass, rounds = float(probability(tau, "tau")), whole(rounds, "rounds")
    return ever_declared(rules, np.full(rounds, mass))


def declared_on_path(rules: Rules, path: ArrayLike) -> tuple[Floats, Floats]:
    """P(the run ends by declaring class c), shape (C,), and the bound on its error, shape (C,).

    `path` has shape (T, C): the vote law of each round, rivals included; the run goes on while
    nothing is declared.

    >>> rule = Rule([1, 2, 2], [0, 0, 1], "two in a row")
    >>> declared_on_path(rule, [[0.5, 0.5], [1.0, 0.0]])[0].round(4).tolist()
    [0.75, 0.25]
    """
    laws = vote_laws(path, 2)
    each = _each(rules, len(laws))
    declared, error = np.empty_like(laws), np.empty(len(laws))
    for rule in dict.fromkeys(each):
        rows = [t for t, used in enumerate(each) if used == rule]
        result = pool_laws(rule, laws[rows])
        declared[rows], error[rows] = result.declared, result.declared_error
    still = np.maximum(1.0 - declared.sum(axis=1), 0.0)
    reach = np.concatenate([[1.0], np.cumprod(still)[:-1]])
    # One round's error moves its own declarations, and through the reach all that come after.
    slack = error.sum() * (1 + laws.shape[1])
    return reach @ declared, np.full(laws.shape[1], slack)


def split_eps(eps_loop: float, rounds: int) -> float:
    """The eps for each of T rounds that makes 1 - (1 - eps)^T = eps_loop.

    >>> round(split_eps(0.05, 24), 5)
    0.00213
    >>> split_eps(0.05, 1)
    0.05
    """
    whole_run, rounds = float(probability(eps_loop, "eps_loop")), whole(rounds, "rounds")
    if rounds == 1:
        return whole_run
    return float(-np.expm1(np.log1p(-whole_run) / rounds))


def _each(rules: Rules, rounds: int) -> list[Rule]:
    if isinstance(rules, Rule):
        return [rules] * rounds
    if len(rules) != rounds:
        raise BadInput(f"{len(rules)} rules for {rounds} rounds; give one rule, or one a round")
    return list(rules)


def _union(chances: Floats) -> float:
    """1 - prod(1 - p), without losing small p."""
    if (chances >= 1).any():
        return 1.0
    return float(-np.expm1(np.log1p(-chances).sum()))
