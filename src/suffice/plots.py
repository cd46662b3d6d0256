"""Figures: each function draws one on an Axes and returns it. Needs the extra `plot`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.check import OrderTest
from suffice.lattice import oc
from suffice.rule import Rule

__all__ = [
    "COLOURS",
    "check_plot",
    "lattice",
    "oc_curves",
    "predicted_against_measured",
    "samples_against_accuracy",
    "samples_by_round",
]

COLOURS = {
    "Plug-in (full)": "#8c8c8c",
    "Plug-in (curt.)": "#6f6f6f",
    "One-look": "#bb6fa0",
    "Sequential": "#1b7fc4",
    "Sequential (n_max=128)": "#5a9bd5",
    "e-process": "#b88500",
    "SPRT": "#0b9a6f",
    "Optimal (one class)": "#d9590b",
    "Optimal (one rule)": "#d9590b",
    "Optimal (one rule a round)": "#a83232",
}
"""One colour a scheme in every figure, told apart by the colour-blind, on light and on dark."""
DECLARED, OUT = "#1b7fc4", "#d9590b"


def samples_against_accuracy(
    axes: Any, frontiers: Mapping[str, Sequence[Mapping[str, float]]], lowest: float = 0.88
) -> Any:
    """Mean samples an image against accuracy, one line a scheme as tau moves; the frontier wide.

    Designs less accurate than `lowest` are left out.
    """
    kept = {
        name: sorted((p["accuracy"], p["samples"]) for p in points if p["accuracy"] >= lowest)
        for name, points in frontiers.items()
    }
    every = [point for points in kept.values() for point in points]
    best = _frontier(every)
    axes.plot(
        *zip(*best, strict=True), color="#d9590b", alpha=0.22, linewidth=9, solid_capstyle="round"
    )
    ends = []
    for name, points in kept.items():
        if points:
            x, y = zip(*points, strict=True)
            axes.plot(x, y, color=_colour(name), linewidth=1.6, marker="o", markersize=2.8)
            ends.append((float(np.median(y)), name))
    axes.set_yscale("log")
    ticks = [tick for tick in (20, 50, 100, 200, 500, 1000) if _within(tick, every)]
    axes.set_yticks(ticks, labels=[str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("accuracy of the declarations")
    axes.set_ylabel("samples an image")
    _label_ends(axes, ends)
    return _plain(axes)


def samples_by_round(axes: Any, spent: Mapping[str, NDArray[np.float64]]) -> Any:
    """Mean samples an image in each round, (T,) a scheme: where on the path the samples go."""
    ends = []
    for name, values in spent.items():
        rounds = np.arange(1, len(values) + 1)
        axes.plot(rounds, values, color=_colour(name), linewidth=1.8)
        ends.append((float(values.max()), int(values.argmax()) + 1, name))
    top = max(end[0] for end in ends)
    axes.set_ylim(0, top * 1.08)
    axes.set_xlim(1, max(len(values) for values in spent.values()))
    # Names stand in the empty corner, from the dearest down.
    for at, (_, _, name) in enumerate(sorted(ends, reverse=True)):
        total = f"{spent[name].sum():.0f} in all"
        axes.text(
            0.98, 0.96 - 0.085 * at, f"{name}: {total}", transform=axes.transAxes,
            ha="right", va="top", color=_colour(name),
        )  # fmt: skip
    axes.set_xlabel("round")
    axes.set_ylabel("samples an image in this round")
    return _plain(axes)


def predicted_against_measured(
    axes: Any, rows: Sequence[tuple[str, float, tuple[float, float], Mapping[str, float]]]
) -> Any:
    """How far each row's predicted samples are from the measured ones, with their interval.

    A row is its name, the measured mean, its 95% interval, and the predictions by name.
    """
    marks = ("o", "o", "D")
    colours = ("#8c8c8c", "#1b7fc4", "#d9590b")
    for at, (_, measured, (low, high), predicted) in enumerate(rows):
        axes.plot(
            [100 * (low / measured - 1), 100 * (high / measured - 1)], [at, at],
            color="#8c8c8c", alpha=0.3, linewidth=9, solid_capstyle="butt",
        )  # fmt: skip
        for mark, colour, (name, value) in zip(marks, colours, predicted.items(), strict=True):
            axes.plot(
                100 * (value / measured - 1), at, mark, color=colour, markersize=6,
                fillstyle="none" if name.endswith("32") else "full",
                label=name if at == 0 else None,
            )  # fmt: skip
    axes.axvline(0, linewidth=0.8, color="#8c8c8c", zorder=0)
    axes.set_yticks(range(len(rows)), labels=[row[0] for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("predicted samples against measured, %")
    axes.legend(
        loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=3, frameon=False,
        handletextpad=0.1, columnspacing=1.0,
    )  # fmt: skip
    return _plain(axes)


def lattice(axes: Any, rule: Rule, name: str) -> Any:
    """The (n, k) lattice under a rule: where a class is declared, out, or still open."""
    n = np.arange(rule.n_max + 1)
    open_n, open_k = [], []
    low, high = 0, 0
    for at in n.tolist():
        high = high + 1 if at else 0
        reached = range(low, high + 1)
        states = [k for k in reached if rule.stop[at] <= k < rule.declare[at]]
        if not states or at == rule.n_max:
            break
        open_n += [at] * len(states)
        open_k += states
        low, high = states[0], states[-1]
    edges = np.arange(rule.n_max + 2) - 0.5
    declared = np.minimum(rule.declare, n + 1) - 0.5
    axes.stairs(n + 0.5, edges, baseline=declared, fill=True, color=DECLARED, alpha=0.45)
    axes.stairs(
        np.minimum(rule.stop, n + 1) - 0.5, edges, baseline=-0.5, fill=True, color=OUT, alpha=0.35
    )
    axes.plot(open_n, open_k, ".", color="#8c8c8c", markersize=2.2)
    axes.set_xlim(-0.5, rule.n_max + 0.5)
    axes.set_ylim(-0.5, rule.n_max + 0.5)
    axes.set_title(name, loc="left", fontsize="medium")
    return _plain(axes)


def oc_curves(axes: Any, rules: Mapping[str, Rule], tau: float, eps: float) -> Any:
    """OC(q) of each rule, with the certificate that is asked for: at most eps up to tau."""
    q = np.linspace(max(0.0, tau - 0.3), 1.0, 161)
    axes.plot([q[0], tau, tau], [eps, eps, 0], color="#8c8c8c", linewidth=1, linestyle="--")
    axes.text(q[0], eps + 0.015, f"eps = {eps:.0%}", color="#8c8c8c")
    count = len(rules)
    for at, (name, rule) in enumerate(rules.items()):
        curve = oc(rule, q)
        axes.plot(q, curve, color=_colour(name), linewidth=1.8)
        # Each name stands left of its own curve, at a height of its own.
        height = 0.93 - 0.55 * at / max(count - 1, 1)
        x = float(np.interp(height, curve, q))
        axes.annotate(
            name, (x, height), (q[0], height), color=_colour(name), va="center",
            arrowprops={"arrowstyle": "-", "color": _colour(name), "linewidth": 0.6, "alpha": 0.6},
        )  # fmt: skip
    axes.set_xlim(q[0], 1)
    axes.set_ylim(0, 1.01)
    axes.set_xlabel("population vote mass q")
    axes.set_ylabel("OC(q), chance to be declared")
    return _plain(axes)


def check_plot(axes: Any, tests: Sequence[OrderTest]) -> Any:
    """Each number of a log among the same of its shuffled copies, in their standard deviations."""
    for at, tested in enumerate(reversed(tests)):
        centre, spread = tested.shuffled.mean(), tested.shuffled.std() or 1.0
        copies = (tested.shuffled - centre) / spread
        axes.plot(copies, np.full(copies.size, at), "|", color="#8c8c8c", markersize=14)
        axes.plot((tested.observed - centre) / spread, at, "o", color=OUT)
        axes.annotate(
            f"{tested.name}, p = {tested.p_value:.2g}", (0, at), (0, 14), textcoords="offset points"
        )
    axes.set_yticks([])
    axes.set_ylim(-0.5, len(tests))
    axes.set_xlabel("distance from the mean of shuffled copies, in standard deviations")
    return _plain(axes)


def _frontier(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points (accuracy, samples) that no other beats in both, by rising accuracy."""
    kept: list[tuple[float, float]] = []
    for accuracy, samples in sorted(points, key=lambda point: (-point[0], point[1])):
        if not kept or samples < kept[-1][1]:
            kept.append((accuracy, samples))
    return kept[::-1]


def _within(tick: float, points: Sequence[tuple[float, float]]) -> bool:
    samples = [point[1] for point in points]
    return min(samples) / 2 <= tick <= max(samples) * 2


def _label_ends(axes: Any, ends: Sequence[tuple[float, str]], gap: float = 0.075) -> None:
    """Names right of the axes, each at its line's height, or as near as the others leave room."""
    to_axes = axes.transData + axes.transAxes.inverted()
    x = axes.get_xlim()[1]
    placed = sorted((float(to_axes.transform((x, y))[1]), name) for y, name in ends)
    heights: list[float] = []
    for want, _ in placed:
        heights.append(max(want, heights[-1] + gap) if heights else want)
    spill = max(0.0, (heights[-1] if heights else 0.0) - 1.0)
    for height, (_, name) in zip(heights, placed, strict=True):
        axes.text(
            1.02, height - spill, name, transform=axes.transAxes, va="center", color=_colour(name)
        )


def _colour(name: str) -> str:
    return COLOURS.get(name, "#8c8c8c")


def _plain(axes: Any) -> Any:
    """No box around the figure: two thin lines are enough."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_linewidth(0.8)
    axes.tick_params(width=0.8, length=3)
    return axes
