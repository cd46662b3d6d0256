"""A stream belongs to its key alone, and its numbers are normal."""

import itertools

import numpy as np
import pytest
from scipy.special import ndtr

from suffice import BadInput
from suffice.sensing.noise import measurement_noise, oracle_noise, streams, vote_noise


@pytest.mark.parametrize("size", [4, 5, 784])  # odd counts leave half a pair over
def test_a_vote_has_the_same_bits_in_every_batch(size):
    generator = np.random.default_rng(1)
    keys = [generator.integers(0, 40, 30) for _ in range(4)]
    whole = vote_noise(*keys, steps=3, size=size)
    for batch in (1, 7, 16):
        parts = [
            vote_noise(*(column[at : at + batch] for column in keys), steps=3, size=size)
            for at in range(0, 30, batch)
        ]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    order = generator.permutation(30)
    np.testing.assert_array_equal(
        vote_noise(*(column[order] for column in keys), steps=3, size=size), whole[order]
    )


def test_streams_are_fresh_philox_generators():
    keys = np.array([[5, 2, 3, 4], [2**64 - 1, 0, 1, 2**63], [5, 2, 3, 4]], dtype=np.uint64)
    for kind in (0, 1, 2):
        for row, stream in zip(keys, streams(kind, keys), strict=True):
            counter = np.array([0, kind, row[2], row[3]], dtype=np.uint64)
            fresh = np.random.Generator(np.random.Philox(key=row[:2], counter=counter))
            # An odd number of 32-bit words leaves something buffered for the next stream to drop.
            for _ in range(3):
                assert stream.random(dtype=np.float32) == fresh.random(dtype=np.float32)


def test_streams_differ_wherever_a_key_differs():
    keys = list(itertools.product([0, 1, 2**40], repeat=4))
    seed, image, round_, draw = np.array(keys, dtype=np.uint64).T
    votes = vote_noise(seed, image, round_, draw, steps=1, size=8)
    assert len({row.tobytes() for row in votes}) == len(keys)
    uniform, _ = oracle_noise(seed, image, round_, draw)
    assert len(set(uniform.tolist())) == len(keys)
    same = [
        vote_noise(1, 2, 3, 0, 1, 8).tobytes(),
        measurement_noise(1, 2, 3, 8).tobytes(),
        oracle_noise(1, 2, 3, 0, 8)[1].tobytes(),
    ]
    assert len(set(same)) == 3


def test_measurement_noise_of_a_round_does_not_depend_on_how_many_are_taken():
    np.testing.assert_array_equal(
        measurement_noise(3, 4, [1, 2], 5)[:, :2], measurement_noise(3, 4, [1, 2], 2)
    )


def test_oracle_uniform_does_not_depend_on_the_normals():
    alone, none = oracle_noise(3, [4, 5], 1, 2)
    with_normals, normals = oracle_noise(3, [4, 5], 1, 2, 6)
    np.testing.assert_array_equal(alone, with_normals)
    assert none.shape == (2, 0)
    assert normals.shape == (2, 6)


@pytest.mark.parametrize("make", ["vote", "measurement", "oracle"])
def test_numbers_are_standard_normal(make):
    images = np.arange(200)
    numbers = {
        "vote": lambda: vote_noise(0, images, 3, 1, 2, 784),
        "measurement": lambda: measurement_noise(0, images, 3, 1568),
        "oracle": lambda: oracle_noise(0, images, 3, 1, 1568)[1],
    }[make]()
    x = np.sort(numbers.ravel().astype(np.float64))
    n = x.size
    assert abs(x.mean()) < 4 / np.sqrt(n)
    assert abs(x.var() - 1) < 4 * np.sqrt(2 / n)
    assert abs((x**4).mean() - 3) < 4 * np.sqrt(96 / n)
    # Kolmogorov and Smirnov: 1.95 is exceeded once in a thousand.
    assert np.abs(ndtr(x) - (np.arange(n) + 0.5) / n).max() * np.sqrt(n) < 1.95
    # Beyond 4 lie 6.3e-5 of the mass: 19.9 of 313,600 expected.
    assert 5 <= (np.abs(x) > 4).sum() <= 40


def test_pairs_of_one_transform_are_independent():
    x = vote_noise(0, np.arange(400), 0, 0, 1, 1000)[:, 0].astype(np.float64)
    first, second = x[:, :500].ravel(), x[:, 500:].ravel()
    for a, b in ((first, second), (first**2, second**2), (first[1:], first[:-1])):
        assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(first.size)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((0, [1, -1], 0, 0, 1), "images holds -1"),
        ((0.5, 1, 0, 0, 1), "seed must be whole numbers"),
        ((0, [1, 2], [1, 2, 3], 0, 1), "have lengths 1, 2, 3, 1"),
        ((0, 1, 0, 0, 0), "steps 0 must be at least 1"),
    ],
)
def test_bad_keys_are_refused(arguments, what):
    with pytest.raises(BadInput, match=what):
        vote_noise(*arguments)
