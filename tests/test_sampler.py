"""A vote is the same whatever it was drawn with; broken votes are told apart."""

import numpy as np
import pytest
import torch

from suffice import BadInput
from suffice.sensing.classifier import INVALID
from suffice.sensing.data import evaluation_set
from suffice.sensing.ddrm import DDRM, noise_levels
from suffice.sensing.noise import measurement_noise
from suffice.sensing.probes import measure, principal_components
from suffice.sensing.sampler import DDRMSampler, DigitClassifier
from suffice.sensing.states import States
from suffice.sensing.weights import load_classifier, load_prior

torch.set_num_threads(1)  # with two, tests that run side by side would wait for each other
VOTES = 500
ROUNDS = 12
ROWS = principal_components()[0][:ROUNDS]


def mixed_states(count, width=ROUNDS):
    """Votes at many images and rounds, in no order."""
    images, _ = evaluation_set()
    generator = np.random.default_rng(0)
    image, round_ = generator.integers(0, 40, count), generator.integers(1, ROUNDS + 1, count)
    values = np.zeros((count, width), dtype=np.float32)
    noise = np.full((count, width), np.inf, dtype=np.float32)
    for at, (name, t) in enumerate(zip(image, round_, strict=True)):
        z = measurement_noise(0, name, np.arange(1, t + 1))[:, 0]
        values[at, :t] = measure(images[name], ROWS[:t], 0.1, z)
        noise[at, :t] = 0.1
    rows = principal_components()[0][:width]
    return States(rows, values, noise, 0, image, round_, generator.integers(0, 32, count))


def drawn_in_parts(sampler, states, size):
    parts = np.array_split(np.arange(len(states)), range(size, len(states), size))
    return np.concatenate([sampler(states.pick(part)) for part in parts])


def drawn_in_places(sampler, states, capacity):
    """All votes through places that are refilled as they fall free: steps are mixed."""
    slots = sampler.slots(capacity)
    images = np.empty((len(states), 784), dtype=np.float32)
    waiting, inside = list(range(len(states))), {}
    free = list(range(capacity))
    generator = np.random.default_rng(1)
    while waiting or inside:
        count = min(len(free), len(waiting), int(generator.integers(0, 9)))
        if count:
            taken = [free.pop() for _ in range(count)]
            votes = [waiting.pop() for _ in range(count)]
            inside.update(zip(taken, votes, strict=True))
            slots.start(np.array(taken), states.pick(votes))
        done, finished = slots.step()
        for slot, image in zip(done.tolist(), finished, strict=True):
            images[inside.pop(slot)] = image
            free.append(slot)
    return images


@pytest.fixture(scope="module")
def prior():
    return load_prior()


@pytest.fixture(scope="module")
def classifier():
    return DigitClassifier(load_classifier())


@pytest.fixture(scope="module")
def drawn(prior):
    """500 votes in one batch, and their states."""
    states = mixed_states(VOTES)
    return states, DDRMSampler(DDRM(prior), shape=32)(states)


@pytest.mark.parametrize("size", [64, 128])
def test_a_vote_is_the_same_in_batches_of_any_size(prior, drawn, size):
    states, images = drawn
    sampler = DDRMSampler(DDRM(prior), shape=32)
    assert np.array_equal(drawn_in_parts(sampler, states, size), images)


@pytest.mark.parametrize("size", [1, 7])
def test_a_vote_is_the_same_alone_or_among_few(prior, size):
    """Of three steps and at shape 4, so that 500 votes alone take seconds."""
    states, sampler = mixed_states(VOTES), DDRMSampler(DDRM(prior, noise_levels(3)), shape=4)
    assert np.array_equal(drawn_in_parts(sampler, states, size), sampler(states))


def test_a_vote_is_the_same_among_others_at_other_steps(prior, drawn):
    states, images = drawn
    sampler = DDRMSampler(DDRM(prior), shape=32)
    assert np.array_equal(drawn_in_places(sampler, states, 96), images)


def test_other_shapes_give_equal_labels_but_for_near_ties(prior, classifier, drawn):
    """Shapes may round differently; a label may differ only where two classes nearly tie."""
    states, images = drawn
    net = load_classifier()
    labels = classifier(images)
    for shape in (8, 128):
        others = DDRMSampler(DDRM(prior), shape=shape)(states)
        differ = np.flatnonzero(classifier(others) != labels)
        # Measured: none of 500 differs, or one or two, by machine; so at most 1%.
        assert len(differ) <= VOTES // 100, f"{len(differ)} of {VOTES} labels differ"
        for at in differ:
            top = net(torch.from_numpy(images[at : at + 1])).topk(2).values[0]
            assert float(top[0] - top[1]) < 2.0


def test_votes_know_what_was_measured(classifier, drawn):
    """At ten probes and more, most votes are right; at one or two, few are."""
    states, images = drawn
    _, truth = evaluation_set()
    right = classifier(images) == truth[states.image]
    assert right[states.round >= 10].mean() > 0.7
    assert right[states.round <= 2].mean() < 0.6


def test_a_denoiser_that_breaks_costs_one_vote(classifier):
    states = mixed_states(10)

    def shrink(x, sigma):
        return x / (1 + sigma[:, None] ** 2)

    def breaks_the_fourth(x, sigma):
        x0 = shrink(x, sigma)
        if float(sigma[0]) < 1:
            x0[3] = torch.nan
        return x0

    sound, broken = (DDRMSampler(DDRM(d), shape=16)(states) for d in (shrink, breaks_the_fourth))
    labels = classifier(broken)
    assert np.isnan(broken[3]).all()
    assert labels[3] == INVALID
    others = np.arange(10) != 3
    assert np.array_equal(broken[others], sound[others])
    assert np.array_equal(labels[others], classifier(sound)[others])


def test_a_place_given_up_can_be_used_again(prior):
    states = mixed_states(6)
    sampler = DDRMSampler(DDRM(prior), shape=8)
    wanted = sampler(states)
    slots = sampler.slots(8)
    slots.start(np.arange(6), mixed_states(30).pick(range(20, 26)))
    slots.step()
    slots.stop(np.arange(6))
    assert slots.step()[0].size == 0
    slots.start(np.array([5, 4, 3, 2, 1, 0]), states)
    for _ in range(sampler.steps):
        done, images = slots.step()
    assert np.array_equal(images[np.argsort(done)[::-1]], wanted)


def test_directions_of_their_own_for_each_vote(prior):
    states = mixed_states(20)
    own = np.repeat(states.rows[None], 20, axis=0)
    apart = States(own, states.values, states.noise, 0, states.image, states.round, states.draw)
    sampler = DDRMSampler(DDRM(prior), shape=32)
    # Other sums, so other rounding in bfloat16; the pictures are the same.
    assert np.abs(sampler(apart) - sampler(states)).mean() < 0.01


def test_sizes_that_do_not_fit_are_refused():
    states = mixed_states(3)
    with pytest.raises(BadInput, match=r"values of shape \(3, 5\) does not fit 3 votes"):
        States(states.rows, states.values[:, :5], states.noise, 0, *[states.image] * 3)
