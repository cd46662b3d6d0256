"""The oracle is exact: against integration, general Gaussian algebra and its own draws."""

import numpy as np
import pytest
from scipy.special import chdtrc

from suffice import BadInput
from suffice.sensing.data import evaluation_set
from suffice.sensing.noise import measurement_noise, oracle_noise
from suffice.sensing.oracle import Oracle, choose_h, votes
from suffice.sensing.probes import measure, principal_components


def tiny(size=5, n=7, h=0.6, seed=1):
    """An oracle with class 1 of three images, class 3 of four, no class 0 and 2; and four rows."""
    generator = np.random.default_rng(seed)
    images = generator.standard_normal((n, size)).astype(np.float32)
    labels = np.where(np.arange(n) % 2, 1, 3)
    rows = np.linalg.qr(generator.standard_normal((size, size)))[0].T.astype(np.float32)
    return Oracle(images, labels, h), rows[: min(4, size)]


def slow_posterior(oracle, rows, sigma_y, y):
    """Image weights, conditional means and the one covariance, by general Gaussian algebra."""
    v, x, y = rows.astype(float), oracle.images.astype(float), np.asarray(y, dtype=float)
    prior = oracle.h**2 * np.eye(x.shape[1])
    inverse = np.linalg.inv(v @ prior @ v.T + sigma_y**2 * np.eye(len(v)))
    gaps = y - x @ v.T
    logs = -0.5 * np.einsum("nt,ts,ns->n", gaps, inverse, gaps)
    weights = np.exp(logs - logs.max())
    gain = prior @ v.T @ inverse
    return weights / weights.sum(), x + gaps @ gain.T, prior - gain @ v @ prior


def slow_law(oracle, weights):
    return np.array([weights[oracle.labels == label].sum() for label in range(oracle.classes)])


@pytest.fixture(scope="module")
def digits():
    """The evaluation images as the prior, and the first 24 components as the probes."""
    images, labels = evaluation_set()
    return Oracle(images, labels, 0.93), principal_components()[0][:24]


def test_masses_equal_integration_over_a_grid():
    oracle, rows = tiny(size=2, n=5)
    axis = np.linspace(-6, 6, 481)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    y = [0.3, -0.2]
    density = {}
    for t in (0, 1, 2):
        evidence = np.exp(-((y[:t] - grid @ rows[:t].T) ** 2).sum(axis=1) / (2 * 0.4**2))
        for label in range(oracle.classes):
            centres = oracle.images[oracle.labels == label]
            squares = ((grid[:, None] - centres) ** 2).sum(axis=2)
            prior = np.exp(-squares / (2 * oracle.h**2)).sum(axis=1)
            density[t, label] = (prior * evidence).sum()
    laws = oracle.along(rows, 0.4).masses(np.float32(y))
    for t in (0, 1, 2):
        slow = np.array([density[t, label] for label in range(oracle.classes)])
        np.testing.assert_allclose(laws[t], slow / slow.sum(), atol=1e-6)


@pytest.mark.parametrize("sigma_y", [0.0, 0.1, 2.0])
def test_masses_and_weights_equal_gaussian_algebra(sigma_y):
    oracle, rows = tiny()
    y = np.float32([0.5, -1, 0.2, 0.9])
    along = oracle.along(rows, sigma_y)
    laws = along.masses(y)
    for t in range(5):
        weights, _, _ = slow_posterior(oracle, rows[:t], sigma_y, y[:t])
        np.testing.assert_allclose(along.weights(y[:t]), weights, rtol=1e-5)
        np.testing.assert_allclose(laws[t], slow_law(oracle, weights), rtol=1e-5)
        np.testing.assert_array_equal(along.law(y[:t]), laws[t])
    assert (laws[:, [0, 2]] == 0).all()


@pytest.mark.parametrize("h", [0.1, 0.93])
def test_masses_of_digits_are_exact_in_single_precision(digits, h):
    images, labels = evaluation_set()
    oracle, rows = Oracle(images, labels, h), digits[1]
    along = oracle.along(rows, 0.1)
    for image in (0, 1, 2):
        # Not an image of the prior: a blend of two, so that rivals stay alive.
        x = (images[image] + images[image + 10]) / 2
        y = measure(x, rows, 0.1, measurement_noise(0, image, 1, 24)[0])
        laws = along.masses(y)
        np.testing.assert_allclose(laws.sum(axis=1), 1, atol=1e-12)
        for t in (0, 1, 6, 24):
            weights, _, _ = slow_posterior(oracle, rows[:t], 0.1, y[:t])
            np.testing.assert_allclose(laws[t], slow_law(oracle, weights), atol=1e-4)


def test_masses_are_the_chance_of_the_truth(digits):
    oracle, rows = digits
    along = oracle.along(rows[:6], 0.5)
    uniform, normals = oracle_noise(1, np.arange(1500), 0, 0, 784)
    none = np.empty(0, dtype=np.float32)
    images, truths = along.draw(none, uniform, normals)
    noise = measurement_noise(1, np.arange(1500), 1, 6)
    laws = np.array(
        [along.masses(measure(x, rows[:6], 0.5, z)) for x, z in zip(images, noise, strict=True)]
    )
    for t in range(7):
        for label in range(10):
            gap = (truths == label) - laws[:, t, label]
            assert abs(gap.mean()) < 4.5 * gap.std() / np.sqrt(len(gap))
        # The truth's mass has the mean that the laws say it has.
        gap = laws[np.arange(1500), t, truths] - (laws[:, t] ** 2).sum(axis=1)
        assert abs(gap.mean()) < max(4.5 * gap.std() / np.sqrt(len(gap)), 1e-9)


@pytest.mark.parametrize("sigma_y", [0.0, 0.5])
def test_draws_have_the_posterior_moments(sigma_y):
    oracle, rows = tiny()
    y = np.float32([0.5, -1, 0.2])
    draws = 100_000
    uniform, normals = oracle_noise(2, 0, 3, np.arange(draws), 5)
    x, labels = oracle.along(rows, sigma_y).draw(y, uniform, normals)
    weights, means, covariance = slow_posterior(oracle, rows[:3], sigma_y, y)
    for label in (1, 3):
        among = weights * (oracle.labels == label)
        among = among / among.sum()
        mean = among @ means
        spread = covariance + np.einsum("n,ni,nj->ij", among, means - mean, means - mean)
        mine = x[labels == label].astype(float)
        error = np.sqrt(np.diag(spread) / len(mine)) + 1e-6
        assert (np.abs(mine.mean(axis=0) - mean) < 4.5 * error).all()
        size = np.sqrt(np.outer(np.diag(spread), np.diag(spread)))
        assert (np.abs(np.cov(mine.T) - spread) < 4.5 * size * np.sqrt(2 / len(mine)) + 1e-6).all()
    if sigma_y == 0:
        np.testing.assert_allclose(x @ rows[:3].T, np.broadcast_to(y, (draws, 3)), atol=2e-6)


def test_images_of_a_class_are_drawn_by_their_weights():
    # Images far apart and little smoothing: a draw says which image it came from.
    oracle = Oracle(np.float32([[0, 0], [0, 50], [1, 100], [1, 150]]), np.array([0, 1, 1, 1]), 0.5)
    along = oracle.along(np.float32([[1, 0]]), 0.5)
    uniform, normals = oracle_noise(3, 0, 1, np.arange(50_000), 2)
    x, _ = along.draw(np.float32([0.8]), uniform, normals)
    counts = np.bincount(np.rint(x[:, 1] / 50).astype(int), minlength=4)
    assert chi_square(counts, along.weights(np.float32([0.8]))) > 1e-4


def chi_square(counts, law):
    expected = law * counts.sum()
    seen = law > 0
    return chdtrc(seen.sum() - 1, ((counts - expected)[seen] ** 2 / expected[seen]).sum())


def test_votes_have_their_law_and_are_the_draws_labels(digits):
    oracle, rows = digits
    images, _ = evaluation_set()
    along = oracle.along(rows, 0.1)
    for image, t in ((5, 2), (6, 4), (7, 8)):
        y = measure(images[image], rows[:t], 0.1, measurement_noise(0, image, 1, t)[0])
        law = along.law(y)
        uniform, _ = oracle_noise(0, image, t, np.arange(40_000))
        labels = votes(law, uniform)
        counts = np.bincount(labels, minlength=10)
        rare = law * len(labels) < 5
        pooled = np.append(counts[~rare], counts[rare].sum())
        assert chi_square(pooled, np.append(law[~rare], law[rare].sum())) > 1e-4
        some, normals = oracle_noise(0, image, t, np.arange(300), 784)
        _, drawn = along.draw(y, some, normals)
        np.testing.assert_array_equal(drawn, labels[:300])


def test_votes_of_a_mixed_batch_are_the_votes_alone():
    laws = np.random.default_rng(4).dirichlet(np.ones(6), 50)
    uniform, _ = oracle_noise(5, np.arange(50), 1, 2)
    mixed = votes(laws, uniform)
    alone = [int(votes(law, uniform[at : at + 1])[0]) for at, law in enumerate(laws)]
    assert mixed.tolist() == alone


def test_votes_never_fall_on_a_class_without_mass():
    law = np.array([0.0, 0.3, 0.0, 0.7, 0.0])
    edges = np.array([0.0, np.nextafter(0.3, 0), 0.3, np.nextafter(1, 0)])
    assert votes(law, edges).tolist() == [1, 1, 3, 3]


@pytest.mark.parametrize("along_rows", [False, True])
def test_choose_h_is_the_best_of_a_grid(along_rows):
    images, _ = evaluation_set()
    rest, held_out = images[:300].astype(float), images[900:].astype(float)
    rows = principal_components()[0][:8] if along_rows else None
    h = choose_h(np.float32(rest), np.float32(held_out), rows)
    if rows is not None:
        rest, held_out = rest @ rows.T, held_out @ rows.T
    squares = ((held_out[:, None] - rest) ** 2).sum(axis=2)
    best = -np.inf
    for rival in h * np.array([1, 0.7, 0.9, 0.98, 1.02, 1.1, 1.4]):
        logs = -squares / (2 * rival**2)
        top = logs.max(axis=1, keepdims=True)
        density = (top[:, 0] + np.log(np.exp(logs - top).sum(axis=1))).mean()
        density -= held_out.shape[1] * np.log(rival)
        if rival == h:
            best = density
        assert density <= best


def test_bad_input():
    oracle, rows = tiny()
    along = oracle.along(rows, 0.1)
    x = oracle.images
    for call, what in (
        (lambda: Oracle(x, np.zeros(3, dtype=int), 0.5), "do not fit"),
        (lambda: Oracle(x, oracle.labels, 0.0), r"h 0\.0 must be"),
        (lambda: oracle.along(rows[:, :4], 0.1), "do not fit images of 5 pixels"),
        (lambda: oracle.along(2 * rows, 0.1), "row 0 has length 2"),
        (lambda: oracle.along(rows[[0, 1, 0]], 0.1), "row 2 is not orthogonal to row 0"),
        (lambda: oracle.along(rows, -1.0), "sigma_y"),
        (lambda: along.law(np.zeros(5, dtype=np.float32)), "do not fit 4 directions"),
        (lambda: along.law(np.float32([np.nan])), "not finite"),
        (lambda: choose_h(x, x[:, :4]), "held-out images"),
        (lambda: choose_h(x[:3], x[:2]), "hold other images out"),
    ):
        with pytest.raises(BadInput, match=what):
            call()
