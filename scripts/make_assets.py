"""Make the packaged evaluation images and principal components, and the oracle's h, from MNIST.

python scripts/make_assets.py [--data-dir FOLDER]

Prints the checksum of each file, which `sensing/data.py` and `sensing/probes.py` hold, and h, which
`sensing/oracle.py` holds.
"""

from __future__ import annotations

import argparse
import hashlib
import io
from pathlib import Path

import numpy as np

from suffice.files import write_whole
from suffice.sensing.data import load_mnist, scaled
from suffice.sensing.oracle import choose_h

ASSETS = Path(__file__).parents[1] / "src" / "suffice" / "sensing" / "assets"
SEED = 2026
IMAGES = 1000
COMPONENTS = 32
ROUNDS = 24


def evaluation(data_dir: str | None) -> dict[str, np.ndarray]:
    """1000 test images drawn without replacement, in the order drawn."""
    images, labels = load_mnist("test", data_dir)
    generator = np.random.Generator(np.random.Philox(key=SEED))
    index = generator.choice(len(images), IMAGES, replace=False)
    return {
        "images": images[index].reshape(IMAGES, -1),
        "labels": labels[index],
        "index": index.astype(np.uint16),
    }


def components(data_dir: str | None) -> dict[str, np.ndarray]:
    """The training split's mean and first principal components, pixels in [-1, 1]."""
    images, _ = load_mnist("train", data_dir)
    rows = scaled(images).astype(np.float64)
    mean = rows.mean(axis=0)
    rows -= mean
    variances, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    rows = vectors[:, ::-1][:, :COMPONENTS].T
    largest = np.abs(rows).argmax(axis=1)
    rows = rows * np.sign(rows[np.arange(COMPONENTS), largest])[:, None]
    return {
        "directions": rows.astype(np.float32),
        "mean": mean.astype(np.float32),
        "variances": variances[::-1][:COMPONENTS].astype(np.float32),
    }


def smoothing(data_dir: str | None, directions: np.ndarray) -> float:
    """The oracle's h: every fifth of the last 10,000 training images against the first 50,000.

    MNIST is in the order of its writers, so the images held out are by other writers.
    """
    rows = scaled(load_mnist("train", data_dir)[0])
    return choose_h(rows[:50_000], rows[50_000::5], directions[:ROUNDS])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="a folder with the MNIST files")
    data_dir = parser.parse_args().data_dir
    ASSETS.mkdir(exist_ok=True)
    found = components(data_dir)
    for name, arrays in (("evaluation.npz", evaluation(data_dir)), ("components.npz", found)):
        content = io.BytesIO()
        np.savez_compressed(content, **arrays)
        write_whole(ASSETS / name, content.getvalue())
        digest = hashlib.sha256(content.getvalue()).hexdigest()
        print(f"{name}  {len(content.getvalue())} bytes  {digest}")
    print(f"h  {smoothing(data_dir, found['directions']):.3f}")


if __name__ == "__main__":
    main()
