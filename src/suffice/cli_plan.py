"""`suffice plan`: which rule to deploy, from a log and two prices."""

from __future__ import annotations

from typing import Any

import click

from suffice.cli_show import certificate, json_option, print_json, print_table, required
from suffice.errors import BadInput
from suffice.files import destination
from suffice.plan import plan
from suffice.progress import Progress
from suffice.rule_files import save_rules
from suffice.votes import read_log

__all__ = ["plan_"]

COLUMNS = [
    "rule",
    "tau",
    "n_max",
    "certified_tau",
    "accuracy",
    "declared",
    "rounds",
    "samples",
    "cost",
]


@click.command("plan")
@click.argument("log", metavar="LOG")
@required("--sample-cost", float, "Price of one sample.")
@required("--round-cost", float, "Price of one round: of a measurement.")
@click.option("--accuracy", type=float, help="Accuracy given a declaration to keep.")
@click.option("--eps", type=float, default=0.05, show_default=True, help="Level of certificates.")
@click.option("--guarantee", type=float, help="Most that P(wrong | declared) may be, proven.")
@click.option("--confidence", type=float, help="Confidence of --guarantee. [0.95]")
@click.option("--seed", type=int, default=0, show_default=True, help="Splits the images.")
@click.option("--out", type=click.Path(), help="Save the rule, or the rules of the rounds.")
@json_option
def plan_(log: str, out: str | None, as_json: bool, confidence: float | None, **asked: Any) -> None:
    """Choose the rule to deploy on half of a log's images, and report it on the other half."""
    if confidence is not None:
        if asked["guarantee"] is None:
            raise BadInput(f"--confidence {confidence:g} is that of --guarantee; give that too")
        asked["confidence"] = confidence
    if out is not None:
        destination(out)  # say so now, not when the plan is made
    votes = read_log(log)
    with Progress(1, "designs") as progress:

        def tell(done: int, of: int) -> None:
            progress.total = of
            progress(done)

        found = plan(votes, progress=tell, **asked)
    record = found.record()
    if out is not None:
        save_rules(found.deploy.design.rules, out)
    if as_json:
        print_json(record)
        return
    rows = [("deploy", record["deploy"])]
    rows += [("rival", rival) for rival in record["rivals"]]
    rows += [("frontier", design) for design in record["frontier"]]
    print_table(
        ["", *(name.replace("_", " ") for name in COLUMNS), "95% of cost"],
        [
            [kind, *(_shown(row, name) for name in COLUMNS), _range(row["cost_interval"])]
            for kind, row in rows
        ],
    )
    if found.trials:
        last = [trial for trial in found.trials if trial.passed][-1]
        click.echo(
            f"P(wrong | declared) <= {asked['guarantee']:g} with confidence "
            f"{record['confidence']:g}: {last.wrong} wrong of {last.declared} held out"
        )


def _shown(row: dict[str, Any], name: str) -> Any:
    if name == "certified_tau":
        return certificate(row[name])
    return "-" if row[name] is None else row[name]


def _range(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.4g} to {interval[1]:.4g}"
