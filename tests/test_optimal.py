"""The optimal rules against all pairs of monotone boundaries, and the issue's figures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from suffice.boundary_search import totals_of
from suffice.bounds import information_bound
from suffice.errors import BadInput, CalibrationInfeasible
from suffice.lattice import expected_samples, law, oc
from suffice.optimal import optimal
from suffice.priced import Problem, solve
from suffice.rule import Rule


def all_totals(n_max, tau, q_alt, weights):
    """E_w[N], OC(tau), 1 - OC(q_alt) of every pair of monotone boundaries, by plain recursion."""
    masses = [tau, q_alt, *weights]
    shares = np.array(list(weights.values()))
    found = []

    def visit(n, low, high, chances, totals):
        """`chances` maps each open count to its probability under each mass."""
        if not chances:
            found.append(totals)
            return
        drawn = totals + np.array([sum(p[2:] @ shares for p in chances.values()), 0, 0])
        after = {}
        for k, p in chances.items():
            for hit in (0, 1):
                moved = p * [q if hit else 1 - q for q in masses]
                after[k + hit] = after.get(k + hit, 0) + moved
        for up in (high, high + 1):  # counts above `up` are declared
            for down in range(low, up + 2):  # counts below `down` are out
                if n + 1 == n_max and down <= up:
                    continue
                size = sum(p[0] for k, p in after.items() if k > up)
                miss = sum(p[1] for k, p in after.items() if k <= up and k < down)
                still = {k: p for k, p in after.items() if down <= k <= up}
                visit(n + 1, down, up, still, drawn + np.array([0, size, miss]))

    start = np.ones(len(masses))
    visit(0, 0, 0, {0: start}, np.zeros(3))
    found.append(np.array([0.0, 0.0, 1.0]))  # the rule that never looks
    return np.array(found)


def check(n_max, tau, q_alt, eps, power, weights):
    totals = all_totals(n_max, tau, q_alt, weights)
    hull = linprog(
        totals[:, 0],
        A_ub=totals[:, 1:].T,
        b_ub=[eps, 1 - power],
        A_eq=np.ones((1, len(totals))),
        b_eq=[1.0],
        method="highs",
    )
    fits = (totals[:, 1] <= eps + 1e-12) & (totals[:, 2] <= 1 - power + 1e-12)
    if hull.status == 2 or not fits.any():
        with pytest.raises(CalibrationInfeasible):
            optimal(tau, eps, q_alt, power, n_max, weights)
        return
    result = optimal(tau, eps, q_alt, power, n_max, weights)
    assert result.lower_bound == pytest.approx(hull.fun, rel=1e-6, abs=1e-7)
    assert result.expected_samples == pytest.approx(totals[fits, 0].min(), rel=1e-9)
    assert result.proven
    assert result.size <= eps + 1e-12
    assert result.power >= power - 1e-12
    shares = np.array(list(weights.values()))
    assert result.expected_samples == pytest.approx(
        shares @ expected_samples(result.rule, list(weights))
    )


@settings(max_examples=25, deadline=None)
@given(
    st.integers(2, 6),
    st.sampled_from([0.5, 0.6, 0.7, 0.35]),
    st.sampled_from([0.05, 0.15]),
    st.sampled_from([0.05, 0.1, 0.2, 0.3]),
    st.sampled_from([0.3, 0.5, 0.7]),
    st.sampled_from([{0.85: 1.0}, {0.85: 0.5, 0.6: 0.5}, {0.2: 0.3, 0.5: 0.3, 0.9: 0.4}]),
)
def test_small_rules_equal_the_best_of_all_pairs(n_max, tau, gap, eps, power, weights):
    check(n_max, tau, tau + gap + 0.1, eps, power, weights)


def test_eight_votes_equal_the_best_of_all_pairs():
    check(8, 0.5, 0.8, 0.2, 0.7, {0.8: 0.5, 0.5: 0.5})


@pytest.mark.parametrize(
    ("n_max", "weights", "limits"),
    [
        (97, None, {0.85: 42.4, 0.70: 36.9, 0.50: 14.0, 0.30: 8.3}),
        (97, [(0.85, 0.5), (0.70, 0.5)], {0.85: 42.7, 0.70: 33.7}),
        (128, {0.85: 1.0}, {0.85: 41.6}),
    ],
)
def test_figures_of_the_issue(n_max, weights, limits):
    result = optimal(0.70, 0.0495, 0.85, 0.9248, n_max, weights)
    size, power = oc(result.rule, [0.70, 0.85])
    assert size <= 0.0495
    assert power >= 0.9248
    for q, limit in limits.items():
        assert expected_samples(result.rule, q) <= limit
    assert 0 <= result.gap < 0.01
    if weights is None:
        bound = information_bound(0.70, 0.85, 0.0495, 0.9248)
        assert bound < result.lower_bound <= result.expected_samples


def test_looks_at_every_eighth_vote():
    result = optimal(0.70, 0.05, 0.85, 0.90, 96, every=8)
    looks = np.flatnonzero(result.rule.declare <= np.arange(97))
    assert set(looks % 8) == {0}
    assert result.size <= 0.05
    assert result.power >= 0.90
    assert result.gap < 0.02
    assert result.expected_samples > optimal(0.70, 0.05, 0.85, 0.90, 96).expected_samples


def test_looks_in_pairs_are_proven_at_small_caps():
    result = optimal(0.5, 0.2, 0.8, 0.6, 8, every=2)
    assert result.proven
    assert result.lower_bound <= result.expected_samples


def test_weights_on_both_sides_are_projected_and_reported():
    result = optimal(0.6, 0.05, 0.8, 0.8, 60, {0.3: 1.0})
    assert result.size <= 0.05
    assert result.power >= 0.8
    assert result.lower_bound <= result.expected_samples


def test_power_out_of_reach_says_what_would_do():
    with pytest.raises(CalibrationInfeasible, match="n_max = 73 would do") as caught:
        optimal(0.70, 0.0495, 0.85, 0.9248, 40)
    assert caught.value.best["n_max"] == 73
    assert 0.5 < caught.value.best["power"] < 0.9248
    assert optimal(0.70, 0.0495, 0.85, 0.9248, 73).power >= 0.9248


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({0.85: 0.5}, "sum to 0.5"),
        ([0.85, 0.7, 0.5], "shape"),
        ([(0.85, -1.0), (0.7, 2.0)], "the weight -1"),
        ([(1.5, 1.0)], "mass 1.5"),
        ("many", "numbers"),
        ({0.85: float("nan")}, "the weight nan"),
    ],
)
def test_weights_that_are_no_law_are_refused(weights, message):
    with pytest.raises(BadInput, match=message):
        optimal(0.7, 0.05, 0.85, 0.9, 32, weights)


@pytest.mark.parametrize(
    ("tau", "eps", "q_alt", "power", "n_max", "known"),
    [
        (0.5, 0.451, 0.55, 0.376, 3, Rule([1, 2, 2, 2], [0, 1, 1, 2], "known")),
        (
            *(0.6, 0.05, 0.7, 0.16, 12),
            Rule(
                [1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 10, 10, 10],
                [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 10],
                "known",
            ),
        ),
    ],
)
def test_what_only_few_rules_can_do_is_found(tau, eps, q_alt, power, n_max, known):
    """No vertex of the dual keeps both constraints here, so that all rules are gone through."""
    assert oc(known, tau) <= eps
    assert oc(known, q_alt) >= power
    found = optimal(tau, eps, q_alt, power, n_max)
    assert oc(found.rule, tau) <= eps
    assert oc(found.rule, q_alt) >= power
    assert found.expected_samples <= expected_samples(known, q_alt)


def test_a_size_above_a_half_may_be_out_of_reach_too():
    with pytest.raises(CalibrationInfeasible, match="cannot be had"):
        optimal(0.5, 0.597, 0.55, 0.599, 1)


def test_alternatives_must_lie_above_tau():
    with pytest.raises(BadInput, match="not above tau"):
        optimal(0.7, 0.05, 0.7, 0.9, 32)


def test_one_pass_forwards_gives_the_totals_of_a_rule() -> None:
    problem = Problem.of(0.6, 0.8, 0.1, 0.7, 12, np.array([0.5, 0.9]), np.array([0.4, 0.6]), 1)
    vertex = solve(problem, np.array([20.0, 15.0]))
    totals = totals_of(problem, vertex.declare, vertex.stop)
    rule = Rule(vertex.declare, vertex.stop, "vertex")
    at = law(rule, [0.6, 0.8, 0.5, 0.9])
    assert totals[0] == pytest.approx(at.expected_samples[2:] @ [0.4, 0.6])
    assert totals[1:] == pytest.approx([at.declare_probability[0], 1 - at.declare_probability[1]])
