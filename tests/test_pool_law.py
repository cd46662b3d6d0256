"""The law of a whole pool against a walk over all label sequences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from strategies import rules, vote_laws
from suffice.calibrate import calibrate_alpha, sequential_rule
from suffice.errors import BadInput
from suffice.pool_joint import joint_law
from suffice.pool_law import pool_law, pool_laws
from suffice.rule import Rule


def walk(rule, pi):
    """P(declared) and the law of N by walking the tree of label sequences, last label invalid."""
    masses = [*pi, max(1 - sum(pi), 0.0)]
    declared, samples = np.zeros(len(pi)), np.zeros(rule.n_max + 1)

    def visit(n, counts, out, chance):
        for c, k in enumerate(counts):
            if c not in out and k >= rule.declare[n]:
                declared[c] += chance
                samples[n] += chance
                return
        out = out | {c for c, k in enumerate(counts) if k < rule.stop[n]}
        if n == rule.n_max or len(out) == len(counts):
            samples[n] += chance
            return
        for label, mass in enumerate(masses):
            if mass > 0:
                after = [k + (c == label) for c, k in enumerate(counts)]
                visit(n + 1, after, out, chance * mass)

    visit(0, [0] * len(pi), frozenset(), 1.0)
    return declared, samples


def check(rule, pi):
    declared, samples = walk(rule, pi)
    expected = samples @ np.arange(samples.size)
    exact = pool_law(rule, pi)
    assert exact.method == "exact"
    np.testing.assert_allclose(exact.declared, declared, atol=1e-10)
    np.testing.assert_allclose(exact.samples, samples, atol=1e-10)
    np.testing.assert_allclose(exact.undecided, 1 - declared.sum(), atol=1e-10)
    fast = pool_laws(rule, [pi])
    assert abs(fast.expected_samples[0] - expected) <= fast.error[0] + 1e-10
    assert abs(fast.declared[0] - declared).max() <= fast.declared_error[0] + 1e-10


@settings(max_examples=8, deadline=None)
@given(rules(max_n=4), vote_laws())
def test_the_walk_agrees_with_the_plain_oracle(rule, pi):
    declared, samples = walk(rule, pi)
    want_declared, _, want_samples = oracles.pool_law(rule, pi)
    np.testing.assert_allclose(declared, want_declared, atol=1e-10)
    np.testing.assert_allclose(samples, want_samples, atol=1e-10)


@settings(max_examples=60, deadline=None)
@given(rules(max_n=7), st.integers(1, 3).flatmap(vote_laws))
def test_equals_enumeration_for_random_rules(rule, pi):
    check(rule, pi)


@settings(max_examples=12, deadline=None)
@given(rules(max_n=10, min_n=9), st.integers(1, 8), st.integers(1, 8), st.integers(1, 8))
def test_equals_enumeration_for_three_classes_and_ten_votes(rule, a, b, c):
    total = a + b + c
    check(rule, [a / total, b / total, c / total])


def curtailed(samples, r):
    n = np.arange(samples + 1)
    return Rule(np.minimum(r, n + 1), np.maximum(r - samples + n, 0), "curtailed")


def test_curtailed_pool_of_the_notes():
    result = pool_law(curtailed(32, 18), [0.45, 0.45, 0.1])
    assert result.expected_samples == pytest.approx(29.28, abs=0.005)
    assert result.method == "exact"


def test_curtailed_pool_is_exact_for_many_classes():
    pi = [0.3, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05, 0.04, 0.03, 0.03]
    result = pool_law(curtailed(32, 18), pi)
    assert result.method == "exact"
    # An independent route: the pool is open while 18 - (32-n) <= max k < 18, and merging the
    # last seven classes into invalid votes can only close it.
    merged = pool_law(curtailed(32, 18), pi[:3])
    assert merged.expected_samples <= result.expected_samples
    assert result.expected_samples - merged.expected_samples < 1.5
    np.testing.assert_allclose(merged.declared, result.declared[:3], atol=1e-10)


def test_sequential_pool_of_the_notes():
    rule = sequential_rule(0.55, calibrate_alpha(0.55, 0.05, 32).alpha, 32)
    result = pool_law(rule, [0.5, 0.5])
    assert result.expected_samples == pytest.approx(20.79, rel=0.01)
    assert pool_law(rule, [0.5]).expected_samples == pytest.approx(17.72, rel=0.01)


def futility(n_max, low, high):
    n = np.arange(n_max + 1)
    declare = np.minimum(np.ceil(0.6 * n + high).astype(int), n + 1)
    stop = np.clip(np.ceil(0.6 * n - low).astype(int), 0, declare)
    stop[-1] = declare[-1]
    return Rule(declare, stop, "lines")


def test_many_classes_lie_within_the_stated_error_of_the_joint_recursion():
    rule = futility(24, 1.5, 3)
    pis = np.array([[0.3, 0.25, 0.25, 0.2], [0.25] * 4, [0.6, 0.2, 0.1, 0.1], [0.4, 0.3, 0.2, 0.0]])
    fast = pool_laws(rule, pis)
    for row, pi in enumerate(pis):
        declared, samples = joint_law(rule, pi)
        expected = samples @ np.arange(samples.size)
        assert abs(fast.expected_samples[row] - expected) <= fast.error[row] + 1e-12
        assert fast.expected_samples[row] == pytest.approx(expected, rel=0.005)
        np.testing.assert_allclose(fast.declared[row], declared, atol=1e-7)


def test_a_law_of_ten_classes_states_its_error_and_agrees_with_simulation():
    rule, pi = futility(32, 1.5, 3), np.full(10, 0.1)
    result = pool_law(rule, pi)
    assert result.method == "bounded"
    assert 0 < result.error < 0.02 * result.expected_samples
    rng = np.random.default_rng(5)
    pools = 20_000
    votes = rng.integers(0, 10, size=(pools, rule.n_max))
    counts, out = np.zeros((2, pools, 10), dtype=int)
    length = np.full(pools, rule.n_max)
    going = np.ones(pools, dtype=bool)
    for n in range(rule.n_max + 1):
        if n:
            counts[np.arange(pools), votes[:, n - 1]] += 1
        crossed = ((counts >= rule.declare[n]) & (out == 0)).any(axis=1)
        out |= counts < rule.stop[n]
        ends = going & (crossed | out.all(axis=1))
        length[ends] = n
        going &= ~ends
    noise = 4 * length.std() / np.sqrt(pools)
    assert abs(length.mean() - result.expected_samples) < result.error + noise


def test_rules_that_declare_minorities_state_what_three_crossings_may_cost():
    rule = Rule([1, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5], [0] * 11, "a third")
    pis = [[0.3, 0.25, 0.2, 0.15, 0.1]]
    fast = pool_laws(rule, pis)
    declared, samples = joint_law(rule, np.array(pis[0]))
    assert 0 < abs(fast.declared[0] - declared).max() <= fast.declared_error[0]
    assert abs(fast.expected_samples[0] - samples @ np.arange(11)) <= fast.error[0]


def test_rows_of_many_laws_keep_their_order():
    rule = futility(16, 1, 2)
    pis = np.random.default_rng(3).dirichlet(np.full(5, 0.5), 1500)
    whole = pool_laws(rule, pis)
    for row in (0, 700, 1499):
        one = pool_laws(rule, pis[row : row + 1])
        assert one.expected_samples[0] == pytest.approx(whole.expected_samples[row], abs=1e-9)
        np.testing.assert_allclose(one.declared[0], whole.declared[row], atol=1e-10)
    np.testing.assert_allclose(whole.samples.sum(axis=1), 1.0, atol=1e-10)
    assert whole.samples.min() >= 0


def test_a_rule_that_never_looks_draws_nothing():
    result = pool_law(Rule([1, 2, 3], [1, 0, 0], "never"), [0.5, 0.5])
    assert (result.expected_samples, result.undecided) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("pi", "message"),
    [
        ([0.7, 0.7], "sums to 1.4"),
        ([-0.1, 0.5], "holds -0.1"),
        ([float("nan")], "holds nan"),
        ([], "shape"),
        ([[0.5]], "shape"),
        (["a"], "numbers"),
    ],
)
def test_a_pi_that_is_no_law_is_refused(pi, message):
    with pytest.raises(BadInput, match=message):
        pool_law(Rule([1, 1], [0, 0], "first"), pi)


def test_pools_too_long_for_the_tables_are_refused():
    n = np.arange(601)
    with pytest.raises(BadInput, match="n_max = 600"):
        pool_laws(Rule(n + 1, np.zeros(601, dtype=int), "never"), [[0.5]])
