"""What a vote costs: this library's sampler against deepinv's, and against the machine itself.

    python bench/sampler.py [--images 100] [--probes 12] [--threads 2] [--steps 12 16]

Contestants are timed in turn and repeatedly, and the least time of each counts. Their leaders are
compared on the same images and measurements. deepinv takes part where it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from suffice.sensing.data import evaluation_set
from suffice.sensing.ddrm import DDRM, noise_levels
from suffice.sensing.noise import measurement_noise
from suffice.sensing.prior import Prior
from suffice.sensing.probes import measure, principal_components
from suffice.sensing.sampler import DDRMSampler, DigitClassifier
from suffice.sensing.states import Floats, Sampler, States
from suffice.sensing.weights import ASSETS, load_classifier, load_prior

VOTES, BATCH, REPEATS = 32, 128, 9


class Timed:
    """A denoiser that adds up the time spent in it."""

    def __init__(self, denoiser: Prior) -> None:
        self.denoiser, self.seconds = denoiser, 0.0

    def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
        began = time.perf_counter()
        x0 = self.denoiser(x, sigma)
        self.seconds += time.perf_counter() - began
        return x0


def plain_prior() -> Prior:
    """The same weights as anyone would load them: float32, in torch's default layout."""
    prior = load_prior().float().to(memory_format=torch.contiguous_format)
    prior.dtype = torch.float32
    convolve = prior.net.forward
    prior.net.forward = lambda x, level: convolve(x.contiguous(), level)
    return prior


def states_of(images: int, probes: int, sigma_y: float = 0.1) -> States:
    """VOTES votes for each image after its first probes."""
    pictures, _ = evaluation_set()
    rows = principal_components()[0][:probes]
    values = np.stack(
        [
            measure(x, rows, sigma_y, measurement_noise(0, at, np.arange(1, probes + 1))[:, 0])
            for at, x in enumerate(pictures[:images])
        ]
    )
    name = np.arange(images).repeat(VOTES)
    noise = np.full((len(name), probes), sigma_y, dtype=np.float32)
    draw = np.tile(np.arange(VOTES), images)
    return States(rows, values[name], noise, 0, name, np.full(len(name), probes), draw)


def leaders(sampler: Sampler, states: States) -> np.ndarray:
    """The class with the most votes for each image, and the share of its votes that are right."""
    classify = DigitClassifier(load_classifier())
    drawn: list[Floats] = []
    for first in range(0, len(states), BATCH):
        drawn.append(sampler(states.pick(np.arange(first, min(first + BATCH, len(states))))))
        if sys.stderr.isatty():
            print(f"\r{first}/{len(states)} votes", end="\r", file=sys.stderr)
    votes = classify(np.concatenate(drawn)).reshape(-1, VOTES)
    return (votes[:, :, None] == np.arange(10)).sum(axis=1).argmax(axis=1)


def least(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The least seconds of each call, over rounds in which every one has its turn."""
    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    for _ in range(REPEATS):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def flops(prior: Prior) -> int:
    """Multiplications and additions of one evaluation on one image."""
    total = 0

    def count(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal total
        if isinstance(module, nn.Linear):
            total += 2 * module.weight.numel()
        elif isinstance(module, nn.ConvTranspose2d):
            total += 2 * module.weight.numel() * inputs[0][0, 0].numel()
        else:
            total += 2 * module.weight.numel() * output[0, 0].numel()

    kinds = (nn.Linear, nn.Conv2d, nn.ConvTranspose2d)
    hooks = [m.register_forward_hook(count) for m in prior.modules() if isinstance(m, kinds)]
    with torch.inference_mode():
        prior(torch.zeros(1, 784), torch.ones(1))
    for hook in hooks:
        hook.remove()
    return total


def deepinv_sampler(denoiser: Prior) -> Sampler | None:
    """deepinv's DDRM behind the adapter of the examples, if it is installed."""
    if importlib.util.find_spec("deepinv") is None:
        return None
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    import deepinv_sampler

    return deepinv_sampler.DeepinvSampler(deepinv_sampler.deepinv_ddrm(denoiser))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--probes", type=int, default=12)
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--compile", action="store_true", help="try torch.compile as well")
    parser.add_argument("--prior", type=Path, help="try another prior as well")
    parser.add_argument("--steps", type=int, nargs="*", default=(), help="try fewer steps as well")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(f"{arguments.threads} threads; load {os.getloadavg()[0]:.2f} before; {ASSETS.name} prior")

    timed, plain = Timed(load_prior()), plain_prior()
    own = DDRMSampler(DDRM(timed))
    ladder = {shape: DDRMSampler(DDRM(load_prior()), shape=shape) for shape in (8, 32, 64, 128)}
    samplers: dict[str, Sampler] = {
        "ours": own,
        "ours, plain fp32 network": DDRMSampler(DDRM(plain)),
    }
    peer, peer_fast = deepinv_sampler(plain), deepinv_sampler(load_prior())
    if peer and peer_fast:
        samplers |= {"deepinv, plain fp32 network": peer, "deepinv, our network": peer_fast}
    else:
        print("deepinv is not installed, so it takes no part: pip install torch==2.13.0 deepinv")
    if arguments.compile:
        fast = load_prior()
        fast.net = torch.compile(fast.net, dynamic=False)
        began = time.perf_counter()
        fast(torch.zeros(own.shape, 784), torch.ones(own.shape))
        print(f"compiling took {time.perf_counter() - began:.0f} s")
        samplers["ours, compiled"] = DDRMSampler(DDRM(fast))

    if arguments.prior:
        samplers[f"ours, {arguments.prior.stem}"] = DDRMSampler(DDRM(load_prior(arguments.prior)))
    for steps in arguments.steps:
        samplers[f"ours, {steps} steps"] = DDRMSampler(DDRM(load_prior(), noise_levels(steps)))

    batch = states_of(BATCH // VOTES, arguments.probes)
    square = {dtype: torch.randn(2048, 2048).to(dtype) for dtype in (torch.float32, torch.bfloat16)}
    network = load_prior()
    x, sigma = torch.randn(own.shape, 784), torch.ones(own.shape)
    shares: list[float] = []

    def ours() -> None:
        timed.seconds, began = 0.0, time.perf_counter()
        own(batch)
        shares.append(1 - timed.seconds / (time.perf_counter() - began))

    calls: dict[str, Callable[[], object]] = {
        name: lambda sampler=sampler: sampler(batch) for name, sampler in samplers.items()
    }
    calls["ours"] = ours
    calls |= {
        f"shape {shape}": lambda sampler=sampler: sampler(batch)
        for shape, sampler in ladder.items()
    }
    calls |= {f"{dtype} product": lambda a=a: a @ a for dtype, a in square.items()}
    with torch.inference_mode():
        calls["network"] = lambda: network(x, sigma)
        best = least(calls)

    states = states_of(arguments.images, arguments.probes)
    _, truth = evaluation_set()
    print(f"\nleaders of {VOTES} votes on {arguments.images} images, {arguments.probes} probes")
    print(f"{'':<30} {'ms a vote':>9} {'ratio':>6} {'leader right':>12}")
    for name, sampler in samplers.items():
        each = best[name] / len(batch) * 1e3
        right = (leaders(sampler, states) == truth[: arguments.images]).mean()
        print(f"{name:<30} {each:>9.3f} {best[name] / best['ours']:>6.2f} {right:>12.3f}")
    print(
        f"\nours at network shape {own.shape}: {min(shares):.1%} of its time is not the network's"
    )
    for shape in ladder:
        each = best[f"shape {shape}"] / len(batch) * 1e3
        print(f"shape {shape:>4}: {each:.3f} ms a vote")

    rate = flops(network) * len(x) / best["network"] / 1e9
    print(f"\nthe network: {flops(network) / 1e6:.1f} MFLOP an evaluation, {rate:.0f} GFLOP/s")
    for dtype in square:
        machine = 2 * 2048**3 / best[f"{dtype} product"] / 1e9
        print(f"{dtype} product: {machine:.0f} GFLOP/s; the network reaches {rate / machine:.0%}")
    print(f"load {os.getloadavg()[0]:.2f} after")


if __name__ == "__main__":
    main()
