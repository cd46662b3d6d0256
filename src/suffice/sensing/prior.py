"""The trained prior: a denoiser D(x, sigma) of MNIST digits, small enough for a laptop.

The sampler takes any callable with this signature:

    denoiser(x, sigma) -> x0    x (B, d) float32, sigma (B,) float32, x0 (B, d) float32

where x = x0 + sigma z. `Prior` is ours: a U-Net under EDM preconditioning (Karras et al. 2022).
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["Denoiser", "Prior", "UNet"]


class Denoiser(Protocol):
    """The posterior mean of a clean image given a noisy one: any callable of this shape."""

    def __call__(self, x: Tensor, sigma: Tensor, /) -> Tensor: ...


class Block(nn.Module):
    """Two convolutions around a scale and shift by the noise level, added to the input."""

    def __init__(self, channels: int, embedding: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.modulation = nn.Linear(embedding, 2 * channels)
        # The block starts as the identity, which stands in for a normalisation layer.
        nn.init.zeros_(self.second.weight)
        nn.init.zeros_(self.second.bias)
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)

    def forward(self, h: Tensor, embedding: Tensor) -> Tensor:
        scale, shift = self.modulation(embedding)[:, :, None, None].chunk(2, dim=1)
        inner = torch.addcmul(shift, self.first(F.relu(h)), 1 + scale)
        return self.second(inner.relu_()).add_(h)


class UNet(nn.Module):
    """A U-Net on 2 x 2 pixel blocks: 14 x 14 with `channels`, 7 x 7 with twice as many."""

    def __init__(self, channels: int = 32, outer: int = 2, inner: int = 3) -> None:
        super().__init__()
        wide, size = 2 * channels, 64
        self.embed = nn.Sequential(nn.Linear(16, size), nn.SiLU(), nn.Linear(size, size), nn.SiLU())
        self.enter = nn.Conv2d(4, channels, 3, padding=1)
        self.down = nn.ModuleList(Block(channels, size) for _ in range(outer))
        self.shrink = nn.Conv2d(channels, wide, 2, stride=2)
        self.middle = nn.ModuleList(Block(wide, size) for _ in range(inner))
        self.grow = nn.ConvTranspose2d(wide, channels, 2, stride=2)
        self.up = nn.ModuleList(Block(channels, size) for _ in range(outer))
        self.leave = nn.Conv2d(channels, 4, 3, padding=1)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)
        self.register_buffer("frequencies", torch.linspace(0.25, 4.0, 8))

    def forward(self, x: Tensor, level: Tensor) -> Tensor:
        """x (B, 1, 28, 28) and level (B,), both of order one; the same shape as x comes back."""
        angles = level[:, None] * self.frequencies
        embedding = self.embed(torch.cat([angles.sin(), angles.cos()], dim=1))
        h = self.enter(F.pixel_unshuffle(x, 2))
        for block in self.down:
            h = block(h, embedding)
        deep = self.shrink(h)
        for block in self.middle:
            deep = block(deep, embedding)
        h = h + self.grow(deep)
        for block in self.up:
            h = block(h, embedding)
        return F.pixel_shuffle(self.leave(F.relu(h)), 2)


class Prior(nn.Module):
    """EDM preconditioning around a network, about the mean image.

    D(x) = m + c_skip (x - m) + c_out F(c_in (x - m); log sigma), with c_skip, c_out and c_in from
    sigma and sigma_data, the root mean square of a clean image about the mean image m.
    """

    def __init__(self, net: nn.Module, mean: Tensor, sigma_data: float) -> None:
        super().__init__()
        self.net = net
        self.register_buffer("mean", mean)
        self.sigma_data = sigma_data
        self.dtype = torch.float32

    def precondition(self, x: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The network's input, its noise level, and c_skip and c_out, all (B, ...)."""
        total = torch.sqrt(sigma**2 + self.sigma_data**2)[:, None]
        centred = (x - self.mean) / total
        return (
            centred.view(-1, 1, 28, 28),
            sigma.log() / 2,
            self.sigma_data**2 / total,
            sigma[:, None] * self.sigma_data / total,
        )

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        """x (B, 784) = x0 + sigma z, sigma (B,): the mean of x0, (B, 784)."""
        centred, level, skip, out = self.precondition(x, sigma)
        layout = centred.to(self.dtype, memory_format=torch.channels_last)
        residual = self.net(layout, level.to(self.dtype)).flatten(1).float()
        # c_skip (x - m) = (sigma_data^2 / total) * centred, as centred is already over total.
        return self.mean + skip * centred.flatten(1) + out * residual

    def for_inference(self, dtype: torch.dtype) -> Prior:
        """The same prior with its network in `dtype` and channels last, without gradients."""
        self.net = self.net.to(dtype=dtype, memory_format=torch.channels_last)
        self.dtype = dtype
        self.requires_grad_(False)
        return self.eval()


def log_uniform(low: float, high: float, u: Tensor) -> Tensor:
    """Noise levels with u in (0, 1) spread evenly in the logarithm."""
    return torch.exp(math.log(low) + u * (math.log(high) - math.log(low)))


def describe(net: UNet) -> dict[str, Any]:
    """The arguments that make a network of the same shape."""
    return {
        "channels": net.enter.out_channels,
        "outer": len(net.down),
        "inner": len(net.middle),
    }
