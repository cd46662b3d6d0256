"""`curtail` changes no verdict on any vote sequence, and no earlier end would do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings

from oracles import first_forced, play, sequences
from strategies import rules
from suffice.curtail import curtail
from suffice.errors import BadInput
from suffice.lattice import oc
from suffice.rule import Rule

FULL = Rule([1, 2, 3, 4, 5, 3], [0] * 6, "three of five")
FALLING = Rule([1, 2, 3, 4, 5, 6, 4], [0, 0, 1, 0, 2, 0, 0], "falls")


@settings(max_examples=60, deadline=None)
@example(FULL)
@example(FALLING)
@example(Rule([1, 2, 3], [0, 0, 0], "never declares"))
@example(Rule([1, 1], [1, 0], "never looks"))
@given(rules(max_n=6))
def test_same_verdict_and_no_earlier_end(rule: Rule) -> None:
    labels = ["a", "b", "c", None] if rule.n_max <= 5 else ["a", "b", None]
    short = curtail(rule)
    for votes, ending in first_forced(rule, labels).items():
        assert play(short, votes) == ending


@settings(max_examples=40, deadline=None)
@given(rules(max_n=10, min_n=7))
def test_same_verdict_for_longer_rules(rule: Rule) -> None:
    short = curtail(rule)
    for votes in sequences(rule.n_max, ["a", "b"]):
        label, n = play(rule, votes)
        short_label, short_n = play(short, votes)
        assert short_label == label
        assert short_n <= n


@settings(max_examples=200, deadline=None)
@given(rules(max_n=40))
def test_curtailing_twice_is_curtailing_once(rule: Rule) -> None:
    short = curtail(rule)
    assert curtail(short) == short
    q = np.linspace(0, 1, 7)
    np.testing.assert_allclose(oc(short, q), oc(rule, q), atol=1e-13)
    assert (short.name, short.parameters) == (rule.name, rule.parameters)


@pytest.mark.parametrize("every", [2, 3, 4])
def test_ends_only_at_looks(every: int) -> None:
    short = curtail(FULL, every=every)
    for votes, ending in first_forced(FULL, ["a", "b", "c", None], every).items():
        assert play(short, votes) == ending


@pytest.mark.parametrize(
    "rule",
    [Rule([1, 2, 2, 2], [0] * 4, "looks at 2 and 3"), Rule([1, 2, 2], [0, 1, 0], "out at 1")],
)
def test_looks_that_would_be_lost_are_refused(rule: Rule) -> None:
    with pytest.raises(BadInput, match="every = 4: the rule looks at other votes too"):
        curtail(rule, every=4)
