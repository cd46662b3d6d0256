"""Every number that the paper prints about rules, in its text and its appendix."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.bounds import information_bound, leader_bound
from suffice.calibrate import calibrate_alpha, certified_tau, match_fixed, match_sequential
from suffice.lattice import expected_samples, oc
from suffice.rule import Rule
from suffice.rules import one_look, plug_in, sequential

TAU, Q_ALT = 0.70, 0.85
SEQUENTIAL = sequential(TAU, alpha=0.0091, n_max=97)


@pytest.mark.parametrize(
    ("samples", "printed"), [(8, 0.55), (16, 0.45), (32, 0.50), (64, 0.54), (1024, 0.51)]
)
def test_proposition_1_plug_in_declares_half_the_time(samples: int, printed: float) -> None:
    assert round(oc(plug_in(TAU, samples), TAU), 2) == printed


def test_running_example() -> None:
    assert plug_in(TAU, 32).parameters["r"] == 23
    rule = one_look(TAU, 0.05, 32)
    assert rule.parameters["r"] == 28
    assert round(oc(rule, TAU), 4) == 0.0189


def test_curtailment_of_the_running_example() -> None:
    rule = one_look(TAU, 0.05, 32)
    assert rule.declare[28] == 28  # the 28th vote before the pool is complete
    assert rule.stop[5] == 1  # five votes for other classes leave 27 at most
    assert rule.stop[31] == 27


def test_sequential_design() -> None:
    assert calibrate_alpha(TAU, 0.05, 97).alpha == 0.0091
    assert round(oc(SEQUENTIAL, TAU), 4) == 0.0495
    assert round(oc(SEQUENTIAL, Q_ALT), 4) == 0.9248


def test_sequential_cost_with_and_without_abandonment() -> None:
    assert round(expected_samples(SEQUENTIAL, Q_ALT), 2) == 43.94
    whole = sequential(TAU, alpha=0.0091, n_max=97, curtailed=False)
    assert round(expected_samples(whole, Q_ALT), 2) == 44.98  # the paper's 45
    assert oc(whole, Q_ALT) == pytest.approx(oc(SEQUENTIAL, Q_ALT), abs=1e-14)
    assert round(expected_samples(whole, TAU), 1) == 94.1


def test_sequential_costs_below_the_alternative() -> None:
    np.testing.assert_allclose(
        expected_samples(SEQUENTIAL, [0.30, 0.50, 0.70]), [27.1, 38.0, 61.1], atol=0.05
    )


def test_information_bound() -> None:
    bound = information_bound(TAU, Q_ALT, *oc(SEQUENTIAL, [TAU, Q_ALT]))
    assert round(bound, 1) == 41.2
    assert round(information_bound(TAU, Q_ALT, 0.0495, 0.9248), 1) == 41.2


def test_matched_fixed_pool_strictly() -> None:
    rule = match_fixed(SEQUENTIAL, TAU, Q_ALT)
    assert (rule.parameters["samples"], rule.parameters["r"]) == (73, 58)
    assert round(expected_samples(rule, Q_ALT), 1) == 67.5


def test_matched_fixed_pool_as_the_paper_has_it() -> None:
    rule = match_fixed(SEQUENTIAL, TAU, Q_ALT, tolerance=0.02)
    assert (rule.parameters["samples"], rule.parameters["r"]) == (69, 55)
    assert round(oc(rule, TAU), 3) == 0.048
    assert round(oc(rule, Q_ALT), 3) == 0.915
    assert round(expected_samples(rule, Q_ALT), 1) == 63.9  # the paper's 64


def family(tau: float) -> tuple[float, float, Rule, Rule]:
    """Costs of the fixed pool of 32 and of the sequential rule that matches it at its power .90."""
    fixed = one_look(tau, 0.05, 32)
    q_alt = certified_tau(fixed, 0.90)
    matched = match_sequential(fixed, tau, q_alt)
    return expected_samples(fixed, q_alt), expected_samples(matched, q_alt), fixed, matched


@pytest.mark.parametrize(
    ("tau", "r", "curtailed", "cost"), [(0.7, 28, 29.6, 23.8), (0.9, 32, 30.4, 38.8)]
)
def test_pools_of_32(tau: float, r: int, curtailed: float, cost: float) -> None:
    fixed_cost, sequential_cost, fixed, _ = family(tau)
    assert fixed.parameters["r"] == r
    assert round(fixed_cost, 1) == curtailed
    assert round(sequential_cost, 1) == cost


def test_the_order_changes_first_at_unanimity() -> None:
    taus = [i / 100 for i in range(60, 91)]
    changed = [tau for tau in taus if np.greater(*family(tau)[1::-1])]
    assert changed[0] == 0.87
    unanimous = [tau for tau in taus if one_look(tau, 0.05, 32).parameters["r"] == 32]
    assert unanimous[0] == 0.87


@pytest.mark.parametrize("q", [0.9, 0.99])
def test_unanimity_costs_a_geometric_sum(q: float) -> None:
    assert expected_samples(one_look(0.9, 0.05, 32), q) == pytest.approx((1 - q**32) / (1 - q))


@pytest.mark.parametrize(
    ("tau", "look", "r", "printed"),
    [(0.90, 0.75, 29, 0.775), (0.80, 0.65, 26, 0.663), (0.70, 0.55, 23, 0.561)],
)
def test_table_1_fixed_pools(tau: float, look: float, r: int, printed: float) -> None:
    rule = plug_in(tau, 32)
    assert rule.parameters["r"] == r
    assert round(certified_tau(rule, 0.05), 3) == printed
    assert one_look(look, 0.05, 32) == rule


@pytest.mark.parametrize(
    ("tau", "n_max", "printed"),
    [(0.78, 32, 0.78), (0.78, 128, 0.78), (0.65, 32, 0.65), (0.55, 32, 0.55)],
)
def test_table_1_sequential(tau: float, n_max: int, printed: float) -> None:
    rule = sequential(tau, 0.05, n_max=n_max)
    assert round(certified_tau(rule, 0.05), 2) == printed


@pytest.mark.parametrize(
    "rule", [SEQUENTIAL, one_look(TAU, 0.05, 32), sequential(0.78, 0.05, n_max=128)]
)
@pytest.mark.parametrize("leader", [0.70, 0.78, 0.85])
def test_leader_bound_is_essentially_one(rule: Rule, leader: float) -> None:
    assert leader_bound(rule, leader) > 0.99999


def two_class_law(rule: Rule, p: float) -> tuple[float, float]:
    """P(declared) of a leader with mass p and of one rival with all the rest, jointly."""
    open_states, leader, rival = {0: 1.0}, 0.0, 0.0
    for n in range(1, rule.n_max + 1):
        after: dict[int, float] = {}
        for k, mass in open_states.items():
            after[k + 1] = after.get(k + 1, 0.0) + p * mass
            after[k] = after.get(k, 0.0) + (1 - p) * mass
        leader += sum(mass for k, mass in after.items() if k >= rule.declare[n])
        rival += sum(mass for k, mass in after.items() if n - k >= rule.declare[n])
        open_states = {k: m for k, m in after.items() if max(k, n - k) < rule.declare[n]}
    return leader, rival


def test_the_papers_leader_bound_fails_for_first_crossings() -> None:
    rule = sequential(0.5, alpha=0.05, n_max=100, curtailed=False)
    leader, rival = two_class_law(rule, 0.55)
    exact = leader / (leader + rival)
    alone = oc(rule, [0.55, 0.45])
    assert round(exact, 4) == 0.8132
    assert round(alone[0] / alone.sum(), 4) == 0.8164
    assert leader_bound(rule, 0.55) <= exact


def test_the_sum_of_the_classes_is_not_the_pool_for_first_crossings() -> None:
    rule = sequential(0.5, alpha=0.05, n_max=32)
    assert round(sum(two_class_law(rule, 0.5)), 4) == 0.3938
    assert round(2 * oc(rule, 0.5), 4) == 0.3956
