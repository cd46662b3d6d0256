"""The verbs about a rule that exists: certify, oc, match, bound."""

from __future__ import annotations

import click

from suffice.bounds import information_bound
from suffice.calibrate import certified_tau, match_fixed
from suffice.cli_show import Many, json_option, print_json, print_pairs, print_table, required
from suffice.errors import BadInput
from suffice.inputs import probability
from suffice.lattice import law, oc
from suffice.pool_law import pool_law
from suffice.rule import Rule
from suffice.rule_files import load_rules
from suffice.rules import plug_in

__all__ = ["bound", "certify", "match", "oc_"]

of_round = click.option("--round", "at", type=int, help="Which, if the file holds one a round.")


def _one_rule(path: str, at: int | None) -> Rule:
    """The rule in this file, or that of a round."""
    rules = load_rules(path)
    if isinstance(rules, Rule):
        if at is not None:
            raise BadInput(f"--round {at}: {path} holds one rule for all rounds; leave it out")
        return rules
    if at is None or not 1 <= at <= len(rules):
        given = "" if at is None else f"--round {at}: "
        raise BadInput(
            f"{given}{path} holds one rule a round; choose with --round from 1 to {len(rules)}"
        )
    return rules[at - 1]


@click.command()
@click.argument("rule_file", metavar="[RULE.json]", required=False)
@click.option("--tau", type=float, help="Vote share above which the running rule declares.")
@click.option("--samples", type=int, help="Its pool size S.")
@click.option("--eps", type=float, default=0.05, show_default=True, help="Error probability.")
@of_round
@json_option
def certify(
    rule_file: str | None,
    tau: float | None,
    samples: int | None,
    eps: float,
    at: int | None,
    as_json: bool,
) -> None:
    """Say what a rule that already runs certifies: the largest q with OC(q) <= eps."""
    if rule_file is not None:
        if samples is not None:
            raise BadInput(f"--samples {samples} does not go with {rule_file}; give one or other")
        if tau is not None:
            probability(tau, "tau")
        rule = _one_rule(rule_file, at)
    elif at is not None:
        raise BadInput(f"--round {at} chooses a rule of a file; give the file too")
    elif tau is None or samples is None:
        raise BadInput("certify needs a rule file, or --tau and --samples of a plug-in rule")
    else:
        rule = plug_in(tau, samples)
    record = {
        "certified_tau": certified_tau(rule, eps),
        "eps": eps,
        **({"r": rule.parameters["r"]} if "r" in rule.parameters else {}),
        **({"size": oc(rule, tau)} if tau is not None else {}),
    }
    (print_json if as_json else print_pairs)(record)


@click.command("oc", cls=Many)
@click.argument("rule_file", metavar="RULE.json")
@click.option("--q", type=float, multiple=True, help="Vote masses, one or more.")
@click.option("--pi", type=float, multiple=True, help="In their place, the masses of all classes.")
@of_round
@json_option
def oc_(
    rule_file: str, q: tuple[float, ...], pi: tuple[float, ...], at: int | None, as_json: bool
) -> None:
    """The probability that one class of mass q is declared, and its expected samples."""
    if bool(q) == bool(pi):
        raise click.UsageError(
            "Missing option '--q', or '--pi' for a whole pool" if not q else "give --q or --pi"
        )
    rule = _one_rule(rule_file, at)
    if pi:
        _pool(rule, pi, as_json)
        return
    result = law(rule, q)
    columns = {
        "q": list(q),
        "declare_probability": result.declare_probability.tolist(),
        "expected_samples": result.expected_samples.tolist(),
    }
    if as_json:
        print_json(columns)
    else:
        rows = list(zip(*columns.values(), strict=True))
        print_table([name.replace("_", " ") for name in columns], rows)


def _pool(rule: Rule, pi: tuple[float, ...], as_json: bool) -> None:
    """The law of the whole pool, and how far off it may be."""
    result = pool_law(rule, pi)
    declared = result.declared.tolist()
    record = {
        "undecided": float(result.undecided),
        "expected_samples": float(result.expected_samples),
        "expected_samples_error": float(result.error),
        "declare_error": float(result.declared_error),
    }
    if as_json:
        print_json({"pi": list(pi), "declare_probability": declared, **record})
    else:
        print_table(["pi", "declare probability"], list(zip(pi, declared, strict=True)))
        print_pairs(record)


@click.command()
@click.argument("rule_file", metavar="RULE.json")
@required("--tau", float, "Where the size is matched.")
@required("--q-alt", float, "Where the power is matched.")
@click.option("--tolerance", type=float, default=0.0, show_default=True, help="Power to give up.")
@of_round
@json_option
def match(
    rule_file: str, tau: float, q_alt: float, tolerance: float, at: int | None, as_json: bool
) -> None:
    """The smallest fixed pool with a rule's size and power, and its cost once curtailed."""
    fixed = match_fixed(_one_rule(rule_file, at), tau, q_alt, tolerance)
    ends = law(fixed, [tau, q_alt])
    size, power = ends.declare_probability.tolist()
    record = {
        "samples": fixed.n_max,
        "r": fixed.parameters["r"],
        "size": size,
        "power": power,
        "expected_samples": float(ends.expected_samples[1]),
    }
    (print_json if as_json else print_pairs)(record)


@click.command()
@required("--tau", float, "Threshold.")
@required("--q", float, "Vote mass at which the expected samples are bounded.")
@required("--size", float, "Most that OC(tau) may be.")
@required("--power", float, "Least that OC(q) may be.")
@json_option
def bound(tau: float, q: float, size: float, power: float, as_json: bool) -> None:
    """Expected samples below which no rule of that size and power can go."""
    record = {"bound": information_bound(tau, q, size, power)}
    (print_json if as_json else print_pairs)(record)
