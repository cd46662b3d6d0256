"""Every number of the paper's text and appendix that the core computes, beside the paper's."""

from collections.abc import Iterator

import suffice
from suffice.calibrate import cut_down

Row = tuple[str, str, str]  # what it is, the paper's number, ours


def text() -> Iterator[Row]:
    """The numbers of the text, in its order."""
    paper = {8: "0.55", 16: "0.45", 32: "0.50", 64: "0.54", 1024: "0.51"}
    for samples, printed in paper.items():
        size = suffice.oc(suffice.plug_in(0.70, samples), 0.70)
        yield f"plug-in: OC(.70), S={samples}", printed, f"{size:.4f}"
    yield "plug-in: r, S=32", "23", str(suffice.plug_in(0.70, 32).parameters["r"])
    look = suffice.one_look(0.70, 0.05, 32)
    yield "one-look: r, S=32", "28", str(look.parameters["r"])
    yield "one-look: size, S=32", "0.019", f"{suffice.oc(look, 0.70):.4f}"
    pool = suffice.Pool(look)
    pool.add_many(["7"] * 20 + [None] * 12)
    yield "one-look: votes elsewhere that force nondeclaration", "5", str(pool.n - 20)
    rule = suffice.sequential(0.70, alpha=0.0091, n_max=97)
    yield "sequential: OC(.70), alpha=.0091, n_max=97", "0.049", f"{suffice.oc(rule, 0.70):.4f}"
    yield "sequential: OC(.85)", "0.925", f"{suffice.oc(rule, 0.85):.4f}"
    full = suffice.sequential(0.70, alpha=0.0091, n_max=97, curtailed=False)
    yield "sequential: E[N] at .85", "45", f"{suffice.expected_samples(rule, 0.85):.2f}"
    yield "the same without abandonment", "45", f"{suffice.expected_samples(full, 0.85):.2f}"
    for tolerance in (0.0, 0.02):
        fixed = suffice.match_fixed(rule, 0.70, 0.85, tolerance)
        r, cost = fixed.parameters["r"], suffice.expected_samples(fixed, 0.85)
        power = suffice.oc(fixed, 0.85)
        label = f"matched fixed pool, tolerance {tolerance:g}"
        yield f"{label}: S", "69", f"{fixed.n_max} (r={r}, power {power:.4f})"
        yield f"{label}: E[N] curtailed", "64", f"{cost:.2f}"


def appendix() -> Iterator[Row]:
    """The numbers of the appendix and of Table 1's column tau/tau'."""
    bound = suffice.information_bound(0.70, 0.85, 0.0495, 0.9248)
    yield "information bound", "41", f"{bound:.2f}"
    paper = {0.70: ("24", "30"), 0.90: ("39", "30")}
    for tau, (sequential, fixed) in paper.items():
        ours = matched(tau)
        yield f"S=32, tau={tau}: sequential, matched", sequential, f"{ours[0]:.2f}"
        yield f"S=32, tau={tau}: fixed, curtailed", fixed, f"{ours[1]:.2f}"
    taus = [t / 100 for t in range(70, 91)]
    unanimous = next(t for t in taus if suffice.one_look(t, 0.05, 32).parameters["r"] == 32)
    yield "S=32: first tau with r=S", "0.87", f"{unanimous:.2f}"
    costs = {tau: matched(tau) for tau in taus}
    dearer = next(tau for tau, (sequential, fixed) in costs.items() if sequential > fixed)
    yield "S=32: first tau at which sequential is dearer", "0.87", f"{dearer:.2f}"
    for scheme, printed, rule in certified():
        certified_tau = cut_down(suffice.certified_tau(rule, 0.05), 4)
        yield f"tau' of {scheme}", printed, f"{certified_tau:.4f}"
    for tau, n_max, mass in (
        (0.70, 97, 0.85),
        (0.78, 32, 0.78),
        (0.65, 32, 0.65),
        (0.55, 32, 0.55),
    ):
        rule = suffice.sequential(tau, eps=0.05, n_max=n_max)
        bound = suffice.leader_bound(rule, mass)
        yield f"leader bound, tau={tau}, n_max={n_max}, leader {mass}", "about 1", f"{bound:.4f}"
    rule = suffice.sequential(0.50, alpha=0.05, n_max=100, curtailed=False)
    leader, rival = suffice.oc(rule, [0.55, 0.45])
    truth = "first declaration right, tau=.5, alpha=.05, n_max=100, law (.55, .45)"
    yield f"{truth}", f"at least {leader / (leader + rival):.4f}", f"{first_right(rule, 0.55):.4f}"
    yield "our bound for it", "", f"{suffice.leader_bound(rule, 0.55):.4f}"


def first_right(rule: suffice.Rule, p: float) -> float:
    """P(the leader is declared | one is declared), for two classes with all votes between them."""
    states, right, wrong = {0: 1.0}, 0.0, 0.0
    for n in range(1, rule.n_max + 1):
        after: dict[int, float] = {}
        for k, mass in states.items():
            after[k + 1] = after.get(k + 1, 0.0) + mass * p
            after[k] = after.get(k, 0.0) + mass * (1 - p)
        right += sum(mass for k, mass in after.items() if k >= rule.declare[n])
        wrong += sum(mass for k, mass in after.items() if n - k >= rule.declare[n])
        states = {k: mass for k, mass in after.items() if n - rule.declare[n] < k < rule.declare[n]}
    return right / (right + wrong)


def matched(tau: float) -> tuple[float, float]:
    """E[N] of the matched sequential rule and of the one-look rule, where that has power .90."""
    fixed = suffice.one_look(tau, 0.05, 32)
    low, high = tau, 1.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if suffice.oc(fixed, middle) < 0.90 else (low, middle)
    rule = suffice.match_sequential(fixed, tau, high)
    return suffice.expected_samples(rule, high), suffice.expected_samples(fixed, high)


def certified() -> Iterator[tuple[str, str, suffice.Rule]]:
    """The rules of Table 1 with the tau' that it prints."""
    for tau, printed in {0.90: "0.77", 0.80: "0.66", 0.70: "0.56"}.items():
        yield f"plug-in tau={tau}, S=32", printed, suffice.plug_in(tau, 32)
    for tau, printed in {0.75: "0.77", 0.65: "0.66", 0.55: "0.56"}.items():
        yield f"one-look tau={tau}, S=32", printed, suffice.one_look(tau, 0.05, 32)
    for tau, n_max in ((0.78, 32), (0.78, 128), (0.65, 32), (0.55, 32)):
        rule = suffice.sequential(tau, eps=0.05, n_max=n_max)
        yield f"sequential tau={tau}, n_max={n_max}", f"{tau}", rule


def main() -> None:
    """Print the rows as a table in Markdown."""
    print("| number | paper | here |\n|---|---|---|")
    for what, printed, ours in (*text(), *appendix()):
        print(f"| {what} | {printed} | {ours} |")


if __name__ == "__main__":
    main()
