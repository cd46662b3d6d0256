"""DDRM and the classifier as a sensing loop uses them: numpy in, numpy out, fixed batch shapes.

A network may round differently in batches of different shapes. So it only ever runs at one shape:
larger batches are cut, smaller ones padded, and a vote is the same whatever it was drawn with.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from suffice.sensing.classifier import DigitNet, vote
from suffice.sensing.ddrm import DDRM, Measured
from suffice.sensing.noise import vote_noise
from suffice.sensing.states import Floats, States, Whole

__all__ = ["DDRMSampler", "DDRMSlots", "DigitClassifier", "best_device"]


def best_device() -> str:
    """The GPU where there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def default_shape(device: str) -> int:
    """How many images the network takes at once: enough to be fast, no more."""
    return 64 if torch.device(device).type == "cpu" else 1024


class DDRMSampler:
    """Posterior samples by DDRM, each from the random numbers of its own vote."""

    def __init__(self, ddrm: DDRM, device: str = "cpu", shape: int | None = None) -> None:
        self.ddrm = ddrm
        self.device = torch.device(device)
        self.shape = shape or default_shape(device)

    @property
    def steps(self) -> int:
        """How many evaluations of the network make one sample."""
        return self.ddrm.steps

    def __call__(self, states: States) -> Floats:
        """One posterior sample (B, d) for each of B states."""
        images = np.empty((len(states), states.rows.shape[-1]), dtype=np.float32)
        slots = self.slots(self.shape)
        for first in range(0, len(states), self.shape):
            part = np.arange(first, min(first + self.shape, len(states)))
            slots.start(np.arange(len(part)), states.pick(part))
            for _ in range(self.steps):
                done, finished = slots.step()
            images[part[done]] = finished
        return images

    def slots(self, capacity: int) -> DDRMSlots:
        """Places for `capacity` samples that start and end at different times."""
        return DDRMSlots(self, capacity)


class DDRMSlots:
    """Samples in flight, at different images, rounds and steps, that advance together."""

    def __init__(self, sampler: DDRMSampler, capacity: int) -> None:
        self.capacity = capacity
        self.shape = sampler.shape
        self.steps = sampler.steps
        self.active = np.zeros(capacity, dtype=bool)
        self.rows_filled = self.rows_run = 0
        self._sampler = sampler
        self._at = np.zeros(capacity, dtype=np.int64)  # the step that each slot is at
        self._x: Tensor | None = None

    def start(self, slots: Whole, states: States) -> None:
        """Begin one sample in each of the given free slots."""
        device, ddrm = self._sampler.device, self._sampler.ddrm
        size = states.rows.shape[-1]
        if self._x is None:
            self._x = torch.zeros(self.capacity, size, device=device)
            self._z = torch.zeros(self.capacity, self.steps, size, device=device)
            self._values = torch.zeros(self.capacity, states.values.shape[1], device=device)
            self._noise = torch.full_like(self._values, torch.inf)
            self._rows = torch.zeros(
                *([self.capacity] if states.rows.ndim == 3 else []),
                *states.rows.shape[-2:],
                device=device,
            )
            self._shared: Floats | None = None
        at = torch.from_numpy(slots).to(device)
        self._z[at] = torch.from_numpy(
            vote_noise(states.seed, states.image, states.round, states.draw, self.steps, size)
        ).to(device)
        self._values[at] = torch.from_numpy(states.values).to(device)
        self._noise[at] = torch.from_numpy(states.noise).to(device)
        if states.rows.ndim == 3:
            self._rows[at] = torch.from_numpy(states.rows).to(device)
        elif states.rows is not self._shared:
            self._shared = states.rows
            self._rows = torch.from_numpy(np.ascontiguousarray(states.rows)).to(device)
        self._at[slots] = 0
        self.active[slots] = True
        with torch.inference_mode():
            for some, real in self._chunks(slots):
                x = ddrm.start(self._measured(some), self._z[some, 0])
                self._x[some[:real]] = x[:real]

    def stop(self, slots: Whole) -> None:
        """Give up the samples in these slots."""
        self.active[slots] = False

    def step(self) -> tuple[Whole, Floats]:
        """Advance every sample by one step; the slots that finished, and their images."""
        running = np.flatnonzero(self.active)
        if self._x is None or not len(running):
            return running, np.empty((0, 0), dtype=np.float32)
        at = torch.from_numpy(self._at).to(self._sampler.device)
        with torch.inference_mode():
            for some, real in self._chunks(running):
                # The last step adds no noise: any normals do.
                index = at[some]
                drawn = some * self.steps + (index + 1).clamp(max=self.steps - 1)
                z = self._z.flatten(0, 1).index_select(0, drawn)
                x = self._x.index_select(0, some)
                x = self._sampler.ddrm.step(x, index, self._measured(some), z)
                self._x.index_copy_(0, some[:real], x[:real])
                self.rows_run += len(some)
        self.rows_filled += len(running)
        self._at[running] += 1
        done = running[self._at[running] == self.steps]
        self.active[done] = False
        images = self._x[torch.from_numpy(done).to(self._sampler.device)].cpu().numpy()
        return done, images

    def _chunks(self, slots: Whole) -> Iterator[tuple[Tensor, int]]:
        """The slots in groups of the network's shape, and how many of each are not padding."""
        short = -len(slots) % self.shape
        padded = np.concatenate([slots, np.repeat(slots[-1:], short)])
        for some in torch.from_numpy(padded).to(self._sampler.device).split(self.shape):
            yield some, min(self.shape, len(slots))
            slots = slots[self.shape :]

    def _measured(self, slots: Tensor) -> Measured:
        rows = self._rows if self._rows.ndim == 2 else self._rows[slots]
        return Measured(rows, self._values[slots], self._noise[slots])


class DigitClassifier:
    """Labels of images by a network; an unsure or broken image is an invalid vote."""

    def __init__(self, net: DigitNet, device: str = "cpu", min_confidence: float = 0.0) -> None:
        self.net = net
        self.device = torch.device(device)
        self.shape = default_shape(device)
        self.min_confidence = min_confidence

    def __call__(self, images: Floats) -> NDArray[np.uint8]:
        """Labels (B,) of images (B, 784)."""
        labels = np.empty(len(images), dtype=np.uint8)
        for first in range(0, len(images), self.shape):
            part = images[first : first + self.shape]
            padded = np.zeros((self.shape, images.shape[1]), dtype=np.float32)
            padded[: len(part)] = part
            with torch.inference_mode():
                logits = self.net(torch.from_numpy(padded).to(self.device))
            labels[first : first + len(part)] = vote(logits, self.min_confidence).cpu()[: len(part)]
        return labels
