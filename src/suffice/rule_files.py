"""Rule files: one rule, or one a round for a sensing run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from suffice.errors import BadInput
from suffice.files import write_whole
from suffice.inputs import parsed
from suffice.rule import SCHEMA, Rule

__all__ = ["load_rules", "save_rules"]


def save_rules(rules: Rule | Sequence[Rule], path: str | Path) -> None:
    """Write one rule as `Rule.save` does; several as ``{"schema": 1, "rules": [...]}``."""
    if isinstance(rules, Rule):
        rules.save(path)
    else:
        if not rules:
            raise BadInput(f"no rules to write to {path}; give one, or one a round")
        records = [json.loads(rule.to_json()) for rule in rules]
        write_whole(path, json.dumps({"schema": SCHEMA, "rules": records}) + "\n")


def load_rules(path: str | Path) -> Rule | list[Rule]:
    """Read a file that `save_rules` wrote: one rule for all rounds, or a list with one a round."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise BadInput(f"{path}: cannot be read ({reason}); name a rule file") from None
    record = parsed(text, str(path), "write it again with `suffice design ... --out`")
    if not isinstance(record, dict) or "rules" not in record:
        return Rule.from_json(text, source=str(path))
    rules = record["rules"]
    if record.get("schema") != SCHEMA or not isinstance(rules, list) or not rules:
        raise BadInput(f"{path}: not a list of rules of schema {SCHEMA}; write it again")
    return [
        Rule.from_json(json.dumps(rule), source=f"{path}: round {at}")
        for at, rule in enumerate(rules, start=1)
    ]
