"""The reference logs: votes of DDRM on 1000 MNIST images, shipped with the package."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from suffice.errors import BadInput
from suffice.rule import Rule
from suffice.votes import VoteLog, read_log

__all__ = ["Designs", "designs_record", "reference_designs", "reference_log"]

DRAWS = (32, 128)
Designs = Mapping[tuple[str, float], list[Rule | tuple[Rule, ...]]]
"""By scheme and tau: the rules fitted to the even images of a log, and those to the odd ones."""


def reference_log(draws: int, folder: str | Path | None = None) -> VoteLog:
    """The log of 32 votes a pool, or that of 128 further votes at the same measurement states.

    `folder` holds those of another run in their place: `votes-32` and `votes-128`, each a log's
    folder or one Parquet file.
    """
    if draws not in DRAWS:
        raise BadInput(f"draws = {draws!r}: there is no such reference log; choose 32 or 128")
    name = f"votes-{draws}.parquet"
    if folder is not None:
        whole, file = Path(folder) / f"votes-{draws}", Path(folder) / name
        if not (whole.exists() or file.exists()):
            first = "" if draws == DRAWS[0] else f" --first-draw {DRAWS[0]}"
            raise BadInput(
                f"{whole}: no such log; make it with `suffice log --images 1000 --draws {draws}"
                f"{first} --out {whole}`"
            )
        return read_log(whole if whole.exists() else file)
    with resources.as_file(resources.files("suffice") / "assets" / name) as path:
        if not path.is_file():
            raise BadInput(
                f"{name} is missing from this installation; install suffice again, or name the "
                "folder of other logs with --logs"
            )
        return read_log(path)


def reference_designs(*logs: VoteLog) -> Designs:
    """The rules that take minutes to fit, as they were fitted to these logs; none for others."""
    text = (resources.files("suffice") / "assets" / "designs.json").read_text(encoding="utf-8")
    record = json.loads(text)
    if record["votes"] != _sha256(logs):
        return {}
    return {
        (entry["scheme"], entry["tau"]): [_rules(half) for half in entry["halves"]]
        for entry in record["designs"]
    }


def designs_record(logs: Sequence[VoteLog], designs: Designs) -> dict[str, Any]:
    """Designs as `reference_designs` reads them."""
    entries = [
        {"scheme": scheme, "tau": tau, "halves": [_plain(half) for half in halves]}
        for (scheme, tau), halves in designs.items()
    ]
    return {"votes": _sha256(logs), "designs": entries}


def _sha256(logs: Sequence[VoteLog]) -> str:
    return hashlib.sha256(b"".join(log.votes.tobytes() for log in logs)).hexdigest()


def _plain(rules: Rule | tuple[Rule, ...]) -> Any:
    """One rule as an object, one rule a round as a list of them."""
    if isinstance(rules, Rule):
        return json.loads(rules.to_json())
    return [json.loads(rule.to_json()) for rule in rules]


def _rules(plain: Any) -> Rule | tuple[Rule, ...]:
    if isinstance(plain, list):
        return tuple(Rule.from_json(json.dumps(each)) for each in plain)
    return Rule.from_json(json.dumps(plain))
