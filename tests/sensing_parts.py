"""Small real parts of a sensing loop, and a loop that does one thing at a time."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from suffice.pool import Pool
from suffice.scene import Scene
from suffice.sensing.data import evaluation_set
from suffice.sensing.ddrm import DDRM, noise_levels
from suffice.sensing.noise import measurement_noise
from suffice.sensing.oracle import Oracle
from suffice.sensing.oracle_sampler import OracleSampler
from suffice.sensing.probes import FixedPCA, measure
from suffice.sensing.sampler import DDRMSampler
from suffice.sensing.states import States

torch.set_num_threads(1)  # the networks here are tiny: threads would only wait for each other

__all__ = ["Few", "few_sampler", "scene_of", "sense_slowly", "toy"]


class Few:
    """The prior of a few images: its exact denoiser, and the classifier that names the nearest."""

    def __init__(self, count: int = 24) -> None:
        images, labels = evaluation_set()
        self.images = torch.from_numpy(images[:count])
        self.labels = labels[:count]

    def __call__(self, x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        weights = (-self.distance(x) / (2 * sigma[:, None] ** 2)).softmax(dim=1)
        return weights @ self.images

    def distance(self, x: torch.Tensor) -> torch.Tensor:
        """Squared distances, less what is the same for all images."""
        return self.images.square().sum(dim=1) - 2 * x @ self.images.T

    def classify(self, images: np.ndarray) -> np.ndarray:
        """The nearest image's label; nines are invalid votes."""
        with torch.inference_mode():
            nearest = self.distance(torch.from_numpy(np.nan_to_num(images))).argmin(dim=1)
        labels = self.labels[nearest.numpy()]
        return np.where(labels == 9, 255, labels).astype(np.uint8)


def few_sampler(denoiser=None, shape: int = 8, steps: int = 3) -> DDRMSampler:
    return DDRMSampler(DDRM(denoiser or Few(), noise_levels(steps)), shape=shape)


@cache
def toy() -> OracleSampler:
    """Exact draws under a prior of 300 packaged images."""
    images, labels = evaluation_set()
    return OracleSampler(Oracle(images[:300], labels[:300], 0.93))


def scene_of(rules, names=range(4), probes=None, **options) -> Scene:
    names = np.array(list(names), dtype=np.int64)
    options = {"sigma_y": 0.5, **options}
    return Scene(evaluation_set()[0][names], names, probes or FixedPCA(), rules, **options)


def sense_slowly(scene: Scene, sampler, classifier) -> list[tuple]:
    """One image, one round, one vote at a time; (label, rounds, samples, votes) of each image."""
    return [_sense_one(scene, x, name, sampler, classifier)
            for x, name in zip(scene.images, scene.names, strict=True)]  # fmt: skip


def _sense_one(scene, x, name, sampler, classifier) -> tuple:
    rows, values = np.empty((0, 784), dtype=np.float32), np.empty(0, dtype=np.float32)
    looked_at = np.empty((0, 784), dtype=np.float32)
    samples, votes = 0, []
    for t, rule in enumerate(scene.rules, start=1):
        new = scene.probes.next(rows, values, looked_at)
        z = measurement_noise(scene.seed, name, t, len(new))[0]
        values = np.concatenate([values, measure(x, new, scene.sigma_y, z)])
        rows = np.concatenate([rows, new])
        pool, images, drawn = Pool(rule), [], 0
        last = t == len(scene.rules)
        while True:
            undecided = pool.verdict.kind == "undecided"
            wanted = undecided and not last and drawn < scene.probes.samples
            if not pool.open and not wanted:
                break
            image = sampler(_state(scene, name, t, drawn, rows, values))
            label = int(classifier(image)[0]) if np.isfinite(image).all() else 255
            if pool.open:
                pool.add(None if label == 255 else label)
            images.append(image[0])
            drawn += 1
        samples += drawn
        votes.append([255 if vote is None else vote for vote in pool.votes])
        if pool.verdict.kind == "declared":
            return pool.verdict.label, t, samples, votes
        if scene.probes.samples:
            looked_at = np.array(images[: scene.probes.samples], dtype=np.float32)
    return None, t, samples, votes


def _state(scene, name, t, draw, rows, values) -> States:
    noise = np.full((1, len(values)), scene.sigma_y, dtype=np.float32)
    which = (np.array([n]) for n in (name, t, draw + scene.first_draw))
    return States(rows, values[None], noise, scene.seed, *which)
