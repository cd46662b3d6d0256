"""What every verb of the command line shares: options, rule files and printing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from suffice.calibrate import cut_down

__all__ = [
    "Many",
    "certificate",
    "json_option",
    "print_json",
    "print_pairs",
    "print_table",
    "required",
]

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


class Many(click.Command):
    """A command whose repeatable options take all the numbers that follow: ``--q 0.5 0.7``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        many = {name for p in self.params if getattr(p, "multiple", False) for name in p.opts}
        spread: list[str] = []
        taking: str | None = None
        for arg in args:
            if arg in many:
                taking = arg
                spread.append(arg)
            elif taking and _number(arg) and spread[-1] != taking:
                spread += [taking, arg]
            else:
                spread.append(arg)
                taking = taking if _number(arg) else None
        return super().parse_args(ctx, spread)


def required(name: str, kind: type, text: str) -> Callable[[Any], Any]:
    """A required option: `required("--tau", float, "Threshold.")`."""
    return click.option(name, type=kind, required=True, help=text)


def print_json(record: Mapping[str, Any]) -> None:
    """One JSON object on standard output."""
    click.echo(json.dumps(record, allow_nan=False))


def print_pairs(record: Mapping[str, Any]) -> None:
    """One name and value a line; what is None or a list is left to --json."""
    shown = {k: v for k, v in record.items() if v is not None and not isinstance(v, list)}
    width = max(len(name) for name in shown)
    for name, value in shown.items():
        text = certificate(value) if name.startswith("certified") else _text(value)
        click.echo(f"{name.replace('_', ' '):<{width}}  {text}")


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Columns under a header, aligned to the right."""
    lines = [list(header), *([_text(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        click.echo("  ".join(f"{cell:>{w}}" for cell, w in zip(line, widths, strict=True)))


def certificate(value: float) -> str:
    """A certified tau to four decimals."""
    return f"{cut_down(value, 4):.4g}"


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _number(arg: str) -> bool:
    return re.fullmatch(r"[-+]?([0-9.]+([eE][-+]?[0-9]+)?|nan|inf)", arg) is not None
