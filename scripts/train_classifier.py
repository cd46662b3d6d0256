"""Train the classifier on MNIST with small shifts and rotations.

python scripts/train_classifier.py --out classifier.safetensors --epochs 20
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

from suffice.files import replacing
from suffice.sensing.classifier import DigitNet
from suffice.sensing.data import load_mnist


def shake(images: Tensor, generator: torch.Generator) -> Tensor:
    """Images (B, 784) turned by up to 12 degrees, scaled by up to 10% and shifted by 2 pixels."""
    count, device = len(images), images.device
    u = 2 * torch.rand(4, count, generator=generator, device=device) - 1
    angle, scale, shift = u[0] * math.radians(12), 1 + 0.1 * u[1], u[2:] * (2 / 14)
    turn = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=1)
    theta = torch.cat([turn.view(-1, 2, 2) * scale[:, None, None], shift.T[:, :, None]], dim=2)
    grid = F.affine_grid(theta, [count, 1, 28, 28], align_corners=False)
    # Black is -1, and grid_sample pads with 0: move black there and back.
    moved = F.grid_sample(images.view(-1, 1, 28, 28) + 1, grid, align_corners=False) - 1
    return moved.flatten(1)


def accuracy(net: DigitNet, images: Tensor, labels: Tensor) -> float:
    net.eval()
    with torch.inference_mode():
        right = [
            (net(x).argmax(1) == y).sum()
            for x, y in zip(images.split(2000), labels.split(2000), strict=True)
        ]
    net.train()
    return sum(int(r) for r in right) / len(labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    torch.manual_seed(arguments.seed)
    generator = torch.Generator(device=device).manual_seed(arguments.seed)

    def tensors(split: str) -> tuple[Tensor, Tensor]:
        pixels, labels = load_mnist(split, arguments.data_dir)
        scaled = pixels.reshape(-1, 784).astype(np.float32) / 127.5 - 1
        return torch.from_numpy(scaled).to(device), torch.from_numpy(labels.astype(np.int64)).to(
            device
        )

    (images, labels), test = tensors("train"), tensors("test")
    net = DigitNet().to(device)
    steps = arguments.epochs * (len(images) // arguments.batch)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    began = time.monotonic()
    for step in range(steps):
        if step % (len(images) // arguments.batch) == 0:
            order = torch.randperm(len(images), generator=generator, device=device)
            if sys.stderr.isatty():
                print(f"\repoch {step * arguments.batch // len(images)}", end="", file=sys.stderr)
        start = (step * arguments.batch) % (len(images) - arguments.batch)
        pick = order[start : start + arguments.batch]
        value = F.cross_entropy(
            net(shake(images[pick], generator)), labels[pick], label_smoothing=0.02
        )
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        optimizer.step()
        schedule.step()
    card = {
        "parameters": sum(p.numel() for p in net.parameters()),
        "epochs": arguments.epochs,
        "batch": arguments.batch,
        "seconds": round(time.monotonic() - began),
        "seed": arguments.seed,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "test_accuracy": accuracy(net, *test),
    }
    with replacing(arguments.out) as file:
        state = {name: value.contiguous().cpu() for name, value in net.state_dict().items()}
        save_file(state, file, metadata={"card": json.dumps(card)})
    print(json.dumps(card, indent=2))


if __name__ == "__main__":
    main()
