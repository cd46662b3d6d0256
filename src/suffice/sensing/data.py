"""MNIST: the evaluation images in the package, and the whole set from a folder or the mirrors."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import os
import sys
import urllib.request
import zlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import BadInput, RunFailed
from suffice.files import write_whole

__all__ = ["cache_folder", "evaluation_set", "load_mnist", "packaged_arrays", "scaled"]

# SHA-256 of the uncompressed files.
CHECKSUMS = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
SPLITS = {"train": "train", "test": "t10k"}
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
EVALUATION = (
    "evaluation.npz",
    "60a108e11ce5d48022a7d2182430da780efae3addd05ff8df30cdc8a78b9492b",
)
CHUNK = 1 << 16
TIMEOUT = 30.0  # seconds without a byte

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


def scaled(images: Bytes) -> Floats:
    """Grey values 0 to 255, shape ``(n, ...)``, as rows of pixels in [-1, 1], shape ``(n, size)``.

    >>> scaled(np.array([[[0, 255]]], dtype=np.uint8)).tolist()
    [[-1.0, 1.0]]
    """
    rows = images.reshape(len(images), -1).astype(np.float32)
    rows /= 127.5
    rows -= 1.0
    return rows


def evaluation_set() -> tuple[Floats, Bytes]:
    """The 1000 packaged test images, ``(1000, 784)`` in [-1, 1], and their labels ``(1000,)``.

    They are in the order in which they were drawn, so the first m of them are a random sample too.

    >>> images, labels = evaluation_set()
    >>> images.shape, labels.shape
    ((1000, 784), (1000,))
    """
    arrays = packaged_arrays(*EVALUATION)
    return scaled(arrays["images"]), arrays["labels"]


def packaged_arrays(name: str, sha256: str) -> dict[str, NDArray[Any]]:
    """The arrays of one `.npz` file in the package, after its checksum was found right."""
    try:
        content = resources.files("suffice.sensing").joinpath("assets", name).read_bytes()
    except OSError as error:
        raise RunFailed(
            f"{name}: missing from the package ({error.strerror}); install suffice again"
        ) from None
    if _sha256(content) != sha256:
        raise RunFailed(f"{name}: wrong checksum in the package; install suffice again")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}


def load_mnist(split: str, data_dir: str | Path | None = None) -> tuple[Bytes, Bytes]:
    """The images ``(n, 28, 28)`` and labels ``(n,)`` of the split "train" or "test".

    The files come from `data_dir` (plain or `.gz`) if it is given, otherwise from the cache
    folder, otherwise from the public mirrors into the cache folder.
    """
    if split not in SPLITS:
        raise BadInput(f"split {split!r} is unknown; use 'train' or 'test'")
    arrays = []
    for kind in ("images-idx3-ubyte", "labels-idx1-ubyte"):
        name = f"{SPLITS[split]}-{kind}"
        if data_dir is not None:
            content = _from_folder(name, CHECKSUMS[name], Path(data_dir))
        else:
            content = _cached(name, CHECKSUMS[name], cache_folder(), MIRRORS)
        arrays.append(_parse_idx(content, name))
    return arrays[0], arrays[1]


def cache_folder() -> Path:
    """The folder for downloads: `$XDG_CACHE_HOME/suffice`, else `~/.cache/suffice`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "suffice"


def _from_folder(name: str, sha256: str, folder: Path) -> bytes:
    for path in (folder / name, folder / f"{name}.gz"):
        if not path.is_file():
            continue
        try:
            content = path.read_bytes()
            content = gzip.decompress(content) if path.suffix == ".gz" else content
        except (OSError, EOFError, zlib.error) as error:
            raise BadInput(f"{path}: cannot be read ({error}); fetch it again") from None
        if _sha256(content) != sha256:
            raise BadInput(f"{path}: wrong checksum, so not the MNIST file; fetch it again")
        return content
    raise BadInput(
        f"{folder}: {name} is not there, nor {name}.gz; name the folder with the MNIST files, "
        "or none to download them"
    )


def _cached(name: str, sha256: str, folder: Path, mirrors: Sequence[str]) -> bytes:
    """The file from the cache folder; one that is missing or damaged there is downloaded."""
    path = folder / name
    if path.is_file():
        content = path.read_bytes()
        if _sha256(content) == sha256:
            return content
    reasons = []
    for mirror in mirrors:
        try:
            content = gzip.decompress(_download(f"{mirror}{name}.gz"))
        except (OSError, EOFError, zlib.error, http.client.HTTPException) as error:
            reasons.append(f"{mirror}: {' '.join(str(error).split())}")
            continue
        if _sha256(content) != sha256:
            reasons.append(f"{mirror}: wrong checksum")
            continue
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFailed(f"{folder}: cannot be made ({error.strerror})") from None
        write_whole(path, content)
        return content
    raise RunFailed(
        f"{name}: no mirror gave it ({'; '.join(reasons)}); "
        "offline, name a folder that holds the MNIST files with --data-dir"
    )


def _download(url: str) -> bytes:
    """The body of `url`; progress goes to standard error when that is a terminal."""
    shown = sys.stderr.isatty()
    parts: list[bytes] = []
    got = 0
    with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
        total = int(response.headers.get("Content-Length", 0))
        while part := response.read(CHUNK):
            parts.append(part)
            got += len(part)
            if shown:
                share = f" of {total / 1e6:.1f}" if total else ""
                sys.stderr.write(f"\r{url.rsplit('/', 1)[-1]}: {got / 1e6:.1f}{share} MB")
                sys.stderr.flush()
    if shown:
        sys.stderr.write("\n")
    return b"".join(parts)


def _parse_idx(content: bytes, name: str) -> Bytes:
    """The array in an IDX file of unsigned bytes."""
    dimensions = content[3] if len(content) >= 4 and content[:3] == b"\0\0\x08" else 0
    start = 4 + 4 * dimensions
    if not dimensions or len(content) < start:
        raise BadInput(f"{name}: not an IDX file of bytes; fetch it again")
    shape = tuple(int(length) for length in np.frombuffer(content[4:start], dtype=">u4"))
    if len(content) - start != int(np.prod(shape)):
        raise BadInput(f"{name}: cut off or too long for shape {shape}; fetch it again")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
