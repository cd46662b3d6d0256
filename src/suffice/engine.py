"""The live loop: many sensing episodes at once over one batched sampler.

A sampler wants full batches, a rule wants one vote at a time. So every open pool asks for the
votes that it is certain to need (`Pool.sure`), and only places that would otherwise be padded
draw votes that are merely likely to be needed. A place is free again as soon as its sample is
done or a verdict makes it useless.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from suffice.errors import BadInput
from suffice.pool import Pool
from suffice.rule import Rule
from suffice.sensing.noise import measurement_noise
from suffice.sensing.probes import Probes, measure
from suffice.sensing.states import Classifier, Floats, Sampler, States, Whole

__all__ = ["Episode", "Ledger", "Scene", "Slots", "sense"]

INVALID = 255


@dataclass(frozen=True)
class Scene:
    """What is sensed, and how: images, probes, noise and the rule of each round."""

    images: Floats
    """(n, d)"""
    names: Whole
    """(n,): the number of each image, which keys its random numbers."""
    probes: Probes
    rules: Sequence[Rule]
    """One rule a round; their number is the sensing budget."""
    sigma_y: float
    seed: int = 0
    first_draw: int = 0
    """The number of a pool's first draw: another one gives other votes at the same states."""

    def __post_init__(self) -> None:
        if len(self.images) != len(self.names):
            raise BadInput(f"{len(self.images)} images but {len(self.names)} names; give one each")
        if not len(self.images):
            raise BadInput("no images to sense; give at least one")
        if not self.rules:
            raise BadInput("no rounds to sense; give one rule a round, at least one")
        if not (np.isfinite(self.sigma_y) and self.sigma_y >= 0):
            raise BadInput(f"sigma_y {self.sigma_y} must be a number of at least 0")


@dataclass(frozen=True)
class Episode:
    """How one image was sensed."""

    name: int
    label: int | None
    """The declared class; None where no round declared."""
    rounds: int
    """Rounds sensed: the declaring one, or all."""
    samples: int
    """Votes charged: those that the pools counted, and those that only the probes needed."""
    votes: tuple[NDArray[np.uint8], ...]
    """The votes of each round's pool, in draw order; 255 is an invalid vote."""


@dataclass(frozen=True)
class Ledger:
    """What a run drew, and what became of it."""

    drawn: int
    """Samples begun."""
    used: int
    """Samples that were charged to an episode."""
    invalid: int
    """Votes for no class."""
    broken: tuple[tuple[int, int, int], ...]
    """(image, round, draw) of each sample that was not finite."""
    batches: int
    """Steps of the whole batch."""
    batch_fill: float
    """Mean share of the network's places in use, until draining starts; 0 if it never was full."""
    draining_from: float
    """The share of the run's steps after which the batch was never full again."""
    seconds: float
    sampler_seconds: float
    """Of these, in the sampler's steps and the classifier."""

    @property
    def wasted(self) -> int:
        """Samples begun that no episode needed."""
        return self.drawn - self.used


class Slots(Protocol):
    """Places for samples that start and end at different times (see `DDRMSlots`)."""

    capacity: int
    shape: int
    rows_filled: int
    rows_run: int

    def start(self, slots: Whole, states: States) -> None: ...
    def stop(self, slots: Whole) -> None: ...
    def step(self) -> tuple[Whole, Floats]: ...


Progress = Callable[[int, int, int], None]
"""Called with images done, verdicts and samples."""


def sense(
    scene: Scene,
    sampler: Sampler,
    classifier: Classifier,
    batch: int = 128,
    progress: Progress | None = None,
) -> tuple[list[Episode], Ledger]:
    """Sense every image until its rule declares or the rounds are over."""
    if batch < 1:
        raise BadInput(f"batch {batch} must be at least 1")
    return _Run(scene, sampler, classifier, batch, progress).result()


class OneStep:
    """Places for a sampler that draws whole samples: each ends at the step after its start."""

    def __init__(self, sampler: Sampler, capacity: int) -> None:
        self.capacity = self.shape = capacity
        self.rows_filled = self.rows_run = 0
        self._sampler = sampler
        self._begun: list[tuple[Whole, States]] = []

    def start(self, slots: Whole, states: States) -> None:
        """Begin one sample in each of the given free slots."""
        self._begun.append((slots, states))

    def stop(self, slots: Whole) -> None:
        """Nothing is in flight between steps."""

    def step(self) -> tuple[Whole, Floats]:
        """Draw all that was begun."""
        begun, self._begun = self._begun, []
        if not begun:
            return np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.float32)
        slots = np.concatenate([at for at, _ in begun])
        self.rows_filled += len(slots)
        self.rows_run += self.shape * -(-len(slots) // self.shape)
        return slots, np.concatenate([self._sampler(states) for _, states in begun])


@dataclass
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
    seen: int = 0  # draws delivered, in order
    early: dict[int, tuple[int, Floats]] = field(default_factory=dict)  # finished out of order
    samples: list[Floats] = field(default_factory=list)  # the round's images that probes look at
    votes: list[NDArray[np.uint8]] = field(default_factory=list)
    extra: int = 0  # draws charged that no pool counted

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
        self.drawn = self.charged = self.invalid = self.verdicts = 0
        self.broken: list[tuple[int, int, int]] = []
        self.batches = 0
        self.filled = False  # whether every place was in use at the last step
        self.until_drain = (0, 0, 0)  # batches, rows filled and rows run when it last was
        self.sampler_seconds = 0.0
        # Only probes that look at samples need directions of their own for every episode.
        self.shared: Floats | None = None
        self.width = 0

    def result(self) -> tuple[list[Episode], Ledger]:
        began = time.perf_counter()
        scene = self.scene
        self.shared, self.width = self._directions()
        for at, (x, name) in enumerate(zip(scene.images, scene.names, strict=True)):
            empty = np.empty((0, x.size), dtype=np.float32)
            episode = _Open(at, int(name), x, empty, np.empty(0, np.float32), Pool(scene.rules[0]))
            self.open[at] = episode
            self._next_round(episode)
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
                self.progress(len(self.done), self.verdicts, self.charged)
        batches, filled, run = self.until_drain
        ledger = Ledger(
            drawn=self.drawn,
            used=self.charged,
            invalid=self.invalid,
            broken=tuple(self.broken),
            batches=self.batches,
            batch_fill=filled / run if run else 0.0,
            draining_from=batches / self.batches if self.batches else 0.0,
            seconds=time.perf_counter() - began,
            sampler_seconds=self.sampler_seconds,
        )
        return [self.done[at] for at in sorted(self.done)], ledger

    def _directions(self) -> tuple[Floats | None, int]:
        """All directions of the run, where they are the same for every image; their number."""
        probes, rounds = self.scene.probes, len(self.scene.rules)
        size = self.scene.images.shape[1]
        rows, none = np.empty((0, size), dtype=np.float32), np.empty((0, size), dtype=np.float32)
        if probes.samples:
            return None, rounds
        for _ in range(rounds):
            new = probes.next(rows, np.zeros(len(rows), dtype=np.float32), none)
            rows = np.concatenate([rows, new])
        return rows, len(rows)

    def _next_round(self, episode: _Open) -> None:
        """Measure, and open a pool; where the rule never looks, measure again."""
        scene = self.scene
        while True:
            episode.round += 1
            samples = np.array(episode.samples, dtype=np.float32).reshape(-1, episode.x.size)
            new = scene.probes.next(episode.rows, episode.values, samples)
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
        certain = episode.certain(self.scene.probes.samples)
        for draw in range(episode.asked, certain):
            heapq.heappush(self.waiting, (episode.round, episode.at, draw))
        episode.asked = max(episode.asked, certain)

    def _end_round(self, episode: _Open) -> bool:
        """Close the books of a round; whether another one follows."""
        verdict = episode.pool.verdict
        used = np.array(
            [INVALID if vote is None else vote for vote in episode.pool.votes], dtype=np.uint8
        )
        episode.votes.append(used)
        episode.extra += episode.seen - len(used)
        declared = verdict.kind == "declared"
        if not declared and episode.round < len(self.scene.rules):
            return True
        del self.open[episode.at]
        self.verdicts += declared
        samples = sum(map(len, episode.votes)) + episode.extra
        self.done[episode.at] = Episode(
            name=episode.name,
            label=cast(int, verdict.label) if declared else None,
            rounds=episode.round,
            samples=samples,
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
        if not self.filled:
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

    def _receive(self, slots: Whole, images: Floats, labels: NDArray[np.uint8]) -> None:
        """Give each finished vote to its pool, in draw order, and act on the verdicts."""
        if not len(slots):
            return
        finite = np.logical_and.reduce(np.isfinite(images), axis=1)
        for slot, image, label, good in zip(
            slots.tolist(), images, labels.tolist(), finite.tolist(), strict=True
        ):
            flight = self.flying.pop(slot, None)
            self.free.append(slot)
            if flight is None:
                continue
            episode, round_, draw = flight
            if not good:
                self.broken.append((episode.name, round_, draw + self.scene.first_draw))
            if episode.at in self.open and episode.round == round_:
                episode.early[draw] = (label if good else INVALID, image)
                self._advance(episode)

    def _advance(self, episode: _Open) -> None:
        """Count the votes whose turn it is."""
        prefix = self.scene.probes.samples
        while episode.seen in episode.early:
            label, image = episode.early.pop(episode.seen)
            if not episode.pool.open and episode.seen >= prefix:
                break
            self.invalid += label == INVALID
            if episode.pool.open:
                episode.pool.add(None if label == INVALID else label)
            if episode.seen < prefix:
                episode.samples.append(image)
            episode.seen += 1
            self.charged += 1
            if episode.seen >= episode.certain(prefix) and not episode.pool.open:
                self._cancel(episode)
                if self._end_round(episode):
                    self._next_round(episode)
                return
        self._ask(episode)

    def _cancel(self, episode: _Open) -> None:
        """Free the places of this episode's samples in flight; a verdict made them useless."""
        if episode.asked == episode.seen:
            return
        useless = [slot for slot, (owner, _, _) in self.flying.items() if owner is episode]
        for slot in useless:
            del self.flying[slot]
            self.free.append(slot)
        if useless:
            self.slots.stop(np.array(useless, dtype=np.int64))
        if self.waiting:
            self.waiting = [item for item in self.waiting if item[1] != episode.at]
            heapq.heapify(self.waiting)
