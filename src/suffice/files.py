"""Files are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from suffice.errors import BadInput, RunFailed

__all__ = ["replacing", "write_whole"]


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary name beside `path`; on success sync it and rename it to `path`.

    A link is followed. A device or a pipe, which a rename would destroy, is refused.
    """
    path = Path(path)  # as it was given, for messages
    target = Path(os.path.realpath(path))
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise BadInput(f"{path}: is no file that can be replaced; name another")
    if not target.parent.is_dir():
        raise BadInput(f"{path.parent}: no such folder; make it first or name another")
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
        part.chmod(0o644)
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
