"""Write the oracle's vote laws for the measurement states of the reference logs.

python scripts/make_oracle_laws.py --data-dir MNIST --out oracle-laws.parquet
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from suffice.files import replacing
from suffice.reference import reference_log
from suffice.sensing.data import evaluation_set
from suffice.sensing.noise import measurement_noise
from suffice.sensing.oracle import mnist_oracle
from suffice.sensing.probes import measure, principal_components


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    log = reference_log(32)
    sigma_y, seed = log.metadata["sigma_y"], log.metadata["seed"]
    directions = principal_components()[0][: log.rounds]
    oracle = mnist_oracle(arguments.data_dir)
    along = oracle.along(directions, sigma_y)
    images, _ = evaluation_set()
    rounds = np.arange(1, log.rounds + 1)
    laws = []
    for name in log.images:
        z = measurement_noise(seed, name, rounds)[:, 0]
        values = measure(images[name], directions, sigma_y, z)
        laws.append(along.masses(values)[1:])
    flat = np.concatenate(laws).astype(np.float32)
    offsets = np.arange(len(flat) + 1, dtype=np.int32) * oracle.classes
    table = pa.table(
        {
            "image": np.repeat(log.images, log.rounds).astype(np.int32),
            "round": np.tile(rounds, len(log.images)).astype(np.int16),
            "pi": pa.ListArray.from_arrays(offsets, pa.array(flat.ravel())),
        }
    )
    table = table.replace_schema_metadata({"prior": oracle.digest, "h": str(oracle.h)})
    with replacing(arguments.out) as part:
        pq.write_table(table, part, compression="zstd")


if __name__ == "__main__":
    main()
