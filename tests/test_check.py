"""The test of a log: quiet on votes as the rules take them, loud on each way to fail."""

import numpy as np
import pytest

from suffice import BadInput
from suffice.check import check
from suffice.votes import VoteLog


def log_of(votes):
    votes = np.asarray(votes, dtype=np.uint8)
    return VoteLog(np.arange(len(votes)), np.zeros(len(votes), dtype=int), votes, {})


def sound(seed, images=60, rounds=3, draws=16):
    """Independent votes of five labels, each pool with its own masses; some are invalid."""
    random = np.random.default_rng(seed)
    masses = random.dirichlet(np.full(5, 0.5), (images, rounds))
    ends = masses.cumsum(axis=2)[:, :, None, :]
    votes = (random.random((images, rounds, draws, 1)) > ends).sum(axis=3)
    return np.where(votes >= 4, 255, votes)


def p_values(votes, shuffles=199):
    return {tested.name: tested.p_value for tested in check(log_of(votes), shuffles)}


def test_p_values_of_sound_logs_are_spread_evenly():
    found = [p_values(sound(seed), shuffles=39) for seed in range(60)]
    for name in ("halves", "neighbours", "batches"):
        low = sum(p[name] <= 0.1 for p in found)
        assert low <= 14  # 6 expected; P(more than 14) < .001
        assert np.mean([p[name] for p in found]) > 0.35


def test_a_drift_with_the_draw_is_found():
    votes = sound(0)
    votes[:, :, 8:][np.random.default_rng(1).random((60, 3, 8)) < 0.35] = 3
    assert p_values(votes)["halves"] <= 0.01


def test_votes_that_follow_the_one_before_are_found():
    votes = sound(0)
    for n in range(1, 16, 2):
        copied = np.random.default_rng(n).random((60, 3)) < 0.3
        votes[:, :, n][copied] = votes[:, :, n - 1][copied]
    assert p_values(votes)["neighbours"] <= 0.01


def test_draws_that_go_together_across_images_are_found():
    votes = sound(0)
    bad = np.random.default_rng(1).random((60 // 4, 3, 16)) < 0.3  # a batch holds four images
    votes[np.repeat(bad, 4, axis=0)] = 4
    found = p_values(votes)
    assert found["batches"] <= 0.01
    assert min(found["halves"], found["neighbours"]) > 0.01


def test_the_plot_shows_every_test():
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from suffice.plots import check_plot

    figure, axes = plt.subplots()
    tests = check(log_of(sound(0)), 19)
    assert check_plot(axes, tests) is axes
    assert [text.get_text().split(",")[0] for text in axes.texts][::-1] == [t.name for t in tests]
    plt.close(figure)


@pytest.mark.parametrize(
    ("votes", "shuffles", "message"),
    [
        (np.zeros((2, 2, 1)), 9, "at least 2"),
        (np.zeros((2, 2, 4)), 9, "unanimous"),
        (sound(0), 0, "shuffles"),
    ],
)
def test_logs_that_cannot_be_checked(votes, shuffles, message):
    with pytest.raises(BadInput, match=message):
        check(log_of(votes), shuffles)
