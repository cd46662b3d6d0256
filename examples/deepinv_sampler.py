"""Any sampler of deepinv as a sampler of this library: states in, images out.

    python -m pip install torch==2.13.0 deepinv
    python examples/deepinv_sampler.py

senses a few digits with the DDRM of deepinv, and counts their votes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from suffice import sequential
from suffice.engine import sense
from suffice.scene import Scene
from suffice.sensing.data import evaluation_set
from suffice.sensing.ddrm import noise_levels
from suffice.sensing.prior import Denoiser
from suffice.sensing.probes import FixedPCA
from suffice.sensing.sampler import DigitClassifier
from suffice.sensing.states import Floats, States
from suffice.sensing.weights import load_classifier, load_prior


class DeepinvSampler:
    """Calls `model(y, physics)` once for all votes whose measurements lie along the same rows.

    deepinv draws from torch's one global stream. So a vote here depends on its batch, and the same
    batch gives the same votes; votes that do not depend on their batch need `DDRMSampler`.
    """

    def __init__(self, model: Callable[..., Tensor]) -> None:
        self.model = model

    def __call__(self, states: States) -> Floats:
        images = np.empty((len(states), states.rows.shape[-1]), dtype=np.float32)
        # deepinv takes one set of rows and one noise level a batch.
        kinds: dict[bytes, list[int]] = {}
        for vote in range(len(states)):
            own = states.rows[vote].tobytes() if states.rows.ndim == 3 else b""
            kinds.setdefault(own + states.noise[vote].tobytes(), []).append(vote)
        for votes in kinds.values():
            images[votes] = self._draw(states.pick(votes))
        return images

    def _draw(self, states: States) -> Floats:
        keys = np.stack([states.image, states.round, states.draw], axis=1).ravel()
        words = np.random.SeedSequence([states.seed, *keys.tolist()]).generate_state(2)
        torch.manual_seed(int(words[0]) << 32 | int(words[1]))
        measured = np.isfinite(states.noise[0])
        rows = states.rows if states.rows.ndim == 2 else states.rows[0]
        rows = torch.from_numpy(np.ascontiguousarray(rows[measured]))
        (sigma_y,) = np.unique(states.noise[:, measured]).tolist() or [0.0]
        y = torch.zeros(len(states), rows.shape[1])
        y[:, : len(rows)] = torch.from_numpy(states.values[:, measured])
        drawn = self.model(y.view(-1, 1, 28, 28), physics_along(rows, sigma_y))
        return drawn.reshape(len(states), -1).numpy()


def physics_along(rows: Tensor, sigma_y: float):
    """y = rows x + sigma_y z, in a whole basis whose first directions are the rows."""
    deepinv = import_deepinv()
    basis = torch.linalg.qr(rows.T, mode="complete").Q
    basis[:, : len(rows)] = rows.T
    mask = torch.zeros(1, 1, 28, 28)
    mask.view(-1)[: len(rows)] = 1
    return deepinv.physics.DecomposablePhysics(
        U=lambda a: a,
        U_adjoint=lambda y: y.clone(),
        V=lambda a: (a.flatten(1) @ basis.T).view_as(a),
        V_adjoint=lambda x: (x.flatten(1) @ basis).view_as(x),
        mask=mask,
        noise_model=deepinv.physics.GaussianNoise(sigma_y),
    )


def deepinv_ddrm(denoiser: Denoiser) -> Callable[..., Tensor]:
    """deepinv's DDRM at this library's noise levels: its own begin at sigma 1, far too low."""

    def plain(x: Tensor, sigma: float) -> Tensor:
        level = torch.full((len(x),), float(sigma))
        return denoiser(x.flatten(1), level).view_as(x)

    return import_deepinv().sampling.DDRM(plain, sigmas=noise_levels()[:-1])


def import_deepinv() -> ModuleType:
    """deepinv; the operators of torchvision that it never calls are named where a build lacks them.

    Raises ImportError where deepinv is not installed.
    """
    if "deepinv" not in sys.modules:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            if not hasattr(torch.ops.torchvision, name):
                library.define(f"{name}(Tensor dets, Tensor scores, float threshold) -> Tensor")
    import deepinv

    return deepinv


def main() -> None:
    images, labels = evaluation_set()
    count, rounds = 3, 12
    scene = Scene(
        images[:count],
        np.arange(count),
        FixedPCA(),
        [sequential(tau=0.78, eps=0.05, n_max=32)] * rounds,
        sigma_y=0.1,
    )
    sampler = DeepinvSampler(deepinv_ddrm(load_prior()))
    episodes, ledger = sense(scene, sampler, DigitClassifier(load_classifier()))
    for episode in episodes:
        said = "undecided" if episode.label is None else f"declared {episode.label}"
        print(
            f"a {labels[episode.name]}: {said} after {episode.rounds} probes and "
            f"{episode.samples} votes"
        )
    print(f"{ledger.drawn} samples in {ledger.seconds:.0f} s")


if __name__ == "__main__":
    main()
