"""What goes wrong, in one line each: the value, what is wrong with it, what to do instead."""

from __future__ import annotations

from typing import Any

__all__ = ["BadInput", "CalibrationInfeasible", "RunFailed"]


class BadInput(ValueError):
    """A user's mistake; the command line prints its one line and exits with 2."""


class CalibrationInfeasible(BadInput):
    """No rule meets the constraints; `best` carries the best that can be had."""

    def __init__(self, message: str, best: dict[str, Any]) -> None:
        super().__init__(message)
        self.best = best

    def __reduce__(self) -> tuple[Any, ...]:
        """It comes whole out of another process."""
        return type(self), (str(self), self.best)


class RunFailed(RuntimeError):
    """A run that could not go on; the command line prints its one line and exits with 1."""
