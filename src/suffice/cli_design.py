"""`suffice design`: one verb a maker, and one way to print what was designed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from suffice import rules
from suffice.calibrate import certified_tau
from suffice.cli_show import json_option, print_json, print_pairs, required
from suffice.errors import BadInput
from suffice.inputs import between
from suffice.lattice import law
from suffice.loop_error import split_eps
from suffice.optimal import optimal as optimum
from suffice.rule import Rule

__all__ = ["design"]

EPS = 0.05  # the level of the certificate where no --eps is given; always printed

TAU = required("--tau", float, "Threshold on the vote mass.")
SAMPLES = required("--samples", int, "Pool size S.")
LEVEL = click.option("--eps", type=float, help=f"Level of the certificate; {EPS} unless given.")
ERROR = click.option("--eps", type=float, help="Error probability at tau, or --eps-loop.")
ERROR_OR_ALPHA = click.option("--eps", type=float, help="Error probability at tau, or --alpha.")
ALPHA = click.option("--alpha", type=float, help="Posterior level, in place of --eps.")
CAP = required("--n-max", int, "The most votes.")
CAP_OR_POWER = click.option("--n-max", type=int, help="The most votes, or --power.")
Q_ALT = click.option("--q-alt", type=float, help="Mass at which power and cost are told.")
POWER = click.option("--power", type=float, help="OC(q_alt) to reach, in place of --n-max.")
LOOP = (
    click.option(
        "--eps-loop",
        type=float,
        help="Error probability of a whole run of --rounds, in place of --eps.",
    ),
    click.option("--rounds", type=int, help="Rounds of the run that --eps-loop is for."),
)
WEIGHTS = click.option(
    "--weight",
    "weights",
    type=(float, float),
    multiple=True,
    metavar="MASS SHARE",
    help="Minimise the mean E[N] over masses with these shares; q_alt alone unless given.",
)
Q_ALT_HELD = required("--q-alt", float, "Mass at which the power is held.")
POWER_HELD = required("--power", float, "OC(q_alt) to reach.")


@click.group()
def design() -> None:
    """Design a stopping rule and print what it certifies and costs."""


def _verb(
    name: str, *options: Callable[..., Any], curtailed: bool | None = True, error: bool = True
) -> Callable[..., Any]:
    """Make a verb of a function from the options to a rule, and maybe more to tell of it.

    `curtailed` is the default, None where there is no choice; `error` that it must have an eps.
    """
    choice = click.option(
        "--curtailed/--full",
        default=curtailed,
        show_default=True,
        help="End pools whose verdict is forced, or take the rule as stated.",
    )
    shared = (
        *LOOP,
        click.option("--every", type=int, default=1, help="Look only at each B-th vote."),
        *([] if curtailed is None else [choice]),
        click.option("--out", type=click.Path(), help="Save the rule to this file."),
        json_option,
    )

    def register(make: Callable[..., Any]) -> Callable[..., Any]:
        def verb(
            out: str | None, as_json: bool, eps_loop: float | None, rounds: int | None, **given: Any
        ) -> None:
            given["eps"] = _eps_of(given.get("eps"), eps_loop, rounds)
            if error and given["eps"] is None:
                raise BadInput(f"{name} needs --eps, or --eps-loop and --rounds")
            made = make(**given)
            rule, more = made if isinstance(made, tuple) else (made, {})
            told = _report(rule, given["tau"], given["eps"], given.get("q_alt"), more, out)
            (print_json if as_json else print_pairs)(told)

        verb.__doc__ = make.__doc__
        for option in reversed((*options, *shared)):
            verb = option(verb)
        design.command(name)(verb)
        return make

    return register


@_verb("plug-in", TAU, SAMPLES, LEVEL, Q_ALT, error=False)
def plug_in(tau: float, samples: int, eps: float | None, q_alt: float | None, **how: Any) -> Rule:
    """Declare when the share of S votes exceeds tau."""
    return rules.plug_in(tau, samples, **how)


@_verb("one-look", TAU, SAMPLES, ERROR, Q_ALT)
def one_look(tau: float, samples: int, eps: float, q_alt: float | None, **how: Any) -> Rule:
    """Declare at the count that a class of mass tau reaches with probability eps at most."""
    return rules.one_look(tau, eps, samples, **how)


@_verb("sequential", TAU, ERROR_OR_ALPHA, ALPHA, CAP_OR_POWER, Q_ALT, POWER, error=False)
def sequential(tau: float, q_alt: float | None, power: float | None, **how: Any) -> Rule:
    """Declare when the posterior for a mass above tau exceeds 1 - alpha (eq. seq)."""
    # Without a power to reach, q_alt only says where the rule's figures are told.
    if power is not None:
        how |= {"q_alt": q_alt, "power": power}
    return rules.sequential(tau, **how)


@_verb("sprt", TAU, ERROR, Q_ALT_HELD, POWER_HELD, CAP)
def sprt(tau: float, eps: float, q_alt: float, power: float, n_max: int, **how: Any) -> Rule:
    """Wald's test of tau against q_alt, cut off at n_max."""
    return rules.sprt(tau, q_alt, eps, power, n_max, **how)


@_verb("e-process", TAU, ERROR, CAP, Q_ALT, curtailed=False)
def e_process(tau: float, eps: float, n_max: int, q_alt: float | None, **how: Any) -> Rule:
    """Bet against every mass up to tau; valid without any cap."""
    return rules.e_process(tau, eps, n_max, **how)


@_verb("optimal", TAU, ERROR, Q_ALT_HELD, POWER_HELD, CAP, WEIGHTS, curtailed=None)
def optimal(weights: tuple[tuple[float, float], ...], **how: Any) -> tuple[Rule, dict[str, Any]]:
    """The fewest expected samples that size and power allow, with a proven lower bound."""
    found = optimum(**how, weights=weights or None)
    return found.rule, {"lower_bound": found.lower_bound, "gap": found.gap}


def _eps_of(eps: float | None, eps_loop: float | None, rounds: int | None) -> float | None:
    """The error probability of a round, from that of a whole run where one is given."""
    if (eps_loop is None) != (rounds is None):
        raise BadInput("--eps-loop and --rounds go together; give both, or --eps alone")
    if eps_loop is None or rounds is None:
        return eps
    if eps is not None:
        raise BadInput(f"--eps {eps} does not go with --eps-loop {eps_loop}; give one of them")
    return split_eps(eps_loop, rounds)


def _report(
    rule: Rule,
    tau: float,
    eps: float | None,
    q_alt: float | None,
    more: dict[str, Any],
    out: str | None,
) -> dict[str, Any]:
    """The rule with its exact figures, saved where asked."""
    level = EPS if eps is None else eps
    at = law(rule, [tau] if q_alt is None else [tau, between(q_alt, "q_alt", tau)])
    oc = at.declare_probability.tolist()
    told = {
        "rule": rule.name,
        "tau": tau,
        "eps": level,
        **{key: rule.parameters[key] for key in ("r", "alpha") if key in rule.parameters},
        "n_max": rule.n_max,
        "size": oc[0],
        "power": None if q_alt is None else oc[1],
        "q_alt": q_alt,
        "certified_tau": certified_tau(rule, level),
        "expected_samples": float(at.expected_samples[-1]),
        **more,
        "declare": rule.declare.tolist(),
        "stop": rule.stop.tolist(),
    }
    if out is not None:
        rule.save(out)
    return told
