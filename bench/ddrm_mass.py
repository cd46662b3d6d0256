"""DDRM's vote mass against the exact one, for a prior whose exact denoiser is known.

The prior is the oracle's over the 1000 packaged images, x = image + h z; truths are drawn from it.
What is left between the masses is DDRM's own doing, as no network is involved.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from suffice.sensing.data import evaluation_set
from suffice.sensing.ddrm import DDRM, Measured, noise_levels
from suffice.sensing.oracle import MNIST_H, Oracle
from suffice.sensing.probes import principal_components

STATES, VOTES, SIGMA_Y, AT_ONCE = 60, 32, 0.1, 10
PROBES = (2, 4, 8, 12)


class Exact:
    """The mean of a clean image given a noisy one, under the oracle's prior."""

    def __init__(self, oracle: Oracle) -> None:
        self.images, self.labels = torch.from_numpy(oracle.images), oracle.labels
        self.half = self.images.square().sum(dim=1) / 2
        self.variance = oracle.h**2

    def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
        noise = sigma[:, None] ** 2
        total = noise + self.variance
        weights = ((x @ self.images.T - self.half) / total).softmax(dim=1)
        return (noise * (weights @ self.images) + self.variance * x) / total

    def classify(self, x: Tensor) -> np.ndarray:
        """The label of the nearest image."""
        return self.labels[(x @ self.images.T - self.half).argmax(dim=1).numpy()]


def main() -> None:
    images, labels = evaluation_set()
    oracle = Oracle(images, labels, MNIST_H)
    exact, rows = Exact(oracle), principal_components()[0][: max(PROBES)]
    random = np.random.default_rng(0)
    x = images[:STATES] + oracle.h * random.standard_normal((STATES, 784)).astype(np.float32)
    y = x @ rows.T + SIGMA_Y * random.standard_normal((STATES, len(rows))).astype(np.float32)
    laws = np.stack([oracle.along(rows, SIGMA_Y).masses(values) for values in y])
    kinds = [(20, 0.85), (20, 0.0), (100, 0.85)]
    print(f"mean mass of the exact leader over {STATES} states")
    print(
        f"{'probes':>6} {'exact':>6}", *(f"{steps:>4} steps, eta {eta:<4}" for steps, eta in kinds)
    )
    for probes in PROBES:
        leader = laws[:, probes].argmax(axis=1)
        generator = torch.Generator().manual_seed(probes)
        found = []
        for steps, eta in kinds:
            ddrm, hits = DDRM(exact, noise_levels(steps), eta), []
            for part in np.array_split(np.arange(STATES), STATES // AT_ONCE):
                values = torch.from_numpy(y[part, :probes]).repeat_interleave(VOTES, 0)
                noise = torch.full(values.shape, SIGMA_Y)
                measured = Measured(torch.from_numpy(rows[:probes]), values, noise)
                z = torch.randn(len(values), steps, 784, generator=generator)
                votes = exact.classify(ddrm.sample(measured, z))
                hits.append(votes == leader[part].repeat(VOTES))
            found.append(np.concatenate(hits).mean())
        mass = laws[:, probes].max(axis=1).mean()
        print(f"{probes:>6} {mass:>6.3f}", *(f"{share:>18.3f}" for share in found), flush=True)


if __name__ == "__main__":
    main()
