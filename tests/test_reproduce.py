"""The paper's experiment on the reference logs: the rows, the verdicts, the documents."""

import json
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from suffice.calibrate import certified_tau
from suffice.claims import _known, claims
from suffice.cli import main
from suffice.comparison import (
    _match,
    added_table,
    frontier,
    matched_table,
    outcome_of,
    row_of,
    spent_by_round,
)
from suffice.errors import BadInput
from suffice.experiment import BLOCKS, EPS, Experiment, papers_table
from suffice.figures import FIGURES
from suffice.inputs import INVALID
from suffice.lattice import oc
from suffice.live_check import config_of, live_rows
from suffice.pool import Pool
from suffice.reference import reference_designs, reference_log
from suffice.reproduce import Reproduction
from suffice.rule import Rule
from suffice.rules import plug_in, sequential
from suffice.runs.parts import load_parts, make_shard
from suffice.runs.shards import RunConfig, Shard
from suffice.schemes import LARGE, SCHEMES, TAU_FREE, WHOLE_RUN, Scheme
from suffice.tables import added_lines, claim_lines, matched_lines, papers_lines
from suffice.votes import VoteLog, write_log

ROOT = Path(__file__).parents[1]


def first(log: VoteLog, images: int) -> VoteLog:
    return VoteLog(log.images[:images], log.truth[:images], log.votes[:images], log.metadata)


@pytest.fixture(scope="module")
def whole() -> Experiment:
    logs = reference_log(32), reference_log(128)
    return Experiment(*logs, reference_designs(*logs))


@pytest.fixture(scope="module")
def small(whole: Experiment) -> Experiment:
    return Experiment(first(whole.logs["32"], 40), first(whole.logs["128"], 40))


@pytest.fixture(scope="module")
def rows(small: Experiment):
    return papers_table(small)


def test_certified_tau_of_all_thirteen_rows_is_the_papers_cut_to_two_decimals() -> None:
    found = [
        (int(certified_tau(make(paper.tau), EPS) * 100) / 100, paper.certified_tau)
        for block in BLOCKS
        for _, make, paper in block.rows
    ]
    assert len(found) == 13
    assert all(ours == theirs for ours, theirs in found)


def test_on_all_images_curtailment_changes_nothing_and_one_look_is_plug_in(whole) -> None:
    for block in BLOCKS:
        (full, short, one) = (whole.outcome(make(paper.tau)) for _, make, paper in block.rows[:3])
        assert np.array_equal(full.label, short.label)
        assert np.array_equal(full.rounds, short.rounds)
        assert np.array_equal(full.samples, 32 * full.rounds)
        assert (short.samples <= full.samples).all()
        for name in ("label", "rounds", "samples"):
            assert np.array_equal(getattr(short, name), getattr(one, name))


def test_a_row_is_what_a_pool_at_a_time_gives(small) -> None:
    for rule in (
        plug_in(0.8, 32),
        sequential(0.78, EPS, n_max=32),
        sequential(0.78, EPS, n_max=128),
    ):
        log = small.logs["32" if rule.n_max <= 32 else "128"]
        outcome, spent = small.outcome(rule), small.spent(rule)
        for image in range(6):
            drawn = []
            for votes in log.votes[image]:
                pool = Pool(rule)
                for vote in votes:
                    if not pool.open:
                        break
                    pool.add(int(vote))
                drawn.append(pool.n)
                if pool.verdict.label is not None:
                    break
            assert (outcome.rounds[image], outcome.samples[image]) == (len(drawn), sum(drawn))
            assert spent[image].tolist() == drawn + [0] * (log.rounds - len(drawn))


def test_the_larger_cap_is_replayed_on_the_larger_log(whole) -> None:
    outcome = whole.outcome(sequential(0.78, EPS, n_max=128))
    assert outcome.samples.max() > 32 * 24


def test_logs_of_different_images_are_refused(small, whole) -> None:
    with pytest.raises(BadInput, match="make both from one run"):
        Experiment(small.logs["32"], whole.logs["128"])


def test_a_fitted_scheme_is_reported_on_images_that_it_did_not_see(small) -> None:
    seen = []

    def fit(experiment, tau, images):
        seen.append(images)
        return plug_in(0.9 if len(seen) == 1 else 0.6, 32)

    row = row_of(small, Scheme("fitted", fit=fit), 1.0, 0.6)
    assert sorted(np.concatenate(seen).tolist()) == list(range(40))
    strict, loose = (small.outcome(plug_in(tau, 32)).rounds for tau in (0.9, 0.6))
    expected = strict.copy()
    expected[seen[1]] = strict[seen[1]]
    expected[seen[0]] = loose[seen[0]]
    assert np.array_equal(row.outcome.rounds, expected)
    assert row.certified_tau == min(certified_tau(plug_in(tau, 32), EPS) for tau in (0.9, 0.6))


def test_a_scheme_fitted_to_nothing_gives_the_plain_row(small) -> None:
    plain = Scheme("plain", make=lambda tau: plug_in(tau, 32))
    fitted = Scheme("fitted all alike", fit=lambda experiment, tau, images: plug_in(tau, 32))
    one, other = (row_of(small, scheme, 1.0, 0.8) for scheme in (plain, fitted))
    assert one.summary == other.summary
    for name in ("32", "128"):
        for mean in ("accuracy", "declared", "rounds", "samples"):
            a, b = (getattr(row.predicted[name], mean) for row in (one, other))
            assert a == pytest.approx(b, rel=1e-12)
    a, b = (spent_by_round(small, scheme, 0.8) for scheme in (plain, fitted))
    assert a == pytest.approx(b)
    assert a.sum() == pytest.approx(one.summary["samples"])


@pytest.mark.parametrize("target", [0.90, 0.95])
def test_no_other_threshold_is_closer_to_the_accuracy_than_the_matched_one(whole, target) -> None:
    scheme = SCHEMES[0]
    tau, off = _match(whole, scheme, target, 0.80, 0.95)

    def distance(other: float) -> float:
        outcome = outcome_of(whole, scheme, other)
        return abs(outcome.right.sum() / outcome.declared.sum() - target)

    assert abs(off) == pytest.approx(distance(tau))
    # Accuracy is not quite monotone in tau: a threshold far off may come a hair closer by chance.
    closest = min(distance(round(0.52 + step / 100, 2)) for step in range(44))
    assert abs(off) <= max(0.005, closest + 0.002)


def test_verdicts_follow_the_rows(small, rows) -> None:
    matched = [replace(row, extra={"target": row.block}) for row in rows]

    def verdicts(table):
        return {claim.name: claim.verdict for claim in claims(small, table, matched)}

    good = verdicts(rows)
    assert good["curtailment"] == good["plug-in and one-look"] == good["certified tau'"] == "holds"
    at = next(i for i, row in enumerate(rows) if row.scheme == "Plug-in (curt.)")
    wrong = small.row(
        1.0, "Plug-in (curt.)", 0.6, plug_in(0.6, 32), paper=rows[at].paper, pools=True
    )
    bad = verdicts([*rows[:at], wrong, *rows[at + 1 :]])
    assert bad["curtailment"] == "does not hold"
    assert bad["plug-in and one-look"] == bad["certified tau'"] == "in part"


def test_rows_as_json_hold_the_contract(small, rows) -> None:
    record = Reproduction(small, rows, [], [], [], {}).record()
    assert json.loads(json.dumps(record, allow_nan=False)) is not None
    assert len(record["table"]) == 13
    for row in record["table"]:
        assert {"block", "scheme", "tau", "certified_tau", "accuracy", "rounds", "samples"} <= {
            *row
        }
        for name in ("accuracy", "samples"):
            figures = row[name]
            assert {"measured", "interval", "predicted_32", "predicted_128"} <= {*figures}
            assert figures["interval"][0] <= figures["measured"] <= figures["interval"][1]
        assert row["paper"]["samples"]["measured"] >= row["paper"]["samples"]["predicted_32"]


def test_live_rows_are_the_replayed_ones_and_a_changed_vote_is_named() -> None:
    config = RunConfig(images=4, rounds=6, draws=32, sampler="toy")
    log, _ = make_shard(load_parts(config), Shard(0, 4))
    later, _ = make_shard(load_parts(replace(config, first_draw=32)), Shard(0, 4))
    experiment = Experiment(log, later)
    row = experiment.row(1.0, "Sequential", 0.78, sequential(0.78, EPS, n_max=32))
    (found,) = live_rows(log, [row], 4)
    assert (found.agree, found.images, found.differing) == (4, 4, ())
    assert found.votes == row.outcome.samples.sum()
    votes = log.votes.copy()
    votes[2, 0, 0] = 9 if votes[2, 0, 0] != 9 else 8
    other = VoteLog(log.images, log.truth, votes, log.metadata)
    (found,) = live_rows(
        other, [replace(row, outcome=Experiment(other, later).outcome(*row.rules))], 4
    )
    (vote,) = found.differing
    assert (vote.image, vote.round, vote.draw) == (2, 1, 0)
    assert (vote.live, vote.logged) == (log.votes[2, 0, 0], votes[2, 0, 0])
    assert set(found.disagreements) <= {vote}
    assert found.agree == 4 - len(found.disagreements)


def test_the_config_of_the_reference_log_is_that_of_its_run() -> None:
    log = reference_log(32)
    config = config_of(log, 20)
    assert (config.images, config.rounds, config.draws, config.sampler) == (20, 24, 32, "ddrm")
    with pytest.raises(BadInput, match="live 1001 is more than the 1000"):
        config_of(log, 1001)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("reproduce --live 0", "live 0 must be at least 1"),
        ("reproduce --logs {folder}", "votes-32: no such log; make it with `suffice log"),
        ("reproduce --live 2000", "live 2000 is more than the 1000 images of the log"),
        ("reproduce --out {folder}/file", "cannot be made a folder"),
    ],
)
def test_a_users_mistake_is_one_line(line, says, tmp_path, capsys) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as ended:
        main(line.format(folder=tmp_path).split())
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1)
    assert says in err


def test_reference_logs_are_as_documented(tmp_path) -> None:
    for draws, begin in ((32, 0), (128, 32)):
        log = reference_log(draws)
        assert log.votes.shape == (1000, 24, draws)
        assert log.metadata["first_draw"] == begin
    write_log(first(log, 2), tmp_path / "votes-128.parquet")
    assert reference_log(128, tmp_path).votes.shape == (2, 24, 128)
    with pytest.raises(BadInput, match="choose 32 or 128"):
        reference_log(64)
    (tmp_path / "votes-32").mkdir()
    write_log(first(log, 3), tmp_path / "votes-32" / "some.parquet")
    assert reference_log(32, tmp_path).votes.shape == (3, 24, 128)


def test_logs_of_other_states_or_of_the_same_draws_are_not_put_together(whole) -> None:
    one, other = first(whole.logs["32"], 2), first(whole.logs["128"], 2)
    for change, words in (
        ({"sigma_y": 5.0}, "differ in sigma_y"),
        ({"first_draw": 31}, "share draws.*--first-draw 32"),
    ):
        changed = replace(other, metadata={**other.metadata, **change})
        with pytest.raises(BadInput, match=words):
            Experiment(one, changed)
    with pytest.raises(BadInput, match="differ in the truth"):
        Experiment(one, replace(other, truth=other.truth + 1))


def test_invalid_votes_stay_invalid_where_laws_are_known(whole) -> None:
    """Half of the votes are for no class: the law of the pool must still predict the cost."""
    logs = [first(whole.logs[name], 60) for name in ("32", "128")]
    thinned = [
        replace(log, votes=np.where(np.arange(log.draws) % 2, log.votes, INVALID).astype(np.uint8))
        for log in logs
    ]
    experiment = Experiment(*thinned)
    row = experiment.row(0.95, "Sequential", 0.65, sequential(0.65, EPS, n_max=32))
    assert abs(_known(experiment, row)["pool"]) < 0.03


def test_the_packaged_designs_are_certified_and_one_of_them_is_what_comes_of_designing(
    whole,
) -> None:
    kept = {(scheme.name, block.certificate) for scheme in WHOLE_RUN for block in BLOCKS}
    kept |= {(scheme.name, BLOCKS[0].certificate) for scheme in LARGE}
    free = {key for key in whole.designs if key not in kept}
    assert {name for name, _ in free} == {scheme.name for scheme in TAU_FREE}
    assert set(whole.designs) == kept | free
    for (name, tau), halves in whole.designs.items():
        for rules in halves:
            for rule in [rules] if isinstance(rules, Rule) else rules:
                certified = rule.parameters["tau"]
                assert oc(rule, certified) <= EPS
                assert certified == tau or (name, tau) in free
    scheme, tau = WHOLE_RUN[0], 0.55
    assert scheme.fit(whole, tau, whole.all[::2]) == whole.designs[scheme.name, tau][0]
    assert reference_designs(whole.logs["128"], whole.logs["32"]) == {}


def test_the_figures_of_the_document_are_those_of_the_logs(whole) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "make_docs.py"))
    page = (ROOT / "docs" / "experiment.md").read_text()
    front = (ROOT / "README.md").read_text()
    table, matched = papers_table(whole), matched_table(whole)
    added = added_table(whole)
    judged = claims(whole, table, matched)
    assert {claim.verdict for claim in judged} <= {"holds", "in part", "does not hold"}
    assert {key for key in whole.fitted if "class" not in key[0]} == set(whole.designs)
    tables = papers_lines(table), added_lines(added), matched_lines(matched), claim_lines(judged)
    for lines in tables:
        assert script["markdown"](lines) in page
    assert script["markdown"](script["saved_lines"](table, added)) in front
    shown = json.loads((ROOT / "docs" / "figures" / "data.json").read_text())
    for scheme in SCHEMES[:6]:
        points = frontier(whole, scheme)
        assert points == [
            pytest.approx(point, abs=1e-4) for point in shown["frontiers"][scheme.name]
        ]
    for figure in FIGURES:
        assert f"figures/{figure.name}.svg" in page
        assert (ROOT / "docs" / "figures" / f"{figure.name}.svg").is_file()


def test_the_figures_of_the_page_on_planning_are_those_of_the_log() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "make_docs.py"))
    page = (ROOT / "docs" / "plan.md").read_text()
    for table in script["plans"](reference_log(32)).values():
        assert table in page
