"""What a run is: a frozen config, which makes a list of shards."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from suffice.errors import BadInput
from suffice.sensing.data import evaluation_set

__all__ = ["PROBES", "SAMPLERS", "RunConfig", "Shard"]

PROBES = ("pca", "adaptive")
DRAWS = 100_000  # of a pool; a longer one would not fit in memory
LARGEST = 2**62  # of what is told to the random numbers as 64 bits
SAMPLERS = ("ddrm", "oracle", "toy")


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
    """`ddrm`; `oracle` for exact posterior draws, which needs MNIST's training images; `toy` for
    exact draws under a prior of the packaged images alone, to try things out in seconds."""
    steps: int = 20
    eta: float = 0.85
    eta_b: float = 1.0
    min_confidence: float = 0.0
    data_dir: str | None = None
    per_shard: int = 20
    """Images a shard."""

    def __post_init__(self) -> None:
        for name in ("images", "rounds", "draws", "per_shard", "steps"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} {getattr(self, name)} must be at least 1")
        if self.draws > DRAWS:
            raise BadInput(f"draws {self.draws} is too many for a pool; choose {DRAWS:,} at most")
        for name in ("first_draw", "seed", "prefix"):
            if getattr(self, name) < 0:
                raise BadInput(f"{name} {getattr(self, name)} must be at least 0")
            if getattr(self, name) > LARGEST:
                raise BadInput(f"{name} {getattr(self, name)} must be at most {LARGEST}")
        if not (isfinite(self.sigma_y) and self.sigma_y >= 0):
            raise BadInput(f"sigma_y {self.sigma_y} must be a number of at least 0")
        for name in ("eta", "eta_b"):
            if not 0 <= getattr(self, name) <= 1:
                raise BadInput(f"{name} {getattr(self, name)} is outside 0 to 1")
        if not 0 <= self.min_confidence < 1:
            raise BadInput(
                f"min_confidence {self.min_confidence} is outside 0 to 1; 0 accepts every vote"
            )
        if self.probes not in PROBES:
            raise BadInput(f"probes {self.probes!r} are unknown; use {' or '.join(PROBES)}")
        if self.sampler not in SAMPLERS:
            raise BadInput(f"sampler {self.sampler!r} is unknown; use one of {', '.join(SAMPLERS)}")
        if self.probes == "adaptive" and self.sampler != "ddrm":
            raise BadInput(f"sampler {self.sampler!r} draws labels, not images; use probes pca")
        if self.probes == "pca" and self.prefix:
            raise BadInput(f"prefix {self.prefix} is for adaptive probes; leave it out")
        if self.probes == "adaptive" and not 2 <= self.prefix <= self.draws:
            raise BadInput(
                f"prefix {self.prefix} is not from 2 to {self.draws}, the votes of a pool; "
                "adaptive probes look at that many samples"
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

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def name(self) -> str:
        """Its file name in a log's folder."""
        return f"votes-{self.first:05d}-{self.last:05d}.parquet"
