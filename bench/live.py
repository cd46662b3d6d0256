"""Do saved samples become saved time? Whole pools against a sequential rule, in one run.

Both are batched over images as well as the engine can, with eight images for each place in the
batch. The naive loop, which takes one image at a time and draws its pools of 32 as one batch, runs
on the first images only.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace

import numpy as np

from suffice.rule import Rule
from suffice.rules import plug_in, sequential
from suffice.runs.parts import Parts, load_parts
from suffice.runs.shards import RunConfig
from suffice.scene import Ledger
from suffice.sensing.sampler import DDRMSampler, best_device

TAU, EPS, S = 0.78, 0.05, 32


def sensed(parts: Parts, rule: Rule, first: int, images: int, batch: int) -> tuple[Ledger, float]:
    """The ledger of sensing some images, and the processor's seconds, which a busy machine's
    other work does not lengthen as it does the clock's."""
    names = np.arange(first, first + images)
    began = time.process_time()
    ledger = parts.sense([rule] * parts.config.rounds, names, batch=batch)[1]
    return ledger, time.process_time() - began


def show(name: str, ledger: Ledger, images: int) -> None:
    """One line of the table."""
    print(
        f"{name:>10} {images:>6} {ledger.used:>8} {ledger.seconds:>8.1f} "
        f"{ledger.used / ledger.seconds:>9.1f} {ledger.wasted / ledger.drawn:>7.2%} "
        f"{ledger.batch_fill:>6.1%} {ledger.draining_from:>9.1%} "
        f"{1 - ledger.sampler_seconds / ledger.seconds:>8.1%}",
        flush=True,
    )


def main() -> None:
    """Print the table and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=16, help="places, 125 at most")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--naive", type=int, default=8, help="images for the naive loop")
    given = parser.parse_args()
    images = 8 * given.batch
    parts = load_parts(RunConfig(images=images, rounds=given.rounds, draws=S))
    if not isinstance(parts.sampler, DDRMSampler):
        raise TypeError("the bench is for DDRM")
    shape = min(given.batch, parts.sampler.shape)
    parts = replace(parts, sampler=DDRMSampler(parts.sampler.ddrm, best_device(), shape))
    full, short = plug_in(TAU, S, curtailed=False), sequential(TAU, EPS, n_max=S)
    sensed(parts, short, 0, 2, given.batch)  # the first call of a network is slow
    print("      rule images  samples  seconds samples/s   waste   fill draining overhead")
    whole, whole_busy = sensed(parts, full, 0, images, given.batch)
    show("full", whole, images)
    soon, soon_busy = sensed(parts, short, 0, images, given.batch)
    show("sequential", soon, images)
    naive = [sensed(parts, full, at, 1, S)[0] for at in range(given.naive)]
    each = sum(ledger.seconds for ledger in naive) / sum(ledger.used for ledger in naive)
    samples = whole.used / soon.used
    print(f"samples(full) / samples(sequential) = {samples:.3f}")
    for name, ratio in (
        ("time", whole.seconds / soon.seconds),
        ("processor time", whole_busy / soon_busy),
    ):
        share = ratio / samples
        print(f"{name}(full) / {name}(sequential) = {ratio:.3f}: {share:.3f} of it (aim: .9)")
    print(
        f"naive loop: {1 / each:.1f} samples/s; "
        f"time(naive) / time(sequential) = {each * whole.used / soon.seconds:.2f}"
    )
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
