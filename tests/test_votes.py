"""The vote log: what is written is read, and what is not a whole log of one run is refused."""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice import BadInput, RunFailed
from suffice.files import write_whole
from suffice.votes import KEY, VoteLog, merge_logs, read_log, sha256, write_log

FACTS = {"seed": 3, "hashes": {"prior": "aa", "classifier": "bb"}, "versions": {"torch": "2"}}


def some_log(images=(2, 5), rounds=3, draws=4, **facts):
    votes = np.random.default_rng(0).integers(0, 10, (len(images), rounds, draws), dtype=np.uint8)
    votes[0, 0, 0] = 255
    names = np.array(images)
    return VoteLog(names, names % 10, votes, {**FACTS, "rounds": rounds, "draws": draws, **facts})


def test_what_is_written_is_read(tmp_path):
    log = some_log()
    write_log(log, tmp_path / "log.parquet")
    back = read_log(tmp_path / "log.parquet")
    for name in ("images", "truth", "votes"):
        np.testing.assert_array_equal(getattr(back, name), getattr(log, name))
        assert getattr(back, name).dtype == getattr(log, name).dtype
    assert back.metadata == log.metadata


def test_the_file_is_plain_parquet_and_the_same_each_time(tmp_path):
    for name in ("one", "two"):
        write_log(some_log(), tmp_path / f"{name}.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    table = pq.read_table(tmp_path / "one.parquet")
    assert table.column_names == ["image", "round", "truth", "votes"]
    assert table.num_rows == 6
    row = table.slice(3, 1).to_pylist()[0]
    assert (row["image"], row["round"], row["truth"]) == (5, 1, 5)
    assert row["votes"] == some_log().votes[1, 0].tolist()
    assert json.loads(table.schema.metadata[KEY])["schema"] == 1


def test_a_folder_is_one_log_in_the_order_of_images(tmp_path):
    write_log(some_log((7, 9)), tmp_path / "a.parquet")
    write_log(some_log((2, 5), versions={"torch": "3"}), tmp_path / "b.parquet")
    log = read_log(tmp_path)
    assert log.images.tolist() == [2, 5, 7, 9]
    np.testing.assert_array_equal(log.votes[2:], some_log().votes)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (some_log((7,), seed=4), "seed is 4, but 3 in"),
        (some_log((7,), hashes={"prior": "cc", "classifier": "bb"}), "hashes.prior is 'cc'"),
        (some_log((7,), rounds=2), "rounds is 2, but 3"),
        (some_log((7,), draws=5), "draws is 5, but 4"),
        (some_log((7,), sigma_y=0.1), "sigma_y is 0.1, but None"),
        (some_log((5, 7)), "image 5 is in two"),
    ],
)
def test_logs_of_different_runs_do_not_merge(tmp_path, other, message):
    write_log(some_log(), tmp_path / "a.parquet")
    write_log(other, tmp_path / "b.parquet")
    with pytest.raises(BadInput, match=message) as error:
        read_log(tmp_path)
    assert "\n" not in str(error.value)


def test_no_vote_log_there(tmp_path):
    with pytest.raises(BadInput, match="no such file"):
        read_log(tmp_path / "none.parquet")
    with pytest.raises(BadInput, match="no vote log there"):
        read_log(tmp_path)
    with pytest.raises(BadInput, match="no logs to merge"):
        merge_logs([])


def test_every_truncation_of_a_file_is_refused(tmp_path):
    write_log(some_log(), tmp_path / "log.parquet")
    content = (tmp_path / "log.parquet").read_bytes()
    for length in range(0, len(content), 7):
        (tmp_path / "cut.parquet").write_bytes(content[:length])
        with pytest.raises(BadInput, match="not a whole Parquet file") as error:
            read_log(tmp_path / "cut.parquet")
        assert "\n" not in str(error.value)


def table_of(log, **columns):
    """The log's table with some columns replaced, left out (None), or other metadata."""
    count = len(log.images)
    parts = {
        "image": pa.array(np.repeat(log.images, log.rounds).astype(np.int32)),
        "round": pa.array(np.tile(np.arange(1, log.rounds + 1), count).astype(np.int16)),
        "truth": pa.array(np.repeat(log.truth, log.rounds).astype(np.int16)),
        "votes": pa.array(log.votes.reshape(-1, log.draws).tolist(), pa.list_(pa.uint8())),
    }
    metadata = columns.pop("metadata", {"schema": 1, **log.metadata})
    parts = {k: v for k, v in {**parts, **columns}.items() if v is not None}
    return pa.table(parts).replace_schema_metadata({KEY: json.dumps(metadata).encode()})


ROWS = some_log().votes.reshape(-1, 4).tolist()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"metadata": {"schema": 2}}, "schema 2 is not the log schema 1"),
        ({"metadata": {}}, "schema None is not"),
        ({"metadata": [1]}, "not a vote log"),
        ({"metadata": {"schema": 1, "draws": 9}}, "4 draws, but its metadata says 9"),
        ({"metadata": {"schema": 1, "rounds": 9}}, "3 rounds, but its metadata says 9"),
        ({"truth": None}, "'truth' is missing"),
        ({"truth": pa.array(list("abcdef"))}, "'truth' is string, not int16"),
        ({"truth": pa.array([None] * 6, pa.int16())}, "without gaps"),
        ({"truth": pa.array([2, 2, 3, 5, 5, 5], pa.int16())}, "missing, doubled or uneven"),
        ({"votes": pa.array([*ROWS[:5], [1, 2, None, 3]], pa.list_(pa.uint8()))},
         "missing, doubled or uneven"),
        ({"votes": pa.array(range(6))}, "'votes' is int64, not list<uint8>"),
        ({"votes": pa.array([[300]] * 6)}, "'votes' is list<int64>"),
        ({"votes": pa.array([*ROWS[:4], ROWS[4] + [1], ROWS[5][:3]], pa.list_(pa.uint8()))},
         "missing, doubled or uneven"),
        ({"round": pa.array([1, 2, 2, 1, 2, 3], pa.int16())}, "missing, doubled or uneven"),
        ({"image": pa.array([2, 2, 5, 5, 5, 5], pa.int32())}, "missing, doubled or uneven"),
    ],
)  # fmt: skip
def test_tables_that_are_no_whole_log(tmp_path, changed, message):
    pq.write_table(table_of(some_log(), **changed), tmp_path / "log.parquet")
    with pytest.raises(BadInput, match=message) as error:
        read_log(tmp_path / "log.parquet")
    assert "\n" not in str(error.value)


def test_the_table_of_these_tests_is_a_log_when_unchanged(tmp_path):
    pq.write_table(table_of(some_log()), tmp_path / "log.parquet")
    np.testing.assert_array_equal(read_log(tmp_path / "log.parquet").votes, some_log().votes)


def test_an_empty_log_and_a_parquet_file_of_others(tmp_path):
    pq.write_table(table_of(some_log()).slice(0, 0), tmp_path / "empty.parquet")
    with pytest.raises(BadInput, match="the log is empty"):
        read_log(tmp_path / "empty.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(BadInput, match="a Parquet file, but not a vote log"):
        read_log(tmp_path / "other.parquet")


def test_a_log_cannot_be_written_where_there_is_no_folder(tmp_path):
    with pytest.raises((BadInput, RunFailed), match="no such folder"):
        write_log(some_log(), tmp_path / "none" / "log.parquet")


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (2, 3)])
def test_a_log_has_votes(shape):
    with pytest.raises(BadInput, match="no log"):
        VoteLog(np.arange(shape[0]), np.arange(shape[0]), np.zeros(shape, dtype=np.uint8), {})


@pytest.mark.parametrize(
    ("truth", "votes", "said"),
    [
        ([0], [[[300, 1]]], "votes hold 300; use 0 to 255"),
        ([0], [[[-1, 1]]], "votes hold -1; use 0 to 255"),
        ([0], [[["seven", "one"]]], "votes hold .*seven.*, no whole number"),
        ([0.5], [[[1, 1]]], "truth hold .*0.5.*, no whole number"),
    ],
)
def test_labels_that_do_not_fit_a_log_are_named(truth, votes, said):
    with pytest.raises(BadInput, match=said):
        VoteLog([3], truth, votes, {})


def test_ones_own_votes_are_a_log_of_bytes():
    log = VoteLog([3], [1], [[[1, 1, 255, 0]]], {})
    assert (log.votes.dtype, log.truth.dtype) == (np.uint8, np.int64)
    assert log.leaders().tolist() == [[1]]


def test_a_new_file_follows_the_umask_and_an_old_one_keeps_its_permissions(tmp_path):
    path = tmp_path / "rule.json"
    before = os.umask(0o077)
    try:
        write_whole(path, "new")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    write_whole(path, "newer")
    assert path.stat().st_mode & 0o777 == 0o640


def test_leaders_and_laws_leave_invalid_votes_out():
    votes = np.array([[[1, 1, 255, 255, 255], [255] * 5, [2, 2, 1, 1, 0]]], dtype=np.uint8)
    log = VoteLog(np.array([0]), np.array([0]), votes, {})
    assert log.leaders().tolist() == [[1, -1, 1]]
    np.testing.assert_allclose(log.laws()[0, 0], [0, 0.4, 0])


def test_what_a_rename_would_destroy_is_left_alone(tmp_path):
    pipe, link, target = (tmp_path / name for name in ("pipe", "link", "target"))
    os.mkfifo(pipe)
    with pytest.raises(BadInput, match="no file that can be replaced"):
        write_whole(pipe, "new")
    assert pipe.is_fifo()
    target.write_text("old")
    link.symlink_to(target)
    write_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_file_that_the_manifest_does_not_tell_of_is_named(tmp_path):
    log = some_log()
    write_log(log, tmp_path / "log.parquet")
    shards = {"log.parquet": {"sha256": sha256(tmp_path / "log.parquet")}}
    record = {"config": {"images": len(log.images)}, "shards": shards}
    (tmp_path / "manifest.json").write_text(json.dumps(record))
    assert read_log(tmp_path).rounds == log.rounds
    write_log(log, tmp_path / "stray.parquet")
    with pytest.raises(BadInput, match=r"stray.parquet: manifest.json does not tell.*remove it"):
        read_log(tmp_path)
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "manifest.json").mkdir()
    with pytest.raises(BadInput, match="not a whole manifest"):
        read_log(tmp_path)
