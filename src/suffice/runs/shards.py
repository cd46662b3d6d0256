"""What a run is: a frozen config makes a list of shards, and a shard is a vote log."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np

from suffice.engine import Episode, Ledger, Scene, sense
from suffice.errors import BadInput
from suffice.rule import Rule
from suffice.sensing.data import evaluation_set
from suffice.sensing.probes import AdaptivePCA, FixedPCA, Probes
from suffice.sensing.states import Classifier, Floats, Sampler, Whole
from suffice.votes import VoteLog

__all__ = ["Parts", "RunConfig", "Shard", "every_draw", "load_parts", "make_shard"]


@dataclass(frozen=True)
class RunConfig:
    """All that decides the votes of a run; the machine and its workers are not part of it."""

    images: int
    """How many of the evaluation images, from the first."""
    rounds: int = 24
    draws: int = 32
    first_draw: int = 0
    """The number of the first draw: other draws are other votes at the same states."""
    sigma_y: float = 0.1
    seed: int = 0
    probes: str = "pca"
    """`pca`, or `adaptive` for directions from each round's posterior samples."""
    prefix: int = 0
    """How many samples of a round adaptive probes look at."""
    sampler: str = "ddrm"
    """`ddrm`, or `oracle` for exact posterior draws (needs MNIST's training images)."""
    steps: int = 20
    eta: float = 0.85
    eta_b: float = 1.0
    min_confidence: float = 0.0
    data_dir: str | None = None
    per_shard: int = 20
    """Images a shard."""

    def __post_init__(self) -> None:
        for name in ("images", "rounds", "draws", "per_shard"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} {getattr(self, name)} must be at least 1")
        for name in ("first_draw", "seed", "prefix"):
            if getattr(self, name) < 0:
                raise BadInput(f"{name} {getattr(self, name)} must be at least 0")
        if self.probes not in ("pca", "adaptive"):
            raise BadInput(f"probes {self.probes!r} are unknown; use pca or adaptive")
        if self.sampler not in ("ddrm", "oracle"):
            raise BadInput(f"sampler {self.sampler!r} is unknown; use ddrm or oracle")
        if self.probes == "adaptive" and not 2 <= self.prefix <= self.draws:
            raise BadInput(
                f"prefix {self.prefix} must be from 2 to draws {self.draws}, "
                "since adaptive probes look at that many samples"
            )
        there = len(evaluation_set()[0])
        if self.images > there:
            raise BadInput(f"images {self.images} is more than the {there} evaluation images")

    def shards(self) -> list[Shard]:
        """The run's shards, always the same."""
        starts = range(0, self.images, self.per_shard)
        return [Shard(at, min(at + self.per_shard, self.images)) for at in starts]

    def record(self) -> dict[str, Any]:
        """The config as JSON can hold it, without what only says where the data lie."""
        values = asdict(self)
        del values["data_dir"]
        return values


@dataclass(frozen=True)
class Shard:
    """The images from `first` to before `last`."""

    first: int
    last: int

    @property
    def name(self) -> str:
        """Its file name in a log's folder."""
        return f"votes-{self.first:05d}-{self.last:05d}.parquet"


@dataclass(frozen=True)
class Parts:
    """The loaded parts of a run; heavy, so loaded once a process."""

    config: RunConfig
    probes: Probes
    sampler: Sampler
    classifier: Classifier
    hashes: dict[str, str]
    batch: int

    @cached_property
    def evaluation(self) -> tuple[Floats, Whole]:
        """The evaluation images (n, 784) and their labels (n,)."""
        images, labels = evaluation_set()
        return images, labels.astype(np.int64)

    def sense(
        self,
        rules: list[Rule],
        names: Whole,
        progress: Callable[[int, int, int], None] | None = None,
        batch: int | None = None,
    ) -> tuple[list[Episode], Ledger]:
        """Sense some of the evaluation images, one rule a round."""
        config = self.config
        scene = Scene(
            self.evaluation[0][names],
            names,
            self.probes,
            rules,
            config.sigma_y,
            config.seed,
            config.first_draw,
        )
        return sense(scene, self.sampler, self.classifier, batch or self.batch, progress)


def load_parts(
    config: RunConfig, device: str | None = None, threads: int = 0, batch: int | None = None
) -> Parts:
    """Load what a run needs, on the GPU where there is one; `threads` 0 leaves torch's choice."""
    try:
        import torch
    except ImportError:
        raise BadInput(
            "sensing needs the extra `sensing`: pip install 'suffice[sensing]'"
        ) from None
    from suffice.sensing import weights
    from suffice.sensing.ddrm import DDRM, noise_levels
    from suffice.sensing.sampler import DDRMSampler, DigitClassifier, best_device

    if threads:
        torch.set_num_threads(threads)
    device = device or best_device()
    probes: Probes = FixedPCA() if config.probes == "pca" else AdaptivePCA(config.prefix)
    net = weights.load_classifier(device=device)
    classifier: Classifier = DigitClassifier(net, device, config.min_confidence)
    hashes = {
        "classifier": weights.digest(weights.ASSETS / "classifier.safetensors"),
        "probes": probes.digest,
    }
    sampler: Sampler
    if config.sampler == "oracle":
        from suffice.sensing.oracle import mnist_oracle
        from suffice.sensing.oracle_sampler import OracleSampler

        exact = OracleSampler(mnist_oracle(config.data_dir))
        sampler, classifier, hashes["prior"] = exact, exact.classify, exact.oracle.digest
    else:
        ddrm = DDRM(
            weights.load_prior(device=device),
            noise_levels(config.steps),
            config.eta,
            config.eta_b,
        )
        sampler = DDRMSampler(ddrm, device)
        hashes["prior"] = weights.digest(weights.ASSETS / "prior.safetensors")
    return Parts(config, probes, sampler, classifier, hashes, batch or default_batch(device))


def default_batch(device: str) -> int:
    """How many samples are in flight at once."""
    return 128 if device == "cpu" else 4096


def every_draw(draws: int) -> Rule:
    """The rule that draws a whole pool and declares nothing: what a vote log is made with."""
    n = np.arange(draws + 1)
    return Rule(n + 1, np.zeros_like(n), "every draw", {"samples": draws})


def make_shard(parts: Parts, shard: Shard) -> VoteLog:
    """All votes of the shard's images, to the full sensing budget."""
    config = parts.config
    names = np.arange(shard.first, shard.last)
    episodes, _ = parts.sense([every_draw(config.draws)] * config.rounds, names)
    votes = np.array([np.stack(episode.votes) for episode in episodes], dtype=np.uint8)
    return VoteLog(names, parts.evaluation[1][names], votes, log_metadata(parts))


def log_metadata(parts: Parts) -> dict[str, Any]:
    """What a vote log says of the run that made it."""
    record = parts.config.record()
    # How many images there are and how they were cut does not change a vote.
    for name in ("images", "per_shard"):
        del record[name]
    return {**record, "hashes": parts.hashes, "versions": versions()}


def versions() -> dict[str, str]:
    """The software that made a run."""
    names = ("suffice", "numpy", "torch")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}
