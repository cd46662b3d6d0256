"""DDRM (Kawar et al. 2022): posterior samples from a denoiser, in the SVD basis of the probes.

Noise is variance exploding: x_t = x0 + sigma_t z. For each coordinate of the measured space, with
measurement ybar and noise sigma_bar = sigma_y / s, one step from sigma to sigma' draws

    not measured         x0 + sqrt(1 - eta^2) sigma' eps + eta sigma' z
    sigma' <  sigma_bar  x0 + sqrt(1 - eta^2) sigma' (ybar - x0) / sigma_bar + eta sigma' z
    sigma' >= sigma_bar  (1 - eta_b) x0 + eta_b ybar + sqrt(sigma'^2 - eta_b^2 sigma_bar^2) z

with x0 = D(x, sigma) and eps = (x - x0) / sigma. Only the measured coordinates are ever formed:
the first line is taken everywhere and corrected along the measured rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from suffice.errors import BadInput
from suffice.sensing.prior import Denoiser

__all__ = ["DDRM", "Measured", "noise_levels"]


@dataclass(frozen=True)
class Measured:
    """What has been measured, in orthonormal coordinates, one row of `values` a vote."""

    rows: Tensor
    """Orthonormal directions: (T, d) shared by the batch, or (B, T, d) one set a vote."""
    values: Tensor
    """ybar (B, T): the measurement along each direction; anything where not measured."""
    noise: Tensor
    """sigma_bar (B, T): its standard deviation; infinite where not measured."""

    @classmethod
    def from_matrix(cls, matrix: Tensor, y: Tensor, sigma_y: float) -> Measured:
        """y = A x + sigma_y z for any A (m, d) and y (B, m), through the SVD of A."""
        if matrix.ndim != 2 or y.ndim != 2 or y.shape[1] != matrix.shape[0]:
            raise BadInput(
                f"y of shape {tuple(y.shape)} does not fit a matrix of shape "
                f"{tuple(matrix.shape)}; y needs one row a vote and one column a measurement"
            )
        if not matrix.isfinite().all():
            raise BadInput("a matrix that is not finite measures nothing; give real numbers")
        if not (np.isfinite(sigma_y) and sigma_y >= 0):
            raise BadInput(f"sigma_y {sigma_y} must be a number of at least 0")
        u, s, rows = torch.linalg.svd(matrix.double(), full_matrices=False)
        keep = s > s[:1] * max(matrix.shape) * torch.finfo(torch.float64).eps
        u, s, rows = u[:, keep], s[keep], rows[keep]
        values = (y.double() @ u) / s
        noise = (sigma_y / s).expand(len(y), -1)
        return cls(rows.float(), values.float(), noise.float())

    def project(self, x: Tensor) -> Tensor:
        """The measured coordinates (B, T) of images (B, d)."""
        if self.rows.ndim == 2:
            return x @ self.rows.T
        return torch.einsum("bd,btd->bt", x, self.rows)

    def lift(self, coordinates: Tensor) -> Tensor:
        """Images (B, d) with the given measured coordinates (B, T) and nothing else."""
        if self.rows.ndim == 2:
            return coordinates @ self.rows
        return torch.einsum("bt,btd->bd", coordinates, self.rows)


def noise_levels(steps: int = 20, train_steps: int = 1000) -> np.ndarray:
    """DDPM's linear schedule as `steps` falling noise levels sigma, then 0; shape (steps + 1,).

    >>> noise_levels().round(2)[[0, 1, -3, -2, -1]]
    array([9.710e+01, 6.082e+01, 1.800e-01, 1.000e-02, 0.000e+00])
    """
    if not 1 <= steps <= train_steps:
        raise BadInput(f"steps {steps} is outside 1 to {train_steps}; 20 is the usual number")
    alpha_bar = np.cumprod(1.0 - np.linspace(1e-4, 0.02, train_steps))
    times = np.arange(steps)[::-1] * train_steps // steps
    return np.append(np.sqrt((1 - alpha_bar[times]) / alpha_bar[times]), 0.0)


class DDRM:
    """A posterior sampler: `sample` draws whole images; `start` and `step` are its two halves.

    The rows of a batch are independent: they may belong to different images, rounds and steps.
    """

    def __init__(
        self,
        denoiser: Denoiser,
        levels: np.ndarray | None = None,
        eta: float = 0.85,
        eta_b: float = 1.0,
    ) -> None:
        levels = noise_levels() if levels is None else np.asarray(levels, dtype=float)
        if (
            levels.ndim != 1
            or len(levels) < 2
            or levels[-1] != 0
            or not np.all(np.diff(levels) < 0)
        ):
            raise BadInput(f"noise levels {levels} must fall and end at 0; see noise_levels()")
        for name, value in (("eta", eta), ("eta_b", eta_b)):
            if not 0 <= value <= 1:
                raise BadInput(f"{name} {value} is outside 0 to 1; DDRM uses eta .85, eta_b 1")
        self.denoiser = denoiser
        self.levels = torch.tensor(levels, dtype=torch.float32)
        self.eta = eta
        self.eta_b = eta_b

    @property
    def steps(self) -> int:
        """How many times the network is evaluated for one sample."""
        return len(self.levels) - 1

    def start(self, measured: Measured, z: Tensor) -> Tensor:
        """The first noisy images (B, d), from normals z (B, d)."""
        sigma = self.levels[0].to(z.device)
        known = measured.noise < sigma
        spread = torch.sqrt((sigma**2 - measured.noise**2).clamp(min=0))
        along = measured.project(z)
        wanted = torch.where(known, measured.values + spread * along, sigma * along)
        return sigma * z + measured.lift(wanted - sigma * along)

    def step(self, x: Tensor, index: Tensor, measured: Measured, z: Tensor) -> Tensor:
        """From level `index` (B,) to the next, with fresh normals z (B, d)."""
        levels = self.levels.to(x.device)
        sigma, after = levels[index], levels[index + 1][:, None]
        pull, gain = (1 - self.eta**2) ** 0.5 * after, self.eta * after
        x0 = self.denoiser(x, sigma)
        # lerp(a, b, w) = a + w (b - a): with (x - x0) / sigma for eps, every line has this form.
        moved = torch.lerp(x0, x, pull / sigma[:, None]).addcmul_(gain, z)
        noise = measured.noise
        drawn = after >= noise
        weight = torch.where(drawn, self.eta_b, pull / noise)
        spread = torch.sqrt((after**2 - self.eta_b**2 * noise**2).clamp(min=0))
        along = torch.where(drawn, spread, gain) * measured.project(z)
        wanted = torch.lerp(measured.project(x0), measured.values, weight) + along
        change = torch.where(noise.isfinite(), wanted - measured.project(moved), 0.0)
        return measured.lift(change).add_(moved)

    @torch.inference_mode()
    def sample(self, measured: Measured, noise: Tensor) -> Tensor:
        """Posterior samples (B, d) from normals (B, steps, d), `start` taking the first."""
        x = self.start(measured, noise[:, 0])
        zero = torch.zeros_like(x)
        for index in range(self.steps):
            z = noise[:, index + 1] if index + 1 < self.steps else zero
            x = self.step(x, torch.full((len(x),), index, device=x.device), measured, z)
        return x
