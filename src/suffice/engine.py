"""The live loop: many sensing episodes at once over one batched sampler.

A sampler wants full batches, a rule wants one vote at a time. So every open pool asks for the
votes that it is certain to need (`Pool.sure`), and only places that would otherwise be padded
draw votes that are merely likely to be needed. A place is free again as soon as its sample is
done or a verdict makes it useless.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from suffice.errors import BadInput
from suffice.inputs import INVALID, whole
from suffice.pool import Pool
from suffice.scene import Episode, Ledger, Scene
from suffice.sensing.noise import measurement_noise
from suffice.sensing.probes import measure
from suffice.sensing.slots import OneStep, Slots
from suffice.sensing.states import Classifier, Floats, Sampler, States, Whole

__all__ = ["Progress", "sense"]

Progress = Callable[[int, int, int], None]
"""Called with images done, classes declared and samples used."""


def sense(
    scene: Scene,
    sampler: Sampler,
    classifier: Classifier,
    batch: int = 128,
    progress: Progress | None = None,
) -> tuple[list[Episode], Ledger]:
    """Sense every image until its rule declares or the rounds are over.

    Up to `batch` samples are in flight at once. A sampler with a method `slots(batch)` (see
    `Slots`) may advance samples that began at different times; any other is called on whole
    batches.
    """
    return _Run(scene, sampler, classifier, whole(batch, "batch"), progress).result()


@dataclass(eq=False)
class _Open:
    """An episode under way: a state machine of rounds, each with a pool of votes."""

    at: int
    name: int
    x: Floats
    rows: Floats
    values: Floats
    pool: Pool
    round: int = 0
    asked: int = 0  # draws of this round that were begun or wait to begin
    seen: int = 0  # draws counted, in order
    charged: int = 0  # draws counted in all rounds
    early: dict[int, tuple[int, Floats]] = field(default_factory=dict)  # finished out of order
    samples: list[Floats] = field(default_factory=list)  # the round's images that probes look at
    votes: list[NDArray[np.uint8]] = field(default_factory=list)

    def certain(self, prefix: int) -> int:
        """How many draws of this round are needed whatever they are, counted from its first."""
        if self.pool.open:
            return self.seen + self.pool.sure
        return self.seen if self.pool.verdict.kind == "declared" else max(self.seen, prefix)


class _Run:
    def __init__(
        self,
        scene: Scene,
        sampler: Sampler,
        classifier: Classifier,
        batch: int,
        progress: Progress | None,
    ) -> None:
        self.scene, self.classifier, self.progress = scene, classifier, progress
        stepwise = getattr(sampler, "slots", None)
        self.slots: Slots = stepwise(batch) if stepwise else OneStep(sampler, batch)
        self.free = list(range(batch))[::-1]
        self.flying: dict[int, tuple[_Open, int, int]] = {}  # slot -> episode, round, draw
        self.waiting: list[tuple[int, int, int]] = []  # (round, episode, draw), certain votes
        self.open: dict[int, _Open] = {}
        self.done: dict[int, Episode] = {}
        self.drawn = self.charged = self.invalid = self.declared = 0
        self.broken: list[tuple[int, int, int]] = []
        self.batches = 0
        self.filled = False  # whether every place was in use at the last step
        self.until_drain = (0, 0, 0)  # batches, rows filled and rows run when it last was
        self.sampler_seconds = 0.0
        # Only probes that look at samples need directions of their own for every episode.
        self.shared: Floats | None = None
        self.width = len(scene.rules)

    def result(self) -> tuple[list[Episode], Ledger]:
        began = time.perf_counter()
        self._begin()
        while self.open:
            self._fill()
            entered = time.perf_counter()
            slots, images = self.slots.step()
            labels = self.classifier(images) if len(slots) else np.empty(0, dtype=np.uint8)
            self.sampler_seconds += time.perf_counter() - entered
            self.batches += 1
            if self.filled:
                self.until_drain = (self.batches, self.slots.rows_filled, self.slots.rows_run)
            self._receive(slots, images, labels)
            if self.progress:
                self.progress(len(self.done), self.declared, self.charged)
        batches, filled, run = self.until_drain
        ledger = Ledger(
            drawn=self.drawn,
            used=self.charged,
            invalid=self.invalid,
            broken=tuple(self.broken),
            batches=self.batches,
            batch_fill=filled / run if run else None,
            draining_from=batches / self.batches if self.batches else 0.0,
            seconds=time.perf_counter() - began,
            sampler_seconds=self.sampler_seconds,
        )
        return [self.done[at] for at in sorted(self.done)], ledger

    def _begin(self) -> None:
        """Measure every image once and ask for its first votes."""
        scene = self.scene
        none = np.empty((0, scene.images.shape[1]), dtype=np.float32)
        if not scene.probes.samples:
            rows = none
            for _ in scene.rules:
                values = np.zeros(len(rows), dtype=np.float32)
                rows = np.concatenate([rows, scene.probes.next(rows, values, none)])
            self.shared, self.width = rows, len(rows)
        for at, (x, name) in enumerate(zip(scene.images, scene.names, strict=True)):
            nothing = np.empty(0, dtype=np.float32)
            self.open[at] = _Open(at, int(name), x, none, nothing, Pool(scene.rules[0]))
            self._next_round(self.open[at])

    def _next_round(self, episode: _Open) -> None:
        """Measure, and open a pool; where the rule never looks, measure again."""
        scene = self.scene
        while True:
            episode.round += 1
            samples = np.array(episode.samples, dtype=np.float32).reshape(-1, episode.x.size)
            new = scene.probes.next(episode.rows, episode.values, samples)
            if len(episode.rows) + len(new) > self.width:
                raise BadInput(
                    f"the probes name {len(new)} directions at round {episode.round}; "
                    "probes that look at samples name one a round"
                )
            z = measurement_noise(scene.seed, episode.name, episode.round, len(new))[0]
            values = measure(episode.x, new, scene.sigma_y, z)
            episode.rows = np.concatenate([episode.rows, new])
            episode.values = np.concatenate([episode.values, values])
            episode.pool = Pool(scene.rules[episode.round - 1])
            episode.asked = episode.seen = 0
            episode.early.clear()
            episode.samples.clear()
            self._ask(episode)
            if episode.asked or not self._end_round(episode):
                return

    def _ask(self, episode: _Open) -> None:
        """Queue the draws that are certain to be needed and were not asked for yet."""
        certain = episode.certain(self.scene.prefix(episode.round))
        for draw in range(episode.asked, certain):
            heapq.heappush(self.waiting, (episode.round, episode.at, draw))
        episode.asked = max(episode.asked, certain)

    def _end_round(self, episode: _Open) -> bool:
        """Close the books of a round; whether another one follows."""
        pool = episode.pool
        counted = [INVALID if vote is None else vote for vote in pool.votes]
        episode.votes.append(np.array(counted, dtype=np.uint8))
        episode.charged += episode.seen
        declared = pool.verdict.kind == "declared"
        if not declared and episode.round < len(self.scene.rules):
            return True
        del self.open[episode.at]
        self.declared += declared
        self.done[episode.at] = Episode(
            name=episode.name,
            label=cast(int, pool.verdict.label) if declared else None,
            rounds=episode.round,
            samples=episode.charged,
            votes=tuple(episode.votes),
        )
        return False

    def _fill(self) -> None:
        """Put certain votes into free places, likely ones where the network would be padded."""
        chosen: list[tuple[_Open, int]] = []
        while self.waiting and len(chosen) < len(self.free):
            _, at, draw = heapq.heappop(self.waiting)
            chosen.append((self.open[at], draw))
        busy = len(self.flying) + len(chosen)
        self.filled = busy == self.slots.capacity
        spare = min(-busy % self.slots.shape, self.slots.capacity - busy)
        if spare:
            chosen += self._likely(spare)
        if not chosen:
            return
        slots = np.array([self.free.pop() for _ in chosen], dtype=np.int64)
        for slot, (episode, draw) in zip(slots.tolist(), chosen, strict=True):
            self.flying[slot] = (episode, episode.round, draw)
        self.drawn += len(chosen)
        self.slots.start(slots, self._states(chosen))

    def _likely(self, count: int) -> list[tuple[_Open, int]]:
        """Draws beyond the certain ones, from the pools that have asked for the fewest of them."""
        chosen: list[tuple[_Open, int]] = []
        ahead = [
            (episode.asked - episode.seen - episode.pool.sure, at)
            for at, episode in self.open.items()
            if episode.pool.open and episode.asked < episode.pool.rule.n_max
        ]
        heapq.heapify(ahead)
        while ahead and len(chosen) < count:
            beyond, at = heapq.heappop(ahead)
            episode = self.open[at]
            chosen.append((episode, episode.asked))
            episode.asked += 1
            if episode.asked < episode.pool.rule.n_max:
                heapq.heappush(ahead, (beyond + 1, at))
        return chosen

    def _states(self, chosen: list[tuple[_Open, int]]) -> States:
        scene, count = self.scene, len(chosen)
        values = np.zeros((count, self.width), dtype=np.float32)
        noise = np.full((count, self.width), np.inf, dtype=np.float32)
        for row, (episode, _) in enumerate(chosen):
            values[row, : len(episode.values)] = episode.values
            noise[row, : len(episode.values)] = scene.sigma_y
        rows = self.shared
        if rows is None:
            rows = np.zeros((count, self.width, scene.images.shape[1]), dtype=np.float32)
            for row, (episode, _) in enumerate(chosen):
                rows[row, : len(episode.rows)] = episode.rows
        return States(
            rows,
            values,
            noise,
            scene.seed,
            np.array([episode.name for episode, _ in chosen], dtype=np.int64),
            np.array([episode.round for episode, _ in chosen], dtype=np.int64),
            np.array([draw + scene.first_draw for _, draw in chosen], dtype=np.int64),
        )

    def _receive(self, slots: Whole, images: Floats, labels: NDArray[Any]) -> None:
        """Give each finished vote to its pool, in draw order, and act on the verdicts."""
        if not len(slots):
            return
        _check_votes(slots, images, labels)
        finite = np.logical_and.reduce(np.isfinite(images), axis=1)
        flights = [self.flying.pop(slot) for slot in slots.tolist()]
        self.free += slots.tolist()
        for (episode, round_, draw), image, label, good in zip(
            flights, images, labels.tolist(), finite.tolist(), strict=True
        ):
            if not good:
                self.broken.append((episode.name, round_, draw + self.scene.first_draw))
            if episode.at in self.open and episode.round == round_:
                episode.early[draw] = (label if good else INVALID, image)
                self._advance(episode)

    def _advance(self, episode: _Open) -> None:
        """Count the votes whose turn it is."""
        prefix = self.scene.prefix(episode.round)
        while episode.seen in episode.early:
            label, image = episode.early.pop(episode.seen)
            self.invalid += label == INVALID
            if episode.pool.open:
                episode.pool.add(None if label == INVALID else label)
            if episode.seen < prefix:
                episode.samples.append(image)
            episode.seen += 1
            self.charged += 1
            if not episode.pool.open and episode.seen >= episode.certain(prefix):
                self._cancel(episode)
                if self._end_round(episode):
                    self._next_round(episode)
                return
        self._ask(episode)

    def _cancel(self, episode: _Open) -> None:
        """Free the places of this episode's samples in flight: a verdict made them useless.

        They were merely likely ones, so none of them waits for a place.
        """
        if episode.asked == episode.seen:
            return
        useless = [slot for slot, (owner, _, _) in self.flying.items() if owner is episode]
        for slot in useless:
            del self.flying[slot]
        self.free += useless
        if useless:
            self.slots.stop(np.array(useless, dtype=np.int64))


def _check_votes(slots: Whole, images: Floats, labels: NDArray[Any]) -> None:
    """Refuse what a user's sampler or classifier may get wrong."""
    if images.ndim != 2 or len(images) != len(slots):
        raise BadInput(
            f"the sampler gave samples of shape {images.shape} for {len(slots)} states; "
            "give one row a state"
        )
    if labels.shape != (len(slots),) or labels.dtype.kind not in "iu":
        raise BadInput(
            f"the classifier gave labels of shape {labels.shape} and type {labels.dtype} for "
            f"{len(slots)} samples; give one whole number a sample"
        )
    if labels.min() < 0 or labels.max() > INVALID:
        raise BadInput(
            f"the classifier gave label {labels.min() if labels.min() < 0 else labels.max()}; "
            f"use 0 to {INVALID - 1}, or {INVALID} for an invalid vote"
        )
