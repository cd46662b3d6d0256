"""Certified is not right: a wrong class, declared with a sound certificate, and its samples.

A certificate speaks of the votes: the declared class does have a mass above tau. Where most
posterior samples look like another digit than the one that was measured, so do most votes.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from suffice.interval import interval
from suffice.reference import reference_log
from suffice.replay import Replay
from suffice.rules import sequential
from suffice.runs.parts import Parts, load_parts
from suffice.runs.shards import RunConfig
from suffice.sensing.noise import measurement_noise
from suffice.sensing.probes import measure
from suffice.sensing.states import States

TAU, EPS, S = 0.78, 0.05, 32
SHOWN = 9


def cases() -> list[tuple[int, int, int, int, int]]:
    """(image, truth, label, round, votes): wrong declarations whose class has a mass above tau.

    The 128 other votes of the same state say so: the interval for its mass lies above tau.
    """
    declared_by, other = reference_log(S), reference_log(128)
    outcome = Replay(declared_by).run(sequential(TAU, EPS, n_max=S))
    found = []
    for image in np.flatnonzero(outcome.declared & ~outcome.right).tolist():
        label, round_ = int(outcome.label[image]), int(outcome.rounds[image])
        votes = int((other.votes[image, round_ - 1] == label).sum())
        if interval(votes, 128, 0.95)[0] > TAU:
            found.append((image, int(outcome.truth[image]), label, round_, votes))
    return found


def samples(parts: Parts, image: int, round_: int) -> NDArray[np.float32]:
    """The first posterior samples that the log's votes were drawn from, (SHOWN, 784)."""
    config, none = parts.config, np.empty((0, 784), dtype=np.float32)
    rows = none
    for _ in range(round_):
        rows = np.concatenate([rows, parts.probes.next(rows, np.zeros(len(rows)), none)])
    z = measurement_noise(config.seed, image, np.arange(1, round_ + 1))[:, 0]
    values = measure(parts.images[image], rows, config.sigma_y, z)
    states = States(
        rows,
        np.tile(values, (SHOWN, 1)),
        np.full((SHOWN, round_), config.sigma_y, dtype=np.float32),
        config.seed,
        np.full(SHOWN, image),
        np.full(SHOWN, round_),
        np.arange(SHOWN),
    )
    return parts.sampler(states)


def main() -> None:
    """Print the cases, and draw the first one where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", help="draw the image and its samples in this file")
    given = parser.parse_args()
    found = cases()
    for image, truth, label, round_, votes in found:
        low, high = interval(votes, 128, 0.95)
        print(
            f"image {image} is a {truth}; declared {label} at round {round_}; of 128 other votes "
            f"{votes} agree, so its mass is {low:.3f} to {high:.3f}: above tau = {TAU}"
        )
    image, truth, label, round_, _ = found[0]
    parts = load_parts(RunConfig(images=1))
    drawn = samples(parts, image, round_)
    print(
        f"votes of the first {SHOWN} samples of image {image}: {parts.classifier(drawn).tolist()}"
    )
    if given.plot:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(SHOWN + 1, 1.3))
        pictures = np.concatenate([parts.images[image][None], drawn])
        for at, picture in enumerate(pictures, start=1):
            axes = figure.add_subplot(1, SHOWN + 1, at)
            axes.imshow(picture.reshape(28, 28), cmap="gray_r", vmin=-1, vmax=1)
            axes.set_axis_off()
            axes.set_title(f"a {truth}" if at == 1 else f"vote {at - 1}", fontsize=8)
        figure.savefig(given.plot, dpi=100, bbox_inches="tight")


if __name__ == "__main__":
    main()
