"""Rules for a whole run, against every pair of small rules and on held-out images of the log."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from suffice.curtail import curtail
from suffice.errors import BadInput
from suffice.lattice import oc
from suffice.optimal_path import OptimalPath, optimal_for_path, optimal_like
from suffice.path import along
from suffice.reference import reference_log
from suffice.replay import Replay
from suffice.rule import Rule
from suffice.rules import sequential

EPS, TAU = 0.25, 0.6
PATHS = np.array(
    [
        [[0.5, 0.3, 0.2], [0.9, 0.1, 0.0]],
        [[0.8, 0.1, 0.1], [0.95, 0.05, 0.0]],
        [[0.3, 0.3, 0.4], [0.2, 0.8, 0.0]],
        [[0.4, 0.4, 0.1], [0.6, 0.3, 0.1]],
    ]
)
TRUTH = np.array([0, 0, 1, 0])


def price(rules: list[Rule], round_cost: float, miss_cost: float) -> float:
    """What the average path costs, from the exact laws of its pools."""
    law = along(rules, PATHS, TRUTH, exact=True)
    declared = law.reach * law.declare_probability
    right = (declared * np.nan_to_num(law.correct)).sum(axis=1)
    return float((law.samples + round_cost * law.rounds + miss_cost * (1 - right)).mean())


def small_rules(n_max: int) -> list[Rule]:
    """Every curtailed rule of n_max votes with the size, each once."""
    found = set()
    for declare in product(*(range(1, n + 2) for n in range(n_max + 1))):
        for stop in product(*(range(top + 1) for top in declare)):
            try:
                rule = curtail(Rule(declare, stop, "any"))
            except BadInput:
                continue
            if oc(rule, TAU) <= EPS:
                found.add(rule)
    return list(found)


@pytest.mark.parametrize(("round_cost", "miss_cost"), [(2.0, 6.0), (4.0, 30.0), (0.5, 3.0)])
def test_a_rule_a_round_comes_close_to_the_best_pair(round_cost: float, miss_cost: float) -> None:
    run = optimal_for_path(
        PATHS, TRUTH, EPS, 3, round_cost, tau=TAU, each_round=True, miss_cost=miss_cost
    )
    rules = small_rules(3)
    best = min(price([a, b], round_cost, miss_cost) for a in rules for b in rules)
    got = price(list(run.each), round_cost, miss_cost)
    assert best - 1e-9 <= got <= best * 1.02


@pytest.mark.parametrize("each_round", [False, True])
def test_every_rule_keeps_the_certificate(each_round: bool) -> None:
    run = optimal_for_path(
        PATHS, TRUTH, 0.05, 16, 8.0, tau=0.7, each_round=each_round, miss_cost=200.0
    )
    assert len(run.each) == (2 if each_round else 1)
    assert all(oc(rule, 0.7) <= 0.05 for rule in run.each)
    rules = list(run.each) if each_round else run.each[0]
    exact = along(rules, PATHS, TRUTH, exact=True).mean
    assert run.means.samples == pytest.approx(exact.samples, rel=0.01)
    assert run.means.rounds == pytest.approx(exact.rounds, rel=1e-3)
    assert run.means.accuracy == pytest.approx(exact.accuracy, abs=1e-3)


def test_tau_left_free_keeps_the_accuracy() -> None:
    run = optimal_for_path(PATHS, TRUTH, 0.1, 12, 2.0, accuracy=0.9, miss_cost=100.0)
    assert run.means.accuracy >= 0.9


def held_out(tau: float, each_round: bool) -> tuple[OptimalPath, float, float, float]:
    """Designed on half of the reference log: samples, rounds and accuracy on the other half."""
    log = reference_log(32)
    laws, half = reference_log(128).laws(10), np.arange(len(log.images)) % 2 == 0
    rule = sequential(tau, eps=0.05, n_max=32)
    run = optimal_like(rule, laws[half], log.truth[half], tau, 0.05, each_round)
    replay = Replay(log)
    ours = replay.run(list(run.each) if each_round else run.each[0])
    base = replay.run(rule)
    accuracy = [
        (outcome.label == log.truth)[~half & (outcome.label >= 0)].mean()
        for outcome in (ours, base)
    ]
    samples = ours.samples[~half].mean() / base.samples[~half].mean()
    rounds = ours.rounds[~half].mean() / base.rounds[~half].mean()
    return run, samples, rounds, accuracy[0] - accuracy[1]


def test_saves_samples_on_images_it_was_not_designed_on() -> None:
    run, samples, rounds, accuracy = held_out(0.55, each_round=False)
    assert samples < 0.6
    assert rounds < 1.03
    assert accuracy > -0.01
    assert oc(run.each[0], 0.55) <= 0.05


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tau": None}, "give either tau"),
        ({"accuracy": 0.9}, "give either tau"),
        ({"round_cost": "x"}, "round_cost = 'x'"),
        ({"masses": [[["a"]]]}, "masses must be numbers"),
        ({"truth": TRUTH + 0.7}, "whole numbers"),
        ({"round_cost": -1.0}, "round_cost = -1"),
        ({"miss_cost": np.nan}, "miss_cost = nan"),
        ({"masses": PATHS[0]}, "do not fit"),
        ({"masses": 2 * PATHS}, "no law"),
        ({"truth": np.array([0, 0, -1, 0])}, "below 0"),
        ({"tau": None, "accuracy": 0.9999}, "out of reach"),
    ],
)
def test_bad_input_is_named(change: dict[str, object], words: str) -> None:
    given: dict[str, object] = {
        "masses": PATHS,
        "truth": TRUTH,
        "eps": 0.2,
        "n_max": 4,
        "round_cost": 1.0,
        "tau": 0.6,
    }
    with pytest.raises(BadInput, match=words):
        optimal_for_path(**{**given, **change})  # type: ignore[arg-type]


def test_a_cap_that_certifies_no_majority_is_named() -> None:
    with pytest.raises(BadInput, match=r"n_max = 4 votes certify no majority.*at least 5"):
        optimal_for_path(PATHS, TRUTH, 0.05, 4, 1.0, accuracy=0.5)


@pytest.mark.parametrize("each_round", [False, True])
def test_where_no_sample_pays_none_is_drawn(each_round: bool) -> None:
    masses, truth = [[[0.9, 0.1]] * 5], [1]  # all votes go the wrong way
    run = optimal_for_path(masses, truth, 0.05, 16, round_cost=0.5, tau=0.5, each_round=each_round)
    assert all(rule.stop[0] == 1 for rule in run.each)
    assert (run.means.samples, run.means.rounds) == (0, 5)
