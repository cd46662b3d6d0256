"""DDRM against a slow copy of its formulas in a full basis, and against what theory says."""

import numpy as np
import pytest
import torch

from suffice import BadInput
from suffice.sensing.ddrm import DDRM, Measured, noise_levels


def gaussian(x, sigma):
    """The exact denoiser of the prior N(0, I)."""
    return x / (1 + sigma[:, None] ** 2)


def bent(x, sigma):
    """A denoiser that mixes coordinates and is not linear."""
    return torch.tanh(x.roll(1, dims=1) / (1 + sigma[:, None]) + 0.3 * x / (1 + sigma[:, None]))


def orthonormal_rows(count, size, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(size, count, generator=generator))[0].T.contiguous()


def normals(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def full_basis(matrix, y, sigma_y, denoiser, levels, eta, eta_b, noise):
    """One sample (d,) with every coordinate of the basis of a full SVD formed, one at a time."""
    u, s, v = np.linalg.svd(matrix)  # v (d, d): all directions, measured and not
    size = v.shape[0]
    s = np.append(s, np.zeros(size - len(s)))
    along = np.append(u.T @ y, np.zeros(size - len(y)))
    z, sigma = v @ noise[0], levels[0]
    x = np.empty(size)
    for i in range(size):
        if s[i] * sigma > sigma_y:
            x[i] = along[i] / s[i] + np.sqrt(sigma**2 - (sigma_y / s[i]) ** 2) * z[i]
        else:
            x[i] = sigma * z[i]
    for step, after in enumerate(levels[1:], 1):
        pixels = torch.tensor((v.T @ x)[None])
        x0 = v @ denoiser(pixels, torch.tensor([sigma]))[0].numpy()
        z = v @ noise[step] if step < len(noise) else np.zeros(size)
        keep = np.sqrt(1 - eta**2)
        new = np.empty(size)
        for i in range(size):
            if s[i] < 1e-9:
                new[i] = x0[i] + keep * after * (x[i] - x0[i]) / sigma + eta * after * z[i]
            elif after < sigma_y / s[i]:
                pull = (along[i] / s[i] - x0[i]) / (sigma_y / s[i])
                new[i] = x0[i] + keep * after * pull + eta * after * z[i]
            else:
                spread = np.sqrt(after**2 - (eta_b * sigma_y / s[i]) ** 2)
                new[i] = (1 - eta_b) * x0[i] + eta_b * along[i] / s[i] + spread * z[i]
        x, sigma = new, after
    return v.T @ x


@pytest.mark.parametrize(("eta", "eta_b"), [(0.0, 1.0), (0.85, 1.0), (1.0, 1.0), (0.6, 0.4)])
@pytest.mark.parametrize("sigma_y", [0.0, 0.1])
def test_it_is_the_full_basis_algorithm_for_any_matrix(eta, eta_b, sigma_y):
    size, votes = 9, 3
    generator = np.random.default_rng(2)
    left, right = (np.linalg.qr(generator.standard_normal((n, n)))[0] for n in (5, size))
    # From far above sigma_y to so far below that the first level already counts as unmeasured.
    strength = np.array([3.0, 1.0, 0.05, 5e-4, 0.0])
    matrix = left @ np.diag(strength) @ right[:5]
    y = generator.standard_normal((votes, 4)) @ np.diag(strength[:4]) @ left[:, :4].T
    noise = normals(votes, 20, size).double().numpy()
    slow = [
        full_basis(matrix, row, sigma_y, bent, noise_levels(), eta, eta_b, z)
        for row, z in zip(y, noise, strict=True)
    ]
    measured = Measured.from_matrix(torch.tensor(matrix), torch.tensor(y), sigma_y)
    fast = DDRM(bent, eta=eta, eta_b=eta_b).sample(measured, torch.tensor(noise).float())
    np.testing.assert_allclose(fast.numpy(), np.array(slow), atol=1e-3)


def test_orthonormal_rows_need_no_svd():
    rows, values = orthonormal_rows(4, 12), normals(5, 4)
    sampler, noise = DDRM(bent), normals(5, 20, 12)
    direct = sampler.sample(Measured(rows, values, torch.full((5, 4), 0.1)), noise)
    by_svd = sampler.sample(Measured.from_matrix(rows, values, 0.1), noise)
    torch.testing.assert_close(direct, by_svd, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("eta", "variance", "miss"),
    [(0.0, 0.83, 0.129), (0.85, 0.636, 0.136), (1.0, 0.412, 0.144)],
)
def test_variance_of_what_is_not_measured_and_distance_of_what_is(eta, variance, miss):
    """DDRM's own figures; exact samples would have variance 1 and miss y by .0995.

    The miss is set by .176, the last level above sigma_y.
    """
    rows = orthonormal_rows(4, 64)
    y = normals(4000, 4, seed=3)
    measured = Measured(rows, y, torch.full((4000, 4), 0.1))
    x = DDRM(gaussian, eta=eta).sample(measured, normals(4000, 20, 64))
    away = (x - measured.lift(measured.project(x))).square().sum() / (4000 * 60)
    # 240,000 normals: the standard error is .0029 of the variance.
    assert float(away) == pytest.approx(variance, abs=0.007)
    assert float((measured.project(x) - y).square().mean().sqrt()) == pytest.approx(miss, abs=0.003)


def test_more_steps_give_more_of_the_variance():
    """DDRM nears the truth, 1, as eta falls and steps grow: .994 at eta 0 and 1000 steps."""
    nothing = Measured(torch.zeros(0, 16), torch.zeros(500, 0), torch.zeros(500, 0))
    x = DDRM(gaussian, noise_levels(1000), eta=0.0).sample(nothing, normals(500, 1000, 16))
    assert float(x.var()) == pytest.approx(0.994, abs=0.05)


def test_without_noise_it_ends_on_the_measurements():
    rows, y = orthonormal_rows(5, 30), normals(8, 5)
    measured = Measured(rows, y, torch.zeros(8, 5))
    x = DDRM(bent).sample(measured, normals(8, 20, 30))
    torch.testing.assert_close(measured.project(x), y, atol=1e-5, rtol=0)


def test_a_mask_is_as_good_as_fewer_rows():
    rows, noise = orthonormal_rows(6, 20), normals(3, 20, 20)
    values, sigma = normals(3, 6), torch.full((3, 6), 0.1)
    sigma[:, 2:] = torch.inf
    masked = DDRM(bent).sample(Measured(rows, values, sigma), noise)
    fewer = DDRM(bent).sample(Measured(rows[:2], values[:, :2], sigma[:, :2]), noise)
    torch.testing.assert_close(masked, fewer, atol=1e-5, rtol=0)


def test_each_vote_may_have_its_own_directions_and_step():
    sampler, noise = DDRM(bent), normals(3, 20, 20)
    rows = torch.stack([orthonormal_rows(4, 20, seed) for seed in range(3)])
    values, sigma = normals(3, 4), torch.full((3, 4), 0.1)
    sigma[1, 3] = sigma[2, 1:] = torch.inf
    rows[2, 1:] = 0  # what is not measured needs no direction
    together = sampler.sample(Measured(rows, values, sigma), noise)
    for at in range(3):
        alone = Measured(rows[at], values[at : at + 1], sigma[at : at + 1])
        one = sampler.sample(alone, noise[at : at + 1])
        torch.testing.assert_close(together[at : at + 1], one, atol=1e-5, rtol=0)
    x, index = normals(3, 20, seed=5), torch.tensor([0, 7, 19])
    mixed = sampler.step(x, index, Measured(rows, values, sigma), noise[:, 0])
    for at in range(3):
        alone = Measured(rows[at], values[at : at + 1], sigma[at : at + 1])
        part = slice(at, at + 1)
        one = sampler.step(x[part], index[part], alone, noise[part, 0])
        torch.testing.assert_close(mixed[part], one, atol=1e-5, rtol=0)


def test_nan_stays_in_its_row():
    def breaks_one(x, sigma):
        x0 = gaussian(x, sigma)
        x0[1] = torch.nan
        return x0

    measured = Measured(orthonormal_rows(3, 10), normals(4, 3), torch.full((4, 3), 0.1))
    noise = normals(4, 20, 10)
    broken, sound = (DDRM(each).sample(measured, noise) for each in (breaks_one, gaussian))
    assert broken[1].isnan().all()
    assert (broken[[0, 2, 3]] == sound[[0, 2, 3]]).all()


def test_noise_levels_are_those_of_the_notes():
    wanted = [97.1, 60.8, 39.1, 25.7, 17.4, 12.0, 8.52, 6.17, 4.57, 3.44]
    wanted += [2.64, 2.04, 1.59, 1.24, 0.958, 0.724, 0.522, 0.342, 0.176, 0.01, 0]
    np.testing.assert_allclose(noise_levels(), wanted, rtol=3e-3)
    assert len(noise_levels(1)) == 2
    assert len(noise_levels(1000)) == 1001


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: noise_levels(0), "steps 0 is outside 1 to 1000"),
        (lambda: DDRM(gaussian, eta=1.2), "eta 1.2 is outside 0 to 1"),
        (lambda: DDRM(gaussian, eta_b=-0.1), "eta_b -0.1 is outside 0 to 1"),
        (lambda: DDRM(gaussian, np.array([1.0, 2.0, 0.0])), "must fall and end at 0"),
        (lambda: DDRM(gaussian, np.array([2.0, 1.0])), "must fall and end at 0"),
        (lambda: DDRM(gaussian, np.array([np.nan, 1.0, 0.0])), "must fall and end at 0"),
        (
            lambda: Measured.from_matrix(torch.zeros(3, 9), torch.zeros(2, 4), 0.1),
            r"y of shape \(2, 4\) does not fit a matrix of shape \(3, 9\)",
        ),
        (
            lambda: Measured.from_matrix(torch.full((3, 9), torch.nan), torch.zeros(2, 3), 0.1),
            "a matrix that is not finite",
        ),
        (
            lambda: Measured.from_matrix(torch.ones(3, 9), torch.zeros(2, 3), -0.1),
            "sigma_y -0.1 must be a number of at least 0",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(make, message):
    with pytest.raises(BadInput, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_matrix_that_measures_nothing_gives_the_prior():
    noise = normals(2, 20, 9)
    nothing = Measured(torch.zeros(0, 9), torch.zeros(2, 0), torch.zeros(2, 0))
    prior = DDRM(bent).sample(nothing, noise)
    for rows in (0, 3):
        measured = Measured.from_matrix(torch.zeros(rows, 9), torch.zeros(2, rows), 0.1)
        torch.testing.assert_close(DDRM(bent).sample(measured, noise), prior)


@pytest.mark.parametrize("steps", [20, 30, 70, 300, 501, 700, 999, 1000])
def test_as_many_steps_or_more_start_at_noise_that_drowns_the_image(steps: int) -> None:
    levels = noise_levels(steps)
    assert len(levels) == steps + 1
    assert levels[0] > 90
    assert (np.diff(levels) < 0).all()
