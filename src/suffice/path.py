"""What a rule does along a sensing path: reach, rounds, samples and accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.errors import BadInput
from suffice.lattice import law
from suffice.pool_law import pool_laws
from suffice.rule import Rule

__all__ = ["PathLaw", "PathMeans", "along"]

Floats = NDArray[np.float64]
CHUNK = 2048  # masses at once in the recursion: enough to be fast, few enough for memory


@dataclass(frozen=True)
class PathMeans:
    """Averages over paths, as the sensing loop measures them."""

    accuracy: float  # given a declaration (eq. loopacc); nan where none is possible
    declared: float
    rounds: float
    samples: float


@dataclass(frozen=True, eq=False)
class PathLaw:
    """The predictions for each path; arrays have the shape of the paths, (...,) or (..., T)."""

    reach: Floats = field(repr=False)  # rho_t, eq. reach, shape (..., T)
    declare_probability: Floats = field(repr=False)  # d_t, shape (..., T)
    correct: Floats = field(repr=False)  # a_t, shape (..., T); nan where nothing can be declared
    round_samples: Floats = field(repr=False)  # E[N | pi_t], shape (..., T)
    error: float = 0.0  # the exact way: no d_t, no d_t a_t and no E[N | pi_t] is further off

    @property
    def declared(self) -> Floats:
        """The probability that the path ends with a declaration."""
        return np.asarray((self.reach * self.declare_probability).sum(axis=-1))

    @property
    def rounds(self) -> Floats:
        """Expected rounds; a path that never declares counts all of its rounds."""
        return np.asarray(self.reach.sum(axis=-1))

    @property
    def samples(self) -> Floats:
        """Expected samples (eq. pathcost)."""
        return np.asarray((self.reach * self.round_samples).sum(axis=-1))

    @property
    def accuracy(self) -> Floats:
        """A, the probability that a declaration names the true class; nan without declarations."""
        return _ratio(self._right, self.declared)

    @property
    def mean(self) -> PathMeans:
        """Averages over all paths; a path weighs on the accuracy as often as it declares."""
        return PathMeans(
            accuracy=float(_ratio(self._right.sum(), self.declared.sum())),
            declared=float(self.declared.mean()),
            rounds=float(self.rounds.mean()),
            samples=float(self.samples.mean()),
        )

    @property
    def _right(self) -> Floats:
        correct = np.where(self.declare_probability > 0, self.correct, 0.0)
        return np.asarray((self.reach * self.declare_probability * correct).sum(axis=-1))


def along(
    rule: Rule | Sequence[Rule], masses: ArrayLike, truth: ArrayLike, exact: bool = False
) -> PathLaw:
    """Follow a rule, or one rule a round, along paths of vote masses.

    `masses` has shape (..., T, C): pi_t for each round; what a row lacks to one is invalid votes.
    `truth` has shape (...,): the index of the true class. As the paper writes it, d_t is the sum
    of the classwise OC, capped at one (exact for a fixed pool with r > S/2, a bound otherwise),
    and E[N] is that of the leader alone, which a pool with rivals can exceed. With `exact`, all
    come from the law of the whole pool (`pool_laws`), and `error` says how exact that is.

    >>> first = Rule([1, 1], [0, 0], "first vote")
    >>> path = along(first, [[0.5, 0.2], [0.8, 0.2]], truth=0)
    >>> path.reach.tolist(), path.rounds.item()
    ([1.0, 0.30000000000000004], 1.3)
    >>> round(path.mean.accuracy, 3)
    0.74
    >>> curtailed = Rule([1, 2, 2, 2], [0, 0, 1, 2], "two of three")
    >>> tie = [[0.4, 0.4, 0.2]]
    >>> [round(along(curtailed, tie, 0, exact=way).samples.item(), 9) for way in (False, True)]
    [2.48, 2.64]
    """
    pi, true = _paths(masses, truth)
    rounds = pi.shape[-2]
    rules = [rule] if isinstance(rule, Rule) else list(rule)
    if not isinstance(rule, Rule) and len(rules) != rounds:
        raise BadInput(f"{len(rules)} rules for {rounds} rounds; give one rule, or one a round")
    way = _pools if exact else _classwise
    if len(rules) == 1:
        each, samples, error = way(rules[0], pi)
    else:
        columns = [way(rules[t], pi[..., t, :]) for t in range(rounds)]
        each = np.stack([column[0] for column in columns], axis=-2)
        samples = np.stack([column[1] for column in columns], axis=-1)
        error = max(column[2] for column in columns)
    total = each.sum(axis=-1)
    declare = np.minimum(total, 1.0)
    going_on = np.cumprod(1.0 - declare, axis=-1)
    reach = np.concatenate([np.ones_like(going_on[..., :1]), going_on[..., :-1]], axis=-1)
    of_true = np.take_along_axis(each, true[..., None, None], axis=-1)[..., 0]
    return PathLaw(reach, declare, _ratio(of_true, total), samples, error)


def _pools(rule: Rule, pi: Floats) -> tuple[Floats, Floats, float]:
    """P(class declared) in the whole pool, its E[N], and the largest error of either.

    Laws that differ in the order of their classes alone are computed once.
    """
    order = np.argsort(-pi, axis=-1, kind="stable")
    ranked = np.take_along_axis(pi, order, axis=-1).reshape(-1, pi.shape[-1])
    distinct, where = np.unique(ranked, axis=0, return_inverse=True)
    result = pool_laws(rule, distinct)
    where = where.reshape(pi.shape[:-1])
    each = np.empty_like(pi)
    np.put_along_axis(each, order, result.declared[where], axis=-1)
    error = max(float(result.error.max()), float(result.declared_error.max()))
    return each, result.expected_samples[where], error


def _classwise(rule: Rule, pi: Floats) -> tuple[Floats, Floats, float]:
    """OC at every mass and E[N] at every leader, each distinct mass computed once."""
    leader = pi.max(axis=-1)
    distinct, where = np.unique(pi, return_inverse=True)
    leads = np.unique(leader)
    oc = np.empty_like(distinct)
    for start in range(0, distinct.size, CHUNK):
        part = slice(start, start + CHUNK)
        oc[part] = law(rule, distinct[part]).declare_probability
    cost = np.empty_like(leads)
    for start in range(0, leads.size, CHUNK):
        part = slice(start, start + CHUNK)
        cost[part] = law(rule, leads[part]).expected_samples
    return oc[where].reshape(pi.shape), cost[np.searchsorted(leads, leader)], 0.0


def _paths(masses: ArrayLike, truth: ArrayLike) -> tuple[Floats, NDArray[np.int64]]:
    try:
        pi = np.asarray(masses, dtype=np.float64)
        true = np.asarray(truth)
    except (TypeError, ValueError):
        raise BadInput("masses must be numbers of shape (..., rounds, classes)") from None
    if pi.ndim < 2 or pi.shape[-1] == 0 or pi.shape[-2] == 0:
        raise BadInput(f"masses of shape {pi.shape} must be (..., rounds, classes)")
    if not ((pi >= 0) & (pi <= 1)).all():
        raise BadInput("a mass lies outside 0 to 1; divide votes by the number of draws")
    if (heaviest := pi.sum(axis=-1).max(initial=0.0)) > 1 + 1e-9:
        raise BadInput(f"the masses of a round sum to {heaviest:g}; they must not exceed 1")
    if true.dtype.kind not in "iu" or true.shape != pi.shape[:-2]:
        raise BadInput(
            f"truth of shape {true.shape} must hold one class index a path, {pi.shape[:-2]}"
        )
    if ((true < 0) | (true >= pi.shape[-1])).any():
        raise BadInput(f"truth holds a class outside 0 to {pi.shape[-1] - 1}; count from 0")
    return pi, true.astype(np.int64)


def _ratio(part: Floats, whole: Floats) -> Floats:
    part, whole = np.asarray(part), np.asarray(whole)
    nothing = np.full(part.shape, np.nan)
    return np.asarray(np.divide(part, whole, out=nothing, where=whole > 0))
