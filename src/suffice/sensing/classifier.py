"""The classifier that turns a posterior sample into a vote."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from suffice.errors import BadInput
from suffice.inputs import INVALID

__all__ = ["DigitNet", "vote"]


class DigitNet(nn.Module):
    """A plain convolutional network: images (B, 784) in [-1, 1] to logits (B, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 32, 5, stride=2, padding=2)
        self.second = nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.third = nn.Conv2d(64, 64, 3, padding=1)
        self.hidden = nn.Linear(64 * 7 * 7, 128)
        self.dropout = nn.Dropout(0.3)
        self.logits = nn.Linear(128, 10)

    def forward(self, images: Tensor) -> Tensor:
        h = F.relu(self.first(images.view(-1, 1, 28, 28)))
        h = F.relu(self.second(h))
        h = F.relu(self.third(h))
        h = F.relu(self.hidden(self.dropout(h.flatten(1))))
        return self.logits(self.dropout(h))


def vote(logits: Tensor, min_confidence: float = 0.0) -> Tensor:
    """The leading label of each row (B,), or INVALID below `min_confidence` or where not finite.

    >>> vote(torch.tensor([[3.0, 0.0], [0.1, 0.0]]), min_confidence=0.9).tolist()
    [0, 255]
    """
    if not 0 <= min_confidence < 1:
        raise BadInput(f"confidence {min_confidence} is outside 0 to 1; 0 accepts every vote")
    confidence, label = logits.softmax(dim=1).max(dim=1)
    # A comparison with NaN is false, so a broken image never becomes a vote for a class.
    return torch.where(confidence >= min_confidence, label, INVALID).to(torch.uint8)
