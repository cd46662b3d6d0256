"""How good the votes of a prior are: the leader of 32 votes, single votes, the leader's share.

    python bench/quality.py --images 100
    python bench/quality.py --prior mine.safetensors --eta 1 --levels karras --rounds 4 8

The whole table of docs/sampler.md is `--images 1000`: seconds on a GPU, an hour on a laptop. A
prior needs its checksum beside it (`sha256sum mine.safetensors > mine.sha256`).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from suffice.sensing.data import evaluation_set
from suffice.sensing.ddrm import DDRM, noise_levels
from suffice.sensing.noise import measurement_noise
from suffice.sensing.probes import measure, principal_components
from suffice.sensing.sampler import DDRMSampler, DigitClassifier, best_device
from suffice.sensing.states import States
from suffice.sensing.weights import ASSETS, load_classifier, load_prior


def levels(kind: str, steps: int, highest: float, lowest: float, rho: float) -> NDArray[np.float64]:
    """Falling noise levels and 0: DDPM's, evenly spaced logarithms, or those of Karras et al."""
    if kind == "ddpm":
        return noise_levels(steps)
    if kind == "geometric":
        return np.append(np.geomspace(highest, lowest, steps), 0.0)
    ramp = np.linspace(highest ** (1 / rho), lowest ** (1 / rho), steps)
    return np.append(ramp**rho, 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prior", type=Path, default=ASSETS / "prior.safetensors")
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--rounds", type=int, nargs="+", default=[4, 8, 12, 16, 20, 24])
    parser.add_argument("--votes", type=int, default=32)
    parser.add_argument("--sigma-y", type=float, default=0.1)
    parser.add_argument("--eta", type=float, default=0.85)
    parser.add_argument("--levels", choices=["ddpm", "karras", "geometric"], default="ddpm")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--highest", type=float, default=20.0)
    parser.add_argument("--lowest", type=float, default=0.02)
    parser.add_argument("--rho", type=float, default=7.0)
    parser.add_argument("--device", default=best_device())
    given = parser.parse_args()
    ladder = levels(given.levels, given.steps, given.highest, given.lowest, given.rho)
    ddrm = DDRM(load_prior(given.prior, given.device), ladder, given.eta)
    sampler = DDRMSampler(ddrm, given.device)
    classifier = DigitClassifier(load_classifier(device=given.device), given.device)
    images, truth = (part[: given.images] for part in evaluation_set())
    print(f"{'probes':>6} {'leader right':>12} {'vote right':>10} {'share':>6}")
    for probes in given.rounds:
        rows = principal_components()[0][:probes]
        votes = np.empty((len(images), given.votes), dtype=np.uint8)
        # 64 images at a time: their random numbers fit in memory.
        for first in range(0, len(images), 64):
            at = np.arange(first, min(first + 64, len(images)))
            name = at.repeat(given.votes)
            z = [measurement_noise(0, image, np.arange(1, probes + 1))[:, 0] for image in at]
            pairs = zip(images[at], z, strict=True)
            values = np.stack([measure(x, rows, given.sigma_y, noise) for x, noise in pairs])
            noise = np.full((len(name), probes), given.sigma_y, dtype=np.float32)
            round_, draw = np.full(len(name), probes), np.tile(np.arange(given.votes), len(at))
            states = States(rows, values.repeat(given.votes, 0), noise, 0, name, round_, draw)
            votes[at] = classifier(sampler(states)).reshape(len(at), -1)
        counts = (votes[:, :, None] == np.arange(10)).sum(axis=1)
        leader = (counts.argmax(axis=1) == truth).mean()
        single = (votes == truth[:, None]).mean()
        share = counts.max(axis=1).mean() / given.votes
        print(f"{probes:>6} {leader:>12.3f} {single:>10.3f} {share:>6.3f}", flush=True)


if __name__ == "__main__":
    main()
