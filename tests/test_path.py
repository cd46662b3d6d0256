"""Path predictions equal a walk through every vote sequence where the paper's forms are exact."""

import itertools
from math import prod

import numpy as np
import pytest

from suffice import BadInput, Rule
from suffice.lattice import expected_samples, oc
from suffice.path import along
from suffice.pool import Pool

FULL = Rule([1, 2, 3, 4, 5, 3], [0] * 6, "full pool of five, three votes")
STRICT = Rule([1, 2, 3, 4, 5, 4], [0] * 6, "full pool of five, four votes")
OPEN = Rule([1, 2, 2, 3, 3, 4, 4], [0, 0, 1, 1, 2, 2, 4], "early")
NEVER = Rule([1, 2, 3], [1, 0, 0], "never looks")


def walked(rules: list[Rule], masses: np.ndarray, truth: int) -> dict[str, float]:
    """Rounds, samples, declarations and right ones, over every vote sequence of every round."""
    reach, rounds, samples, declared, right = 1.0, 0.0, 0.0, 0.0, 0.0
    classes = range(masses.shape[1])
    for rule, pi in zip(rules, masses, strict=True):
        rounds += reach
        ended = 0.0
        for votes in itertools.product(classes, repeat=rule.n_max):
            chance = reach * prod(pi[vote] for vote in votes)
            pool = Pool(rule)
            pool.add_many(votes)
            samples += chance * pool.n
            if pool.verdict.kind == "declared":
                ended += chance
                right += chance * (pool.verdict.label == truth)
        declared += ended
        reach -= ended
    return {
        "rounds": rounds,
        "samples": samples,
        "declared": declared,
        "accuracy": right / declared,
    }


PATHS = np.array(
    [
        [[0.4, 0.3, 0.3], [0.6, 0.3, 0.1], [0.9, 0.05, 0.05]],
        [[0.3, 0.4, 0.3], [0.2, 0.7, 0.1], [0.05, 0.95, 0.0]],
    ]
)
TRUTH = np.array([0, 2])


@pytest.mark.parametrize("rules", [FULL, [STRICT, FULL, STRICT]], ids=["one", "one a round"])
def test_full_pools_equal_the_walk(rules: Rule | list[Rule]) -> None:
    path = along(rules, PATHS, TRUTH)
    each = [rules] * 3 if isinstance(rules, Rule) else rules
    walks = [walked(each, masses, truth) for masses, truth in zip(PATHS, TRUTH, strict=True)]
    for name in ("rounds", "samples", "declared", "accuracy"):
        assert getattr(path, name) == pytest.approx([walk[name] for walk in walks], abs=1e-12)
    for name in ("rounds", "samples", "declared"):
        assert getattr(path.mean, name) == pytest.approx(np.mean([w[name] for w in walks]))
    weights = [walk["declared"] for walk in walks]
    expected = np.average([walk["accuracy"] for walk in walks], weights=weights)
    assert path.mean.accuracy == pytest.approx(expected)


def test_the_papers_formulas_term_by_term() -> None:
    """Eqs. reach, pathcost and a_t written out, for a rule where they are not exact."""
    path = along(OPEN, PATHS, TRUTH)
    for image, (masses, truth) in enumerate(zip(PATHS, TRUTH, strict=True)):
        reach = 1.0
        for t, pi in enumerate(masses):
            each = [oc(OPEN, float(q)) for q in pi]
            assert path.reach[image, t] == pytest.approx(reach)
            assert path.declare_probability[image, t] == pytest.approx(min(1.0, sum(each)))
            assert path.correct[image, t] == pytest.approx(each[truth] / sum(each))
            leader = float(pi.max())
            assert path.round_samples[image, t] == pytest.approx(expected_samples(OPEN, leader))
            reach *= 1 - min(1.0, sum(each))


def test_shapes_and_one_path_alone() -> None:
    many = along(OPEN, PATHS[None].repeat(4, axis=0), np.tile(TRUTH, (4, 1)))
    alone = along(OPEN, PATHS[1], 2)
    assert many.reach.shape == (4, 2, 3)
    assert alone.accuracy.shape == ()
    assert many.accuracy[3, 1] == alone.accuracy
    assert many.samples[3, 1] == alone.samples


def test_where_nothing_can_be_declared_the_accuracy_is_nan_and_all_rounds_count() -> None:
    path = along(NEVER, PATHS, TRUTH)
    assert path.rounds.tolist() == [3, 3]
    assert path.samples.tolist() == [0, 0]
    assert np.isnan(path.accuracy).all()
    assert np.isnan(path.mean.accuracy)
    some = along([NEVER, FULL, NEVER], PATHS, TRUTH)
    assert some.accuracy.tolist() == pytest.approx(some.correct[:, 1].tolist())


@pytest.mark.parametrize(
    ("masses", "truth", "said"),
    [
        ([0.5, 0.5], 0, r"shape \(2,\) must be"),
        ([[0.5, 1.5]], 0, "outside 0 to 1"),
        ([[0.5, float("nan")]], 0, "outside 0 to 1"),
        ([[0.5, 0.6]], 0, "sum to 1.1"),
        ([[0.5, 0.5]], 2, "outside 0 to 1; count from 0"),
        ([[0.5, 0.5]], 0.5, "one class index"),
        ([[[0.5, 0.5]]], 0, r"one class index a path, \(1,\)"),
        ([["a", "b"]], 0, "must be numbers"),
    ],
)
def test_bad_input(masses: list, truth: float, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        along(FULL, masses, truth)


def test_a_rule_for_each_round() -> None:
    with pytest.raises(BadInput, match="2 rules for 3 rounds"):
        along([FULL, FULL], PATHS, TRUTH)
