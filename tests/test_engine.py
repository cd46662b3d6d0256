"""The live loop gives what a loop without haste gives, and keeps true books."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sensing_parts import Few, few_sampler, scene_of, sense_slowly, toy
from strategies import rules
from suffice import BadInput, Rule
from suffice.engine import sense
from suffice.rules import plug_in, sequential
from suffice.runs.parts import every_draw
from suffice.sensing.probes import AdaptivePCA, FixedPCA
from suffice.sensing.slots import OneStep


def told(episodes):
    return [(e.label, e.rounds, e.samples, [v.tolist() for v in e.votes]) for e in episodes]


class Watched:
    """A sampler in whose slots nothing begins twice or ends unbegun, and that counts."""

    def __init__(self, sampler):
        self.sampler = sampler
        self.shape = getattr(sampler, "shape", 1)
        self.begun, self.busy_at_steps = [], []

    def slots(self, capacity):
        stepwise = getattr(self.sampler, "slots", None)
        inner = stepwise(capacity) if stepwise else OneStep(self.sampler, capacity)
        busy, self.capacity = set(), capacity
        watch, start, stop, step = self, inner.start, inner.stop, inner.step

        def started(slots, states):
            new = slots.tolist()
            assert len(set(new)) == len(new) == len(states)
            assert not busy & set(new)
            assert set(new) <= set(range(capacity))
            busy.update(new)
            votes = zip(states.image, states.round, states.draw, strict=True)
            watch.begun += [tuple(map(int, vote)) for vote in votes]
            start(slots, states)

        def stopped(slots):
            assert set(slots.tolist()) <= busy
            busy.difference_update(slots.tolist())
            stop(slots)

        def stepped():
            watch.busy_at_steps.append(len(busy))
            slots, images = step()
            assert set(slots.tolist()) <= busy
            busy.difference_update(slots.tolist())
            return slots, images

        inner.start, inner.stop, inner.step = started, stopped, stepped
        return inner


class Padded:
    """The oracle as if it padded its batches."""

    def __init__(self, shape):
        self.shape = shape

    def __call__(self, states):
        return toy()(states)


def with_invalid(samples):
    """The oracle's labels, with nines and fours as invalid votes."""
    labels = toy().classify(samples)
    return np.where(np.isin(labels, (4, 9)), 255, labels).astype(np.uint8)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(rules(max_n=12), min_size=1, max_size=4),
    st.integers(1, 40),
    st.integers(1, 6),
    st.integers(0, 2),
    st.integers(1, 12),
)
def test_any_rules_any_batch_as_if_without_haste(listed, batch, images, first_draw, shape):
    scene = scene_of(listed, range(images), first_draw=first_draw)
    episodes, ledger = sense(scene, Watched(Padded(shape)), with_invalid, batch)
    assert told(episodes) == sense_slowly(scene, toy(), with_invalid)
    assert [e.name for e in episodes] == list(range(images))
    assert ledger.used == sum(e.samples for e in episodes)
    assert ledger.wasted == 0 or shape > 1
    assert ledger.invalid == sum(int((v == 255).sum()) for e in episodes for v in e.votes)


@settings(max_examples=25, deadline=None)
@given(st.lists(rules(max_n=6), min_size=1, max_size=3), st.sampled_from([1, 5, 8, 20]))
def test_samples_at_different_steps_share_a_batch(listed, batch):
    scene, few = scene_of(listed, range(3)), Few()
    episodes, _ = sense(scene, Watched(few_sampler()), few.classify, batch)
    assert told(episodes) == sense_slowly(scene, few_sampler(), few.classify)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(rules(max_n=6), min_size=1, max_size=3),
    st.integers(2, 8),
    st.sampled_from([1, 5, 20]),
)
def test_probes_that_look_at_samples_are_charged_their_prefix(listed, prefix, batch):
    scene, few = scene_of(listed, range(3), probes=AdaptivePCA(prefix)), Few()
    episodes, ledger = sense(scene, Watched(few_sampler()), few.classify, batch)
    assert told(episodes) == sense_slowly(scene, few_sampler(), few.classify)
    assert ledger.used == sum(e.samples for e in episodes)


def test_adaptive_probes_go_their_own_ways():
    """Two images get directions of their own, so the batch holds different ones."""
    scene, few = scene_of([every_draw(6)] * 3, probes=AdaptivePCA(4)), Few()
    seen = []

    class Seeing(Watched):
        def slots(self, capacity):
            inner = super().slots(capacity)
            start = inner.start
            inner.start = lambda slots, states: (seen.append(states), start(slots, states))
            return inner

    sense(scene, Seeing(few_sampler()), few.classify, 16)
    last = {int(i): rows for s in seen for i, t, rows in zip(s.image, s.round, s.rows, strict=True)
            if t == 3}  # fmt: skip
    assert len(last) == 4
    for rows in last.values():
        np.testing.assert_allclose(rows @ rows.T, np.eye(3), atol=1e-5)
    assert np.abs(last[0][2] - last[1][2]).max() > 0.01


def test_rounds_of_several_directions():
    scene = scene_of([plug_in(0.6, 8)] * 3, probes=FixedPCA(per_round=2))
    episodes, _ = sense(scene, toy(), toy().classify, 16)
    assert told(episodes) == sense_slowly(scene, toy(), toy().classify)


def test_the_ledger_is_what_the_sampler_saw():
    watched = Watched(few_sampler())
    scene, few = scene_of([sequential(0.7, eps=0.1, n_max=12)] * 4, range(10)), Few()
    episodes, ledger = sense(scene, watched, few.classify, 16)
    assert ledger.drawn == len(watched.begun) == len(set(watched.begun))
    assert ledger.used == sum(e.samples for e in episodes)
    assert ledger.wasted == ledger.drawn - ledger.used
    charged = {(e.name, t, n) for e in episodes for t, v in enumerate(e.votes, 1)
               for n in range(len(v))}  # fmt: skip
    assert charged <= set(watched.begun)
    assert len(charged) == ledger.used
    busy, shape = np.array(watched.busy_at_steps), 8
    assert ledger.batches == len(busy)
    last_full = np.flatnonzero(busy == 16)[-1] + 1
    assert ledger.draining_from == last_full / len(busy)
    run = -(-busy[:last_full] // shape) * shape
    assert ledger.batch_fill == busy[:last_full].sum() / run.sum()
    assert 0 < ledger.sampler_seconds < ledger.seconds


def test_nothing_is_wasted_while_there_is_certain_work():
    """Many images for each place: only the drained end may draw likely votes."""
    rule = sequential(0.78, eps=0.05, n_max=32)
    _, ledger = sense(scene_of([rule] * 8, range(200)), toy(), toy().classify, 16)
    assert ledger.wasted <= 0.02 * ledger.drawn
    assert ledger.batch_fill >= 0.99
    assert ledger.draining_from > 0.9


def test_whole_pools_waste_nothing_and_certain_votes_fill_the_batch():
    watched = Watched(toy())
    _, ledger = sense(scene_of([every_draw(32)] * 3, range(20)), watched, toy().classify, 40)
    assert ledger.drawn == ledger.used == 20 * 3 * 32
    assert set(watched.busy_at_steps) == {40}
    assert (ledger.batch_fill, ledger.draining_from) == (1.0, 1.0)


def test_a_verdict_frees_the_places_of_likely_votes():
    """One image alone fills the batch with likely votes; what a verdict frees is used again."""
    rule = Rule([1, 2, *[2] * 29], [0] * 31, "two votes, whatever")
    watched, few = Watched(few_sampler()), Few()
    episodes, ledger = sense(scene_of([rule] * 1, range(3)), watched, few.classify, 8)
    assert max(watched.busy_at_steps) == 8
    assert ledger.drawn > ledger.used
    longest = max(e.samples for e in episodes)
    assert longest > 4
    assert ledger.batches < 3 * (longest - 1)  # as many as certain votes alone would take


class Failing:
    """A denoiser that fails on some inputs: those whose first coordinates sum high."""

    def __init__(self):
        self.few, self.calls = Few(), 0

    def __call__(self, x, sigma):
        spoilt = (x[:, :300].sum(dim=1) / sigma > 30) & (sigma > 5)
        return torch.where(spoilt[:, None], torch.nan, self.few(x, sigma))


def test_a_sample_that_is_not_finite_is_an_invalid_vote_and_the_rest_goes_on():
    scene, few = scene_of([every_draw(20)] * 2, range(5), first_draw=7), Few()
    sound, clean = sense(scene, few_sampler(), few.classify, 16)
    found, ledger = sense(scene, few_sampler(Failing()), few.classify, 16)
    assert clean.broken == ()
    assert 3 < len(ledger.broken) == len(set(ledger.broken)) < 100
    for one, other in zip(sound, found, strict=True):
        for t, (before, after) in enumerate(zip(one.votes, other.votes, strict=True), start=1):
            broken = [(one.name, t, n + 7) in ledger.broken for n in range(20)]
            np.testing.assert_array_equal(after, np.where(broken, 255, before))


def test_progress_never_falls_and_ends_at_the_end():
    calls = []
    rule = sequential(0.7, eps=0.1, n_max=12)
    episodes, ledger = sense(scene_of([rule] * 3, range(9)), toy(), toy().classify, 16,
                             lambda *counts: calls.append(counts))  # fmt: skip
    assert calls[-1] == (9, sum(e.label is not None for e in episodes), ledger.used)
    assert (np.diff(np.array(calls), axis=0) >= 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rules": []}, "no rounds"),
        ({"names": []}, "at least one"),
        ({"names": [1, 1]}, "one name"),
        ({"sigma_y": -1.0}, "sigma_y -1.0"),
        ({"sigma_y": float("nan")}, "sigma_y nan"),
    ],
)
def test_scenes_that_cannot_be_sensed(options, message):
    with pytest.raises(BadInput, match=message):
        scene_of(**{"rules": [every_draw(2)], **options})


def test_more_rounds_than_directions():
    with pytest.raises(BadInput, match="sense fewer rounds"):
        sense(scene_of([every_draw(2)] * 33), toy(), toy().classify)


@pytest.mark.parametrize("batch", [0, -1, 2.5])
def test_batches_of_no_size(batch):
    with pytest.raises(BadInput, match="batch"):
        sense(scene_of([every_draw(2)]), toy(), toy().classify, batch)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda n: np.zeros(n + 1, dtype=int), "labels of shape"),
        (lambda n: np.zeros(n), "type float64"),
        (lambda n: np.full(n, 256), "label 256; use 0 to 254"),
        (lambda n: np.full(n, -1), "label -1"),
    ],
)
def test_a_classifier_that_errs(labels, message):
    with pytest.raises(BadInput, match=message):
        sense(scene_of([every_draw(2)]), toy(), lambda images: labels(len(images)))


def test_a_sampler_that_errs():
    with pytest.raises(BadInput, match="samples of shape"):
        sense(scene_of([every_draw(2)]), lambda states: np.zeros((1, 784)), toy().classify)


def test_probes_that_name_too_many_directions():
    class Two(AdaptivePCA):
        def next(self, measured, values, samples):
            return self.start[len(measured) : len(measured) + 2]

    with pytest.raises(BadInput, match="one a round"):
        sense(scene_of([every_draw(2)] * 2, probes=Two(2)), few_sampler(), Few().classify)
