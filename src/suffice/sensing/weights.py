"""The shipped weights, checked by SHA-256 and never unpickled."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from suffice.errors import BadInput
from suffice.sensing.classifier import DigitNet
from suffice.sensing.prior import Prior, UNet

__all__ = ["digest", "fast_dtype", "load_classifier", "load_prior", "read_weights"]

ASSETS = Path(str(files("suffice.sensing") / "assets"))


def load_prior(path: Path = ASSETS / "prior.safetensors", device: str = "cpu") -> Prior:
    """The denoiser, ready to sample with: bfloat16 where the machine multiplies it fast."""
    tensors, card = read_weights(path)
    try:
        prior = Prior(UNet(**card["network"]), tensors["mean"].float(), card["sigma_data"])
    except (KeyError, TypeError) as error:
        raise BadInput(
            f"{path}: its card describes no prior ({error}); make it with scripts/train_prior.py"
        ) from None
    _fill(prior, tensors, path)
    return prior.to(device).for_inference(fast_dtype(device))


def load_classifier(
    path: Path = ASSETS / "classifier.safetensors", device: str = "cpu"
) -> DigitNet:
    """The classifier, ready to use."""
    tensors, _ = read_weights(path)
    net = DigitNet()
    _fill(net, tensors, path)
    return net.to(device, memory_format=torch.channels_last).requires_grad_(False).eval()


def read_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a safetensors file and its card, if its checksum is the one beside it."""
    try:
        wanted = path.with_suffix(".sha256").read_text().partition(" ")[0].strip()
        found = digest(path)
    except OSError as error:
        raise BadInput(f"{error.filename}: cannot be read ({error.strerror}); reinstall") from None
    if not wanted:
        raise BadInput(f"{path.with_suffix('.sha256')}: holds no checksum; restore it")
    if found != wanted:
        raise BadInput(
            f"{path}: its SHA-256 is {found[:12]}..., not {wanted[:12]}...; "
            "the file is damaged or another one, so reinstall or restore it"
        )
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            card = json.loads((file.metadata() or {}).get("card", "{}"))
    except SafetensorError as error:
        raise BadInput(f"{path}: not a whole safetensors file ({error}); restore it") from None
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}: its card is not JSON ({error}); restore it") from None
    return tensors, card


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fast_dtype(device: str) -> torch.dtype:
    """bfloat16 on GPUs and on CPUs with instructions for it, else float32."""
    if torch.device(device).type != "cpu" or torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return torch.bfloat16
    return torch.float32


def _fill(module: torch.nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    try:
        module.load_state_dict({name: value.float() for name, value in tensors.items()})
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise BadInput(f"{path}: its tensors do not fit the network ({reason})") from None
