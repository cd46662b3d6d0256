"""Progress of long work on standard error; silent when that is not a terminal."""

from __future__ import annotations

import sys
import time

__all__ = ["Progress", "note"]


class Progress:
    """One line that is written over: what is done of all, at what rate, and the time left.

    >>> with Progress(10, "images") as progress:
    ...     progress(3, samples=120)
    """

    def __init__(self, total: int, unit: str) -> None:
        self.total = total
        self.unit = unit
        self._shown = sys.stderr.isatty()
        self._began = time.monotonic()
        self._told = 0.0
        self._first: int | None = None

    def __call__(self, done: int, **counts: int) -> None:
        """Tell that `done` units are done, with other counts by name."""
        if self._first is None:
            self._first = done  # what an earlier run did says nothing of the rate
        now = time.monotonic()
        if not self._shown or (now - self._told < 0.5 and done < self.total):
            return
        self._told = now
        spent = now - self._began
        parts = [f"{done}/{self.total} {self.unit}"]
        parts += [f"{count} {name}" for name, count in counts.items()]
        if "samples" in counts and spent > 0:
            parts.append(f"{counts['samples'] / spent:.0f} samples/s")
        if done > self._first and done < self.total:
            left = spent / (done - self._first) * (self.total - done)
            parts.append(f"{left:.0f} s left")
        print("\r\x1b[K" + " · ".join(parts), end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown and self._first is not None:
            print(file=sys.stderr)


def note(line: str) -> None:
    """One line on standard error that stays, above any progress."""
    clear = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(f"{clear}suffice: {line}", file=sys.stderr, flush=True)
