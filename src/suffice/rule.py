"""A stopping rule is two integer arrays on the (n, k) lattice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.errors import BadInput
from suffice.files import write_whole
from suffice.inputs import parsed

__all__ = ["Rule"]

SCHEMA = 1
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rule:
    """When a class is declared, and when it is out, after n votes of which it has k.

    A class is declared at the first n with ``k >= declare[n]``; it is out from the first n with
    ``k < stop[n]`` and stays out. ``declare[n] = n + 1`` never declares at n, ``stop[n] = 0``
    puts nothing out. Both arrays have shape ``(n_max + 1,)``.

    >>> rule = Rule([1, 2, 2], [0, 0, 1], "two in a row")
    >>> rule.n_max
    2
    """

    declare: Counts = field(repr=False)
    stop: Counts = field(repr=False)
    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        declare: ArrayLike,
        stop: ArrayLike,
        name: str,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        boundaries = (_counts(declare, "declare"), _counts(stop, "stop"))
        _check(*boundaries)
        object.__setattr__(self, "declare", boundaries[0])
        object.__setattr__(self, "stop", boundaries[1])
        object.__setattr__(self, "name", str(name))
        object.__setattr__(self, "parameters", dict(parameters or {}))

    @property
    def n_max(self) -> int:
        """The most votes that a pool under this rule can draw."""
        return len(self.declare) - 1

    def __eq__(self, other: object) -> bool:
        """Rules are equal when they decide alike: names and parameters do not count."""
        if not isinstance(other, Rule):
            return NotImplemented
        return np.array_equal(self.declare, other.declare) and np.array_equal(self.stop, other.stop)

    def __hash__(self) -> int:
        return hash((self.declare.tobytes(), self.stop.tobytes()))

    def to_json(self) -> str:
        """The rule as one JSON object, readable by `from_json`."""
        return json.dumps(
            {
                "schema": SCHEMA,
                "name": self.name,
                "parameters": dict(self.parameters),
                "declare": self.declare.tolist(),
                "stop": self.stop.tolist(),
            }
        )

    @classmethod
    def from_json(cls, text: str, source: str = "rule") -> Rule:
        """The rule that `to_json` wrote; `source` names it in errors.

        >>> rule = Rule([1, 2, 2], [0, 0, 1], "two in a row")
        >>> Rule.from_json(rule.to_json()) == rule
        True
        """
        again = "write it again with `suffice design ... --out`"
        record = parsed(text, source, again)
        found = record.get("schema") if isinstance(record, dict) else None
        if found is True or found != SCHEMA:
            raise BadInput(f"{source}: schema {found!r} is not the rule schema {SCHEMA}; {again}")
        if "rules" in record:
            raise BadInput(f"{source}: holds one rule a round; read them with suffice.load_rules")
        missing = [key for key in ("name", "parameters", "declare", "stop") if key not in record]
        if missing:
            raise BadInput(f"{source}: {missing[0]!r} is missing; a rule file has all five keys")
        if not isinstance(record["parameters"], dict):
            raise BadInput(f"{source}: parameters {record['parameters']!r} must be an object")
        if not isinstance(record["name"], str):
            raise BadInput(f"{source}: name {record['name']!r} must be text")
        for key in ("declare", "stop"):
            if not _whole_numbers(record[key]):
                raise BadInput(f"{source}: {key} must be one row of whole numbers; {again}")
        try:
            return cls(record["declare"], record["stop"], record["name"], record["parameters"])
        except BadInput as error:
            raise BadInput(f"{source}: {error}") from None

    def save(self, path: str | Path) -> None:
        """Write the rule as JSON, whole or not at all."""
        write_whole(path, self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Rule:
        """Read a rule that `save` wrote."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not text"
            raise BadInput(f"{path}: cannot be read ({reason}); name a rule file") from None
        return cls.from_json(text, source=str(path))


def _whole_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int for value in values)


def _counts(values: ArrayLike, what: str) -> Counts:
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise BadInput(f"{what} must be one row of whole numbers, one for each n from 0 to n_max")
    array = array.astype(np.int64)
    array.setflags(write=False)
    return array


def _check(declare: Counts, stop: Counts) -> None:
    """Raise unless the two arrays make a valid rule (at most one class can cross at one vote)."""
    if declare.shape != stop.shape:
        raise BadInput(
            f"declare has {declare.size} entries and stop {stop.size}; both need n_max + 1"
        )
    n = np.arange(declare.size)
    _refuse(
        (declare < 1) | (declare > n + 1),
        lambda at: f"declare[{at}] = {declare[at]} is outside 1 to {at + 1}; {at + 1} means never",
    )
    _refuse(
        (stop < 0) | (stop > declare),
        lambda at: f"stop[{at}] = {stop[at]} is outside 0 to declare[{at}] = {declare[at]}",
    )
    looks = np.flatnonzero(_reachable(declare, stop))
    # Two classes can cross at one look only if both rise to declare[n] since the look before it.
    before = np.concatenate([[np.iinfo(np.int64).max // 4], declare[looks[:-1]]])
    gap = np.diff(looks, prepend=0)
    rise = np.maximum(declare[looks] - before + 1, 0)
    safe = (2 * declare[looks] > looks) | ((rise > 0) & (2 * rise > gap))
    if not safe.all():
        at = int(looks[np.flatnonzero(~safe)[0]])
        raise BadInput(
            f"declare[{at}] = {declare[at]} lets two classes cross at vote {at}; "
            f"raise it above {at // 2} or let declare never fall between looks"
        )


def _reachable(declare: Counts, stop: Counts) -> NDArray[np.bool_]:
    """For each n, whether some class can be declared there."""
    crossing = np.zeros(declare.size, dtype=bool)
    low, high = 0, 0  # the counts of the classes still open; an interval at every n
    for n in range(declare.size):
        if n:
            high += 1
        crossing[n] = high >= declare[n]
        low, high = max(low, int(stop[n])), min(high, int(declare[n]) - 1)
        if low > high:
            break
    return crossing


def _refuse(wrong: NDArray[np.bool_], message: Any) -> None:
    if wrong.any():
        raise BadInput(message(int(np.flatnonzero(wrong)[0])))
