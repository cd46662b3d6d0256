"""The live loop and the replay of a log agree image by image, however each was made."""

import json
import subprocess
import sys

import numpy as np
import pytest

from suffice import BadInput
from suffice.cli import main
from suffice.replay import Replay
from suffice.rules import e_process, one_look, plug_in, sequential, sprt
from suffice.runs.execute import execute
from suffice.runs.live import run_live
from suffice.runs.shards import RunConfig
from suffice.votes import read_log

TOY = RunConfig(images=50, rounds=8, draws=24, sampler="toy", sigma_y=1.0, seed=5)
DDRM = RunConfig(images=6, rounds=3, draws=12, steps=6, sigma_y=0.5, min_confidence=0.6)
RULES = {
    "full": plug_in(0.7, 24, curtailed=False),
    "plug-in": plug_in(0.7, 24),
    "one-look": one_look(0.7, 0.05, 24),
    "sequential": sequential(0.7, 0.05, n_max=24),
    "sprt": sprt(0.6, 0.95, 0.1, 0.8, 24),
    "e-process": e_process(0.7, 0.05, 24),
    "one a round": [sequential(0.5 + 0.05 * t, 0.1, n_max=10 + t) for t in range(8)],
}


@pytest.fixture(scope="module")
def toy_log(tmp_path_factory):
    return read_log(execute(TOY, tmp_path_factory.mktemp("toy")))


@pytest.fixture(scope="module")
def ddrm_log(tmp_path_factory):
    return read_log(execute(DDRM, tmp_path_factory.mktemp("ddrm")))


def same(live, log, rules):
    """The same labels, rounds and samples, and vote for vote."""
    told = Replay(log).run(rules)
    for name in ("label", "rounds", "samples", "truth"):
        np.testing.assert_array_equal(getattr(live.outcome, name), getattr(told, name))
    for episode, logged in zip(live.episodes, log.votes, strict=True):
        for votes, pool in zip(episode.votes, logged, strict=False):
            np.testing.assert_array_equal(votes, pool[: len(votes)])


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("batch", [5, 1024])
def test_live_is_replay(toy_log, name, batch):
    live = run_live(TOY, RULES[name], batch=batch)
    same(live, toy_log, RULES[name])
    assert live.outcome.declared.sum() > 0


def test_live_in_two_processes_is_replay(toy_log):
    live = run_live(TOY, RULES["sequential"], on="processes", workers=2)
    same(live, toy_log, RULES["sequential"])
    assert len(live.ledgers) == 2


def test_live_is_replay_of_a_log_that_was_resumed(tmp_path):
    for stop_after in (20, 40, None):

        def stop(images, votes, limit=stop_after):
            if limit and votes and images >= limit:
                raise KeyboardInterrupt

        try:
            execute(TOY, tmp_path, progress=stop)
        except KeyboardInterrupt:
            continue
    same(run_live(TOY, RULES["sequential"]), read_log(tmp_path), RULES["sequential"])


def test_live_is_replay_with_ddrm_in_any_batch_and_process(ddrm_log):
    rule = sequential(0.6, 0.1, n_max=12)
    for options in ({}, {"batch": 7}, {"on": "processes", "workers": 2}):
        same(run_live(DDRM, rule, **options), ddrm_log, rule)
    assert (ddrm_log.votes == 255).any()


def test_live_is_replay_with_adaptive_probes(tmp_path):
    config = RunConfig(images=3, rounds=3, draws=12, steps=6, probes="adaptive", prefix=8)
    log = read_log(execute(config, tmp_path))
    rule = sequential(0.6, 0.1, n_max=12)
    same(run_live(config, rule, batch=16), log, rule)
    assert log.prefix == 8
    with pytest.raises(BadInput, match="n_max 8 to 12"):
        Replay(log).run(plug_in(0.6, 6))


def test_the_summary_adds_up(toy_log):
    live = run_live(TOY, RULES["sequential"], batch=16)
    told = live.summary()
    images = told["images"]
    assert [image["image"] for image in images] == list(range(50))
    assert sum(image["samples"] for image in images) == told["drawn"] - told["wasted"]
    assert told["samples"] == np.mean([image["samples"] for image in images])
    assert told["rounds"] == np.mean([image["round"] for image in images])
    right = [image["label"] == image["truth"] for image in images if image["label"] is not None]
    assert told["accuracy"] == np.mean(right)
    assert told["batch_fill"] >= 0.99
    assert told["wasted"] == 0


def test_as_many_rules_as_rounds():
    with pytest.raises(BadInput, match="2 rules for 8 rounds"):
        run_live(TOY, [RULES["full"]] * 2)


# The same by the command line.

RUN = "--images 12 --rounds 5 --sampler toy --sigma-y 1"
MEANS = {"accuracy", "declared", "rounds", "samples"}
KEYS = MEANS | {f"{name}_interval" for name in MEANS} | {"undeclared_leader_accuracy"}


def call(capsys, line):
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def report(capsys, line):
    code, out, err = call(capsys, f"{line} --json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_log_sense_and_replay_agree(capsys, tmp_path):
    told = report(capsys, f"log {RUN} --draws 16 --out {tmp_path}/votes")
    assert told == {"images": 12, "rounds": 5, "draws": 16, "out": f"{tmp_path}/votes"}
    sequential(0.6, 0.1, n_max=16).save(tmp_path / "a.json")
    plug_in(0.6, 16, curtailed=False).save(tmp_path / "b.json")
    line = f"replay {tmp_path}/votes --rule {tmp_path}/a.json --rule {tmp_path}/b.json"
    first, second = report(capsys, line)["rules"]
    assert set(first) == {*KEYS, "file"}
    assert set(second) == {*KEYS, "file", "against_first"}
    assert set(second["against_first"]) == {
        f"{name}{end}"
        for name in ("samples_ratio", "accuracy_difference", "declared_difference")
        for end in ("", "_interval")
    }
    for rule, row in (
        ("sequential --tau .6 --eps .1 --n-max 16", first),
        ("full --tau .6 --samples 16", second),
        (f"{tmp_path}/a.json", first),
    ):
        live = report(capsys, f"sense {RUN} --rule {rule}")
        extra = {"drawn", "wasted", "invalid", "broken", "seconds", "sampler_seconds"}
        assert set(live) == {*KEYS, *extra, "batch_fill", "draining_from", "images"}
        assert {key: live[key] for key in KEYS - {"undeclared_leader_accuracy"}} == {
            key: row[key] for key in KEYS - {"undeclared_leader_accuracy"}
        }
    assert "accuracy" in call(capsys, line)[1]
    assert "batch fill" in call(capsys, f"sense {RUN} --batch 4 --rule plug-in --tau .6")[1]


def test_replay_checks_a_log(capsys, tmp_path):
    report(capsys, f"log {RUN} --draws 16 --out {tmp_path}/votes")
    line = f"replay {tmp_path}/votes --check --shuffles 19 --plot {tmp_path}/check.svg"
    tests = report(capsys, line)["check"]
    assert [test["test"] for test in tests] == ["halves", "neighbours", "batches"]
    assert all(set(test) == {"test", "statistic", "expected", "p_value"} for test in tests)
    assert (tmp_path / "check.svg").read_text().startswith("<?xml")
    assert "halves" in call(capsys, f"replay {tmp_path}/votes --check --shuffles 19")[1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("sense --images 5 --rule sequential --eps .05", "--rule sequential needs --tau"),
        ("sense --images 5 --rule one-look --tau .7", "--rule one-look needs --eps"),
        ("sense --images 5 --rule sprt --tau .7 --eps .05", "needs --q-alt and --power"),
        ("sense --images 5 --rule full --tau .7 --eps .05", "--eps does not go with --rule full"),
        ("sense --images 5 --rule none.json", "neither a file nor one of"),
        ("sense --rule full --tau .7", "--images"),
        ("sense --images 5 --rule {out}/a.json --tau .7", "--tau does not go with the rule file"),
        ("sense --images 5 --rule full --tau .7 --on mars", "on 'mars' is unknown"),
        ("sense --images 5 --rule full --tau .7 --sampler toy --sigma-y -1", "sigma_y -1.0"),
        ("sense --images 5 --rule full --tau .7 --sampler toy --batch 0", "batch"),
        ("log --images 5 --sampler toy", "--out"),
        ("log --images 5 --sampler toy --rounds 40 --out {out}/x", "sense fewer rounds"),
        ("log --images 2000 --sampler toy --out {out}/x", "more than the 1000"),
        ("replay {out}/none --check", "no such file"),
        ("replay {out} --check", "no vote log there"),
        ("replay {out}", "at least one --rule FILE, or --check"),
        ("replay {out} --rule {out}/a.json --plot x.png", "give that too"),
    ],
)
def test_mistakes_are_one_line(capsys, tmp_path, line, message):
    plug_in(0.6, 16).save(tmp_path / "a.json")
    code, out, err = call(capsys, line.format(out=tmp_path))
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_128_vote_rule_on_a_shorter_log_says_the_longest(capsys, tmp_path):
    report(capsys, f"log {RUN} --draws 16 --out {tmp_path}/votes")
    plug_in(0.6, 128).save(tmp_path / "a.json")
    code, _, err = call(capsys, f"replay {tmp_path}/votes --rule {tmp_path}/a.json")
    assert code == 2
    assert "use a rule with n_max 16 or less" in err


def test_plots_have_a_kind(capsys, tmp_path):
    report(capsys, f"log {RUN} --draws 16 --out {tmp_path}/votes")
    line = f"replay {tmp_path}/votes --check --shuffles 9 --plot {tmp_path}/x.docx"
    assert "must end in .svg" in call(capsys, line)[2]


def test_progress_is_silent_without_a_terminal(tmp_path):
    command = [sys.executable, "-m", "suffice", "log", *RUN.split(), "--out", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    assert ended.stdout.splitlines()[0].split() == ["images", "12"]
