"""Calibration is exact: it equals a search through everything there is."""

from __future__ import annotations

import pickle
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import one_class_law
from strategies import rules
from suffice.boundaries import lower_tail
from suffice.calibrate import (
    calibrate_alpha,
    certified_tau,
    match_fixed,
    match_sequential,
    sequential_rule,
    smallest_n_max,
)
from suffice.errors import BadInput, CalibrationInfeasible
from suffice.lattice import oc
from suffice.rule import Rule
from suffice.rules import one_look, sequential

NEVER = Rule([1, 2, 3], [0, 0, 0], "never")


def tail(r: int, samples: int, q: Fraction) -> Fraction:
    """P(K >= r), K ~ Bin(samples, q), in whole numbers."""
    return sum(
        (comb(samples, k) * q**k * (1 - q) ** (samples - k) for k in range(r, samples + 1)),
        Fraction(0),
    )


@pytest.mark.parametrize("tau", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("eps", [0.2, 0.35, 0.6])
@pytest.mark.parametrize("n_max", [5, 8])
@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.5, 2.0)])
def test_alpha_is_the_best_of_all(
    tau: float, eps: float, n_max: int, prior: tuple[float, float]
) -> None:
    tails = [float(lower_tail(n, k, tau, prior)) for n in range(1, n_max + 1) for k in range(n + 1)]
    sizes = []
    for alpha in [*sorted(set(tails))[1:], 1 - 1e-09]:
        rule = sequential_rule(tau, alpha, n_max, prior, curtailed=False)
        sizes.append(sum(one_class_law(rule, tau)[0]))
    best = max(size for size in sizes if size <= eps)
    found = calibrate_alpha(tau, eps, n_max, prior)
    assert found.size == pytest.approx(best, abs=1e-12)
    assert found.above < found.alpha < found.up_to
    rule = sequential_rule(tau, found.alpha, n_max, prior)
    assert sum(one_class_law(rule, tau)[0]) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize(("tau", "eps", "n_max"), [(0.7, 0.05, 97), (0.55, 0.1, 40)])
def test_alpha_is_the_shortest_decimal_of_its_rule(tau: float, eps: float, n_max: int) -> None:
    found = calibrate_alpha(tau, eps, n_max)
    digits = len(str(found.alpha)) - 2
    shorter = [i / 10 ** (digits - 1) for i in range(10 ** (digits - 1))]
    assert not any(found.above < decimal < found.up_to for decimal in shorter)
    at_both_ends = (
        sequential_rule(tau, alpha, n_max)
        for alpha in (found.above * (1 + 1e-9), found.up_to * (1 - 1e-9))
    )
    assert all(rule == sequential_rule(tau, found.alpha, n_max) for rule in at_both_ends)
    larger = sequential_rule(tau, found.up_to * (1 + 1e-9), n_max)
    assert oc(larger, tau) > eps


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize(("tau", "q_alt", "power"), [(0.7, 0.85, 0.8), (0.6, 0.9, 0.95)])
def test_smallest_cap_equals_a_plain_scan(
    tau: float, q_alt: float, power: float, every: int
) -> None:
    n_max = every
    while True:
        try:
            if oc(sequential(tau, 0.05, n_max=n_max, every=every), q_alt) >= power:
                break
        except CalibrationInfeasible:
            pass
        n_max += every
    found, calibration = smallest_n_max(tau, 0.05, q_alt, power, every=every)
    assert found == n_max
    assert calibration == calibrate_alpha(tau, 0.05, n_max, every=every)


def test_power_is_a_sawtooth_so_a_scan_is_needed() -> None:
    powers = [oc(sequential(0.7, 0.05, n_max=n_max), 0.85) for n_max in range(20, 61)]
    assert (np.diff(powers) < 0).any()


@settings(max_examples=60, deadline=None)
@given(rules(max_n=15), st.floats(0.01, 0.9))
def test_certified_tau_is_the_largest_mass_within_eps(rule: Rule, eps: float) -> None:
    certified = certified_tau(rule, eps)
    assert oc(rule, certified) <= eps + 1e-12
    if certified < 1:
        assert oc(rule, min(1.0, certified + 1e-9)) > eps - 1e-9
        assert oc(rule, min(1.0, certified + 1e-4)) > eps


def test_a_rule_that_never_declares_certifies_everything() -> None:
    assert certified_tau(NEVER, 0.05) == 1


@pytest.mark.parametrize("tolerance", [0, 0.05])
def test_matched_fixed_pool_is_the_smallest(tolerance: float) -> None:
    rule = sequential(0.6, 0.1, n_max=25)
    size, power = oc(rule, [0.6, 0.85])
    tau, q_alt = Fraction(6, 10), Fraction(85, 100)
    for samples in range(1, 100):
        r = min(r for r in range(1, samples + 2) if tail(r, samples, tau) <= size)
        if 2 * r > samples and tail(r, samples, q_alt) >= power - tolerance:
            break
    found = match_fixed(rule, 0.6, 0.85, tolerance)
    assert (found.parameters["samples"], found.parameters["r"]) == (samples, r)
    assert oc(found, 0.6) <= size
    assert oc(found, 0.85) >= power - tolerance


@pytest.mark.parametrize(("tau", "samples"), [(0.7, 32), (0.9, 32), (0.55, 21)])
def test_a_fixed_pool_matches_itself(tau: float, samples: int) -> None:
    fixed = one_look(tau, 0.05, samples)
    q_alt = certified_tau(fixed, 0.9)
    assert match_fixed(fixed, tau, q_alt).parameters["samples"] <= samples
    assert match_fixed(fixed, tau, q_alt).parameters["r"] <= fixed.parameters["r"]


@pytest.mark.parametrize("tau", [0.7, 0.9])
def test_matched_sequential_rule_has_no_more_size_and_no_less_power(tau: float) -> None:
    fixed = one_look(tau, 0.05, 32)
    q_alt = certified_tau(fixed, 0.9)
    matched = match_sequential(fixed, tau, q_alt)
    assert oc(matched, tau) <= oc(fixed, tau)
    assert oc(matched, q_alt) >= oc(fixed, q_alt) - 1e-12
    for n_max in range(20, matched.n_max):
        try:
            smaller = sequential(tau, oc(fixed, tau), n_max=n_max)
        except CalibrationInfeasible:
            continue
        looks = np.count_nonzero(np.diff(smaller.declare, prepend=0) <= 0)
        assert oc(smaller, q_alt) < 0.9 or looks <= 1


def test_no_alpha_for_a_cap_too_small() -> None:
    with pytest.raises(CalibrationInfeasible, match="raise n_max to at least 9") as caught:
        calibrate_alpha(0.7, 0.05, 5)
    assert caught.value.best == {"n_max": 5, "size": pytest.approx(0.7**5), "smallest_n_max": 9}
    assert calibrate_alpha(0.7, 0.05, 9).size == pytest.approx(0.7**9)


def test_no_cap_for_a_power_too_high() -> None:
    with pytest.raises(CalibrationInfeasible, match="is not reached with n_max up to") as caught:
        smallest_n_max(0.7, 0.05, 0.705, 0.9)
    assert 0 < caught.value.best["power"] < 0.9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibrate_alpha(1.2, 0.05, 97), "tau = 1.2 is outside"),
        (lambda: calibrate_alpha(0.7, 0, 97), "eps = 0 is outside"),
        (lambda: calibrate_alpha(0.7, 0.05, 2.5), "n_max = 2.5 is not a whole number"),
        (lambda: certified_tau(NEVER, 5), "eps = 5 is outside"),
        (lambda: match_fixed(NEVER, 0.7, 0.85), "the rule never declares at tau = 0.7"),
        (lambda: match_fixed(one_look(0.7, 0.05, 32), 0.7, 0.6), "q_alt = 0.6 is not above"),
        (lambda: match_fixed(one_look(0.7, 0.05, 32), 0.7, 0.9, 2), "tolerance = 2 is outside"),
        (lambda: match_sequential(NEVER, 0.7, 0.85), "the rule never declares at tau = 0.7"),
        (lambda: sequential_rule(0.7, 1e-9, 20), "alpha = 1e-09 never declares with n_max = 20"),
    ],
)
def test_bad_input_is_one_line(call: object, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        call()  # type: ignore[operator]
    assert "\n" not in str(caught.value)


def test_a_cap_is_found_where_no_pool_of_the_first_sizes_has_the_size() -> None:
    n_max, found = smallest_n_max(0.9, 0.05, 0.95, 0.2)
    assert n_max == 29
    assert found.size <= 0.05


@pytest.mark.parametrize(("tau", "q_alt"), [(0.7, 0.85), (0.75, 0.9), (0.5, 0.9)])
@pytest.mark.parametrize("n_max", [12, 20, 31])
def test_the_power_that_a_rule_has_needs_no_larger_cap(
    tau: float, q_alt: float, n_max: int
) -> None:
    rule = sequential(tau, 0.05, n_max=n_max)
    again = sequential(tau, 0.05, q_alt=q_alt, power=oc(rule, q_alt))
    assert again.n_max <= n_max
    alpha = rule.parameters["alpha"]
    same = sequential(tau, alpha=alpha, q_alt=q_alt, power=oc(rule, q_alt))
    assert same.n_max <= n_max


def test_an_infeasible_design_comes_whole_out_of_another_process() -> None:
    error = pickle.loads(pickle.dumps(CalibrationInfeasible("too much", {"power": 0.5})))
    assert (str(error), error.best) == ("too much", {"power": 0.5})
