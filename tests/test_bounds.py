"""The bounds hold, and are tight where they are said to be."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import play_alone, pool_law, sequences
from strategies import rules
from suffice.bounds import information_bound, leader_bound, two_can_cross
from suffice.errors import BadInput
from suffice.lattice import expected_samples, oc
from suffice.rule import Rule
from suffice.rules import one_look, sequential, sprt


def test_information_bound_by_its_formula() -> None:
    def divergence(x: float, y: float) -> float:
        return x * math.log(x / y) + (1 - x) * math.log((1 - x) / (1 - y))

    bound = information_bound(0.6, 0.8, 0.05, 0.9)
    assert bound == pytest.approx(divergence(0.9, 0.05) / divergence(0.8, 0.6))


@pytest.mark.parametrize(
    "rule",
    [
        one_look(0.7, 0.05, 32),
        sequential(0.7, 0.05, n_max=60),
        sequential(0.55, 0.1, n_max=40, every=5),
        sprt(0.7, 0.85, 0.05, 0.8, 60),
    ],
    ids=lambda rule: str(rule.name),
)
@pytest.mark.parametrize("q", [0.85, 0.95])
def test_no_rule_beats_the_information_bound(rule: Rule, q: float) -> None:
    tau = rule.parameters["tau"]
    size, power = oc(rule, [tau, q])
    assert expected_samples(rule, q) >= information_bound(tau, q, size, power)


@settings(max_examples=80, deadline=None)
@given(rules(max_n=9))
def test_two_can_cross_equals_enumeration(rule: Rule) -> None:
    both = any(
        play_alone(rule, [vote == "a" for vote in votes])[0]
        and play_alone(rule, [vote == "b" for vote in votes])[0]
        for votes in sequences(rule.n_max, ["a", "b"])
    )
    assert two_can_cross(rule) == both


@settings(max_examples=40, deadline=None)
@given(rules(max_n=5), st.integers(1, 9), st.integers(0, 9), st.integers(0, 3))
def test_leader_bound_holds(rule: Rule, leader: int, rival: int, invalid: int) -> None:
    total = leader + rival + 1 + invalid
    pi = [leader / total, rival / total, 1 / total]
    declared, _, _ = pool_law(rule, pi)
    if oc(rule, pi[0]) < 1e-9:
        return
    assert declared[0] / sum(declared) >= leader_bound(rule, pi[0]) - 1e-9


@pytest.mark.parametrize("p", [0.55, 0.7, 0.9])
def test_paper_form_is_tight_with_one_rival(p: float) -> None:
    rule = one_look(0.5, 0.3, 7)
    declared, _, _ = pool_law(rule, [p, 1 - p])
    assert declared[0] / sum(declared) == pytest.approx(leader_bound(rule, p))


def test_fixed_pools_take_the_papers_form_and_first_crossings_the_other() -> None:
    assert not two_can_cross(one_look(0.5, 0.05, 32))
    assert not two_can_cross(one_look(0.5, 0.05, 32, curtailed=False))
    first_crossing = sequential(0.5, alpha=0.05, n_max=100)
    assert two_can_cross(first_crossing)
    leader, rivals = oc(first_crossing, [0.55, 0.45])
    assert leader_bound(first_crossing, 0.55) == pytest.approx(1 - rivals / leader)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.7, 0.7, 0.05, 0.9), "q = 0.7 is not above tau = 0.7"),
        ((0.7, 0.6, 0.05, 0.9), "q = 0.6 is not above tau = 0.7"),
        ((1.7, 0.6, 0.05, 0.9), "tau = 1.7 is outside"),
        ((0.7, 0.8, 0.05, 0.05), "power = 0.05 is not above size = 0.05"),
        ((0.7, 0.8, 0, 0.9), "size = 0 is outside"),
        ((0.7, 0.8, 0.05, 1), "power = 1 is outside"),
    ],
)
def test_bad_bounds_are_refused(arguments: tuple[float, ...], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        information_bound(*arguments)


def test_a_leader_that_is_never_declared_is_refused() -> None:
    with pytest.raises(BadInput, match="leader_mass = 0: the rule never declares there"):
        leader_bound(one_look(0.7, 0.05, 32), 0)
