"""Rule files hold one rule or one a round, and say in one line when they are broken."""

from pathlib import Path

import pytest

from suffice import BadInput, Rule, plug_in
from suffice.rule_files import load_rules, save_rules


def test_one_rule_is_an_ordinary_rule_file(tmp_path: Path) -> None:
    rule = plug_in(0.7, 8)
    save_rules(rule, tmp_path / "rule.json")
    assert load_rules(tmp_path / "rule.json") == rule
    assert Rule.load(tmp_path / "rule.json") == rule


@pytest.mark.parametrize("count", [1, 3])
def test_a_rule_a_round_comes_back_as_it_was(tmp_path: Path, count: int) -> None:
    rules = [plug_in(0.7, 8), Rule([1], [1], "never looks"), plug_in(0.6, 9)][:count]
    save_rules(rules, tmp_path / "rules.json")
    loaded = load_rules(tmp_path / "rules.json")
    assert loaded == rules
    assert [each.name for each in loaded] == [each.name for each in rules]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"schema": 1, "rules": []}', "not a list of rules"),
        ('{"schema": 2, "rules": [{}]}', "not a list of rules of schema 1"),
        ('{"schema": 1, "rules": [{"schema": 1}]}', "round 1: 'name' is missing"),
        ('{"schema": 1, "rules": [{"sch', "not whole JSON"),
        ("[]", "schema None"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "rules.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=said) as caught:
        load_rules(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        load_rules(tmp_path / "none.json")
