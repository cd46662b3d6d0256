"""Files are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from suffice.errors import BadInput, RunFailed

__all__ = ["destination", "replacing", "write_whole"]


def destination(path: str | Path) -> Path:
    """Where a file of this name will be, or a line that says why none can be."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise BadInput(f"{path}: is a folder; name a file")
    if target.exists() and not target.is_file():
        raise BadInput(f"{path}: is no file that can be replaced; name another")
    if not target.parent.is_dir():
        raise BadInput(f"{Path(path).parent}: no such folder; make it first or name another")
    return target


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary name beside `path`; on success sync it and rename it to `path`.

    A link is followed. A device or a pipe, which a rename would destroy, is refused.
    """
    path, target = Path(path), destination(path)
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=".part", dir=target.parent
        )
        os.close(handle)
    except OSError as error:
        raise RunFailed(f"{path}: cannot be written ({error.strerror})") from None
    part = Path(name)
    try:
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.chmod(_mode(target))
        part.replace(target)
    except OSError as error:
        raise RunFailed(
            f"{path}: cannot be written ({error.strerror}); nothing was changed there"
        ) from None
    finally:
        part.unlink(missing_ok=True)


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write `content` to `path` so that a reader sees all of it or none."""
    data = content.encode() if isinstance(content, str) else content
    with replacing(path) as part:
        part.write_bytes(data)


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced, or those that a new one would have."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)  # the only way to read it is to set it
    os.umask(mask)
    return 0o666 & ~mask
