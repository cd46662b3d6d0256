"""Probes are orthonormal, adaptive ones follow the samples, and values do not hang on the batch."""

import numpy as np
import pytest

from suffice import BadInput
from suffice.sensing.data import evaluation_set
from suffice.sensing.probes import (
    AdaptivePCA,
    FixedPCA,
    Probes,
    measure,
    orthonormal,
    principal_components,
)

NOTHING = np.empty((0, 784), dtype=np.float32)
NO_VALUES = np.empty(0, dtype=np.float32)


def rows(seed, count, size):
    normals = np.random.default_rng(seed).standard_normal((size, count))
    return np.linalg.qr(normals)[0].T.astype(np.float32)


def sense(probes: Probes, samples, rounds):
    """The directions of a sensing path in which every round has the same samples."""
    measured = NOTHING
    for _ in range(rounds):
        new = probes.next(measured, np.zeros(len(measured), dtype=np.float32), samples)
        measured = np.concatenate([measured, new])
    return measured


def test_components_are_orthonormal_and_explain_the_evaluation_images():
    directions, mean = principal_components()
    np.testing.assert_allclose(directions @ directions.T, np.eye(32), atol=1e-6)
    images, _ = evaluation_set()
    variances = ((images - mean) @ directions.T).var(axis=0)
    share = variances.sum() / (images - mean).var(axis=0).sum()
    # The images' own components are the most that 32 directions can explain.
    centred = images - images.mean(axis=0)
    best = (np.linalg.svd(centred, compute_uv=False)[:32] ** 2).sum() / (centred**2).sum()
    assert best - 0.02 < share < best
    assert variances[0] > variances[4] > variances[12] > variances[31]


@pytest.mark.parametrize("per_round", [1, 2, 5])
def test_fixed_components_come_in_order(per_round):
    probes = FixedPCA(per_round)
    measured = sense(probes, NOTHING, 6)
    np.testing.assert_array_equal(measured, principal_components()[0][: 6 * per_round])


def test_fixed_components_run_out():
    with pytest.raises(BadInput, match="probe 33 is asked for"):
        sense(FixedPCA(), NOTHING, 33)
    with pytest.raises(BadInput, match="per_round 0"):
        FixedPCA(0)


def test_adaptive_direction_is_the_leading_one_among_those_not_measured():
    images, _ = evaluation_set()
    samples = images[:16]
    measured = sense(FixedPCA(), NOTHING, 7)
    new = AdaptivePCA(16).next(measured, np.zeros(7, dtype=np.float32), samples)
    basis = measured.astype(np.float64)
    rest = samples - samples.mean(axis=0)
    rest = rest - rest @ basis.T @ basis
    slow = np.linalg.svd(rest, full_matrices=False)[2][0]
    assert abs(new[0] @ slow) == pytest.approx(1, abs=1e-5)
    assert np.abs(new @ basis.T).max() < 1e-6
    assert new[0, np.abs(new[0]).argmax()] > 0


def test_adaptive_directions_stay_orthonormal_for_many_rounds():
    images, _ = evaluation_set()
    # 16 centred samples span 15 directions; then the training components take over.
    measured = sense(AdaptivePCA(16), images[:40], 24)
    np.testing.assert_allclose(measured @ measured.T, np.eye(24), atol=1e-6)
    assert np.abs(measured[:15] @ (images[:16] - images[:16].mean(axis=0)).T).max() > 1


def test_adaptive_start_and_samples_that_say_nothing():
    first = principal_components()[0][:1]
    same = np.ones((16, 784), dtype=np.float32)
    for samples in (NOTHING, same, np.full((16, 784), np.nan, dtype=np.float32)):
        new = AdaptivePCA(16).next(NOTHING, NO_VALUES, samples)
        np.testing.assert_allclose(new, first, atol=1e-6)
    with pytest.raises(BadInput, match="3 posterior samples given"):
        AdaptivePCA(16).next(NOTHING, NO_VALUES, same[:3])
    with pytest.raises(BadInput, match="too few"):
        AdaptivePCA(1)
    with pytest.raises(BadInput, match="nothing left"):
        AdaptivePCA(16, start=first).next(first, NO_VALUES, same)


def test_an_invalid_sample_is_left_out():
    images, _ = evaluation_set()
    samples = images[:16].copy()
    samples[3] = np.nan
    new = AdaptivePCA(16).next(NOTHING, NO_VALUES, samples)
    without = AdaptivePCA(15).next(NOTHING, NO_VALUES, np.delete(samples, 3, axis=0))
    np.testing.assert_array_equal(new, without)


def test_measure_does_not_depend_on_how_many_are_measured():
    images, _ = evaluation_set()
    directions = principal_components()[0]
    noise = np.linspace(-2, 2, 32, dtype=np.float32)
    values = measure(images[0], directions, 0.1, noise)
    np.testing.assert_allclose(values, directions @ images[0] + 0.1 * noise, atol=1e-4)
    for at in range(32):
        one = measure(images[0], directions[at : at + 1], 0.1, noise[at : at + 1])
        assert one[0] == values[at]


def test_measure_refuses_what_does_not_fit():
    x, directions, noise = np.ones(4), rows(1, 2, 4), np.zeros(2)
    for arguments, what in (
        ((x[:3], directions, 0.1, noise), "do not fit"),
        ((x, directions, -0.1, noise), r"sigma_y -0\.1"),
        ((x, directions, np.nan, noise), "sigma_y nan"),
        ((x, directions, 0.1, noise[:1]), "one number for each"),
    ):
        with pytest.raises(BadInput, match=what):
            measure(*arguments)


def test_nearly_orthonormal_rows_are_put_right():
    good = rows(2, 6, 20)
    np.testing.assert_array_equal(orthonormal(good), good)
    near = good + 1e-5 * np.random.default_rng(3).standard_normal(good.shape).astype(np.float32)
    fixed = orthonormal(near)
    np.testing.assert_allclose(fixed @ fixed.T, np.eye(6), atol=1e-6)
    np.testing.assert_allclose(fixed, near, atol=1e-4)


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda v: v.__setitem__(2, 2 * v[2]), "row 2 has length 2, not 1"),
        (lambda v: v.__setitem__(1, 0), "row 1 has length 0"),
        (lambda v: v.__setitem__(3, v[1]), "row 3 is not orthogonal to row 1"),
        (lambda v: v.__setitem__((4, 0), np.nan), "row 4 is not finite"),
    ],
)
def test_other_rows_are_refused_by_number(spoil, what):
    spoilt = rows(4, 6, 20)
    spoil(spoilt)
    with pytest.raises(BadInput, match=what):
        orthonormal(spoilt)


def test_shapes_that_cannot_be_orthonormal():
    for wrong in (np.ones((5, 3)), np.ones(3)):
        with pytest.raises(BadInput, match="probes of shape"):
            orthonormal(wrong)


def test_digest_names_directions_and_policy():
    digests = {
        FixedPCA().digest,
        FixedPCA(2).digest,
        FixedPCA(directions=rows(5, 3, 784)).digest,
        AdaptivePCA(16).digest,
        AdaptivePCA(8).digest,
    }
    assert len(digests) == 5
    assert FixedPCA().digest == FixedPCA().digest
