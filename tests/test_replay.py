"""Replay is every pool streamed, only faster."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import rules
from suffice import BadInput, Rule
from suffice.pool import Pool
from suffice.replay import Replay
from suffice.rules import plug_in, sequential
from suffice.votes import NONE, VoteLog

LABELS = [0, 1, 2, 255]


def log_of(votes, truth=None, **metadata):
    votes = np.asarray(votes, dtype=np.uint8)
    truth = np.zeros(len(votes), dtype=np.int64) if truth is None else np.asarray(truth)
    return VoteLog(np.arange(len(votes)), truth, votes, metadata)


@st.composite
def logs(draw, draws=8):
    images, rounds = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    count = images * rounds * draws
    votes = draw(st.lists(st.sampled_from(LABELS), min_size=count, max_size=count))
    return log_of(np.reshape(votes, (images, rounds, draws)))


def stream(rule: Rule, votes) -> tuple[int, int]:
    """One pool, vote by vote: the declared class or -1, and the votes drawn."""
    pool = Pool(rule)
    pool.add_many(None if vote == 255 else int(vote) for vote in votes)
    label = pool.verdict.label if pool.verdict.kind == "declared" else NONE
    return label, pool.n


def episode(listed, votes, prefix=0):
    """One image: the declared class or -1, the rounds and the samples."""
    samples = 0
    for t, rule in enumerate(listed):
        label, n = stream(rule, votes[t])
        looked_at = prefix if label == NONE and t + 1 < len(listed) else 0
        samples += max(n, looked_at)
        if label != NONE:
            return label, t + 1, samples
    return NONE, len(listed), samples


@given(logs(), rules())
def test_each_pool_is_as_if_streamed(log, rule):
    label, drawn = Replay(log).pools(rule)
    pools = log.votes.reshape(-1, log.draws)
    assert list(zip(label, drawn, strict=True)) == [stream(rule, votes) for votes in pools]


@given(logs(), st.lists(rules(), min_size=1, max_size=3), st.integers(0, 8))
def test_each_image_is_as_if_sensed(log, listed, prefix):
    listed = listed[: log.rounds]
    prefix = min([prefix, *(rule.n_max for rule in listed)])
    log = log_of(log.votes, prefix=prefix)
    found = Replay(log).run(listed)
    rows = zip(found.label, found.rounds, found.samples, strict=True)
    assert list(rows) == [episode(listed, votes, prefix) for votes in log.votes]


@settings(max_examples=30)
@given(logs(), rules())
def test_one_rule_for_all_rounds_is_a_list_of_it(log, rule):
    one, many = Replay(log).run(rule), Replay(log).run([Rule(rule.declare, rule.stop, str(t))
                                                       for t in range(log.rounds)])  # fmt: skip
    for name in ("label", "rounds", "samples", "final_leader"):
        np.testing.assert_array_equal(getattr(one, name), getattr(many, name))


def test_long_pools_of_many_labels():
    random = np.random.default_rng(0)
    votes = np.where(random.random((3, 4, 300)) < 0.6, 254, random.integers(0, 256, (3, 4, 300)))
    rule = sequential(0.5, eps=0.05, n_max=300)
    label, drawn = Replay(log_of(votes)).pools(rule)
    pools = votes.reshape(-1, 300)
    assert list(zip(label, drawn, strict=True)) == [stream(rule, row) for row in pools]
    assert {254, 0} & set(label.tolist()) == {254}


def test_the_summary_counts_every_image():
    two = Rule([1, 2, 2], [0, 0, 0], "two votes")
    votes = [[[7, 7], [1, 1]], [[1, 2], [3, 3]], [[255, 255], [4, 5]], [[255, 255], [255, 255]]]
    found = Replay(log_of(votes, truth=[7, 1, 4, 0])).run(two)
    assert found.label.tolist() == [7, 3, NONE, NONE]
    assert found.rounds.tolist() == [1, 2, 2, 2]
    assert found.samples.tolist() == [2, 4, 4, 4]
    assert found.final_leader.tolist() == [1, 3, 4, NONE]
    told = found.summary()
    assert (told["accuracy"], told["declared"]) == (0.5, 0.5)
    assert (told["rounds"], told["samples"]) == (7 / 4, 14 / 4)
    assert told["undeclared_leader_accuracy"] == 0.5
    low, high = told["samples_interval"]
    assert 2 <= low < 3.5 < high <= 4


def test_nothing_declared_and_all_declared():
    never = Rule([1, 2, 3], [0, 0, 0], "never")
    always = Rule([1, 1], [0, 0], "one vote")
    replay = Replay(log_of([[[7, 7]], [[1, 2]]]))
    nothing = replay.run(never).summary()
    assert (nothing["accuracy"], nothing["accuracy_interval"]) == (None, None)
    assert (nothing["declared"], nothing["undeclared_leader_accuracy"]) == (0.0, 0.0)
    assert replay.run(always).summary()["undeclared_leader_accuracy"] is None


def test_intervals_cover_as_often_as_they_say():
    """Means of 40 images with known expectations: 95% intervals cover in most of 200 logs."""
    random = np.random.default_rng(5)
    rule = Rule([1, 1], [0, 0], "one vote")  # declares the first vote
    covered = 0
    for _ in range(200):
        votes = (random.random((40, 1, 1)) < 0.3).astype(int)  # label 1 with mass .3; truth is 0
        low, high = Replay(log_of(votes)).run(rule).summary()["accuracy_interval"]
        covered += low <= 0.7 <= high
    assert 178 <= covered <= 200  # 190 expected of exact intervals, the bootstrap's fall short


def test_pairing_makes_a_comparison_sharper():
    random = np.random.default_rng(1)
    masses = random.uniform(0.3, 1, (200, 4, 1))
    votes = np.where(random.random((200, 4, 32)) < masses, 0, random.integers(0, 10, (200, 4, 32)))
    replay = Replay(log_of(votes))
    full, short = replay.run(plug_in(0.7, 32, curtailed=False)), replay.run(plug_in(0.7, 32))
    told = short.compare(full)
    low, high = told["samples_ratio_interval"]
    assert told["samples_ratio"] == short.samples.sum() / full.samples.sum()
    assert low < told["samples_ratio"] < high < 1
    apart = [outcome.summary()["samples_interval"] for outcome in (short, full)]
    assert high - low < (apart[0][1] - apart[0][0]) / full.samples.mean()
    assert told["declared_difference"] == 0.0
    assert told["accuracy_difference_interval"] == (0.0, 0.0)
    with pytest.raises(BadInput, match="different images"):
        short.compare(Replay(log_of(votes[:5])).run(plug_in(0.7, 32)))


@pytest.mark.parametrize(
    ("listed", "prefix", "message"),
    [
        (Rule(np.arange(10) + 1, np.zeros(10, int), "nine"), 0, "n_max 8 or less"),
        ([Rule([1, 1], [0, 0], "one")] * 3, 0, "3 rules, one a round"),
        ([], 0, "0 rules"),
        (Rule([1, 1], [0, 0], "one"), 4, "n_max 4 to 8"),
    ],
)
def test_rules_that_do_not_fit_the_log(listed, prefix, message):
    log = log_of(np.zeros((2, 2, 8)), prefix=prefix)
    with pytest.raises(BadInput, match=message) as error:
        Replay(log).run(listed)
    assert "\n" not in str(error.value)


def test_images_without_a_truth_tell_nothing_of_accuracies():
    one, never = Rule([1, 1], [0, 0], "one vote"), Rule([1, 2], [0, 0], "never")
    votes = [[[7]], [[1]], [[255]]]
    told = Replay(log_of(votes, truth=[NONE, NONE, NONE])).run(one).summary()
    assert (told["accuracy"], told["accuracy_interval"]) == (None, None)
    assert told["undeclared_leader_accuracy"] is None
    half = Replay(log_of(votes, truth=[7, NONE, NONE]))
    assert half.run(one).summary()["accuracy"] == 1.0
    assert half.run(never).summary()["undeclared_leader_accuracy"] == 1.0


def test_a_ratio_is_the_same_in_any_unit_and_none_over_nothing():
    two, one = Rule([1, 2, 2], [0, 0, 0], "two votes"), Rule([1, 1, 1], [0, 0, 0], "one vote")
    never = Rule([1, 2], [1, 0], "no look")
    replay = Replay(log_of([[[7, 7]], [[1, 2]]]))
    ours, theirs = replay.run(one), replay.run(two)
    cheap = [replace(outcome, samples=outcome.samples * 1e-6) for outcome in (ours, theirs)]
    assert ours.compare(theirs)["samples_ratio"] == 0.5
    assert cheap[0].compare(cheap[1])["samples_ratio"] == pytest.approx(0.5)
    assert ours.compare(replay.run(never))["samples_ratio"] is None
