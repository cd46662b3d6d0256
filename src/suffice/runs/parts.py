"""The loaded parts of a run, and what they make of a shard: a vote log."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from suffice.engine import Progress, sense
from suffice.errors import BadInput
from suffice.rule import Rule
from suffice.runs.shards import RunConfig, Shard
from suffice.scene import Episode, Ledger, Scene
from suffice.sensing.data import evaluation_set
from suffice.sensing.oracle import MNIST_H, Oracle, mnist_oracle
from suffice.sensing.oracle_sampler import OracleSampler
from suffice.sensing.probes import AdaptivePCA, FixedPCA, Probes
from suffice.sensing.states import Classifier, Floats, Sampler, Whole
from suffice.votes import VoteLog

__all__ = ["Parts", "every_draw", "load_parts", "make_shard", "versions"]


@dataclass(frozen=True, eq=False)
class Parts:
    """What senses the images of a run; heavy, so loaded once a process."""

    config: RunConfig
    probes: Probes
    sampler: Sampler
    classifier: Classifier
    hashes: dict[str, str]
    images: Floats
    """The evaluation images, (n, 784)."""
    labels: Whole
    """Their labels, (n,)."""
    batch: int
    """How many samples are in flight at once where nothing else is said."""

    def sense(
        self,
        rules: list[Rule],
        names: Whole,
        progress: Progress | None = None,
        batch: int | None = None,
    ) -> tuple[list[Episode], Ledger]:
        """Sense some of the evaluation images, one rule a round."""
        config = self.config
        scene = Scene(
            self.images[names],
            names,
            self.probes,
            rules,
            config.sigma_y,
            config.seed,
            config.first_draw,
        )
        return sense(
            scene, self.sampler, self.classifier, self.batch if batch is None else batch, progress
        )


def load_parts(config: RunConfig, threads: int | None = None) -> Parts:
    """Load what a run needs, on the GPU where there is one; `threads` are torch's on a CPU."""
    images, labels = evaluation_set()
    if config.sampler == "ddrm":
        return _ddrm_parts(config, threads, images, labels.astype(np.int64))
    if config.sampler == "toy":
        oracle = Oracle(images, labels, MNIST_H)
    else:
        oracle = mnist_oracle(config.data_dir)
    sampler, probes = OracleSampler(oracle), FixedPCA()
    hashes = {"prior": oracle.digest, "probes": probes.digest}
    whole = labels.astype(np.int64)
    return Parts(config, probes, sampler, sampler.classify, hashes, images, whole, batch=1024)


def _ddrm_parts(config: RunConfig, threads: int | None, images: Floats, labels: Whole) -> Parts:
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
    device = best_device()
    prior = weights.load_prior(device=device)
    ddrm = DDRM(prior, noise_levels(config.steps), config.eta, config.eta_b)
    probes: Probes = FixedPCA() if config.probes == "pca" else AdaptivePCA(config.prefix)
    net = weights.load_classifier(device=device)
    return Parts(
        config,
        probes,
        DDRMSampler(ddrm, device),
        DigitClassifier(net, device, config.min_confidence),
        {
            "prior": weights.digest(weights.ASSETS / "prior.safetensors"),
            "classifier": weights.digest(weights.ASSETS / "classifier.safetensors"),
            "probes": probes.digest,
        },
        images,
        labels,
        batch=128 if device == "cpu" else 4096,
    )


def every_draw(draws: int) -> Rule:
    """The rule that draws a whole pool and declares nothing: what a vote log is made with."""
    n = np.arange(draws + 1)
    return Rule(n + 1, np.zeros_like(n), "every draw", {"samples": draws})


def make_shard(
    parts: Parts, shard: Shard, progress: Progress | None = None, batch: int | None = None
) -> tuple[VoteLog, Ledger]:
    """All votes of the shard's images, to the full sensing budget."""
    config = parts.config
    names = np.arange(shard.first, shard.last)
    rules = [every_draw(config.draws)] * config.rounds
    episodes, ledger = parts.sense(rules, names, progress, batch)
    votes = np.array([np.stack(episode.votes) for episode in episodes], dtype=np.uint8)
    record = config.record()
    # How many images there are and how they were cut does not change a vote.
    for name in ("images", "per_shard"):
        del record[name]
    metadata = {**record, "hashes": parts.hashes, "versions": versions()}
    return VoteLog(names, parts.labels[names], votes, metadata), ledger


def versions() -> dict[str, Any]:
    """The software that makes a run."""
    found = {"python": platform.python_version()}
    for name in ("suffice", "numpy", "torch"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # the oracle needs no torch
            continue
    return found
