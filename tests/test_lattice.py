"""The recursion equals enumeration over all vote sequences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import bdtrc

from oracles import one_class_law, pool_law
from strategies import rules, vote_laws
from suffice.errors import BadInput
from suffice.lattice import expected_samples, law, oc
from suffice.rule import Rule
from suffice.rules import plug_in

ONE_OF_TWO = Rule([1, 1, 1], [0, 0, 1], "one of two")
NEVER = Rule([1, 2, 3], [0, 0, 0], "never")


def line_rule(n_max: int, slope: float, above: float, below: float) -> Rule:
    """Two parallel lines around k = slope * n, as in Wald's test."""
    n = np.arange(n_max + 1)
    declare = np.clip(np.ceil(slope * n + above), 1, n + 1).astype(np.int64)
    stop = np.clip(np.ceil(slope * n - below), 0, declare).astype(np.int64)
    return Rule(declare, stop, "lines")


@settings(max_examples=80, deadline=None)
@given(rules(max_n=12), st.floats(0, 1))
def test_law_equals_enumeration(rule: Rule, q: float) -> None:
    result = law(rule, q)
    declared, undecided = one_class_law(rule, q)
    np.testing.assert_allclose(result.declared[0], declared, atol=1e-13)
    np.testing.assert_allclose(result.undecided[0], undecided, atol=1e-13)
    assert result.dropped[0] == 0
    assert oc(rule, q) == pytest.approx(sum(declared), abs=1e-13)
    mean = sum(n * (d + u) for n, (d, u) in enumerate(zip(declared, undecided, strict=True)))
    assert expected_samples(rule, q) == pytest.approx(mean, abs=1e-12)
    if sum(declared) > 1e-6:
        given_declared = sum(n * d for n, d in enumerate(declared)) / sum(declared)
        assert result.expected_samples_declared[0] == pytest.approx(given_declared)
    if sum(undecided) > 1e-6:
        given_undecided = sum(n * u for n, u in enumerate(undecided)) / sum(undecided)
        assert result.expected_samples_undecided[0] == pytest.approx(given_undecided)


@settings(max_examples=100, deadline=None)
@given(rules(max_n=40))
def test_declaration_does_not_fall_in_q(rule: Rule) -> None:
    assert (np.diff(oc(rule, np.linspace(0, 1, 41))) >= -1e-12).all()


@settings(max_examples=25, deadline=None)
@given(rules(max_n=5), vote_laws())
def test_no_class_is_declared_more_often_than_its_certificate(rule: Rule, pi: list[float]) -> None:
    declared, undecided, _ = pool_law(rule, pi)
    assert sum(declared) + undecided == pytest.approx(1)
    assert (np.array(declared) <= oc(rule, pi) + 1e-12).all()


@settings(max_examples=50, deadline=None)
@given(rules(max_n=12), st.floats(0, 1), st.floats(0.001, 1))
def test_quantile_is_the_smallest_that_reaches(rule: Rule, q: float, p: float) -> None:
    result = law(rule, q)
    cumulative = result.samples[0].cumsum()
    at = int(result.quantile(p)[0])
    assert cumulative[at] >= p - 1e-11
    assert at == 0 or cumulative[at - 1] < p + 1e-11


def test_full_fixed_pool_is_a_binomial_tail() -> None:
    declare = [*range(1, 33), 28]
    rule = Rule(declare, [0] * 33, "28 of 32")
    for q in (0.1, 0.7, 0.9):
        assert oc(rule, q) == pytest.approx(bdtrc(27, 32, q), rel=1e-12)
        assert law(rule, q).samples[0, 32] == pytest.approx(1)


def test_tiny_probabilities_keep_their_digits() -> None:
    rule = Rule([*range(1, 60), 59], [0] * 60, "unanimous")
    assert oc(rule, 0.001) == pytest.approx(1e-177, rel=1e-10)


def test_wide_windows_drop_only_what_they_report() -> None:
    n_max = 3000
    rule = Rule([*range(1, n_max + 1), 1600], [0] * (n_max + 1), "1600 of 3000")
    q = np.array([0.2, 0.5, 0.53, 0.9])
    result = law(rule, q)
    np.testing.assert_allclose(result.declare_probability, bdtrc(1599, n_max, q), atol=1e-11)
    total = result.samples.sum(axis=1) + result.dropped
    np.testing.assert_allclose(total, 1, atol=1e-11)
    assert (result.dropped > 0).any()
    assert (result.dropped < 1e-11).all()


def test_a_long_pool_that_died_out_ends_early() -> None:
    rule = line_rule(20_000, 0.78, 3.0, 3.0)
    result = law(rule, 0.78)
    assert 0 < result.dropped[0] < 1e-13
    short = law(line_rule(2_000, 0.78, 3.0, 3.0), 0.78)
    assert result.declare_probability == pytest.approx(short.declare_probability, abs=1e-12)


def test_walds_identity_on_a_long_pool() -> None:
    # E[k_N] = q E[N] for any stopping time: a check of E[N] that needs no second recursion.
    rule = line_rule(5_000, 0.5, 8.0, 8.0)
    q = 0.52
    result = law(rule, q)
    n = np.arange(5_001)
    cap = result.undecided[0, -1]
    assert cap < 1e-9
    at_end = result.declared[0] @ rule.declare + result.undecided[0] @ (rule.stop - 1)
    assert at_end == pytest.approx(q * (result.samples[0] @ n), abs=1e-6)


def test_shapes_follow_q() -> None:
    assert isinstance(oc(ONE_OF_TWO, 0.5), float)
    assert oc(ONE_OF_TWO, [0.5]).shape == (1,)
    assert oc(ONE_OF_TWO, np.full((2, 3), 0.5)).shape == (2, 3)
    assert expected_samples(ONE_OF_TWO, np.array(0.5)) == 1.5
    result = law(ONE_OF_TWO, [0.0, 0.5, 1.0])
    assert result.declared.shape == result.undecided.shape == (3, 3)
    assert result.quantile(1).tolist() == [2, 2, 1]


def test_means_given_what_never_happens_are_nan() -> None:
    assert math.isnan(law(NEVER, 0.5).expected_samples_declared[0])
    assert law(NEVER, 0.5).expected_samples_undecided[0] == 2


@pytest.mark.parametrize("q", [-0.1, 1.5, [0.5, 2.0], math.nan, "half", None])
def test_what_is_no_vote_mass_is_refused(q: object) -> None:
    with pytest.raises(BadInput, match="is not a vote mass"):
        law(ONE_OF_TWO, q)  # type: ignore[arg-type]


@pytest.mark.parametrize("p", [0, -1, 1.1, math.nan])
def test_what_is_no_level_is_refused(p: float) -> None:
    with pytest.raises(BadInput, match="is no level of a quantile"):
        law(ONE_OF_TWO, 0.5).quantile(p)


def test_the_last_quantile_is_the_end_however_sums_round() -> None:
    assert law(plug_in(0.6, 20_000, curtailed=False), 0.3).quantile(1.0).tolist() == [20_000]
