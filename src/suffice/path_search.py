"""Rules that make a run cheaper, step by step, on its model: no step is taken that does not help.

The rule of one round, those of the others given, is a problem of one pool, which dynamic
programming solves at any price on OC(tau). One rule for all rounds sets its own reach and prices:
its problem holds near the rule that it was written down for, so each step is measured on the model
and taken only where the whole run gets cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from suffice.boundaries import build
from suffice.boundary_search import improve, totals_of
from suffice.errors import BadInput
from suffice.line_rules import line_rules
from suffice.priced import Problem, solve
from suffice.rule import Counts, Rule
from suffice.rules import sequential
from suffice.run_model import Followed, Prices, RunModel

__all__ = ["PathSearch"]

STARTS = 3  # rules that the search starts from
DEPTHS = (1, 2, 4, 8, 16, 32)  # changes of single entries tried at once
MOVES = 24  # changes of single entries of one round's rule in one sweep
STEPS = 60
SWEEPS = 8
ENOUGH = 1e-3  # relative; a sweep that gains less is the last one
GAIN = 1e-9  # relative; what counts as cheaper
TRIES = 40  # prices tried on OC(tau)
NEAR = 1.02  # two prices this close, of which one meets eps and one does not, are the same
CHEAP = 1e-9  # a certificate that is met at this price costs nothing


@dataclass(eq=False)
class PathSearch:
    """The search for cheap rules under one certificate in every round."""

    model: RunModel
    tau: float
    eps: float
    _on_errors: dict[int, float] = field(default_factory=dict, repr=False)
    """The price on OC(tau) that fitted last, by round; -1 is for all."""

    def total(self, rules: Sequence[Rule], prices: Prices) -> float:
        """What the average path costs."""
        return self.model.follow(rules).total(prices)

    def one_rules(self, prices: Prices, also: Sequence[Rule] = ()) -> list[Rule]:
        """Good rules for all rounds, the best first: downhill from a few, and from `also`."""
        rounds = self.model.rounds
        starts = sorted(self._starts, key=lambda rule: self._starts[rule].total(prices))
        # In a fixed order, not in one of hashes: of two that cost the same the first is taken.
        ends = (self._downhill(rule, prices) for rule in (*starts[:STARTS], *also))
        found = dict.fromkeys(ends)
        return sorted(found, key=lambda rule: self.total([rule] * rounds, prices))

    def rule_a_round(self, start: Sequence[Rule], prices: Prices) -> list[Rule]:
        """From these rules downhill, one round after the other, from the last to the first."""
        rules = list(start)
        least = self.total(rules, prices)
        for _ in range(SWEEPS):
            for t in range(self.model.rounds - 1, -1, -1):
                problem = self._problem([t], self.model.follow(rules), prices)
                rules[t] = self._best(problem, rules[t], t)
            total = self.total(rules, prices)
            done = total >= least * (1 - ENOUGH)
            least = total
            if done:
                break
        return rules

    @cached_property
    def _starts(self) -> dict[Rule, Followed]:
        """Rules of many kinds, and what each does in all rounds."""
        n_max, rounds = self.model.n_max, self.model.rounds
        rules = sequential(self.tau, self.eps, n_max=n_max), *line_rules(self.tau, self.eps, n_max)
        return {rule: self.model.follow([rule] * rounds) for rule in rules}

    def _downhill(self, start: Rule, prices: Prices) -> Rule:
        """Steps from this rule for all rounds for as long as the run gets cheaper."""
        rounds = self.model.rounds
        rule, least = start, self.total([start] * rounds, prices)
        for _ in range(STEPS):
            followed = self.model.follow([rule] * rounds)
            problem = self._problem(range(rounds), followed, prices)
            nearby = list(self._nearby(problem, rule))
            totals = [self.total([other] * rounds, prices) for other in nearby]
            if not totals or min(totals) >= least - GAIN * abs(least):
                break
            rule, least = nearby[int(np.argmin(totals))], min(totals)
        return rule

    def _problem(self, rounds: Sequence[int], followed: Followed, prices: Prices) -> Problem:
        return self.model.problem(rounds, followed, prices, self.tau, self.eps)

    def _nearby(self, problem: Problem, rule: Rule) -> Iterator[Rule]:
        """Rules that the problem of all rounds holds to be better: a few changes, and its best."""
        for most in DEPTHS:
            totals, *boundaries = improve(problem, rule.declare, rule.stop, most=most)
            if problem.feasible(totals):
                yield from self._built(*boundaries)
        vertex = self._fitting(problem, -1)
        if vertex is not None:
            yield from self._built(*vertex)

    def _best(self, problem: Problem, now: Rule, t: int) -> Rule:
        """The best rule found for round t; `now` where there is no better one."""
        options = [(now.declare, now.stop)]
        vertex = self._fitting(problem, t)
        if vertex is not None:
            options.append(vertex)
        best, least = now, float(totals_of(problem, now.declare, now.stop)[0])
        for option in options:
            totals, *boundaries = improve(problem, *option, most=MOVES)
            if problem.feasible(totals) and totals[0] < least - GAIN * abs(least):
                for rule in self._built(*boundaries):
                    best, least = rule, float(totals[0])
        return best

    def _built(self, declare: Counts, stop: Counts) -> Iterator[Rule]:
        """The rule with these boundaries, if it is a valid one."""
        given = {"tau": self.tau, "eps": self.eps, "n_max": self.model.n_max}
        try:
            yield build(declare, stop, "optimal for path", given)
        except BadInput:  # two classes could be declared at once
            return

    def _fitting(self, problem: Problem, at: int) -> tuple[Counts, Counts] | None:
        """The solution at the least price on OC(tau) that meets eps, near the last one there."""
        price = self._on_errors.get(at, 1.0)
        low, high, best, jump = 0.0, np.inf, None, 1.2
        for _ in range(TRIES):
            vertex = solve(problem, np.array([price, 0.0]))
            # The boundaries may differ from the solution, where that is no upper and lower set.
            if problem.feasible(totals_of(problem, vertex.declare, vertex.stop)):
                high, best = price, (vertex.declare, vertex.stop)
            else:
                low = price
            if high <= low * NEAR:
                break
            if low and high < np.inf:
                price = float(np.sqrt(low * high))
            else:
                price, jump = price * (jump if low else 1 / jump), jump**2
            if price < CHEAP:
                break
        self._on_errors[at] = high if high < np.inf else 1.0
        return best
