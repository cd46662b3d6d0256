"""A log is the same however it was made, and whatever happened on the way."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import numpy as np
import pytest

from sensing_parts import few_sampler
from suffice import BadInput, RunFailed
from suffice.runs import spread as spread_module
from suffice.runs.execute import execute
from suffice.runs.parts import Parts, load_parts
from suffice.runs.shards import RunConfig
from suffice.runs.spread import Answer, _share_out, spread
from suffice.sensing.classifier import DigitNet
from suffice.sensing.data import evaluation_set
from suffice.sensing.probes import FixedPCA
from suffice.sensing.sampler import DigitClassifier
from suffice.votes import read_log
from test_engine import Failing

TOY = RunConfig(images=12, rounds=4, draws=8, sampler="toy", sigma_y=1.0, per_shard=5)
COMMAND = [sys.executable, "-m", "suffice", "log", "--sampler", "toy", "--sigma-y", "1"]
SMALL = [*COMMAND, *["--images", "400", "--rounds", "3", "--draws", "16", "--per-shard", "1"]]
WAYS = {"local": [], "processes": ["--on", "processes", "--workers", "2"]}


def same_log(one, other):
    one, other = read_log(one), read_log(other)
    np.testing.assert_array_equal(one.votes, other.votes)
    np.testing.assert_array_equal(one.images, other.images)
    assert one.metadata == other.metadata


@pytest.fixture(scope="module")
def toy_log(tmp_path_factory):
    return execute(TOY, tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    subprocess.run([*SMALL, "--out", folder], check=True, capture_output=True)
    return folder


def files(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def hashes(folder):
    shards = json.loads((folder / "manifest.json").read_text())["shards"]
    return {name: shard["sha256"] for name, shard in shards.items()}


# However it was made.


@pytest.mark.parametrize("batch", [1, 7, 4096])
def test_any_batch_makes_the_same_log(toy_log, tmp_path, batch):
    execute(TOY, tmp_path, batch=batch)
    assert files(tmp_path) == files(toy_log)


def test_any_workers_make_the_same_log(toy_log, tmp_path):
    execute(TOY, tmp_path, on="processes", workers=2)
    assert files(tmp_path) == files(toy_log)
    assert hashes(tmp_path) == hashes(toy_log)


def test_ddrm_makes_the_same_log_in_any_batch_and_process(tmp_path):
    config = RunConfig(images=4, rounds=3, draws=10, per_shard=2, steps=5)
    execute(config, tmp_path / "one")
    execute(config, tmp_path / "two", on="processes", workers=2, batch=23)
    same_log(tmp_path / "one", tmp_path / "two")
    assert len(np.unique(read_log(tmp_path / "one").votes)) > 2


def test_other_draws_are_other_votes_at_the_same_states(toy_log, tmp_path):
    parts = load_parts(RunConfig(**{**TOY.record(), "draws": 3, "first_draw": 5}))
    execute(parts.config, tmp_path)
    np.testing.assert_array_equal(read_log(tmp_path).votes, read_log(toy_log).votes[:, :, 5:])


def test_the_manifest_tells_of_the_run(toy_log):
    manifest = json.loads((toy_log / "manifest.json").read_text())
    assert manifest["config"] == TOY.record()
    assert set(manifest["hashes"]) == {"prior", "probes"}
    assert {"python", "numpy", "suffice"} <= set(manifest["versions"])
    shards = manifest["shards"]
    assert sorted(shards) == [
        f"votes-{a:05d}-{b:05d}.parquet" for a, b in ((0, 5), (5, 10), (10, 12))
    ]
    assert all(shard["seconds"] > 0 and shard["broken"] == [] for shard in shards.values())


def test_a_damaged_shard_is_made_again(toy_log, tmp_path):
    execute(TOY, tmp_path)
    whole = files(tmp_path)
    victim = tmp_path / "votes-00005-00010.parquet"
    victim.write_bytes(victim.read_bytes()[:-9])
    (tmp_path / "votes-00010-00012.parquet").unlink()
    with pytest.raises(BadInput):
        read_log(tmp_path)
    drawn = []
    execute(TOY, tmp_path, progress=lambda images, votes: drawn.append((images, votes)))
    assert files(tmp_path) == whole
    assert drawn[0] == (5, 0)
    assert drawn[-1] == (12, 7 * 4 * 8)


def test_a_log_that_is_not_finished_is_not_read(toy_log, tmp_path):
    execute(TOY, tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    del manifest["shards"]["votes-00000-00005.parquet"]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadInput, match="does not tell of it; remove it"):
        read_log(tmp_path)
    (tmp_path / "votes-00000-00005.parquet").unlink()
    with pytest.raises(BadInput, match="7 of 12 images are done"):
        read_log(tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(BadInput, match="not a whole manifest"):
        read_log(tmp_path)


# Whatever happened on the way.


def start(way, folder, **environment):
    return subprocess.Popen(
        [*SMALL, *WAYS[way], "--out", str(folder)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def wait_for_more(folder, process):
    """Until the run has begun to write: a shard more than before."""
    before = set(folder.glob("*.parquet"))
    while process.poll() is None and set(folder.glob("*.parquet")) <= before:
        time.sleep(0.002)


def marked(mark):
    """Processes that were started with the mark in their environment."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (path / "environ").read_bytes():
                found[int(path.name)] = (path / "cmdline").read_bytes()
    return found


def gone(mark):
    deadline = time.monotonic() + 10
    while (left := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not left


@pytest.mark.parametrize("way", WAYS)
def test_killed_20_times_the_log_is_whole(unbroken, tmp_path, way):
    chance, kills = random.Random(way), 0
    mark = uuid.uuid4().hex
    for _ in range(20):
        process = start(way, tmp_path, SUFFICE_TEST=mark)
        if chance.random() < 0.75:
            wait_for_more(tmp_path, process)
            time.sleep(chance.uniform(0, 0.03))
        else:  # while it starts or is about to begin
            time.sleep(chance.uniform(0, 0.4))
        process.kill()
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
        assert set(files(tmp_path)) <= set(files(unbroken))
    assert kills == 20
    last = start(way, tmp_path)
    assert (last.communicate(), last.returncode)[1] == 0
    assert files(tmp_path) == files(unbroken)
    assert hashes(tmp_path) == hashes(unbroken)
    assert {path.name for path in tmp_path.iterdir()} == {*files(unbroken), "manifest.json"}
    assert gone(mark)


def test_a_killed_worker_costs_time_only(unbroken, tmp_path):
    mark = uuid.uuid4().hex
    process = start("processes", tmp_path, SUFFICE_TEST=mark)
    wait_for_more(tmp_path, process)
    workers = [pid for pid, line in marked(mark).items() if b"--multiprocessing-fork" in line]
    os.kill(workers[0], signal.SIGKILL)
    _, err = process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert files(tmp_path) == files(unbroken)
    assert gone(mark)


@pytest.mark.parametrize("way", WAYS)
def test_interrupted_it_says_where_it_stands(unbroken, tmp_path, way):
    mark = uuid.uuid4().hex
    process = start(way, tmp_path, SUFFICE_TEST=mark)
    wait_for_more(tmp_path, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, err = process.communicate()
    assert process.returncode == 1
    (line,) = err.decode().splitlines()
    assert line.startswith("suffice: stopped: ")
    assert line.endswith("of 400 images are done; the same command goes on")
    assert gone(mark)
    again = start("local", tmp_path)
    again.communicate()
    assert files(tmp_path) == files(unbroken)


@pytest.mark.parametrize("way", WAYS)
def test_a_full_disk_ends_it_with_one_line_and_loses_nothing(unbroken, tmp_path, way):
    """No file may grow over 6000 bytes, which the manifest does on the way."""
    limited = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000));"
        "from suffice.cli import main; main()"
    )
    command = [sys.executable, "-c", limited, *SMALL[3:], *WAYS[way], "--out", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert "cannot be written (File too large); nothing was changed there" in line
    some = hashes(tmp_path)
    assert 3 < len(some) < 400
    assert not list(tmp_path.glob(".*"))
    assert start("local", tmp_path).communicate() is not None
    assert files(tmp_path) == files(unbroken)
    assert hashes(tmp_path).items() >= some.items()


def test_a_sample_that_is_not_finite_is_told_and_written_down(tmp_path, monkeypatch, capsys):
    config = RunConfig(images=5, rounds=2, draws=20, per_shard=2, first_draw=7)
    images, labels = evaluation_set()
    classifier = DigitClassifier(DigitNet().eval())
    parts = Parts(config, FixedPCA(), few_sampler(Failing()), classifier, {"prior": "x"},
                  images, labels.astype(np.int64), 16)  # fmt: skip
    monkeypatch.setattr(spread_module, "load_parts", lambda config: parts)
    execute(config, tmp_path)
    shards = json.loads((tmp_path / "manifest.json").read_text())["shards"].values()
    broken = [tuple(vote) for shard in shards for vote in shard["broken"]]
    votes = read_log(tmp_path).votes
    assert broken
    assert all(votes[image, round_ - 1, draw - 7] == 255 for image, round_, draw in broken)
    lines = capsys.readouterr().err.splitlines()
    image, round_, draw = broken[0]
    assert len(lines) == len(broken)
    assert f"image {image}, round {round_}, draw {draw}: not finite" in lines[0]


# What cannot be run.


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"images": 0}, "images 0"),
        ({"images": 1001}, "more than the 1000"),
        ({"rounds": 0}, "rounds 0"),
        ({"draws": 0}, "draws 0"),
        ({"draws": 10**9}, "draws 1000000000 is too many"),
        ({"per_shard": 0}, "per_shard 0"),
        ({"seed": -1}, "seed -1"),
        ({"first_draw": -1}, "first_draw -1"),
        ({"prefix": 3}, "prefix 3 is for adaptive"),
        ({"probes": "none"}, "probes 'none'"),
        ({"sampler": "none"}, "sampler 'none'"),
        ({"probes": "adaptive", "prefix": 4}, "draws labels"),
        ({"sampler": "ddrm", "probes": "adaptive", "prefix": 9}, "prefix 9 is not from 2 to 8"),
        ({"sampler": "ddrm", "probes": "adaptive"}, "prefix 0 is not from 2 to 8"),
    ],
)
def test_configs_that_make_no_run(changed, message):
    with pytest.raises(BadInput, match=message):
        RunConfig(**{**TOY.record(), **changed})


@pytest.mark.parametrize(
    ("on", "workers", "message"),
    [
        ("nowhere", None, "on 'nowhere' is unknown"),
        ("local:x", None, "on 'local:x' is unknown"),
        ("local", 2, "do not go with local"),
        ("processes", 0, "workers 0"),
        ("processes", 10**6, "there is room for"),
        ("ray:127.0.0.1:1", None, "start one with `ray start --head`"),
        ("ray:nowhere", None, "not HOST:PORT"),
    ],
)
def test_ways_that_lead_nowhere(on, workers, message):
    with pytest.raises(BadInput, match=message) as error:
        list(spread(TOY, lambda _: TOY.shards(), len, on, workers))
    assert "\n" not in str(error.value)


def test_folders_that_hold_something_else(toy_log, tmp_path):
    with pytest.raises(BadInput, match="holds a run with draws 8, not 9"):
        execute(RunConfig(**{**TOY.record(), "draws": 9}), toy_log)
    (tmp_path / "x.parquet").touch()
    with pytest.raises(BadInput, match="no manifest"):
        execute(TOY, tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(BadInput, match="not a whole manifest"):
        execute(TOY, tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be made a folder"):
        execute(TOY, tmp_path / "file")


def test_shards_of_other_weights_are_not_joined(toy_log, tmp_path):
    execute(TOY, tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["hashes"]["prior"] = "other"
    del manifest["shards"]["votes-00000-00005.parquet"]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadInput, match="other weights or probes"):
        execute(TOY, tmp_path)


def test_one_run_at_a_time_in_a_folder(tmp_path):
    def meddle(images, votes):
        with pytest.raises(BadInput, match="another run writes there"):
            execute(TOY, tmp_path)

    execute(TOY, tmp_path, progress=meddle)
    execute(TOY, tmp_path)


def test_an_error_in_a_worker_is_told_here(tmp_path):
    config = RunConfig(images=4, rounds=2, draws=4, sampler="oracle", data_dir=str(tmp_path))
    with pytest.raises(BadInput, match="train-images-idx3-ubyte is not there"):
        execute(config, tmp_path / "log", on="processes", workers=2)


class Dying:
    """A crew whose workers die as they are told to, at each shard in turn."""

    def __init__(self, deaths):
        self.deaths, self.started, self.answers = list(deaths), 0, []

    def start(self):
        self.started += 1
        self.answers.append((self.started, Answer("ready")))

    def give(self, worker, shard):
        dies = bool(self.deaths) and self.deaths.pop(0)
        self.answers.append((worker, Answer("gone") if dies else Answer("done", shard.name)))

    def wait(self):
        return self.answers.pop(0)

    def close(self):
        self.answers.clear()


def test_lost_workers_are_replaced_and_their_shards_given_to_others():
    crew, shards = Dying([True, False, True, True, False, True]), TOY.shards()
    done = dict(_share_out(crew, 2, shards))
    assert done == {shard: shard.name for shard in shards}
    assert crew.started == 6


def test_workers_that_only_die_end_the_run():
    with pytest.raises(RunFailed, match="5 workers died one after another, 3 shards"):
        list(_share_out(Dying([True] * 99), 2, TOY.shards()))


def test_another_command_does_not_strand_shards_without_a_manifest_entry(toy_log, tmp_path):
    execute(TOY, tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["shards"] = {}  # stopped after the first rename, before the manifest told of it
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadInput, match="holds a run with seed"):
        execute(RunConfig(**{**TOY.record(), "seed": 77}), tmp_path)
    execute(TOY, tmp_path)
    assert files(tmp_path) == files(toy_log)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 10**20}, "seed 1"),
        ({"first_draw": 10**20}, "first_draw 1"),
        ({"steps": 0}, "steps 0"),
        ({"eta": 55}, "eta 55"),
        ({"eta_b": -1}, "eta_b -1"),
        ({"min_confidence": 7}, "min_confidence 7"),
        ({"sigma_y": float("nan")}, "sigma_y nan"),
    ],
)
def test_a_config_that_cannot_be_is_refused_before_anything_is_written(change, words):
    with pytest.raises(BadInput, match=words):
        RunConfig(**{**TOY.record(), **change})


def test_workers_are_no_more_than_shards_and_share_the_cores(monkeypatch):
    monkeypatch.setattr(spread_module, "_cores", lambda: 2)
    asked = []

    def cut(count):
        asked.append(count)
        return []

    assert list(spread(TOY, cut, len, "processes")) == []
    assert asked == [2]
