"""A Ray cluster of two nodes on this machine, for real: it makes the log that one process makes."""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from suffice import BadInput
from suffice.runs.cluster import _connect

RAY = str(Path(sys.executable).parent / "ray")
COMMAND = [sys.executable, "-m", "suffice", "log", "--sampler", "toy", "--sigma-y", "1"]
COMMAND += ["--images", "120", "--rounds", "5", "--draws", "32", "--per-shard", "1"]


class Cluster:
    """Two nodes, each with a loopback address of its own and room for one worker."""

    def __init__(self, folder):
        self.mark = secrets.token_hex(16)
        self.environment = {
            **os.environ,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": self.mark,
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        with socket.socket() as free:
            free.bind(("127.0.0.2", 0))
            self.address = f"127.0.0.2:{free.getsockname()[1]}"
        port = self.address.rpartition(":")[2]
        head = ["--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder}"]
        try:
            self._start("one", "127.0.0.2", head)
            self._start("two", "127.0.0.3", [f"--address={self.address}"])
        except BaseException:
            self.kill()
            raise

    def _start(self, node, host, options):
        command = [RAY, "start", *options, f"--node-ip-address={host}", "--num-cpus=1"]
        command += ["--object-store-memory=80000000", "--disable-usage-stats"]
        environment = {**self.environment, "SUFFICE_NODE": node}
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)

    def processes(self, node=""):
        """The processes that this cluster started, by what they have in their environment."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                environment = (path / "environ").read_bytes()
                if (
                    self.mark.encode() in environment
                    and f"SUFFICE_NODE={node}".encode() in environment
                ):
                    found.append(int(path.name))
        return found

    def kill(self, node=""):
        """End the node as if its machine lost power."""
        while found := self.processes(node):
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)


@pytest.fixture
def cluster():
    # Sockets need short paths.
    folder = Path(f"/tmp/suffice-ray-{secrets.token_hex(3)}")
    started = Cluster(folder)
    yield started
    started.kill()
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def begin(cluster, folder):
    command = [*COMMAND, "--on", f"ray:{cluster.address}", "--out", str(folder)]
    return subprocess.Popen(command, env=cluster.environment, stderr=subprocess.PIPE)


def test_two_nodes_make_the_log_of_one_process_and_one_may_be_lost(cluster, tmp_path):
    subprocess.run([*COMMAND, "--out", str(tmp_path / "here")], check=True, capture_output=True)
    there = begin(cluster, tmp_path / "there")
    _, err = there.communicate(timeout=60)
    assert (there.returncode, err) == (0, b"")
    assert files(tmp_path / "there") == files(tmp_path / "here")

    half = begin(cluster, tmp_path / "half")
    while half.poll() is None and len(files(tmp_path / "half")) < 20:
        time.sleep(0.01)
    cluster.kill("two")
    assert half.poll() is None
    _, err = half.communicate(timeout=90)
    assert half.returncode == 0, err.decode()
    assert files(tmp_path / "half") == files(tmp_path / "here")


def test_no_cluster_says_how_to_start_one(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(BadInput, match="start one with `ray start --head`") as error:
        _connect("127.0.0.1:1")
    assert "\n" not in str(error.value)
    for address in ("nowhere", "host:port", ":"):
        with pytest.raises(BadInput, match="not HOST:PORT"):
            _connect(address)
