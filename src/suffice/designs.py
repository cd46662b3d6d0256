"""The grid of designs that `plan` chooses from: every maker over thresholds and caps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from suffice.calibrate import certified_tau
from suffice.errors import BadInput
from suffice.lattice import oc
from suffice.optimal import optimal
from suffice.path import along
from suffice.path_search import PathSearch
from suffice.rule import Rule
from suffice.rules import one_look, plug_in, sequential, sprt
from suffice.run_model import Prices, RunModel
from suffice.votes import VoteLog

__all__ = ["Design", "designs"]

TAUS = tuple(round(0.50 + 0.025 * step, 3) for step in range(19))
COARSE = TAUS[::2]  # for the makers that search
SEARCHED = 64  # the largest cap of Wald's test, whose search takes seconds beyond
ROUNDWISE = 32  # the largest cap of rules made for a log's paths
MAJORITY = 0.5
BINS = 10
Made = tuple[str, Rule | tuple[Rule, ...]]


@dataclass(frozen=True, eq=False)
class Design:
    """A rule, or one a round, and what it certifies."""

    family: str
    rules: Rule | tuple[Rule, ...]
    certified_tau: float
    """In any round a class of this mass is declared with probability eps at most."""

    @property
    def each(self) -> tuple[Rule, ...]:
        """The rules, one or as many as rounds."""
        return (self.rules,) if isinstance(self.rules, Rule) else self.rules


def designs(
    log: VoteLog, round_price: float | None, eps: float, tell: Callable[[int, int], None]
) -> list[Design]:
    """All designs on the grid that certify a majority at level eps; `tell` hears done and all.

    The laws over which `optimal` minimises, the leaders' masses, come from the log; and with the
    price of a round in samples, rules made for its paths.
    """
    caps = [cap for cap in _caps(log.draws) if cap >= log.prefix]
    makers: list[Callable[[], Iterator[Made]]] = []
    for cap in caps:
        makers += [partial(_plain, tau, eps, cap) for tau in TAUS]
        makers += [partial(_searched, log, tau, eps, cap) for tau in COARSE]
    low = [cap for cap in caps if cap <= ROUNDWISE]
    if round_price is not None:
        masses = log.laws(max(log.classes, int(log.truth.max()) + 1))
        prices = Prices(round_price, round_price * log.rounds)
        for cap in low:
            model, by_round = RunModel(masses, log.truth, cap), cap == low[-1]
            makers += [partial(_for_paths, model, tau, eps, prices, by_round) for tau in COARSE]
    found: dict[Made, Design] = {}
    for done, make in enumerate(makers):
        tell(done, len(makers))
        try:
            for family, rules in make():
                each = (rules,) if isinstance(rules, Rule) else rules
                if (family, rules) in found or min(rule.n_max for rule in each) < log.prefix:
                    continue
                certified = min(certified_tau(rule, eps) for rule in set(each))
                if certified >= MAJORITY:
                    found[family, rules] = Design(family, rules, certified)
        except BadInput:
            continue  # a pool of this cap cannot certify this threshold, or not a majority
    tell(len(makers), len(makers))
    if not found:
        raise BadInput(
            f"no rule of {log.draws} votes certifies a majority at eps = {eps}; "
            "log more draws a pool, or raise eps"
        )
    return list(found.values())


def _caps(draws: int) -> list[int]:
    """8, 16, 32, ... and the draws of the log."""
    caps = [8 * 2**power for power in range(8) if 8 * 2**power < draws]
    return [*caps, draws]


def _plain(tau: float, eps: float, cap: int) -> Iterator[Made]:
    """The makers that need no search."""
    yield "plug-in full", plug_in(tau, cap, curtailed=False)
    yield "plug-in", plug_in(tau, cap)
    yield "sequential", sequential(tau, eps, n_max=cap)
    yield "one-look", one_look(tau, eps, cap)


def _searched(log: VoteLog, tau: float, eps: float, cap: int) -> Iterator[Made]:
    """Rules with the size and the power of the sequential rule, halfway from tau to one."""
    base = sequential(tau, eps, n_max=cap)
    q_alt = (1 + tau) / 2
    power = float(oc(base, q_alt)) * (1 - 1e-9)
    if power <= eps:
        return
    yield "optimal", optimal(tau, eps, q_alt, power, cap, weights=_leaders(log, base)).rule
    if cap <= SEARCHED:
        yield "sprt", sprt(tau, q_alt, eps, power, cap)


def _for_paths(
    model: RunModel, tau: float, eps: float, prices: Prices, by_round: bool
) -> Iterator[Made]:
    """The cheapest run along the paths of the log: one rule for all rounds, and one a round."""
    search = PathSearch(model, tau, eps)
    one = search.one_rules(prices)[0]
    yield "optimal, for paths", one
    if by_round:
        yield "optimal, by round", tuple(search.rule_a_round([one] * model.rounds, prices))


def _leaders(log: VoteLog, rule: Rule) -> Sequence[tuple[float, float]]:
    """A histogram of the leaders' masses in the rounds that the rule reaches."""
    laws = log.laws()
    leaders = laws.max(axis=2)
    reach = along(rule, laws, np.zeros(len(laws), dtype=np.int64)).reach
    edges = np.linspace(0.0, 1.0, BINS + 1)[1:-1]
    where = np.digitize(leaders.ravel(), edges)
    weight = np.bincount(where, reach.ravel(), minlength=BINS)
    mass = np.bincount(where, (reach * leaders).ravel(), minlength=BINS)
    some = weight > 0
    shares = weight[some] / weight.sum()
    return list(zip((mass[some] / weight[some]).tolist(), shares.tolist(), strict=True))
