"""What rules do along the paths of a design, fast: the model that the search minimises.

A class is declared by its own OC, as the paper has it; what a pool costs follows from simulated
leading counts. Both are linear in what a rule does at each state of the lattice, so the rule of
one round, those of the others given, is a problem of one pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.boundary_search import still_open
from suffice.errors import BadInput
from suffice.lattice import Floats, law
from suffice.leading import Leads
from suffice.path import PathMeans
from suffice.priced import Problem, binomial_tables
from suffice.rule import Rule

__all__ = ["Followed", "Prices", "RunModel"]

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Prices:
    """In samples: what a round of measurement costs, and a path that is not declared right."""

    round: float
    miss: float


@dataclass(frozen=True, eq=False)
class Followed:
    """What rules, one a round, do on each path."""

    reach: Floats  # (I, T)
    declared: Floats  # P(declared | reached), (I, T)
    wrong: Floats  # P(declared wrong | reached), (I, T)
    samples: Floats  # E[N | reached], (I, T)

    @property
    def means(self) -> PathMeans:
        """Averages over the paths."""
        declared = (self.reach * self.declared).sum(axis=1).mean()
        wrong = (self.reach * self.wrong).sum(axis=1).mean()
        return PathMeans(
            accuracy=float(1 - wrong / declared) if declared > 0 else np.nan,
            declared=float(declared),
            rounds=float(self.reach.sum(axis=1).mean()),
            samples=float((self.reach * self.samples).sum(axis=1).mean()),
        )

    def ahead(self, prices: Prices) -> Floats:
        """What a path costs from each round on, once reached, (I, T+1); the last: not declared."""
        cost = prices.round + self.samples + prices.miss * self.wrong
        ahead = np.full((len(cost), cost.shape[1] + 1), prices.miss)
        for t in range(cost.shape[1] - 1, -1, -1):
            ahead[:, t] = cost[:, t] + (1 - self.declared[:, t]) * ahead[:, t + 1]
        return ahead

    def total(self, prices: Prices) -> float:
        """What the average path costs."""
        return float(self.ahead(prices)[:, 0].mean())


class RunModel:
    """Paths of vote laws, ready to follow rules of at most n_max votes."""

    def __init__(self, masses: ArrayLike, truth: ArrayLike, n_max: int) -> None:
        try:
            pi, true = np.asarray(masses, dtype=np.float64), np.asarray(truth)
        except (TypeError, ValueError):
            raise BadInput("masses must be numbers of shape (images, rounds, classes)") from None
        if true.dtype.kind not in "iu":
            raise BadInput("truth must hold whole numbers, the class of each image")
        if pi.ndim != 3 or true.shape != pi.shape[:1] or not pi.size:
            raise BadInput(
                f"masses of shape {pi.shape} and truth of shape {true.shape} do not fit; "
                "give (images, rounds, classes) and (images,)"
            )
        if not (pi >= 0).all() or (pi.sum(axis=-1) > 1 + 1e-9).any():
            raise BadInput("masses hold a row that is no law; each is 0 or more and sums to 1")
        if (true < 0).any():
            raise BadInput("truth holds a label below 0; a design needs the true labels")
        self.masses, self.truth, self.n_max = pi, true, n_max
        self.rounds = pi.shape[1]
        # A class that no path votes for has no mass; it only makes room for its label.
        right = true[:, None, None] == np.arange(pi.shape[2])
        self._right = np.broadcast_to(right, pi.shape)
        self._distinct, self._each = np.unique(pi, return_inverse=True)
        self._each = self._each.reshape(pi.shape)  # (I, T, C), into distinct masses
        ranked = -np.sort(-pi, axis=-1).reshape(-1, pi.shape[2])
        laws, self._law = np.unique(ranked, axis=0, return_inverse=True)
        self._law = self._law.reshape(pi.shape[:2])  # (I, T), into distinct laws
        self._leads = Leads.of(laws, n_max)
        self._tables = binomial_tables(n_max, self._distinct)
        self._of: dict[Rule, tuple[Floats, Floats]] = {}

    def follow(self, rules: Sequence[Rule]) -> Followed:
        """Follow one rule a round along all paths."""
        if len(set(rules)) == 1:
            parts = [self._at(rules[0], slice(None))]
        else:
            parts = [self._at(rule, slice(t, t + 1)) for t, rule in enumerate(rules)]
        declared, wrong, samples = (np.hstack(part) for part in zip(*parts, strict=True))
        going = np.cumprod(1 - declared, axis=1)
        reach = np.concatenate([np.ones_like(going[:, :1]), going[:, :-1]], axis=1)
        return Followed(reach, declared, wrong, samples)

    def problem(
        self,
        rounds: Sequence[int],
        followed: Followed,
        prices: Prices,
        tau: float,
        eps: float,
    ) -> Problem:
        """Choosing the rule of these rounds, the reach and what lies ahead held as they are.

        Its cost, up to a constant, is what the average path costs.
        """
        at = np.asarray(rounds)
        weight = followed.reach[:, at] / len(self.truth)
        ahead = followed.ahead(prices)[:, at + 1]
        saved = ahead[:, :, None] - prices.miss * ~self._right[:, at]
        pools = np.zeros(self._leads.laws)
        np.add.at(pools, self._law[:, at], weight)
        gains = np.bincount(
            self._each[:, at].ravel(), (weight[:, :, None] * saved).ravel(), len(self._distinct)
        )
        nothing = [np.zeros(n + 1) for n in range(self.n_max + 1)]
        return Problem(
            tau=tau,
            eps=eps,
            miss=1.0,
            n_max=self.n_max,
            looks=np.ones(self.n_max + 1, dtype=bool),
            cost=self._leads.tables(pools),
            false=[table[0] for table in binomial_tables(self.n_max, np.array([tau]))],
            missed=nothing,
            reward=[gains @ table for table in self._tables],
        )

    def _at(self, rule: Rule, rounds: slice) -> tuple[Floats, Floats, Floats]:
        """P(declared), P(declared wrong) and E[N] of this rule in these rounds, once reached."""
        if rule not in self._of:
            going = still_open(rule.declare, rule.stop)
            oc = law(rule, self._distinct).declare_probability
            self._of[rule] = oc, self._leads.samples(going)
        oc, samples = self._of[rule]
        each = oc[self._each[:, rounds]]
        total = each.sum(axis=-1)
        declared = np.minimum(total, 1.0)
        of_true = (each * self._right[:, rounds]).sum(axis=-1)
        wrong = np.minimum(total - of_true, declared)
        return declared, wrong, samples[self._law[:, rounds]]
