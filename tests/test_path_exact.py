"""With the law of whole pools, predictions equal a walk, and votes drawn from known laws."""

import numpy as np
import pytest

from suffice import Rule, sequential
from suffice.path import along
from suffice.pool_law import pool_law
from suffice.replay import Replay
from suffice.sensing.data import evaluation_set
from suffice.sensing.oracle import MNIST_H, Oracle
from suffice.sensing.probes import principal_components
from suffice.votes import VoteLog
from test_path import NEVER, OPEN, PATHS, STRICT, walked

# Declares at different times: a rival that is declared first ends the pool.
EARLY = Rule([1, 2, 2, 3, 3, 4, 4], [0, 0, 0, 0, 0, 1, 1], "rivals can be first")


TWO = PATHS[..., :2] / PATHS[..., :2].sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("masses", [TWO, PATHS], ids=["two classes", "three classes"])
@pytest.mark.parametrize(
    "rules", [OPEN, EARLY, [EARLY, STRICT, OPEN], [NEVER, OPEN, NEVER]], ids=lambda _: ""
)
def test_whole_pools_equal_the_walk(rules: Rule | list[Rule], masses: np.ndarray) -> None:
    """To rounding with two classes, within the stated error with more."""
    truth = np.array([0, 1])
    path = along(rules, masses, truth, exact=True)
    each = [rules] * 3 if isinstance(rules, Rule) else rules
    walks = [walked(each, pi, true) for pi, true in zip(masses, truth, strict=True)]
    if masses is TWO:
        assert path.error < 1e-9
    for name in ("rounds", "samples", "declared", "accuracy"):
        expected = [walk[name] for walk in walks]
        assert getattr(path, name) == pytest.approx(expected, abs=3 * path.error + 1e-9)


def test_every_state_is_the_law_of_its_pool_where_masses_fall_short_of_one() -> None:
    short = PATHS[..., 1:]
    path = along(EARLY, short, np.array([1, 0]), exact=True)
    for image, t in np.ndindex(short.shape[:2]):
        pool = pool_law(EARLY, short[image, t])
        assert path.round_samples[image, t] == pytest.approx(
            pool.expected_samples, abs=path.error + 1e-9
        )
        assert path.declare_probability[image, t] == pytest.approx(pool.declared.sum())


def known_paths(count: int, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Vote laws of the oracle along noiseless paths, (count, rounds, 10), and the true digits."""
    images, labels = evaluation_set()
    rest = Oracle(images[count:], labels[count:], MNIST_H)
    rows = principal_components()[0][:rounds]
    oracle = rest.along(rows, sigma_y=0.1)
    values = images[:count] @ rows.T
    return np.array([oracle.masses(value)[1:] for value in values]), labels[:count]


def test_the_cost_of_a_path_is_within_a_percent_where_the_law_is_known() -> None:
    """200 pools at each state: what is left is the error of the simulation, about .3%."""
    pi, truth = known_paths(count=100, rounds=12)
    paths, repeats, draws = len(pi), 200, 32
    generator = np.random.default_rng(5)
    ends = np.cumsum(pi, axis=-1)
    laws = np.repeat(ends[..., :-1], repeats, axis=0)
    votes = np.empty((paths * repeats, pi.shape[1], draws), dtype=np.uint8)
    for at in range(draws):
        uniform = generator.random(votes.shape[:2])
        votes[:, :, at] = (uniform[..., None] > laws).sum(axis=-1)
    log = VoteLog(np.arange(len(votes)), np.repeat(truth, repeats), votes, {})
    replay = Replay(log)
    for tau in (0.55, 0.78):
        rule = sequential(tau, 0.05, n_max=draws)
        predicted = along(rule, pi, truth, exact=True).mean
        measured = replay.run(rule).summary()
        assert predicted.samples == pytest.approx(measured["samples"], rel=0.01)
        assert predicted.rounds == pytest.approx(measured["rounds"], rel=0.01)
        assert predicted.accuracy == pytest.approx(measured["accuracy"], abs=0.005)
        papers = along(rule, pi, truth).mean
        assert papers.samples < 0.96 * measured["samples"]
