"""Plans: figures from images that did not choose, the frontier, the guarantee, bad input."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from suffice import BadInput, CalibrationInfeasible, Rule, certified_tau, expected_samples, oc
from suffice.cli import main
from suffice.guarantee import upper_bound
from suffice.plan import Plan, plan
from suffice.pool_law import pool_law
from suffice.replay import Replay
from suffice.rule_files import load_rules
from suffice.votes import VoteLog, write_log

EPS = 0.1


def simulated(images: int = 160, draws: int = 16, seed: int = 1) -> VoteLog:
    """Votes of three classes whose true one gains with each round; some images mislead at first."""
    generator = np.random.default_rng(seed)
    rounds = 6
    score = generator.normal(0.0, 1.0, (images, 1, 3)) * np.ones((rounds, 1))
    score[:, :, 0] += 0.7 * np.arange(1, rounds + 1)
    pi = np.exp(score) / np.exp(score).sum(axis=-1, keepdims=True)
    ends = pi.cumsum(axis=-1)[:, :, None, :-1]
    votes = (generator.random((images, rounds, draws, 1)) > ends).sum(axis=-1)
    truth = np.zeros(images, dtype=np.int64)
    return VoteLog(np.arange(images), truth, votes.astype(np.uint8), {})


LOG = simulated()


@pytest.fixture(scope="module", autouse=True)
def a_coarse_grid() -> Iterator[None]:
    """Fewer thresholds for the makers that search, so that a plan takes half a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("suffice.designs.COARSE", (0.6,))
        patch.setattr("suffice.designs.ROUNDWISE", 8)
        yield


@pytest.fixture(scope="module")
def cheapest() -> Plan:
    return plan(LOG, 1, 10, EPS)


@pytest.fixture(scope="module")
def accurate() -> Plan:
    return plan(LOG, 1, 10, EPS, accuracy=0.93)


def test_the_halves_share_no_image_and_the_report_is_a_replay_of_the_other_half(
    accurate: Plan,
) -> None:
    order = np.random.Generator(np.random.Philox(0)).permutation(len(LOG.images))
    chose, reported = np.sort(order[:80]), np.sort(order[80:])
    assert not set(chose) & set(reported)
    assert accurate.images == (80, 80)
    other = VoteLog(LOG.images[reported], LOG.truth[reported], LOG.votes[reported], {})
    told = accurate.record()["deploy"]
    outcome = Replay(other).run(accurate.deploy.design.rules)
    for name in ("accuracy", "declared", "rounds", "samples"):
        assert told[name] == outcome.summary()[name]
    assert told["cost"] == pytest.approx(told["samples"] + 10 * told["rounds"])
    low, high = told["cost_interval"]
    assert low < told["cost"] < high


def test_the_images_that_report_have_no_part_in_the_choice(accurate: Plan) -> None:
    """Other votes on the held-out images change the report, but no design and no choice."""
    order = np.random.Generator(np.random.Philox(0)).permutation(len(LOG.images))
    votes = LOG.votes.copy()
    votes[order[80:]] = simulated(seed=2).votes[order[80:]]
    again = plan(VoteLog(LOG.images, LOG.truth, votes, {}), 1, 10, EPS, accuracy=0.93)
    assert again.deploy.design.rules == accurate.deploy.design.rules
    assert [each.design.rules for each in again.frontier] == [
        each.design.rules for each in accurate.frontier
    ]
    assert again.record()["deploy"]["cost"] != accurate.record()["deploy"]["cost"]


def on_the_half_that_chose(found: Plan) -> list[tuple[float, float]]:
    """Cost and accuracy of each design of the frontier where it was chosen."""
    order = np.random.Generator(np.random.Philox(0)).permutation(len(LOG.images))
    chose = np.sort(order[:80])
    replay = Replay(VoteLog(LOG.images[chose], LOG.truth[chose], LOG.votes[chose], {}))
    points = []
    for each in found.frontier:
        outcome = replay.run(each.design.rules)
        cost = (outcome.samples + 10 * outcome.rounds).mean()
        points.append((float(cost), outcome.right.sum() / outcome.declared.sum()))
    return points


def test_the_frontier_rises_and_the_deployed_design_is_its_cheapest_that_will_do(
    cheapest: Plan, accurate: Plan
) -> None:
    points = on_the_half_that_chose(accurate)
    assert len(points) > 3
    assert (np.diff(points, axis=0) > 0)[:, 1].all()
    assert (np.diff(points, axis=0) >= 0).all()
    first = next(at for at, (_, accuracy) in enumerate(points) if accuracy >= 0.93)
    assert accurate.deploy.design.rules == accurate.frontier[first].design.rules
    assert cheapest.deploy.design.rules == cheapest.frontier[0].design.rules


def test_every_design_certifies_a_majority(accurate: Plan) -> None:
    for each in (*accurate.frontier, *accurate.rivals):
        for rule in each.design.each:
            assert each.design.certified_tau <= certified_tau(rule, EPS)
            assert oc(rule, 0.5) <= EPS


def test_rules_made_for_the_paths_are_on_the_grid_where_samples_have_a_price(
    accurate: Plan,
) -> None:
    """One a round: as many as rounds, and cheaper than one for all at the same threshold."""
    rounds = [each for each in accurate.frontier if isinstance(each.design.rules, tuple)]
    assert {each.design.family for each in rounds} == {"optimal, by round"}  # so there is one
    assert all(len(each.design.rules) == LOG.rounds for each in rounds)
    for each in plan(LOG, 0, 10, EPS).frontier:  # a round has no price in samples
        assert isinstance(each.design.rules, Rule)


def test_rivals_are_the_papers_rules_at_the_same_accuracy(accurate: Plan) -> None:
    families = [rival.design.family for rival in accurate.rivals]
    assert families == ["plug-in full", "plug-in", "one-look", "sequential"]
    for rival, told in zip(accurate.rivals, accurate.record()["rivals"], strict=True):
        ratio = told["deployed_against_it"]["cost_ratio"]
        mine = accurate.deploy.cost.samples.mean() / rival.cost.samples.mean()
        assert ratio == pytest.approx(mine)


def test_prices_move_the_choice() -> None:
    """Dear samples buy rounds, dear rounds buy samples."""
    frugal = plan(LOG, 10, 1, EPS, accuracy=0.93).deploy.outcome
    hasty = plan(LOG, 1, 1000, EPS, accuracy=0.93).deploy.outcome
    assert frugal.samples.mean() < hasty.samples.mean()
    assert frugal.rounds.mean() > hasty.rounds.mean()


def test_the_guarantee_is_proven_on_held_out_images_in_order() -> None:
    found = plan(LOG, 1, 10, EPS, guarantee=0.2)
    told = found.record()
    assert all(trial.passed for trial in found.trials[:-1])
    passed = [trial for trial in found.trials if trial.passed]
    outcome = found.deploy.outcome
    wrong = int((outcome.declared & ~outcome.right).sum())
    assert (passed[-1].wrong, passed[-1].declared) == (wrong, outcome.declared.sum())
    assert upper_bound(wrong, outcome.declared.sum(), 0.95) <= 0.2
    assert told["tests"][0]["passed"] is True
    assert (told["guarantee"], told["confidence"]) == (0.2, 0.95)


def test_where_nothing_passes_it_says_so_and_how_many_images_would_do() -> None:
    with pytest.raises(CalibrationInfeasible, match=r"about \d+ images would prove it") as caught:
        plan(LOG, 1, 10, EPS, guarantee=0.06)
    best = caught.value.best
    assert best["images_needed"] > len(LOG.images)
    assert best["upper_bound"] > 0.06 > best["rate"]
    with pytest.raises(CalibrationInfeasible, match="no number of images") as caught:
        plan(LOG, 1, 10, EPS, guarantee=0.001)
    assert caught.value.best["images_needed"] is None
    assert caught.value.best["rate"] > 0.001


def test_without_truths_there_is_a_plan_by_the_certificate_alone() -> None:
    blind = VoteLog(LOG.images, np.full_like(LOG.truth, -1), LOG.votes, {})
    found = plan(blind, 1, 10, EPS)
    assert found.record()["deploy"]["accuracy"] is None
    assert found.rivals == ()
    certified = [each.design.certified_tau for each in found.frontier]
    assert certified == sorted(certified)
    assert found.deploy.design.rules == plan(LOG, 1, 10, EPS).deploy.design.rules


def test_progress_ends_where_it_is_done() -> None:
    heard: list[tuple[int, int]] = []
    plan(LOG, 1, 10, EPS, progress=lambda done, of: heard.append((done, of)))
    assert [done for done, _ in heard] == list(range(heard[-1][1] + 1))


BLIND = VoteLog(LOG.images, np.where(LOG.images == 7, -1, LOG.truth), LOG.votes, {})
SMALL = VoteLog(LOG.images[:9], LOG.truth[:9], LOG.votes[:9], {})
NARROW = VoteLog(LOG.images, LOG.truth, LOG.votes[:, :, :2], {})
BAD = [
    (LOG, {"sample_cost": -1}, "--sample-cost -1", "sample_cost = -1"),
    (LOG, {"round_cost": float("nan")}, "--round-cost nan", "round_cost = nan"),
    (LOG, {"sample_cost": 0, "round_cost": 0}, "--sample-cost 0 --round-cost 0", "both 0"),
    (LOG, {"eps": 1.5}, "--eps 1.5", "eps = 1.5"),
    (LOG, {"accuracy": 1.2}, "--accuracy 1.2", "accuracy = 1.2"),
    (LOG, {"accuracy": 0.9999}, "--accuracy 0.9999", "no design reaches it"),
    (LOG, {"guarantee": 0}, "--guarantee 0", "guarantee = 0"),
    (LOG, {"guarantee": 0.1, "confidence": 1}, "--guarantee .1 --confidence 1", "confidence = 1"),
    (LOG, {"guarantee": 0.001}, "--guarantee 0.001", "no design passes"),
    (LOG, {"seed": -1}, "--seed -1", "seed = -1"),
    (BLIND, {"guarantee": 0.1}, "--guarantee 0.1", "image 7 has no truth"),
    (BLIND, {"accuracy": 0.9}, "--accuracy 0.9", "image 7 has no truth"),
    (SMALL, {}, "", "9 images are too few"),
    (NARROW, {}, "", "no rule of 2 votes certifies a majority"),
]


@pytest.mark.parametrize(
    ("log", "given", "line", "said"), BAD, ids=[bad[2] or bad[3] for bad in BAD]
)
def test_bad_input_is_one_line(
    log: VoteLog,
    given: dict,
    line: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = {"sample_cost": 1, "round_cost": 10, "eps": EPS, **given}
    with pytest.raises(BadInput, match=said):
        plan(log, **asked)
    write_log(log, tmp_path / "log.parquet")
    words = ["plan", str(tmp_path / "log.parquet"), *["--sample-cost", "1", "--round-cost", "10"]]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--eps", str(EPS), *line.split()])
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert said in err


def test_the_command_prints_the_plan_and_saves_its_rule(
    accurate: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_log(LOG, tmp_path / "log.parquet")
    line = f"plan {tmp_path}/log.parquet --sample-cost 1 --round-cost 10 --eps {EPS}"
    line += f" --accuracy .93 --out {tmp_path}/rule.json"
    for mistake, says in (("--confidence .9", "--guarantee"), ("--out .", "is a folder")):
        with pytest.raises(SystemExit) as ended:
            main([*line.split(), *mistake.split()])
        out, err = capsys.readouterr()
        assert (ended.value.code, out, len(err.splitlines())) == (2, "", 1)
        assert says in err
    with pytest.raises(SystemExit) as ended:
        main([*line.split(), "--json"])
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (0, "")
    assert json.loads(out) == json.loads(json.dumps(accurate.record()))
    loaded = load_rules(tmp_path / "rule.json")
    assert (loaded if isinstance(loaded, Rule) else tuple(loaded)) == accurate.deploy.design.rules
    with pytest.raises(SystemExit):
        main([*line.split(), "--guarantee", ".2"])
    table = capsys.readouterr().out.splitlines()
    assert table[1].split()[0] == "deploy"
    assert table[-1].startswith("P(wrong | declared) <= 0.2 with confidence 0.95")


def test_oc_of_a_whole_pool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rule = Rule([1, 2, 2, 2], [0, 0, 1, 2], "two of three")
    rule.save(tmp_path / "rule.json")

    def run(line: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(f"oc {tmp_path}/rule.json {line}".split())
        return ended.value.code, *capsys.readouterr()

    code, out, _ = run("--pi 0.5 0.25 --json")
    told = json.loads(out)
    law = pool_law(rule, [0.5, 0.25])
    assert code == 0
    assert told["declare_probability"] == law.declared.tolist()
    assert told["expected_samples"] == law.expected_samples > expected_samples(rule, 0.5)
    assert told["undecided"] == pytest.approx(1 - law.declared.sum())
    assert (told["pi"], told["expected_samples_error"]) == ([0.5, 0.25], 0.0)
    assert len(run("--pi 0.5 0.25")[1].splitlines()) == 7
    for line, said in (
        ("--pi 0.5 0.6", "pi sums to 1.1"),
        ("--pi -0.5 0.6", "pi holds -0.5"),
        ("--pi 0.5 --q 0.5", "give --q or --pi"),
        ("", "Missing option '--q', or '--pi'"),
    ):
        code, out, err = run(line)
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert said in err
