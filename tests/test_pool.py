"""The pool agrees with the definition, vote by vote, and says why it ended."""

import itertools
import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import rules
from suffice import BadInput, Rule
from suffice.pool import Pool

# A full fixed pool, a curtailed one, one with futility before it is forced, one that looks at
# 3 and 6 with a lower boundary at 6, one whose stop boundary falls again, one that never looks.
RULES = {
    "full": Rule([1, 2, 3, 4, 5, 4], [0] * 6, "full"),
    "curtailed": Rule([1, 2, 3, 4, 4, 4], [0, 0, 1, 2, 3, 4], "curtailed"),
    "futility": Rule([1, 2, 2, 3, 3, 4, 4], [0, 0, 1, 1, 2, 2, 4], "futility"),
    "looks": Rule([1, 2, 3, 3, 5, 6, 4], [0, 0, 0, 1, 0, 0, 2], "looks"),
    "falling stop": Rule([1, 2, 3, 3, 4, 4, 4], [0, 0, 1, 0, 0, 0, 0], "falling stop"),
    "never looks": Rule([1, 2, 3], [1, 0, 0], "never looks"),
    "no votes": Rule([1], [0], "no votes"),
}
REASONS = {
    "full": {"boundary", "cap"},
    "curtailed": {"boundary", "forced", "cap"},
    "futility": {"boundary", "forced", "out", "cap"},
    "looks": {"boundary", "forced", "cap"},
    "falling stop": {"boundary", "out", "cap"},
    "never looks": {"forced"},
    "no votes": {"cap"},
}
LABELS = ("a", "b", "c", None)


def defined(rule: Rule, votes: tuple) -> tuple[str, int, str | None]:
    """The verdict by the definition: each class walked on its own, as a mathematician would."""
    horizon = len(votes)
    crossed, left = {}, {}
    for label in {*votes, "unseen"} - {None}:
        for n in range(horizon + 1):
            k = votes[:n].count(label)
            if k >= rule.declare[n]:
                crossed[label] = n
                break
            if k < rule.stop[n]:
                left[label] = n
                break
    if crossed:
        n = min(crossed.values())
        (label,) = [c for c, at in crossed.items() if at == n]
        if all(n <= at for at in left.values()) or len(left) + 1 <= len(
            {*votes, "unseen"} - {None}
        ):
            return "declared", n, label
    if len(left) == len({*votes, "unseen"} - {None}):
        return "undecided", max(left.values()), None
    return ("undecided" if horizon == rule.n_max else "open"), horizon, None


@pytest.fixture(params=RULES.values(), ids=RULES.keys())
def rule(request: pytest.FixtureRequest) -> Rule:
    return request.param


def drawn(rule: Rule, votes: tuple) -> Pool:
    pool = Pool(rule)
    pool.add_many(votes)
    return pool


def test_pool_equals_the_definition_on_every_sequence(rule: Rule) -> None:
    for length in range(rule.n_max + 1):
        for votes in itertools.product(LABELS, repeat=length):
            verdict = drawn(rule, votes).verdict
            assert (verdict.kind, verdict.n, verdict.label) == defined(rule, votes)


def test_sure_is_the_shortest_continuation(rule: Rule) -> None:
    @cache
    def shortest(votes: tuple) -> int:
        if not drawn(rule, votes).open:
            return 0
        return 1 + min(shortest((*votes, label)) for label in ("a", "b", None))

    for length in range(rule.n_max + 1):
        for votes in itertools.product(("a", "b", None), repeat=length):
            pool = drawn(rule, votes)
            if pool.n == length:
                assert pool.sure == shortest(votes)


def test_reason_tells_forced_from_futile(rule: Rule) -> None:
    """Forced means: no continuation brings any count to declare, now or later."""
    seen = set()
    for votes in itertools.product(LABELS, repeat=rule.n_max):
        verdict = drawn(rule, votes).verdict
        seen.add(verdict.reason)
        if verdict.kind == "declared":
            assert verdict.reason == "boundary"
            assert verdict.count == votes[: verdict.n].count(verdict.label)
        elif verdict.n == rule.n_max:
            assert verdict.reason == "cap"
        else:
            past = votes[: verdict.n]
            reachable = any(
                past.count(c) + (m - verdict.n) >= rule.declare[m]
                for c in ("a", "b", "c", "unseen")
                for m in range(verdict.n, rule.n_max + 1)
            )
            assert verdict.reason == ("out" if reachable else "forced")
    assert seen == REASONS[rule.name]


@given(rules(max_n=12), st.lists(st.sampled_from(["a", "a", "b", "c", None]), min_size=12))
def test_random_rules_and_votes_agree_with_the_definition(rule: Rule, votes: list) -> None:
    sequence = tuple(votes[: rule.n_max])
    verdict = drawn(rule, sequence).verdict
    assert (verdict.kind, verdict.n, verdict.label) == defined(rule, sequence)


def test_add_many_counts_in_order_and_says_what_came_late() -> None:
    pool = Pool(RULES["curtailed"])
    assert pool.add_many("aabaabb") == 2
    assert str(pool.verdict) == "declared('a')"
    assert pool.votes == tuple("aabaa")
    assert pool.counts == {"a": 4, "b": 1}
    assert pool.add_many("aa") == 2
    assert pool.n == 5


def test_any_hashable_label_will_do() -> None:
    pool = Pool(RULES["full"])
    pool.add_many([("x", 1), 7, np.int64(7), frozenset({1})])
    assert pool.counts == {("x", 1): 1, 7: 2, frozenset({1}): 1}


def test_a_saved_pool_goes_on_where_it_was(rule: Rule) -> None:
    for votes in itertools.product(("a", 3, ("t", None), None), repeat=min(rule.n_max, 4)):
        pool = drawn(rule, votes)
        again = Pool.from_json(pool.to_json())
        assert again.rule == pool.rule
        assert again.votes == pool.votes
        assert again.verdict == pool.verdict
        assert again.add_many("abbb") == pool.add_many("abbb")
        assert again.verdict == pool.verdict


def test_numpy_labels_are_saved_as_their_values() -> None:
    pool = drawn(RULES["full"], (np.int64(7), np.str_("x")))
    assert Pool.from_json(pool.to_json()).counts == {7: 1, "x": 1}


def test_bad_votes_get_one_line_and_leave_the_pool_as_it_was() -> None:
    pool = Pool(RULES["full"])
    for label, said in [
        ([1], "cannot be hashed; use a string"),
        (np.array(3), "cannot be hashed"),
        (float("nan"), "use None for an invalid vote"),
    ]:
        with pytest.raises(BadInput, match=said) as caught:
            pool.add(label)
        assert "\n" not in str(caught.value)
    import torch

    with pytest.raises(BadInput, match=r"Tensor, hashed by identity; use its \.item"):
        pool.add(torch.tensor(3))
    assert (pool.n, pool.counts) == (0, {})


def test_a_vote_after_the_close_is_an_error() -> None:
    pool = Pool(RULES["never looks"])
    assert not pool.open
    with pytest.raises(
        BadInput, match=r"vote 'a' came after the pool closed \(undecided at vote 0"
    ):
        pool.add("a")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[:-9], "not whole JSON"),
        (lambda text: text.replace('{"schema": 1, "rule"', '{"schema": 9, "rule"'), "schema 9"),
        (lambda text: text.replace("votes", "voices"), "'votes' must be a list"),
        (lambda text: text.replace('"stop": [0', '"stop": [5'), "pool: rule: stop"),
        (lambda text: text.replace('["a", "b"]', '["a", "a", "a", "a", "a", "a"]'), "1 of its"),
        (lambda text: text.replace('["a", "b"]', '[{"a": 1}]'), "cannot be hashed"),
        (lambda text: "[]", "schema None"),
    ],
)
def test_a_broken_state_gets_one_line(change, said: str) -> None:
    text = drawn(RULES["full"], ("a", "b")).to_json()
    with pytest.raises(BadInput, match=said) as caught:
        Pool.from_json(change(text))
    assert "\n" not in str(caught.value)


def test_a_label_that_json_cannot_hold_is_named() -> None:
    pool = drawn(RULES["full"], (frozenset({1}),))
    with pytest.raises(BadInput, match="cannot be saved as JSON"):
        pool.to_json()
    assert json.loads(drawn(RULES["full"], ("a",)).to_json())["votes"] == ["a"]
