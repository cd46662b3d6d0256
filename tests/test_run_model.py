"""The model of a run: against the exact law of the pool, and rule by rule against itself."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest

from suffice.boundary_search import still_open, totals_of
from suffice.lattice import oc
from suffice.leading import Leads
from suffice.line_rules import line_rules
from suffice.path import along
from suffice.path_search import PathSearch
from suffice.pool_law import pool_laws
from suffice.rule import Rule
from suffice.rules import one_look, sequential
from suffice.run_model import Prices, RunModel

PATHS = np.array(
    [
        [[0.5, 0.3, 0.2], [0.7, 0.2, 0.1], [0.9, 0.1, 0.0]],
        [[0.3, 0.3, 0.4], [0.2, 0.5, 0.2], [0.2, 0.8, 0.0]],
        [[0.4, 0.4, 0.1], [0.6, 0.3, 0.1], [0.6, 0.4, 0.0]],
    ]
)
TRUTH = np.array([0, 1, 0])
PRICES = Prices(round=7.0, miss=30.0)
RULES = [sequential(0.6, 0.1, n_max=12), one_look(0.6, 0.1, 12), sequential(0.7, 0.2, n_max=12)]


def leading(law: list[float], n: int) -> np.ndarray:
    """P(the class with the most votes has k of n), by every count of three classes."""
    law = [*law, 1 - sum(law)]
    found = np.zeros(n + 1)
    for a, b, c in product(range(n + 1), repeat=3):
        rest = n - a - b - c
        if rest >= 0:
            ways = comb(n, a) * comb(n - a, b) * comb(n - a - b, c)
            found[max(a, b, c)] += ways * np.prod(np.power(law, [a, b, c, rest]))
    return found


def test_leading_counts_follow_their_law() -> None:
    laws = np.array([[0.5, 0.3, 0.2], [0.4, 0.3, 0.1]])
    tables = Leads.of(laws, 6).tables(np.array([0.25, 0.75]))
    for n, table in enumerate(tables):
        exact = 0.25 * leading([0.5, 0.3, 0.2], n) + 0.75 * leading([0.4, 0.3, 0.1], n)
        assert table == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("rule", RULES)
def test_the_leading_count_tells_what_a_pool_costs(rule: Rule) -> None:
    laws = PATHS.reshape(-1, 3)
    got = Leads.of(laws, rule.n_max).samples(still_open(rule.declare, rule.stop))
    assert got == pytest.approx(pool_laws(rule, laws).expected_samples, rel=0.02)


def test_a_followed_run_is_the_papers_but_for_what_pools_cost() -> None:
    means = RunModel(PATHS, TRUTH, 12).follow(RULES).means
    paper, exact = (along(RULES, PATHS, TRUTH, way).mean for way in (False, True))
    assert means.rounds == pytest.approx(paper.rounds, abs=1e-12)
    assert means.declared == pytest.approx(paper.declared, abs=1e-12)
    assert means.accuracy == pytest.approx(paper.accuracy, abs=1e-12)
    assert means.samples == pytest.approx(exact.samples, rel=0.01)
    assert abs(means.samples - exact.samples) < abs(paper.samples - exact.samples)


@pytest.mark.parametrize("t", range(3))
def test_the_problem_of_a_round_prices_every_rule_as_the_run_does(t: int) -> None:
    model = RunModel(PATHS, TRUTH, 12)
    followed = model.follow(RULES)
    problem = model.problem([t], followed, PRICES, tau=0.6, eps=0.1)
    here = totals_of(problem, RULES[t].declare, RULES[t].stop)
    for other in line_rules(0.6, 0.1, 12)[::5]:
        changed = [*RULES[:t], other, *RULES[t + 1 :]]
        there = totals_of(problem, other.declare, other.stop)
        more = model.follow(changed).total(PRICES) - followed.total(PRICES)
        assert there[0] - here[0] == pytest.approx(more, abs=1e-9)
        assert there[1] == pytest.approx(oc(other, 0.6), abs=1e-12)


def test_a_run_costs_its_samples_rounds_and_misses() -> None:
    followed = RunModel(PATHS, TRUTH, 12).follow(RULES)
    means = followed.means
    missed = 1 - means.declared * means.accuracy
    assert followed.total(PRICES) == pytest.approx(
        means.samples + PRICES.round * means.rounds + PRICES.miss * missed
    )


def test_line_rules_are_many_and_certified() -> None:
    rules = line_rules(0.7, 0.05, 24)
    assert len(set(rules)) == len(rules) > 20
    assert max(oc(rule, 0.7) for rule in rules) <= 0.05


def test_the_search_only_ever_gains() -> None:
    search = PathSearch(RunModel(PATHS, TRUTH, 12), tau=0.6, eps=0.1)
    ones = search.one_rules(PRICES)
    one = search.total([ones[0]] * 3, PRICES)
    starts = [sequential(0.6, 0.1, n_max=12), *line_rules(0.6, 0.1, 12)]
    assert one <= min(search.total([rule] * 3, PRICES) for rule in starts)
    each = search.rule_a_round([ones[0]] * 3, PRICES)
    assert search.total(each, PRICES) <= one
    assert max(oc(rule, 0.6) for rule in (*ones, *each)) <= 0.1
