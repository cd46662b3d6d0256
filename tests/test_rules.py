"""Each maker makes the rule that it says, exactly."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from oracles import first_forced, one_class_law, play, sequences
from suffice.boundaries import build
from suffice.calibrate import LARGEST_N_MAX
from suffice.curtail import forced
from suffice.errors import BadInput, CalibrationInfeasible
from suffice.lattice import expected_samples, law, oc
from suffice.rule import Rule
from suffice.rules import e_process, one_look, plug_in, sequential, sprt
from suffice.wald import lines, slope
from test_calibrate import tail

SMALL = [
    plug_in(0.5, 9),
    plug_in(0.7, 10, every=4),
    one_look(0.5, 0.3, 11),
    sequential(0.5, 0.3, n_max=12),
    sequential(0.3, 0.4, n_max=9),
    sequential(0.6, 0.3, n_max=12, every=5),
    sprt(0.5, 0.8, 0.3, 0.7, 12),
    sprt(0.5, 0.8, 0.3, 0.6, 12, every=4),
    e_process(0.5, 0.3, 12),
    e_process(0.5, 0.3, 12, curtailed=True),
]


@pytest.mark.parametrize("rule", SMALL, ids=lambda rule: f"{rule.name}-{rule.n_max}")
@pytest.mark.parametrize("q", [0.0, 0.35, 0.8, 1.0])
def test_small_rules_equal_enumeration(rule: Rule, q: float) -> None:
    declared, undecided = one_class_law(rule, q)
    np.testing.assert_allclose(law(rule, q).declared[0], declared, atol=1e-13)
    np.testing.assert_allclose(law(rule, q).undecided[0], undecided, atol=1e-13)


@pytest.mark.parametrize("tau", [i / 100 for i in range(50, 100)])
def test_plug_in_counts_are_exact(tau: float) -> None:
    hundredths = round(tau * 100)
    for samples in range(1, 201):
        r = plug_in(tau, samples).parameters["r"]
        assert 100 * r > hundredths * samples >= 100 * (r - 1)


def test_tau_is_read_as_a_decimal() -> None:
    assert plug_in(0.57, 100).parameters["r"] == 58
    assert plug_in("0.57", 100) == plug_in(np.float64(0.57), 100) == plug_in(0.57, 100)
    assert math.floor(100 * 0.57) + 1 == 57  # what floats would give


@pytest.mark.parametrize(("tau", "eps"), [(0.5, 0.05), (0.7, 0.05), (0.9, 0.1), (0.65, 0.3)])
def test_one_look_count_is_the_smallest_within_eps(tau: float, eps: float) -> None:
    exact, limit = Fraction(str(tau)), Fraction(str(eps))
    for samples in (32, 33, 50):
        r = one_look(tau, eps, samples).parameters["r"]
        assert tail(r, samples, exact) <= limit < tail(r - 1, samples, exact)


@pytest.mark.parametrize("alpha", ["0.05", "0.0091", "0.4"])
@pytest.mark.parametrize("tau", ["0.3", "0.5", "0.7"])
def test_sequential_boundary_is_the_posterior(tau: str, alpha: str) -> None:
    rule = sequential(tau, alpha=alpha, n_max=25, curtailed=False)
    for n in range(1, 26):
        # Under a uniform prior P(pi <= tau | k of n) = P(Bin(n + 1, tau) > k).
        counts = [k for k in range(1, n + 1) if tail(k + 1, n + 1, Fraction(tau)) < Fraction(alpha)]
        assert rule.declare[n] == min(counts, default=n + 1)
    assert not rule.stop.any()


def test_sequential_posterior_is_strictly_above() -> None:
    # At tau = 1/2 one vote of one leaves exactly 1/4 below tau.
    assert sequential(0.5, alpha=0.25, n_max=1 + 1).declare[1] == 2
    assert sequential(0.5, alpha=0.2501, n_max=2).declare[1] == 1


def test_a_prior_moves_the_boundary() -> None:
    sceptic = sequential(0.7, alpha=0.05, n_max=40, prior=(1, 9), curtailed=False)
    uniform = sequential(0.7, alpha=0.05, n_max=40, curtailed=False)
    assert (sceptic.declare >= uniform.declare).all()
    assert sceptic != uniform
    assert oc(sequential(0.7, 0.05, n_max=97, prior=(2, 5)), 0.7) <= 0.05


def test_sequential_finds_the_cap_for_an_alpha() -> None:
    rule = sequential(0.7, alpha=0.0091, q_alt=0.85, power=0.9)
    assert oc(rule, 0.85) >= 0.9
    assert oc(sequential(0.7, alpha=0.0091, n_max=rule.n_max - 1), 0.85) < 0.9


def test_sequential_finds_the_cap_for_a_size() -> None:
    rule = sequential(0.7, 0.05, q_alt=0.85, power=0.9)
    assert oc(rule, 0.7) <= 0.05
    assert oc(rule, 0.85) >= 0.9
    assert rule.parameters["n_max"] == rule.n_max


@pytest.mark.parametrize(("n", "k"), [(1, 1), (7, 5), (30, 24), (30, 3), (60, 52)])
@pytest.mark.parametrize("tau", [0.3, 0.7])
def test_e_process_is_the_mixture_of_bets(n: int, k: int, tau: float) -> None:
    def bet(p: float) -> float:
        return (p / tau) ** k * ((1 - p) / (1 - tau)) ** (n - k) / (1 - tau)

    wealth = quad(bet, tau, 1)[0]
    if wealth <= 1:
        return  # never declared whatever eps
    for factor, declares in ((0.999, True), (1.001, False)):
        eps = 1 / (wealth * factor)
        if eps < 1:
            assert (k >= int(e_process(tau, eps, n).declare[n])) is declares


@pytest.mark.parametrize("tau", [0.5, 0.7])
def test_e_process_is_valid_with_any_cap_and_below_tau(tau: float) -> None:
    rule = e_process(tau, 0.1, 2_000)
    assert (oc(rule, np.linspace(0, tau, 8)) <= 0.1).all()


@pytest.mark.parametrize("every", [1, 5])
def test_e_process_begins_alike_for_any_cap(every: int) -> None:
    short, long = (e_process(0.7, 0.05, cap, every=every) for cap in (50, 200))
    assert (long.declare[:51] == short.declare).all()
    assert not short.stop.any()


def brute_sprt(tau: float, q_alt: float, eps: float, power: float, n_max: int) -> float:
    """The least mean E[N] over all pairs of lines and all cuts, by trying them."""
    share = slope(tau, q_alt)
    offsets = {round(k - share * n, 9) for n in range(1, n_max) for k in range(n + 1)}
    uppers = [offset - 1e-6 for offset in sorted(offsets) if offset > 0] + [1e6]
    lowers = [-offset - 1e-6 for offset in sorted(offsets) if offset < 0] + [1e6]
    best = math.inf
    for upper, lower, cut in product(uppers, lowers, range(n_max // 2 + 1, n_max + 1)):
        if upper < 1e6 and share * n_max + upper <= cut - 1:
            continue  # a cut above the upper line: no truncated Wald test
        declare, stop = lines(n_max, share, upper, lower, cut)
        rule = Rule(*forced(declare, stop), "tried")
        found = law(rule, [tau, q_alt])
        size, reached = found.declare_probability
        if size <= eps and reached >= power:
            best = min(best, float(found.expected_samples.mean()))
    return best


@pytest.mark.parametrize(
    ("tau", "q_alt", "eps", "power", "n_max"),
    [(0.5, 0.8, 0.2, 0.7, 10), (0.6, 0.9, 0.15, 0.8, 11), (0.7, 0.9, 0.3, 0.75, 12)],
)
def test_sprt_is_the_cheapest_of_all(
    tau: float, q_alt: float, eps: float, power: float, n_max: int
) -> None:
    rule = sprt(tau, q_alt, eps, power, n_max)
    assert oc(rule, tau) <= eps
    assert oc(rule, q_alt) >= power
    mean = float(np.mean(expected_samples(rule, [tau, q_alt])))
    assert mean == pytest.approx(brute_sprt(tau, q_alt, eps, power, n_max), abs=1e-9)


@pytest.mark.parametrize("tau", [0.3, 0.45])
def test_sprt_below_one_half_is_valid(tau: float) -> None:
    rule = sprt(tau, tau + 0.3, 0.05, 0.8, 60)
    assert oc(rule, tau) <= 0.05
    assert oc(rule, tau + 0.3) >= 0.8


def test_sprt_looks_at_lines_that_differ_only_at_the_cap() -> None:
    rule = sprt(0.6, 0.8, 0.1, 0.64, 30)
    other = build(*lines(30, slope(0.6, 0.8), 1.806, 0.7136, None), "sprt", {"tau": 0.6})
    assert oc(other, 0.6) <= 0.1
    assert oc(other, 0.8) >= 0.64
    assert sum(expected_samples(rule, [0.6, 0.8])) <= sum(expected_samples(other, [0.6, 0.8]))
    sparse = sprt(0.6, 0.8, 0.05, 0.25, 9, every=3)
    assert oc(sparse, 0.6) <= 0.05
    assert oc(sparse, 0.8) >= 0.25


@pytest.mark.parametrize(("tau", "eps", "n_max"), [(0.3, 0.1, 6), (0.35, 0.05, 30)])
def test_sprt_reaches_the_power_of_one_look(tau: float, eps: float, n_max: int) -> None:
    power = oc(one_look(tau, eps, n_max), 0.6) * (1 - 1e-9)
    assert oc(sprt(tau, 0.6, eps, power, n_max), 0.6) >= power


@pytest.mark.parametrize("every", [3, 8])
@pytest.mark.parametrize(
    "make",
    [
        lambda **how: plug_in(0.7, 30, **how),
        lambda **how: one_look(0.7, 0.05, 30, **how),
        lambda **how: sequential(0.7, 0.05, n_max=40, **how),
        lambda **how: sprt(0.7, 0.9, 0.05, 0.8, 50, **how),
        lambda **how: e_process(0.7, 0.05, 40, **how),
    ],
)
def test_every_ends_pools_only_at_looks(make: Any, every: int) -> None:
    for curtailed in (True, False):
        rule = make(every=every, curtailed=curtailed)
        ends = np.flatnonzero(law(rule, [0.2, 0.5, 0.75, 0.95]).samples.sum(axis=0))
        assert all(n % every == 0 or n == rule.n_max for n in ends)
        assert oc(rule, 0.7) <= (0.05 if rule.name != "plug-in" else 0.6)
        assert rule.parameters["every"] == every


@pytest.mark.parametrize("every", [2, 3])
def test_every_still_ends_at_the_first_look_that_can(every: int) -> None:
    for make in (plug_in, lambda *a, **how: sequential(0.5, 0.4, n_max=6, **how)):
        given = make(0.5, 5, every=every, curtailed=False)
        short = make(0.5, 5, every=every)
        for votes, ending in first_forced(given, ["a", "b", None], every).items():
            assert play(short, votes) == ending


def test_looks_are_calibrated_for_themselves() -> None:
    alphas = [sequential(0.7, 0.05, n_max=96, every=B).parameters["alpha"] for B in (1, 8, 32)]
    assert alphas == sorted(alphas)
    assert len(set(alphas)) == 3


@pytest.mark.parametrize("rule", SMALL, ids=lambda rule: f"{rule.name}-{rule.n_max}")
def test_parameters_are_whole_and_survive_json(rule: Rule) -> None:
    parameters = dict(rule.parameters)
    assert json.loads(json.dumps(parameters)) == parameters
    assert {"tau", "every", "curtailed"} <= set(parameters)


def test_parameters_make_the_rule_again() -> None:
    for rule, make in zip(
        (plug_in(0.7, 32), one_look(0.7, 0.05, 32, every=4), e_process(0.7, 0.1, 40)),
        (plug_in, one_look, e_process),
        strict=True,
    ):
        given = {key: value for key, value in rule.parameters.items() if key != "r"}
        assert make(**given) == rule
    rule = sequential(0.7, 0.05, n_max=40, every=2)
    given = {key: value for key, value in rule.parameters.items() if key != "eps"}
    assert sequential(**given) == rule


@pytest.mark.parametrize("curtailed", [True, False])
def test_full_rules_draw_the_whole_pool(curtailed: bool) -> None:
    for rule in (plug_in(0.5, 5, curtailed=curtailed), one_look(0.5, 0.3, 5, curtailed=curtailed)):
        drawn = {play(rule, votes)[1] for votes in sequences(5, ["a", "b", None])}
        assert (drawn == {5}) is not curtailed


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plug_in(0, 32), r"tau = 0 is outside \(0, 1\)"),
        (lambda: plug_in(1, 32), r"tau = 1 is outside \(0, 1\)"),
        (lambda: plug_in("high", 32), "tau = 'high' is not a number"),
        (lambda: plug_in(float("nan"), 32), "tau = nan is not a number"),
        (lambda: plug_in(0.7, 0), "samples = 0 is not a whole number above 0"),
        (lambda: plug_in(0.7, 31.5), "samples = 31.5 is not a whole number"),
        (lambda: plug_in(0.7, 32, every=0), "every = 0 is not a whole number"),
        (lambda: plug_in(0.4, 32), "r = 13 of 32 samples lets two classes be declared"),
        (lambda: one_look(0.3, 0.4, 32), "raise tau to at least 0.5"),
        (lambda: one_look(0.7, 0, 32), r"eps = 0 is outside \(0, 1\)"),
        (lambda: one_look(0.7, 1.5, 32), r"eps = 1.5 is outside \(0, 1\)"),
        (lambda: one_look(0.7, 0.05, 5), "even 5 votes of 5 have size 0.168"),
        (lambda: sequential(0.7), "give either eps or alpha"),
        (lambda: sequential(0.7, 0.05, alpha=0.01, n_max=9), "give either eps or alpha"),
        (lambda: sequential(0.7, 0.05), "no cap: give n_max, or q_alt and power"),
        (lambda: sequential(0.7, 0.05, q_alt=0.8), "no cap"),
        (lambda: sequential(0.7, 0.05, power=0.8), "power = 0.8 needs the q_alt"),
        (lambda: sequential(0.7, 0.05, n_max=0), "n_max = 0 is not a whole number"),
        (lambda: sequential(0.7, 0.05, n_max=40, q_alt=0.7), "q_alt = 0.7 is not above tau"),
        (lambda: sequential(0.7, 0.05, n_max=40, prior=(0, 1)), "is no Beta prior"),
        (lambda: sequential(0.7, 0.05, n_max=40, prior=3), "is no Beta prior"),
        (lambda: sequential(0.7, alpha=1e-9, n_max=20), "alpha = 1e-09 never declares"),
        (lambda: sequential(0.7, alpha=2, n_max=20), "alpha = 2 is outside"),
        (lambda: sequential(0.7, 0.05, n_max=5), "raise n_max to at least 9"),
        (lambda: sequential(0.2, 0.3, n_max=40, every=20), "choose tau of at least 0.5"),
        (lambda: sprt(0.7, 0.65, 0.05, 0.9, 97), "q_alt = 0.65 is not above tau"),
        (lambda: sprt(0.7, 0.85, 0.05, 0.04, 97), "power = 0.04 is not above eps"),
        (lambda: sprt(0.7, 0.85, 0.05, 0.9, 0), "n_max = 0 is not a whole number"),
        (lambda: e_process(0.7, 0.05, -3), "n_max = -3 is not a whole number"),
    ],
)
def test_bad_input_is_one_line(call: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_infeasible_carries_the_best() -> None:
    with pytest.raises(CalibrationInfeasible) as caught:
        one_look(0.7, 0.05, 5)
    assert caught.value.best["size"] == pytest.approx(0.7**5)
    assert caught.value.best["smallest_samples"] == 9
    assert one_look(0.7, 0.05, 9).parameters["r"] == 9

    with pytest.raises(CalibrationInfeasible, match="is out of reach with n_max = 40") as caught:
        sequential(0.7, 0.05, n_max=40, q_alt=0.85, power=0.9)
    assert caught.value.best["power"] == oc(sequential(0.7, 0.05, n_max=40), 0.85)

    with pytest.raises(CalibrationInfeasible, match="raise n_max or lower power") as caught:
        sprt(0.7, 0.85, 0.05, 0.9, 20)
    assert 0 < caught.value.best["power"] < 0.9
    assert sprt(0.7, 0.85, 0.05, caught.value.best["power"] - 1e-9, 20).n_max == 20

    with pytest.raises(CalibrationInfeasible, match="out of reach with alpha") as caught:
        sequential(0.7, alpha=1e-6, q_alt=0.71, power=0.9)
    assert caught.value.best["n_max"] == LARGEST_N_MAX
