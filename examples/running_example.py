"""The paper's running example: 32 votes a round, threshold .70, three rules."""

import suffice

TAU, EPS, S, Q_ALT = 0.70, 0.05, 32, 0.85


def main() -> None:
    """Print what each rule certifies at tau and what it costs, at tau and at q_alt."""
    rules = [
        suffice.plug_in(TAU, S, curtailed=False),
        suffice.plug_in(TAU, S),
        suffice.one_look(TAU, EPS, S, curtailed=False),
        suffice.one_look(TAU, EPS, S),
        suffice.sequential(TAU, eps=EPS, n_max=S, curtailed=False),
        suffice.sequential(TAU, eps=EPS, n_max=S),
    ]
    names = [name for rule in rules[::2] for name in (f"{rule.name} (full)", rule.name)]
    print(f"S = n_max = {S}, tau = {TAU}, eps = {EPS}: a class of mass tau is declared with")
    print(f"probability `size`, one of mass {Q_ALT} with `power`; tau' is what is certified.\n")
    print(f"{'rule':<20} {'size':>6} {'power':>6} {'tau_':>6} {'E[N] at tau':>12} {'at .85':>7}")
    for name, rule in zip(names, rules, strict=True):
        law = suffice.law(rule, [TAU, Q_ALT])
        size, power = law.declare_probability
        at_tau, at_alt = law.expected_samples
        tau_ = suffice.certified_tau(rule, EPS)
        print(f"{name:<20} {size:6.3f} {power:6.3f} {tau_:6.3f} {at_tau:12.2f} {at_alt:7.2f}")


if __name__ == "__main__":
    main()
