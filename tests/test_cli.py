"""The command line: its keys, its exit codes, and one line for each mistake."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import suffice
from suffice.cli import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """Run the command line in this process: exit code, standard output, standard error."""

    def call(line: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(line.split())
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


@pytest.fixture
def report(run):
    def call(line: str) -> dict:
        code, out, err = run(f"{line} --json")
        assert (code, err) == (0, "")
        return json.loads(out)

    return call


DESIGN = ["rule", "tau", "eps", "n_max", "size", "power", "q_alt", "certified_tau"]
DESIGN += ["expected_samples", "declare", "stop"]


def test_design_one_look_is_the_running_example(report) -> None:
    told = report("design one-look --tau 0.70 --eps 0.05 --samples 32")
    assert set(told) == {*DESIGN, "r"}
    assert (told["r"], told["n_max"], told["power"], told["q_alt"]) == (28, 32, None, None)
    assert told["size"] == pytest.approx(0.0189, abs=5e-5)
    rule = suffice.one_look(0.70, 0.05, 32)
    assert (told["declare"], told["stop"]) == (rule.declare.tolist(), rule.stop.tolist())
    assert told["expected_samples"] == suffice.expected_samples(rule, 0.70)


def test_design_sequential_is_the_papers(report) -> None:
    line = "design sequential --tau 0.70 --alpha 0.0091 --n-max 97 --q-alt 0.85"
    told = report(line)
    assert set(told) == {*DESIGN, "alpha"}
    assert (told["alpha"], told["eps"]) == (0.0091, 0.05)
    assert told["size"] == pytest.approx(0.0495, abs=5e-5)
    assert told["power"] == pytest.approx(0.9248, abs=5e-5)
    assert told["expected_samples"] == pytest.approx(43.94, abs=5e-3)
    assert report(f"{line} --full")["expected_samples"] == pytest.approx(44.98, abs=5e-3)


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("plug-in --tau .7 --samples 32", suffice.plug_in(0.7, 32)),
        ("plug-in --tau .7 --samples 32 --full", suffice.plug_in(0.7, 32, curtailed=False)),
        ("one-look --tau .7 --eps .1 --samples 9 --every 5",
         suffice.one_look(0.7, 0.1, 9, every=5)),
        ("sequential --tau .78 --eps .05 --n-max 32", suffice.sequential(0.78, eps=0.05, n_max=32)),
        ("sprt --tau .7 --eps .05 --q-alt .9 --power .8 --n-max 60",
         suffice.sprt(0.7, 0.9, 0.05, 0.8, 60)),
        ("e-process --tau .7 --eps .05 --n-max 40", suffice.e_process(0.7, 0.05, 40)),
        ("e-process --tau .7 --eps .05 --n-max 40 --curtailed",
         suffice.e_process(0.7, 0.05, 40, curtailed=True)),
    ],
)  # fmt: skip
def test_design_is_the_call_of_the_library(report, tmp_path: Path, line: str, rule) -> None:
    told = report(f"design {line} --out {tmp_path}/rule.json")
    assert told["declare"] == rule.declare.tolist()
    assert told["stop"] == rule.stop.tolist()
    assert suffice.Rule.load(tmp_path / "rule.json") == rule


def test_certify_a_rule_that_already_runs(report, tmp_path: Path) -> None:
    told = report("certify --tau 0.90 --samples 32 --eps 0.05")
    assert set(told) == {"certified_tau", "eps", "r", "size"}
    assert (told["r"], round(told["certified_tau"], 3)) == (29, 0.775)
    suffice.plug_in(0.9, 32).save(tmp_path / "rule.json")
    again = report(f"certify {tmp_path}/rule.json --eps 0.05")
    assert again == {key: told[key] for key in ("certified_tau", "eps", "r")}
    assert report(f"certify {tmp_path}/rule.json --tau 0.9")["size"] == told["size"]


def test_oc_takes_several_masses_in_any_place(report, run, tmp_path: Path) -> None:
    rule = suffice.sequential(0.7, alpha=0.0091, n_max=97)
    rule.save(tmp_path / "rule.json")
    told = report(f"oc {tmp_path}/rule.json --q 0.5 0.7 0.85")
    assert told == {
        "q": [0.5, 0.7, 0.85],
        "declare_probability": suffice.oc(rule, [0.5, 0.7, 0.85]).tolist(),
        "expected_samples": suffice.expected_samples(rule, [0.5, 0.7, 0.85]).tolist(),
    }
    assert report(f"oc --q 0.5 0.7 --q 0.85 {tmp_path}/rule.json") == told
    code, out, _ = run(f"oc {tmp_path}/rule.json --q 0.5 0.7 0.85")
    assert code == 0
    assert len(out.splitlines()) == 4


def test_match_and_bound(report, tmp_path: Path) -> None:
    suffice.sequential(0.7, alpha=0.0091, n_max=97).save(tmp_path / "rule.json")
    strict = report(f"match {tmp_path}/rule.json --tau 0.70 --q-alt 0.85")
    assert (strict["samples"], strict["r"]) == (73, 58)
    assert strict["expected_samples"] == pytest.approx(67.5, abs=0.05)
    loose = report(f"match {tmp_path}/rule.json --tau 0.70 --q-alt 0.85 --tolerance 0.02")
    assert set(loose) == {"samples", "r", "size", "power", "expected_samples"}
    assert (loose["samples"], loose["r"]) == (69, 55)
    assert loose["expected_samples"] == pytest.approx(63.9, abs=0.05)
    told = report("bound --tau 0.70 --q 0.85 --size 0.0495 --power 0.9248")
    assert told == {"bound": pytest.approx(41.2, abs=0.05)}


def test_without_json_the_figures_are_for_people(run) -> None:
    code, out, err = run("design one-look --tau 0.70 --eps 0.05 --samples 32")
    assert (code, err) == (0, "")
    assert "r                 28\n" in out
    assert "declare" not in out


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A folder with one good rule file and several bad ones."""
    rule = suffice.plug_in(0.7, 8)
    text = rule.to_json()
    rule.save(tmp_path / "good.json")
    (tmp_path / "cut.json").write_text(text[:60])
    (tmp_path / "schema.json").write_text(text.replace('"schema": 1', '"schema": 2'))
    (tmp_path / "invalid.json").write_text(text.replace('"declare": [1', '"declare": [4'))
    suffice.save_rules([rule, suffice.plug_in(0.8, 8)], tmp_path / "rounds.json")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("design plug-in --samples 32", "Missing option '--tau'"),
        ("design plug-in --tau 1.5 --samples 32", "tau = 1.5"),
        ("design plug-in --tau nan --samples 32", "tau = nan"),
        ("design plug-in --tau 0.7 --samples 0", "0 is not a whole number"),
        ("design plug-in --tau 0.7 --samples 3.5", "'3.5' is not a valid integer"),
        ("design plug-in --tau 0.3 --samples 32", "r = 10 of 32"),
        ("design one-look --tau 0.7 --eps 5 --samples 32", "eps = 5"),
        ("design one-look --tau 0.9 --eps 0.01 --samples 8", "0.01"),
        ("design sequential --tau 0.7 --alpha 1e-9 --n-max 9", "alpha = 1e-09"),
        ("design sequential --tau 0.7 --n-max 9", "alpha"),
        ("design sequential --tau 0.7 --eps 0.05 --q-alt 0.6 --power 0.9", "q_alt = 0.6"),
        ("design plug-in --tau 0.7 --samples 9 --out /no/such/folder/x.json", "no such folder"),
        ("design plug-in --tau 0.7 --samples 9 --colour red", "No such option"),
        ("design sorcery --tau 0.7", "No such command"),
        ("certify", "needs a rule file, or --tau and --samples"),
        ("certify --tau 0.9 --samples 32 --eps 0", "eps = 0"),
        ("certify {}/good.json --samples 8", "give one or other"),
        ("certify {}/none.json", "cannot be read"),
        ("oc {}/cut.json --q 0.5", "not whole JSON"),
        ("oc {}/schema.json --q 0.5", "schema 2"),
        ("oc {}/invalid.json --q 0.5", "declare[0] = 4"),
        ("oc {}/good.json", "Missing option '--q'"),
        ("oc {}/good.json --pi nan 0.7", "pi holds nan"),
        ("oc {}/good.json --q 0.5 --round 1", "holds one rule for all rounds"),
        ("oc {}/rounds.json --q 0.5", "choose with --round from 1 to 2"),
        ("match {}/rounds.json --tau 0.6 --q-alt 0.8 --round 3", "--round 3"),
        ("certify --tau 0.9 --samples 32 --round 1", "give the file too"),
        ("certify {}/good.json --tau 2", "tau = 2"),
        ("design plug-in --tau 0.7 --samples 9 --out {}", "is a folder; name a file"),
        ("oc {}/good.json --q 1.5", "q = 1.5"),
        ("oc {}/good.json --q half", "'half' is not a valid float"),
        ("match {}/good.json --tau 0.7 --q-alt 0.6", "q_alt = 0.6"),
        ("bound --tau 0.7 --q 0.6 --size 0.05 --power 0.9", "q = 0.6"),
        ("bound --tau 0.7 --q 0.9 --size 0.5 --power 0.4", "power = 0.4"),
    ],
)
def test_a_mistake_gets_one_line_and_exit_code_2(run, broken: Path, line: str, said: str) -> None:
    code, out, err = run(line.format(broken))
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1
    assert err.startswith("suffice: ")


def test_an_unreachable_power_names_the_best(run) -> None:
    code, _, err = run("design sprt --tau .7 --eps .01 --q-alt .72 --power .99 --n-max 20")
    assert code == 2
    assert len(err.splitlines()) == 1


def test_a_failed_run_exits_with_1(run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that refuses the file: the one failure that these verbs can meet."""

    def refuse(*_args: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("suffice.files.tempfile.mkstemp", refuse)
    code, _, err = run("design plug-in --tau 0.7 --samples 9 --out rule.json")
    assert (code, err) == (1, "suffice: rule.json: cannot be written (No space left on device)\n")


def test_python_m_suffice_is_the_same_command() -> None:
    line = [sys.executable, "-m", "suffice"]
    bound = ["bound", "--tau=.7", "--q=.85", "--size=.05", "--power=.9", "--json"]
    good = subprocess.run([*line, *bound], capture_output=True, text=True, check=False)
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["bound"] > 0
    bad = subprocess.run([*line, "certify"], capture_output=True, text=True, check=False)
    assert (bad.returncode, bad.stdout, len(bad.stderr.splitlines())) == (2, "", 1)


def test_a_full_output_is_one_line() -> None:
    line = [sys.executable, "-m", "suffice", "bound", "--tau=.7", "--q=.85", "--size=.05"]
    with Path("/dev/full").open("w") as full:
        found = subprocess.run(
            [*line, "--power=.9"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (found.returncode, len(found.stderr.splitlines())) == (1, 1)
    assert "No space left" in found.stderr


def test_one_rule_of_a_file_with_one_a_round(run, broken: Path) -> None:
    code, out, _ = run(f"oc {broken}/rounds.json --q 0.9 --round 2 --json")
    rule = suffice.load_rules(broken / "rounds.json")[1]
    assert code == 0
    assert json.loads(out)["declare_probability"] == [suffice.oc(rule, 0.9)]


def test_every_documented_verb_has_help(run) -> None:
    documented = [
        line.removeprefix("## ")
        for line in (Path(__file__).parents[1] / "docs/cli.md").read_text().splitlines()
        if line.startswith("## ")
    ]
    for verb in documented:
        code, out, _ = run(f"{verb} --help")
        assert code == 0
        assert "--json" in out or verb == "design"


def test_design_optimal_tells_its_bound(report) -> None:
    line = "design optimal --tau 0.7 --eps 0.0495 --q-alt 0.85 --power 0.9248 --n-max 97"
    told = report(line)
    assert list(told) == [*DESIGN[:9], "lower_bound", "gap", *DESIGN[9:]]
    assert told["size"] <= 0.0495
    assert told["power"] >= 0.9248
    assert told["lower_bound"] <= told["expected_samples"] <= 42.4
    half = report(f"{line} --weight 0.85 0.5 --weight 0.7 0.5")
    assert half["expected_samples"] <= 42.7
    assert half["gap"] < 0.01


def test_the_error_of_a_whole_run_is_split_over_its_rounds(report) -> None:
    told = report("design one-look --tau 0.7 --eps-loop 0.05 --rounds 24 --samples 64")
    assert 1 - (1 - told["eps"]) ** 24 == pytest.approx(0.05)
    assert told["size"] <= told["eps"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("design one-look --tau 0.7 --samples 32", "needs --eps"),
        ("design one-look --tau 0.7 --samples 32 --eps-loop 0.05", "go together"),
        ("design one-look --tau 0.7 --samples 32 --eps 0.1 --eps-loop 0.05 --rounds 3", "one of"),
        ("design optimal --tau 0.7 --eps 0.05 --q-alt 0.85 --power 0.99 --n-max 30", "would do"),
        (
            "design optimal --tau 0.7 --eps 0.05 --q-alt 0.85 --power 0.5 --n-max 30 "
            "--weight 0.8 0.4",
            "weights sum to 0.4",
        ),
    ],
)
def test_a_mistake_in_a_design_gets_one_line(run, line: str, said: str) -> None:
    code, out, err = run(line)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
