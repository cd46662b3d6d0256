"""What a valid rule is, and its way through JSON."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import sequences
from strategies import rules
from suffice.errors import BadInput
from suffice.rule import Rule

TWO_IN_A_ROW = Rule([1, 2, 2], [0, 0, 1], "two in a row", {"tau": 0.7})


@settings(max_examples=100, deadline=None)
@given(rules(max_n=20))
def test_json_round_trip(rule: Rule) -> None:
    back = Rule.from_json(rule.to_json())
    assert back == rule
    assert hash(back) == hash(rule)
    assert (back.name, back.parameters) == (rule.name, rule.parameters)


def test_file_round_trip(tmp_path: Path) -> None:
    TWO_IN_A_ROW.save(tmp_path / "rule.json")
    assert Rule.load(tmp_path / "rule.json") == TWO_IN_A_ROW


@pytest.mark.parametrize("end", range(1, 40, 6))
def test_a_file_cut_off_is_refused_in_one_line(tmp_path: Path, end: int) -> None:
    path = tmp_path / "rule.json"
    path.write_text(TWO_IN_A_ROW.to_json()[:-end])
    with pytest.raises(BadInput, match="not whole JSON") as caught:
        Rule.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 99}, "schema 99 is not the rule schema"),
        ({"schema": None}, "schema None is not"),
        ({"declare": [1, 2, 9]}, r"declare\[2\] = 9 is outside 1 to 3"),
        ({"declare": [1, 2.5, 3]}, "declare must be one row of whole numbers"),
        ({"stop": [0, 0]}, "declare has 3 entries and stop 2"),
        ({"stop": [0, 0, 3]}, r"stop\[2\] = 3 is outside 0 to declare\[2\] = 2"),
        ({"parameters": [1]}, r"parameters \[1\] must be an object"),
        ({"parameters": {"r": float("nan")}}, "NaN is no number"),
        ({"declare": [1, 2, True]}, "declare must be one row of whole numbers"),
        ({"stop": [False, 0, 0]}, "stop must be one row of whole numbers"),
        ({"schema": True}, "schema True is not"),
        ({"name": None}, "name None must be text"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(change: dict[str, object], message: str) -> None:
    record = json.loads(TWO_IN_A_ROW.to_json()) | change
    with pytest.raises(BadInput, match=message) as caught:
        Rule.from_json(json.dumps(record), source="mine.json")
    assert str(caught.value).startswith("mine.json: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["name", "parameters", "declare", "stop"])
def test_a_missing_key_is_named(key: str) -> None:
    record = json.loads(TWO_IN_A_ROW.to_json())
    del record[key]
    with pytest.raises(BadInput, match=f"'{key}' is missing"):
        Rule.from_json(json.dumps(record))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        Rule.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("declare", "stop"),
    [([], []), ([[1, 2]], [[0, 0]]), ([1, "2"], [0, 0]), ([0, 1], [0, 0]), ([1, 2], [-1, 0])],
)
def test_what_is_no_pair_of_boundaries_is_refused(declare: list[int], stop: list[int]) -> None:
    with pytest.raises(BadInput):
        Rule(declare, stop, "wrong")


def two_cross(declare: tuple[int, ...], stop: tuple[int, ...]) -> bool:
    """Whether two classes cross at one vote on some sequence, one vote at a time."""
    n_max = len(declare) - 1
    for votes in sequences(n_max, ["a", "b"]):
        out: set[str] = set()
        for n in range(n_max + 1):
            count = {c: votes[:n].count(c) for c in "ab"}
            crossing = [c for c in "ab" if c not in out and count[c] >= declare[n]]
            if len(crossing) > 1:
                return True
            if crossing:
                break
            out |= {c for c in "ab" if count[c] < stop[n]}
    return False


def test_no_accepted_rule_lets_two_classes_cross_at_one_vote() -> None:
    accepted = 0
    for declare in product([1], [1, 2], [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5]):
        for stop in ((0, 0, 0, 0, 0), (0, 0, 1, 0, 0), (0, 0, 0, 1, 2)):
            try:
                Rule(declare, stop, "tried")
            except BadInput:
                continue
            accepted += 1
            assert not two_cross(declare, stop)
    assert accepted > 50


def test_half_a_pool_is_refused() -> None:
    with pytest.raises(BadInput, match="lets two classes cross at vote 4"):
        Rule([1, 2, 3, 4, 2], [0] * 5, "two of four")


@given(st.integers(0, 2))
def test_arrays_cannot_be_changed(n: int) -> None:
    with pytest.raises(ValueError, match="read-only"):
        TWO_IN_A_ROW.declare[n] = 1


def test_rules_that_decide_alike_are_equal() -> None:
    same = Rule(np.array([1, 2, 2], dtype=np.int16), [0, 0, 1], "another name")
    assert same == TWO_IN_A_ROW
    assert Rule([1, 2, 2], [0, 0, 0], "two in a row") != TWO_IN_A_ROW
    assert TWO_IN_A_ROW != "two in a row"


@pytest.mark.parametrize("text", ["[" * 100_000, '{"schema": ' + "1" * 5_000 + "}"])
def test_json_that_cannot_be_read_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadInput, match=r"mine.json: not whole JSON") as caught:
        Rule.from_json(text, source="mine.json")
    assert "\n" not in str(caught.value)
