"""What the exact core costs: calibration, long Wald tests, one law, the import."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from suffice import Rule
from suffice.calibrate import calibrate_alpha
from suffice.lattice import law
from suffice.rules import sequential, sprt
from suffice.wald import lines, slope

REPEATS = 5
CLOSE = (0.5, 0.505)  # so close that a pool of 100,000 votes is used up


def seconds(call: Callable[[], object], repeats: int = REPEATS) -> float:
    """The least of a few timings: what the work takes when nothing else runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def wald_test(n_max: int, tau: float, q_alt: float) -> Rule:
    """A truncated Wald test with errors of about 5 %, not searched."""
    share = slope(tau, q_alt)
    offset = 3.0 * share / math.log((1 - tau) / (1 - q_alt))
    cut = int(share * n_max) + 1
    return Rule(*lines(n_max, share, offset, offset, cut), "sprt")


def import_seconds() -> float:
    """The time that `import suffice` adds to a bare interpreter."""
    return seconds(lambda: subprocess.run([sys.executable, "-c", "import suffice"], check=True)) - (
        seconds(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
    )


def main() -> int:
    """Print each figure beside its limit; 1 if any is missed."""
    short, long = wald_test(25_000, *CLOSE), wald_test(100_000, *CLOSE)
    at = {rule.n_max: seconds(lambda rule=rule: law(rule, CLOSE[1]), 3) for rule in (short, long)}
    growth = math.log(at[100_000] / at[25_000]) / math.log(4)
    rule = sequential(0.70, alpha=0.0091, n_max=97)
    one = seconds(lambda: law(rule, 0.85))
    many = seconds(lambda: law(rule, np.linspace(0.01, 0.99, 100)))
    rows = [
        ("alpha at n_max = 97, ms", 1e3 * seconds(lambda: calibrate_alpha(0.7, 0.05, 97)), 50),
        ("alpha at n_max = 1,000, s", seconds(lambda: calibrate_alpha(0.7, 0.05, 1_000), 2), 5),
        ("law of a Wald test at n_max = 100,000, one q, s", at[100_000], 2),
        ("its growth: exponent of n_max from 25,000", growth, 1.6),
        ("law at n_max = 97, one q, ms", 1e3 * one, 1),
        ("law at 100 q together over 100 laws at one q", many / (100 * one), 0.2),
        (
            "Wald test found at n_max = 97, s",
            seconds(lambda: sprt(0.70, 0.85, 0.05, 0.9248, 97), 1),
            3,
        ),
        ("import suffice, s", import_seconds(), 0.3),
    ]
    print(f"{'figure':<50}{'measured':>10}{'limit':>8}")
    for name, measured, limit in rows:
        print(f"{name:<50}{measured:>10.3g}{limit:>8g}{'' if measured <= limit else '  missed'}")
    return int(any(measured > limit for _, measured, limit in rows))


if __name__ == "__main__":
    sys.exit(main())
