"""The exact tests against sums of binomials, and the promise kept over simulated logs."""

from math import comb

import numpy as np
import pytest

from suffice import BadInput, sequential
from suffice.guarantee import declared_needed, fixed_sequence, upper_bound
from suffice.replay import Replay
from suffice.votes import VoteLog


def tail(wrong: int, declared: int, rate: float) -> float:
    """P(at most `wrong` of `declared`), summed."""
    return sum(comb(declared, w) * rate**w * (1 - rate) ** (declared - w) for w in range(wrong + 1))


@pytest.mark.parametrize(("wrong", "declared"), [(0, 1), (0, 30), (2, 30), (29, 30), (7, 200)])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_the_bound_is_where_the_tail_is_the_level(
    wrong: int, declared: int, confidence: float
) -> None:
    bound = float(upper_bound(wrong, declared, confidence))
    assert tail(wrong, declared, bound) == pytest.approx(1 - confidence)


def test_nothing_declared_or_nothing_right_bounds_nothing() -> None:
    assert upper_bound([0, 5], [0, 5], 0.95).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("delta", [0.02, 0.1, 0.3])
def test_a_design_passes_when_its_count_is_that_unlikely(delta: float) -> None:
    for declared in (1, 20, 60, 150):
        for wrong in range(declared + 1):
            (trial,) = fixed_sequence([wrong], [declared], delta)
            assert trial.passed == (tail(wrong, declared, delta) <= 0.05)


def test_testing_stops_at_the_first_failure() -> None:
    trials = fixed_sequence([0, 50, 0], [100, 100, 100], 0.1)
    assert [trial.passed for trial in trials] == [True, False]
    assert (trials[1].wrong, trials[1].declared) == (50, 100)


@pytest.mark.parametrize("rate", [0.0, 0.004, 0.02, 0.035])
def test_the_images_needed_are_the_fewest_that_pass_four_times_in_five(rate: float) -> None:
    needed = declared_needed(rate, 0.05)

    def passes(declared: int) -> float:
        wrong = -1
        while tail(wrong + 1, declared, 0.05) <= 0.05:
            wrong += 1
        return tail(wrong, declared, rate) if wrong >= 0 else 0.0

    assert passes(needed) >= 0.8
    # The chance to pass is a sawtooth; before its first tooth above .8 there is none.
    assert max(passes(fewer) for fewer in range(max(1, needed - 40), needed)) < 0.8


def test_no_number_of_images_helps_a_design_that_errs_too_often() -> None:
    assert declared_needed(0.05, 0.05) is None
    assert declared_needed(0.04999, 0.05) is None


@pytest.fixture(scope="module")
def simulated() -> tuple[np.ndarray, np.ndarray]:
    """Whether each of 4,000 images is declared, and is wrong, under ten rules; (10, 4000).

    Vote laws sharpen from round to round, so a rule that waits longer errs less.
    """
    generator = np.random.default_rng(3)
    images, rounds, draws = 4000, 6, 24
    # The true class gains with each round; what speaks for each class at first is half chance.
    score = generator.normal(0.0, 1.0, (images, 1, 3)) * np.ones((rounds, 1))
    score[:, :, 0] += 0.6 * np.arange(1, rounds + 1)
    pi = np.exp(score) / np.exp(score).sum(axis=-1, keepdims=True)
    ends = pi.cumsum(axis=-1)[:, :, None, :-1]
    votes = (generator.random((images, rounds, draws, 1)) > ends).sum(axis=-1)
    truth = np.zeros(images, dtype=np.int64)
    replay = Replay(VoteLog(np.arange(images), truth, votes.astype(np.uint8), {}))
    taus = [0.85, 0.82, 0.8, 0.75, 0.72, 0.7, 0.65, 0.62, 0.6, 0.55]
    outcomes = [replay.run(sequential(tau, 0.05, n_max=draws)) for tau in taus]
    declared = np.array([outcome.declared for outcome in outcomes])
    return declared, declared & ~np.array([outcome.right for outcome in outcomes])


def test_over_many_splits_the_promise_fails_no_more_often_than_it_says(simulated) -> None:
    """New images are drawn from the simulated ones, so every design's error is known.

    The hardest promises lie just below the error of a design: there a test that is passed by
    luck breaks the promise. Order and test come from different images, as in `plan`.
    """
    declared, wrong = simulated
    errors = wrong.sum(axis=1) / declared.sum(axis=1)
    assert 2 * errors.min() < errors.max()
    generator = np.random.default_rng(8)
    splits, half = 200, 400
    for delta in [*(np.sort(errors)[[2, 5, 8]] * 0.999), 0.04]:
        broken, proven = 0, 0
        for _ in range(splits):
            design, held = generator.integers(0, declared.shape[1], (2, half))
            bounds = upper_bound(
                wrong[:, design].sum(axis=1), declared[:, design].sum(axis=1), 0.95
            )
            order = np.argsort(bounds, kind="stable")
            trials = fixed_sequence(
                wrong[order][:, held].sum(axis=1), declared[order][:, held].sum(axis=1), delta
            )
            passed = order[: sum(trial.passed for trial in trials)]
            proven += passed.size > 0
            broken += bool((errors[passed] > delta).any())
        assert broken <= 0.05 * splits + 3 * np.sqrt(0.05 * 0.95 * splits)
        if delta > 2 * errors.min():
            assert proven > 0.5 * splits  # the promise is kept, but not by promising nothing


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (([1], [9], 0.0), "delta = 0.0"),
        (([1], [9], 0.1, 1.0), "confidence = 1.0"),
        (([1, 2], [9], 0.1), "one number wrong and one number declared"),
        (([10], [9], 0.1), "one number wrong and one number declared"),
    ],
)
def test_bad_input(given: tuple, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        fixed_sequence(*given)
