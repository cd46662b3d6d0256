"""The reference logs: votes of DDRM on 1000 MNIST images, shipped with the package."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from suffice.errors import BadInput
from suffice.votes import VoteLog, read_log

__all__ = ["reference_log"]

DRAWS = (32, 128)


def reference_log(draws: int, folder: str | Path | None = None) -> VoteLog:
    """The log of 32 votes a pool, or that of 128 further votes at the same measurement states.

    `folder` holds `votes-32.parquet` and `votes-128.parquet` of another run, in their place.
    """
    if draws not in DRAWS:
        raise BadInput(f"draws = {draws!r}: there is no such reference log; choose 32 or 128")
    name = f"votes-{draws}.parquet"
    if folder is not None:
        return read_log(Path(folder) / name)
    with resources.as_file(resources.files("suffice") / "assets" / name) as path:
        if not path.is_file():
            raise BadInput(
                f"{name} is missing from this installation; install suffice again, or make logs "
                "with `suffice log` and name their folder with --logs"
            )
        return read_log(path)
