"""The oracle's votes in a loop: the law of each state, and the same vote in every batch."""

import numpy as np
import pytest

from suffice import BadInput
from suffice.sensing.data import evaluation_set
from suffice.sensing.noise import measurement_noise, oracle_noise
from suffice.sensing.oracle import Oracle, votes
from suffice.sensing.oracle_sampler import OracleSampler
from suffice.sensing.probes import measure, principal_components
from suffice.sensing.states import States

ROWS = principal_components()[0][:6]


@pytest.fixture(scope="module")
def oracle():
    images, labels = evaluation_set()
    return Oracle(images[:400], labels[:400], 0.93)


def mixed_states(count):
    """Votes at four images and six rounds, in no order."""
    images, _ = evaluation_set()
    generator = np.random.default_rng(0)
    image, round_ = generator.integers(500, 504, count), generator.integers(1, 7, count)
    values = np.zeros((count, 6), dtype=np.float32)
    noise = np.full((count, 6), np.inf, dtype=np.float32)
    for at, (name, t) in enumerate(zip(image, round_, strict=True)):
        z = measurement_noise(0, name, np.arange(1, t + 1))[:, 0]
        values[at, :t] = measure(images[name], ROWS[:t], 0.1, z)
        noise[at, :t] = 0.1
    return States(ROWS, values, noise, 0, image, round_, generator.permutation(count))


def test_votes_follow_the_law_of_their_state_whatever_the_batch(oracle):
    states = mixed_states(200)
    sampler = OracleSampler(oracle)
    labels = sampler.classify(sampler(states))
    assert labels.dtype == np.uint8
    along = oracle.along(ROWS, 0.1)
    for at in range(200):
        law = along.law(states.values[at, : states.round[at]])
        uniform, _ = oracle_noise(0, states.image[at], states.round[at], states.draw[at])
        assert labels[at] == votes(law, uniform)[0]
    assert len(np.unique(labels)) > 3
    order = np.random.default_rng(1).permutation(200)
    fresh = OracleSampler(oracle)
    parts = [fresh(states.pick(order[at : at + 7])) for at in range(0, 200, 7)]
    np.testing.assert_array_equal(fresh.classify(np.concatenate(parts)), labels[order])


def test_another_noise_level_has_other_laws(oracle):
    states = mixed_states(50)
    loud = States(
        states.rows,
        states.values,
        states.noise * 30,
        0,
        states.image,
        states.round,
        states.draw,
    )
    sampler = OracleSampler(oracle)
    quiet = sampler(states)
    assert (sampler(loud) != quiet).any()
    np.testing.assert_array_equal(sampler(states), quiet)


def test_nothing_measured_and_nothing_asked(oracle):
    image = np.zeros(20_000, dtype=np.int64)
    shape = (20_000, 6)
    nothing = States(
        ROWS,
        np.zeros(shape, dtype=np.float32),
        np.full(shape, np.inf, dtype=np.float32),
        0,
        image,
        image,
        np.arange(20_000),
    )
    sampler = OracleSampler(oracle)
    share = np.bincount(sampler.classify(sampler(nothing)), minlength=10) / 20_000
    prior = np.bincount(oracle.labels, minlength=10) / 400
    np.testing.assert_allclose(share, prior, atol=0.012)  # five standard errors
    assert sampler(nothing.pick([])).shape == (0, 1)


def test_states_that_it_cannot_take(oracle):
    sampler, states = OracleSampler(oracle), mixed_states(4)
    two_levels, gap = states.noise.copy(), states.noise.copy()
    two_levels[0, 0] = 0.2
    gap[:, :2] = [np.inf, 0.1]
    for rows, noise, what in (
        (ROWS, two_levels, "one sigma_y"),
        (ROWS, gap, "first rows"),
        (np.stack([ROWS] * 4), states.noise, "probes that are fixed"),
    ):
        spoilt = States(rows, states.values, noise, 0, states.image, states.round, states.draw)
        with pytest.raises(BadInput, match=what):
            sampler(spoilt)
