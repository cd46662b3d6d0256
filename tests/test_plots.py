"""The figures show what they are given."""

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas

from suffice import plots
from suffice.curtail import curtail
from suffice.lattice import oc
from suffice.rule import Rule
from suffice.rules import one_look, plug_in, sequential


@pytest.fixture
def axes():
    return Canvas().add_subplot()


def test_samples_against_accuracy_leaves_out_the_inaccurate_and_marks_the_frontier(axes) -> None:
    good = [{"accuracy": 0.95, "samples": 50.0}, {"accuracy": 0.9, "samples": 40.0}]
    dear = [{"accuracy": 0.92, "samples": 60.0}, {"accuracy": 0.5, "samples": 1.0}]
    assert plots.samples_against_accuracy(axes, {"SPRT": good, "One-look": dear}) is axes
    frontier, sprt, one_look_ = axes.lines
    assert sprt.get_xydata().tolist() == [[0.9, 40], [0.95, 50]]
    assert one_look_.get_xydata().tolist() == [[0.92, 60]]
    assert frontier.get_xydata().tolist() == [[0.9, 40], [0.95, 50]]
    assert {text.get_text() for text in axes.texts} == {"SPRT", "One-look"}


def test_samples_by_round_are_drawn_as_given_and_summed(axes) -> None:
    plots.samples_by_round(axes, {"SPRT": np.array([3.0, 2.0, 1.0])})
    assert axes.lines[0].get_xydata().tolist() == [[1, 3], [2, 2], [3, 1]]
    assert axes.texts[0].get_text() == "SPRT: 6 in all"


def test_predictions_stand_at_their_distance_from_what_was_measured(axes) -> None:
    predicted = {"from 32": 90.0, "from 128": 95.0, "law of the pool": 101.0}
    plots.predicted_against_measured(axes, [("row", 100.0, (98.0, 103.0), predicted)])
    at = [line.get_xdata()[0] for line in axes.lines[1:4]]
    assert at == pytest.approx([-10, -5, 1])
    assert list(axes.lines[0].get_xdata()) == pytest.approx([-2, 3])


@pytest.mark.parametrize(
    "rule",
    [
        plug_in(0.7, 32, curtailed=False),
        one_look(0.7, 0.05, 32),
        sequential(0.7, 0.05, n_max=32),
        curtail(Rule([1, 2, 3, 4, 3], [0, 0, 0, 0, 3], "three of four")),
    ],
)
def test_the_lattice_dots_the_states_from_which_a_vote_is_drawn(axes, rule: Rule) -> None:
    plots.lattice(axes, rule, "name")
    # Slow and obvious: walk every sequence of hits and misses, one state at a time.
    drawn, fringe = set(), {(0, 0)}
    for _ in range(rule.n_max):
        drawn |= fringe
        after = {(n + 1, k + hit) for n, k in fringe for hit in (0, 1)}
        fringe = {(n, k) for n, k in after if rule.stop[n] <= k < rule.declare[n]}
    dots = {(int(n), int(k)) for n, k in axes.lines[0].get_xydata()}
    assert dots == drawn


def test_oc_curves_are_the_operating_characteristics(axes) -> None:
    rules = {"Plug-in (curt.)": plug_in(0.7, 32), "One-look": one_look(0.7, 0.05, 32)}
    plots.oc_curves(axes, rules, 0.7, 0.05)
    for line, rule in zip(axes.lines[1:], rules.values(), strict=True):
        q, curve = line.get_xydata().T
        assert np.array_equal(curve, oc(rule, q))
    assert {text.get_text() for text in axes.texts} == {"eps = 5%", *rules}
