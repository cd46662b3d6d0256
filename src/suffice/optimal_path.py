"""The rules that make a whole sensing run cheapest, under one certificate in every round.

A run pays for samples, for measurement rounds, and for images that end declared wrong or not at
all. Along a path of vote laws the price of going on from round t is what the later rounds cost, so
the rule of a round is a problem of one pool: its samples, weighed by how often the round is
reached, less the price of going on for what it declares, with OC(tau) <= eps (`PathSearch`).

The model of the run (`RunModel`) is quick and close; judge the result by `along(..., exact=True)`,
and by replay on other images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from suffice.errors import BadInput
from suffice.inputs import price, probability, whole
from suffice.path import PathMeans
from suffice.path_search import PathSearch
from suffice.rule import Rule
from suffice.run_model import Prices, RunModel

__all__ = ["OptimalPath", "optimal_for_path", "optimal_like"]

LOWEST = 0.50  # threshold tried where an accuracy is asked for
MISSES = (0.0, 1.0, 4.0)  # prices of a miss tried, in those of all rounds
CHEAPEST, DEAREST = 3.0, 11.0  # prices of a round tried, as powers of two
HALVINGS = 7


@dataclass(frozen=True, eq=False)
class OptimalPath:
    """Rules for a sensing run, and what they are predicted to do on the paths of the design."""

    rules: Rule | tuple[Rule, ...]
    """One rule for all rounds, or one a round."""
    round_cost: float
    miss_cost: float
    means: PathMeans
    """As the model predicts them, on the paths that the rules were designed for."""

    @property
    def each(self) -> tuple[Rule, ...]:
        """The rules, one or as many as rounds."""
        return (self.rules,) if isinstance(self.rules, Rule) else self.rules

    @property
    def cost(self) -> float:
        """Samples and priced rounds of the average path; misses are not in it."""
        return self.means.samples + self.round_cost * self.means.rounds


def optimal_for_path(
    masses: ArrayLike,
    truth: ArrayLike,
    eps: Any,
    n_max: int,
    round_cost: float,
    tau: Any = None,
    each_round: bool = False,
    miss_cost: float | None = None,
    accuracy: float | None = None,
) -> OptimalPath:
    """The cheapest run: mean samples + round_cost * rounds + miss_cost * P(not declared right).

    `masses` has shape (I, T, C), the vote laws of I paths (`VoteLog.laws()`), and `truth` (I,).
    Every rule has OC(tau) <= eps. With an `accuracy` to keep in place of tau, the cheapest of
    many thresholds is taken. A round of measurement costs `round_cost` samples; `miss_cost` is
    that of all rounds when left out.

    >>> paths = [[[0.5, 0.3], [0.9, 0.1]], [[0.4, 0.4], [0.95, 0.05]]]
    >>> run = optimal_for_path(paths, [0, 0], 0.1, 8, round_cost=5, tau=0.6, each_round=True)
    >>> [bool(rule.stop[0]) for rule in run.rules]  # the first round is not worth a look
    [True, False]
    """
    if (tau is None) == (accuracy is None):
        raise BadInput("give either tau, or an accuracy for which a tau is to be found")
    level = float(probability(eps, "eps"))
    model = RunModel(masses, truth, whole(n_max, "n_max"))
    each = price(round_cost, "round_cost")
    miss = each * model.rounds if miss_cost is None else price(miss_cost, "miss_cost")
    prices = Prices(each, miss)
    if tau is not None:
        return _design(PathSearch(model, float(probability(tau, "tau")), level), prices, each_round)
    wanted = float(probability(accuracy, "accuracy"))
    # A threshold whose power of n_max is above eps cannot be certified by n_max votes.
    top = min(0.96, level ** (1 / model.n_max))
    if top <= LOWEST:
        raise BadInput(
            f"n_max = {n_max} votes certify no majority at eps = {eps}; "
            f"take at least {int(np.ceil(np.log(level) / np.log(LOWEST)))}"
        )
    designs = [
        _design(PathSearch(model, threshold, level), prices, each_round)
        for threshold in np.round(np.arange(LOWEST, top, 0.05), 2).tolist()
    ]
    good = [design for design in designs if design.means.accuracy >= wanted]
    if not good:
        best = max((design.means.accuracy for design in designs), default=np.nan)
        raise BadInput(
            f"accuracy = {wanted:g} is out of reach on these paths: the best is {best:.4f}; "
            "ask for less, or sense more rounds"
        )
    return min(good, key=lambda design: design.cost)


def optimal_like(
    rule: Rule,
    masses: ArrayLike,
    truth: ArrayLike,
    tau: Any,
    eps: Any,
    each_round: bool = False,
    more_rounds: float = 0.014,
    less_accuracy: float = 0.002,
) -> OptimalPath:
    """The fewest samples with about the rounds and the accuracy of `rule`, at its certificate.

    The prices of a round and of a miss are searched for: rounds may be `more_rounds` of the
    rule's more, and accuracy `less_accuracy` less, as predicted on these paths.
    """
    model = RunModel(masses, truth, rule.n_max)
    search = PathSearch(model, float(probability(tau, "tau")), float(probability(eps, "eps")))
    base = model.follow([rule] * model.rounds).means
    most, least = base.rounds * (1 + more_rounds), base.accuracy - less_accuracy
    best: OptimalPath | None = None
    for factor in MISSES:
        low, high = CHEAPEST, DEAREST
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            prices = Prices(2**middle, factor * 2**middle * model.rounds)
            designs = _designs(search, prices, each_round, best)
            low, high = (middle, high) if designs[0].means.rounds > most else (low, middle)
            for design in designs:
                fine = design.means.rounds <= most and design.means.accuracy >= least
                if fine and (best is None or design.means.samples < best.means.samples):
                    best = design
    if best is None:
        raise BadInput(
            f"no rule certified at tau = {tau} keeps the rounds and the accuracy of "
            f"{rule.name!r} on these paths; allow more rounds or less accuracy"
        )
    return best


def _design(search: PathSearch, prices: Prices, each_round: bool) -> OptimalPath:
    model = search.model
    n = np.arange(model.n_max + 1)
    given = {"tau": search.tau, "eps": search.eps, "n_max": model.n_max}
    never = Rule(n + 1, n + 1, "optimal for path", given)  # draws not one vote
    idle = (never,) * model.rounds if each_round else never
    return _designs(search, prices, each_round, None, [idle])[0]


def _designs(
    search: PathSearch,
    prices: Prices,
    each_round: bool,
    near: OptimalPath | None,
    also: Sequence[Rule | tuple[Rule, ...]] = (),
) -> list[OptimalPath]:
    """The best rules found at these prices and `also`, the cheapest first; some close to `near`."""
    rounds = search.model.rounds
    ones = search.one_rules(prices, near.each if near and not each_round else ())
    found: list[Rule | tuple[Rule, ...]] = list(ones)
    if each_round:
        starts = [[ones[0]] * rounds, *([list(near.each)] if near else [])]
        found = [tuple(search.rule_a_round(start, prices)) for start in starts]
    found += also
    followed = {
        rules: search.model.follow([rules] * rounds if isinstance(rules, Rule) else rules)
        for rules in found
    }
    found = sorted(followed, key=lambda rules: followed[rules].total(prices))
    return [OptimalPath(rules, prices.round, prices.miss, followed[rules].means) for rules in found]
