"""`suffice reproduce`: the paper's experiment, judged, and beside it what this library adds."""

from __future__ import annotations

from typing import Any

import click

from suffice.cli_show import json_option, print_json
from suffice.errors import BadInput
from suffice.live_check import Agreement, config_of, live_rows
from suffice.progress import Progress
from suffice.reference import reference_designs, reference_log
from suffice.report import make_folder, write_report
from suffice.reproduce import STEPS, reproduce
from suffice.tables import (
    Lines,
    added_lines,
    claim_lines,
    live_lines,
    matched_lines,
    papers_lines,
)

__all__ = ["reproduce_"]

WIDTH = 100


@click.command("reproduce")
@click.option("--live", type=int, help="Also sense this many images live.")
@click.option("--out", type=click.Path(), help="Write report.html into this folder.")
@click.option("--logs", type=click.Path(), help="Folder of other logs: votes-32 and votes-128.")
@json_option
def reproduce_(live: int | None, out: str | None, logs: str | None, as_json: bool) -> None:
    """Reproduce the paper's experiment from the reference logs and judge its claims."""
    if live is not None and live < 1:
        raise BadInput(f"live {live} must be at least 1; leave it out to sense nothing")
    log_32, log_128 = reference_log(32, logs), reference_log(128, logs)
    if live is not None:
        config_of(log_32, live)  # whether it can be done is said before the work
    if out is not None:
        make_folder(out)
    with Progress(STEPS, "steps") as progress:
        done = 0

        def tell() -> None:
            nonlocal done
            done += 1
            progress(done)

        found = reproduce(log_32, log_128, tell, reference_designs(log_32, log_128))
    sensed: list[Agreement] = []
    if live is not None:  # the cheapest row of each block; a row of more votes only draws longer
        rows = [row for row in found.table if row.scheme == "Sequential"]
        sensed = live_rows(log_32, rows, live)
    path = None if out is None else write_report(out, found, sensed)
    if as_json:
        record: dict[str, Any] = found.record()
        record["live"] = None if live is None else [each.record() for each in sensed]
        record["report"] = None if path is None else str(path)
        print_json(record)
        return
    _show("The paper's table (M measured, P predicted; 95% intervals)", papers_lines(found.table))
    _show("This library's rules at the same certificate", added_lines(found.added))
    _show("Every rule at matched accuracy", matched_lines(found.matched))
    click.echo("\nWhat the paper says, judged\n")
    for name, paper, here, verdict in claim_lines(found.claims).lines:
        click.echo(f"{name}: {verdict}\n  paper: {paper}")
        click.echo(click.wrap_text(f"here: {here}", WIDTH, "  ", "        "))
    if sensed:
        _show(f"Sensed live: {live} images under each rule", live_lines(sensed))
    if path is not None:
        click.echo(f"\nThe page with the figures: {path}")


def _show(title: str, table: Lines) -> None:
    """A table under its title, aligned to the left."""
    full = [line for line in (table.header, *table.lines) if len(line) > 1]
    widths = [max(map(len, column)) for column in zip(*full, strict=True)]
    click.echo(f"\n{title}\n")
    for line in (table.header, *table.lines):
        if len(line) == 1:
            click.echo(f"\n  {line[0]}")
        else:
            cells = (f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
            click.echo("  ".join(cells).rstrip())
