"""MNIST is read from the package, a folder, the cache or a mirror, and never half."""

import gzip
import hashlib
import http.server
import threading
from pathlib import Path

import numpy as np
import pytest

from suffice import BadInput, RunFailed
from suffice.sensing import data

NAME = "t10k-labels-idx1-ubyte"
CONTENT = bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1])
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def mirror(tmp_path):
    """A real server of a folder on this machine: its address, its folder, what was asked for."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=folder)

        def log_message(self, *args):
            asked.append(self.path)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", folder, asked
        server.shutdown()
        thread.join()


def test_evaluation_set():
    images, labels = data.evaluation_set()
    assert images.shape == (1000, 784)
    assert images.dtype == np.float32
    assert images.min() == -1
    assert images.max() == 1
    assert np.bincount(labels, minlength=10).min() > 60
    index = data.packaged_arrays(*data.EVALUATION)["index"]
    assert len(np.unique(index)) == 1000
    assert len({row.tobytes() for row in images}) == 1000


def test_a_damaged_package_says_so():
    with pytest.raises(RunFailed, match=r"evaluation.npz: wrong checksum.*install"):
        data.packaged_arrays("evaluation.npz", SHA256)
    with pytest.raises(RunFailed, match=r"nothing.npz: missing"):
        data.packaged_arrays("nothing.npz", SHA256)


def test_idx():
    assert data._parse_idx(CONTENT, NAME).tolist() == [7, 2, 1]
    images = bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4])
    assert data._parse_idx(images, NAME).tolist() == [[[1, 2], [3, 4]]]
    for broken in (CONTENT[:-1], CONTENT + b"0", CONTENT[:6], b"", b"not an IDX file"):
        with pytest.raises(BadInput, match=NAME):
            data._parse_idx(broken, NAME)


def test_folder_with_plain_or_gzipped_files(tmp_path):
    with pytest.raises(BadInput, match=r"is not there, nor .*\.gz"):
        data._from_folder(NAME, SHA256, tmp_path)
    (tmp_path / f"{NAME}.gz").write_bytes(gzip.compress(CONTENT))
    assert data._from_folder(NAME, SHA256, tmp_path) == CONTENT
    (tmp_path / f"{NAME}.gz").write_bytes(gzip.compress(CONTENT)[:-9])
    with pytest.raises(BadInput, match="cannot be read"):
        data._from_folder(NAME, SHA256, tmp_path)
    (tmp_path / NAME).write_bytes(CONTENT)
    assert data._from_folder(NAME, SHA256, tmp_path) == CONTENT


def test_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / NAME).write_bytes(CONTENT)
    with pytest.raises(BadInput, match="wrong checksum"):
        data.load_mnist("test", _with_images(tmp_path))
    with pytest.raises(BadInput, match="'valid' is unknown"):
        data.load_mnist("valid", tmp_path)


def _with_images(folder: Path) -> Path:
    (folder / "t10k-images-idx3-ubyte").write_bytes(CONTENT)
    return folder


def test_mirror_fills_the_cache_once(tmp_path, mirror, capsys):
    address, served, asked = mirror
    (served / f"{NAME}.gz").write_bytes(gzip.compress(CONTENT))
    cache = tmp_path / "new" / "cache"
    for _ in range(2):
        assert data._cached(NAME, SHA256, cache, [address]) == CONTENT
    assert asked == [f"/{NAME}.gz"]
    assert [path.name for path in cache.iterdir()] == [NAME]
    (cache / NAME).write_bytes(CONTENT[:-1])
    assert data._cached(NAME, SHA256, cache, [address]) == CONTENT
    assert (cache / NAME).read_bytes() == CONTENT
    assert capsys.readouterr().err == ""


def test_second_mirror_helps_and_no_mirror_is_one_line(tmp_path, mirror):
    address, served, _ = mirror
    (served / "bad").mkdir()
    (served / "bad" / f"{NAME}.gz").write_bytes(gzip.compress(CONTENT[:-1] + b"0"))
    (served / "cut").mkdir()
    (served / "cut" / f"{NAME}.gz").write_bytes(gzip.compress(CONTENT)[:-5])
    # Nothing listens on the discard port: that is what offline looks like.
    broken = [f"{address}bad/", f"{address}cut/", f"{address}none/", "http://127.0.0.1:9/"]
    with pytest.raises(RunFailed, match=r"wrong checksum.*--data-dir") as failure:
        data._cached(NAME, SHA256, tmp_path / "cache", broken)
    assert "\n" not in str(failure.value)
    assert not (tmp_path / "cache").exists()
    (served / f"{NAME}.gz").write_bytes(gzip.compress(CONTENT))
    assert data._cached(NAME, SHA256, tmp_path / "cache", [*broken, address]) == CONTENT


def test_cache_folder_follows_xdg(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data.cache_folder() == tmp_path / "suffice"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data.cache_folder() == Path.home() / ".cache" / "suffice"
