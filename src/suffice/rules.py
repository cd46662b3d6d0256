"""The makers: each turns what a certificate must say into a rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice import wald
from suffice.boundaries import (
    Prior,
    binomial_tail,
    build,
    fixed_rule,
    mixture_boundary,
    plug_in_count,
    smallest_critical_count,
)
from suffice.calibrate import (
    LARGEST_N_MAX,
    ROUNDING,
    UNIFORM,
    calibrate_alpha,
    sequential_rule,
    smallest_n_max,
)
from suffice.errors import BadInput, CalibrationInfeasible
from suffice.inputs import between, probability, whole
from suffice.lattice import law, oc
from suffice.rule import Rule

__all__ = ["e_process", "one_look", "plug_in", "sequential", "sprt"]


def plug_in(tau: Any, samples: int, *, every: int = 1, curtailed: bool = True) -> Rule:
    """Declare the leader of a fixed pool if its share exceeds tau; certifies less than tau.

    >>> plug_in(tau=0.70, samples=32).parameters["r"]
    23
    """
    exact, size = probability(tau, "tau"), whole(samples, "samples")
    parameters = {"tau": float(exact)}
    r = plug_in_count(size, exact)
    return fixed_rule(size, r, "plug-in", parameters, whole(every, "every"), curtailed)


def one_look(tau: Any, eps: Any, samples: int, *, every: int = 1, curtailed: bool = True) -> Rule:
    """Declare the leader of a fixed pool at the smallest count whose tail is at most eps (eq. 2).

    >>> one_look(tau=0.70, eps=0.05, samples=32).parameters["r"]
    28
    """
    mass, limit = float(probability(tau, "tau")), float(probability(eps, "eps"))
    size = whole(samples, "samples")
    r = int(smallest_critical_count(np.array([size]), mass, limit)[0])
    if r > size:
        unanimous = float(binomial_tail(size, size, mass))
        needed = int(np.ceil(np.log(limit) / np.log(mass)))
        raise CalibrationInfeasible(
            f"eps = {eps}: even {size} votes of {size} have size {unanimous:.3g} at tau = {tau}; "
            f"raise samples to at least {needed} or eps to at least {unanimous:.3g}",
            best={"samples": size, "r": size, "size": unanimous, "smallest_samples": needed},
        )
    parameters = {"tau": mass, "eps": limit}
    return fixed_rule(size, r, "one-look", parameters, whole(every, "every"), curtailed)


def sequential(
    tau: Any,
    eps: Any = None,
    *,
    alpha: Any = None,
    n_max: int | None = None,
    q_alt: Any = None,
    power: Any = None,
    prior: Prior = UNIFORM,
    every: int = 1,
    curtailed: bool = True,
) -> Rule:
    """Declare once the posterior that a class's mass is above tau exceeds 1 - alpha (eq. 3).

    Give `eps`, and alpha is the best whose size is at most eps; or give `alpha`. Give `n_max`, or
    `q_alt` and `power`, and the cap is the smallest that reaches this power.

    >>> rule = sequential(tau=0.78, eps=0.05, n_max=32)
    >>> rule.parameters["alpha"], rule.n_max
    (0.024, 32)
    """
    if (eps is None) == (alpha is None):
        raise BadInput("give either eps or alpha; eps asks for the alpha of that size")
    if power is not None and q_alt is None:
        raise BadInput(f"power = {power} needs the q_alt at which it holds; give q_alt too")
    if n_max is None and power is None:
        raise BadInput("no cap: give n_max, or q_alt and power, for which n_max is then found")
    beta, step = _prior(prior), whole(every, "every")
    given = {
        "eps": None if eps is None else float(probability(eps, "eps")),
        "q_alt": None if q_alt is None else between(q_alt, "q_alt", tau),
        "power": None if power is None else float(probability(power, "power")),
    }
    cap = None if n_max is None else whole(n_max, "n_max")
    if eps is not None and cap is None:
        cap, found = smallest_n_max(tau, eps, q_alt, power, beta, step)
        alpha = found.alpha
    elif eps is not None and cap is not None:
        alpha = calibrate_alpha(tau, eps, cap, beta, step).alpha
    elif cap is None:
        cap = _cap_for_alpha(tau, alpha, given["q_alt"], given["power"], beta, step)
    rule = sequential_rule(tau, alpha, cap, beta, step, curtailed, **given)
    if given["q_alt"] is not None and given["power"] is not None:
        reached = oc(rule, given["q_alt"])
        if reached < given["power"] * (1 - ROUNDING):
            raise CalibrationInfeasible(
                f"power = {power} at q_alt = {q_alt} is out of reach with n_max = {cap}, which "
                f"has {reached:.3g}; leave n_max out to find the smallest, or lower power",
                best={"n_max": cap, "alpha": rule.parameters["alpha"], "power": reached},
            )
    return rule


def sprt(
    tau: Any,
    q_alt: Any,
    eps: Any,
    power: Any,
    n_max: int,
    *,
    every: int = 1,
    curtailed: bool = True,
) -> Rule:
    """Wald's truncated test: of those with this size and power, the least mean E[N] (see `wald`).

    The mean is over tau and q_alt.

    >>> rule = sprt(tau=0.70, q_alt=0.85, eps=0.05, power=0.80, n_max=60)
    >>> bool(oc(rule, 0.70) <= 0.05 and oc(rule, 0.85) >= 0.80)
    True
    """
    mass, alternative = float(probability(tau, "tau")), between(q_alt, "q_alt", tau)
    limit, wanted = float(probability(eps, "eps")), float(probability(power, "power"))
    if wanted <= limit:
        raise BadInput(f"power = {power} is not above eps = {eps}; choose it between eps and 1")
    cap, step = whole(n_max, "n_max"), whole(every, "every")
    found = wald.design(mass, alternative, limit, wanted, cap, step)
    declare, stop = wald.lines(
        cap, wald.slope(mass, alternative), found.upper, found.lower, found.cut
    )
    parameters = {
        "tau": mass,
        "q_alt": alternative,
        "eps": limit,
        "power": wanted,
        "n_max": cap,
        "upper": found.upper,
        "lower": found.lower,
        "cut": found.cut,
    }
    return build(declare, stop, "sprt", parameters, step, curtailed)


def e_process(tau: Any, eps: Any, n_max: int, *, every: int = 1, curtailed: bool = False) -> Rule:
    """Declare once a bet against q <= tau, mixed uniformly over (tau, 1), has grown to 1 / eps.

    Its size is at most eps with any cap or none (Ville), so it begins with the same entries
    whatever `n_max` is, unless it is curtailed.

    >>> short, long = (e_process(tau=0.70, eps=0.05, n_max=cap) for cap in (32, 64))
    >>> bool((long.declare[:33] == short.declare).all())
    True
    """
    mass, limit = float(probability(tau, "tau")), float(probability(eps, "eps"))
    cap, step = whole(n_max, "n_max"), whole(every, "every")
    declare = mixture_boundary(np.arange(cap + 1), mass, limit)
    parameters = {"tau": mass, "eps": limit, "n_max": cap}
    return build(declare, np.zeros_like(declare), "e-process", parameters, step, curtailed)


def _prior(prior: Prior) -> Prior:
    try:
        a, b = (float(weight) for weight in prior)
    except (TypeError, ValueError):
        a = b = -1.0
    if not (0 < a < np.inf and 0 < b < np.inf):
        raise BadInput(f"prior = {prior!r} is no Beta prior; give two positive numbers, as (1, 1)")
    return a, b


def _cap_for_alpha(tau: Any, alpha: Any, q_alt: Any, power: Any, prior: Prior, every: int) -> int:
    """The smallest cap at which the rule of this alpha has the power; power rises with the cap."""
    longest = LARGEST_N_MAX // every * every
    rule = sequential_rule(tau, alpha, longest, prior, every, curtailed=False)
    reached = law(rule, q_alt).declared[0].cumsum()
    enough = np.flatnonzero(reached >= power * (1 - ROUNDING))
    if not enough.size:
        raise CalibrationInfeasible(
            f"power = {power} at q_alt = {q_alt} is out of reach with alpha = {alpha} and n_max up "
            f"to {longest}, which has {reached[-1]:.3g}; raise alpha or q_alt, or lower power",
            best={"n_max": longest, "alpha": float(alpha), "power": float(reached[-1])},
        )
    return int(enough[0])
