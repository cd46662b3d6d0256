"""Train the prior: a denoiser of MNIST digits, with an averaged copy of the weights.

    python scripts/train_prior.py --out prior.safetensors --minutes 10

The recipe is a time budget, not a number of steps, so that it suits any machine. A checkpoint is
written every minute; the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from suffice.files import replacing
from suffice.sensing.data import load_mnist
from suffice.sensing.prior import Prior, UNet, describe, log_uniform
from suffice.sensing.weights import load_prior

LEVELS = (0.005, 100.0)


def draw_levels(count: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """Noise levels (count,): most where digits take shape, the rest over the whole ladder."""
    normal = torch.randn(count, generator=generator, device=device)
    middle = torch.exp(-0.4 + 1.2 * normal)
    wide = log_uniform(*LEVELS, torch.rand(count, generator=generator, device=device))
    pick = torch.rand(count, generator=generator, device=device) < 0.7
    return torch.where(pick, middle, wide).clamp(*LEVELS)


def loss(prior: Prior, teacher: Prior | None, x0: Tensor, sigma: Tensor, z: Tensor) -> Tensor:
    """EDM's weighted error, one value an image: the network's target has unit variance.

    With a teacher, what it makes of the noisy image stands in the clean one's place.
    """
    noisy = x0 + sigma[:, None] * z
    if teacher is not None:
        with torch.no_grad():
            x0 = teacher(noisy, sigma)
    error = prior(noisy, sigma) - x0
    weight = (sigma**2 + prior.sigma_data**2) / (sigma * prior.sigma_data) ** 2
    return weight * error.square().mean(dim=1)


def evaluate(prior: Prior, images: Tensor) -> dict[str, float]:
    """The root mean square error of the denoiser on held-out images, by noise level."""
    generator = torch.Generator(device=images.device).manual_seed(1)
    result = {}
    with torch.inference_mode():
        for level in (0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0):
            sigma = torch.full((len(images),), level, device=images.device)
            z = torch.randn(images.shape, generator=generator, device=images.device)
            error = prior(images + level * z, sigma) - images
            result[f"{level:g}"] = round(error.square().mean().sqrt().item(), 5)
    return result


def checkpoint(path: Path, state: dict[str, dict[str, Tensor]], progress: dict[str, float]) -> None:
    flat = {
        f"{part}|{key}": value.contiguous()
        for part, values in state.items()
        for key, value in values.items()
    }
    with replacing(path) as part:
        save_file(flat, part, metadata={"progress": json.dumps(progress)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--channels", type=int, default=32)
    parser.add_argument("--outer", type=int, default=2)
    parser.add_argument("--inner", type=int, default=3)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--teacher", type=Path, help="a prior to distil instead of the images")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--save-every", type=float, default=60.0, help="seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    torch.manual_seed(arguments.seed)
    generator = torch.Generator(device=device).manual_seed(arguments.seed)

    pixels, _ = load_mnist("train", arguments.data_dir)
    images = torch.from_numpy(pixels.reshape(-1, 784).astype(np.float32) / 127.5 - 1).to(device)
    train, held_out = images[:-2000], images[-2000:]
    mean = train.mean(dim=0)
    sigma_data = (train - mean).square().mean().sqrt().item()
    net = UNet(arguments.channels, arguments.outer, arguments.inner)
    prior = Prior(net.to(memory_format=torch.channels_last), mean, sigma_data).to(device)
    teacher = arguments.teacher and load_prior(arguments.teacher, arguments.device)
    average = copy.deepcopy(prior).requires_grad_(False)
    optimizer = torch.optim.Adam(prior.parameters(), lr=arguments.rate, fused=device.type == "cuda")
    step, spent = 0, 0.0

    resume = arguments.out.with_suffix(".checkpoint")
    if resume.exists():
        with safe_open(resume, "pt", device=str(device)) as file:
            parts: dict[str, dict[str, Tensor]] = {}
            for key in file.keys():  # noqa: SIM118 (not a mapping)
                part, name = key.split("|")
                parts.setdefault(part, {})[name] = file.get_tensor(key)
            progress = json.loads(file.metadata()["progress"])
        prior.load_state_dict(parts["prior"])
        average.load_state_dict(parts["average"])
        state = optimizer.state_dict()
        for key, value in parts["optimizer"].items():
            index, name = key.split(".")
            state["state"].setdefault(int(index), {})[name] = value
        optimizer.load_state_dict(state)
        step, spent = int(progress["step"]), progress["seconds"]
        generator.manual_seed(arguments.seed + step)

    budget = 60 * arguments.minutes
    weights, averaged = list(prior.parameters()), list(average.parameters())
    running = torch.zeros((), device=device)
    told = saved = last = time.monotonic()
    while spent < budget:
        part = spent / budget
        rate = arguments.rate * min(1.0, (step + 1) / 500) * 0.5 * (1 + math.cos(math.pi * part))
        for group in optimizer.param_groups:
            group["lr"] = rate
        pick = torch.randint(len(train), (arguments.batch,), generator=generator, device=device)
        sigma = draw_levels(arguments.batch, generator, device)
        z = torch.randn(arguments.batch, 784, generator=generator, device=device)
        with torch.autocast(device.type, torch.bfloat16):
            value = loss(prior, teacher, train[pick], sigma, z).mean()
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        keep = min(0.9995, (step + 1) / (step + 10))
        torch._foreach_lerp_(averaged, [w.detach() for w in weights], 1 - keep)
        running.lerp_(value.detach(), 0.01)
        step += 1
        now = time.monotonic()
        spent, last = spent + now - last, now
        if sys.stderr.isatty() and now - told > 1:
            told = now
            print(f"\r{part:5.1%}  step {step}  loss {running.item():.4f}", end="", file=sys.stderr)
        if now - saved > arguments.save_every:
            saved = now
            moments = {
                f"{index}.{name}": value
                for index, slots in optimizer.state_dict()["state"].items()
                for name, value in slots.items()
            }
            checkpoint(
                resume,
                {
                    "prior": prior.state_dict(),
                    "average": average.state_dict(),
                    "optimizer": moments,
                },
                {"step": step, "seconds": spent},
            )
    card = {
        "network": describe(net),
        "sigma_data": sigma_data,
        "parameters": sum(p.numel() for p in net.parameters()),
        "steps": step,
        "batch": arguments.batch,
        "seconds": round(spent),
        "seed": arguments.seed,
        "teacher": None if arguments.teacher is None else arguments.teacher.name,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "held_out_rmse": evaluate(average, held_out),
    }
    with replacing(arguments.out) as file:
        state = {name: value.contiguous().cpu() for name, value in average.state_dict().items()}
        save_file(state, file, metadata={"card": json.dumps(card)})
    resume.unlink(missing_ok=True)
    print(json.dumps(card, indent=2))


if __name__ == "__main__":
    main()
