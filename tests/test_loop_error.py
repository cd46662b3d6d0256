"""Errors over a whole run, against plain enumeration and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import one_class_law, pool_law
from strategies import rules, vote_laws
from suffice.calibrate import calibrate_alpha, sequential_rule
from suffice.errors import BadInput
from suffice.lattice import oc
from suffice.loop_error import declared_on_path, ever_declared, ever_declared_bound, split_eps
from suffice.rule import Rule

PAIR = Rule([1, 2, 2], [0, 0, 1], "two in a row")
FIRST = Rule([1, 1], [0, 0], "first vote")


@settings(max_examples=25, deadline=None)
@given(rules(max_n=5), st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4))
def test_a_path_of_masses_is_a_product_of_rounds(rule, masses):
    survive = 1.0
    for q in masses:
        declared, _ = one_class_law(rule, q)
        survive *= 1 - sum(declared)
    assert ever_declared(rule, masses) == pytest.approx(1 - survive, abs=1e-12)


@settings(max_examples=15, deadline=None)
@given(rules(max_n=4), st.lists(vote_laws(classes=3), min_size=1, max_size=3))
def test_a_path_with_rivals_equals_enumeration(rule, path):
    total, reach = np.zeros(3), 1.0
    for pi in path:
        declared, undecided, _ = pool_law(rule, pi)
        total += reach * np.array(declared)
        reach *= undecided
    found, error = declared_on_path(rule, path)
    assert (abs(found - total) <= error + 1e-10).all()


@settings(max_examples=15, deadline=None)
@given(rules(max_n=5), st.lists(vote_laws(classes=3), min_size=1, max_size=3))
def test_rivals_only_lower_the_chance(rule, path):
    found, error = declared_on_path(rule, path)
    for c in range(3):
        alone = ever_declared(rule, [pi[c] for pi in path])
        assert found[c] <= alone + error[c] + 1e-12


@settings(max_examples=25, deadline=None)
@given(rules(max_n=6), st.lists(st.floats(0.0, 0.6), min_size=1, max_size=5))
def test_no_path_below_tau_exceeds_the_bound(rule, masses):
    assert ever_declared(rule, masses) <= ever_declared_bound(rule, 0.6, len(masses)) + 1e-12


def test_one_rule_a_round():
    expected = 1 - (1 - 0.25) * (1 - 0.5)
    assert ever_declared([PAIR, FIRST], [0.5, 0.5]) == pytest.approx(expected)
    found, _ = declared_on_path([PAIR, FIRST], [[0.5, 0.5], [0.5, 0.25]])
    np.testing.assert_allclose(found, [0.25 + 0.5 * 0.5, 0.25 + 0.5 * 0.25])


@settings(deadline=None)
@given(st.floats(0.001, 0.9), st.integers(1, 60))
def test_the_split_adds_up_to_the_loop(eps_loop, rounds):
    eps = split_eps(eps_loop, rounds)
    assert 1 - (1 - eps) ** rounds == pytest.approx(eps_loop, rel=1e-9)


def test_a_rule_designed_for_its_share_keeps_the_loop_below_eps():
    eps = split_eps(0.05, 24)
    rule = sequential_rule(0.55, calibrate_alpha(0.55, eps, 32).alpha, 32)
    assert oc(rule, 0.55) <= eps
    assert 0.01 < ever_declared_bound(rule, 0.55, 24) <= 0.05
    whole = sequential_rule(0.55, calibrate_alpha(0.55, 0.05, 32).alpha, 32)
    assert ever_declared_bound(whole, 0.55, 24) > 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ever_declared(PAIR, [0.5, 1.5]), "1.5"),
        (lambda: ever_declared(PAIR, [[0.5]]), "shape"),
        (lambda: ever_declared([PAIR], [0.5, 0.5]), "1 rules for 2 rounds"),
        (lambda: ever_declared_bound(PAIR, 1.2, 3), "tau"),
        (lambda: ever_declared_bound(PAIR, 0.5, 0), "rounds"),
        (lambda: declared_on_path(PAIR, [0.5]), "shape"),
        (lambda: declared_on_path(PAIR, [[0.9, 0.9]]), "sums to 1.8"),
        (lambda: split_eps(1.0, 3), "eps_loop"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(BadInput, match=message):
        call()
