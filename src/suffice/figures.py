"""The figures of the experiment, as SVG: on white for a document, or for a page, in its colours."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice import plots
from suffice.comparison import spent_by_round
from suffice.errors import BadInput
from suffice.experiment import BLOCKS, EPS, S
from suffice.lattice import oc
from suffice.optimal import optimal
from suffice.reproduce import Reproduction
from suffice.rule import Rule
from suffice.rules import one_look, plug_in, sequential, sprt
from suffice.schemes import ADDED, SCHEMES

__all__ = ["FIGURES", "Figure", "draw", "example_rules"]

INK = "#010203"  # stands for the page's own text colour
TAU, Q_ALT = 0.70, 0.85


@dataclass(frozen=True)
class Figure:
    """A figure by name: what it shows, its size in inches, and how it is drawn."""

    name: str
    title: str
    caption: str
    size: tuple[float, float]
    paint: Callable[[Any, Reproduction], None]


def draw(figure: Figure, reproduction: Reproduction, page: bool = False, kind: str = "svg") -> str:
    """The figure as SVG text; on a `page` its background is clear and its ink the page's."""
    pyplot, style = _matplotlib()
    ink = INK if page else "#222222"
    colours = dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), ink
    )
    with style.context(
        {
            "font.size": 10, "svg.fonttype": "path", "svg.hashsalt": figure.name,
            "axes.titlecolor": ink, **colours,
        }
    ):  # fmt: skip
        canvas = pyplot.Figure(figsize=figure.size, layout="constrained")
        figure.paint(canvas, reproduction)
        out = io.StringIO()
        canvas.savefig(out, format=kind, transparent=page, metadata={"Date": None})
    text = out.getvalue()
    return _inline(text, figure) if page else text


def _inline(text: str, figure: Figure) -> str:
    """The SVG without its file header, in the colours of the page and named for readers."""
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    # Names inside must be unique in the page.
    text = re.sub(r'(id="|href="#|url\(#)', rf"\1{figure.name}-", text)
    return text.replace("<svg ", f'<svg role="img" aria-label="{figure.title}" ', 1)


def example_rules() -> dict[str, Rule]:
    """The paper's running example, tau = .70 and 32 votes, with this library's rules."""
    rule = sequential(TAU, EPS, n_max=S)
    power = float(np.floor(oc(rule, Q_ALT) * 1e6) / 1e6)
    return {
        "Plug-in (curt.)": plug_in(TAU, S),
        "One-look": one_look(TAU, EPS, S),
        "Sequential": rule,
        "SPRT": sprt(TAU, Q_ALT, EPS, power, S),
        "Optimal (one class)": optimal(TAU, EPS, Q_ALT, power, S, [(TAU, 0.5), (Q_ALT, 0.5)]).rule,
    }


def _accuracy(canvas: Any, reproduction: Reproduction) -> None:
    shown = {
        name: points
        for name, points in reproduction.frontiers.items()
        if name != "Plug-in (curt.)"  # the same rules as one-look
    }
    plots.samples_against_accuracy(canvas.add_subplot(), shown)


def _by_round(canvas: Any, reproduction: Reproduction) -> None:
    experiment, tau = reproduction.experiment, BLOCKS[0].certificate
    taus = {"Plug-in (full)": 0.90, "One-look": 0.75}
    names = ("Plug-in (full)", "One-look", "Sequential", "SPRT", "Optimal (one rule)")
    schemes = {scheme.name: scheme for scheme in (*SCHEMES, *ADDED)}
    spent = {name: spent_by_round(experiment, schemes[name], taus.get(name, tau)) for name in names}
    plots.samples_by_round(canvas.add_subplot(), spent)


def _predicted(canvas: Any, reproduction: Reproduction) -> None:
    rows = []
    for row in reproduction.table:
        if row.scheme == "Plug-in (curt.)":
            continue
        told = row.record()["samples"]
        predicted = {
            "from 32": told["predicted_32"],
            "from 128": told["predicted_128"],
            "law of the pool": told["predicted_pool_128"],
        }
        name = row.scheme.replace("Sequential (n_max=128)", "Seq. (n_max=128)")
        rows.append((f"{name}, {row.tau:.2f}", told["measured"], told["interval"], predicted))
    plots.predicted_against_measured(canvas.add_subplot(), rows)


def _lattices(canvas: Any, reproduction: Reproduction) -> None:
    rules = {"Plug-in (full)": plug_in(TAU, S, curtailed=False), **example_rules()}
    grid = canvas.subplots(3, 2, sharex=True, sharey=True)
    for axes, (name, rule) in zip(grid.flat, rules.items(), strict=True):
        plots.lattice(axes, rule, name)
    for axes in grid[:, 0]:
        axes.set_ylabel("votes k")
    for axes in grid[-1]:
        axes.set_xlabel("votes drawn n")


def _oc(canvas: Any, reproduction: Reproduction) -> None:
    plots.oc_curves(canvas.add_subplot(), example_rules(), TAU, EPS)


FIGURES = (
    Figure(
        "accuracy",
        "Samples against accuracy",
        "Each line is one family of rules while its tau moves; lower is cheaper. The wide line is "
        "the frontier: no design is cheaper and more accurate. Samples on a logarithmic scale. "
        "Higher accuracy also takes more rounds.",
        (5.6, 3.9),
        _accuracy,
    ),
    Figure(
        "rounds",
        "Where on the path the samples go",
        "Samples an image in each round, rules of the first block. Early rounds are reached by "
        "all images, but their votes are spread: a rule that can give up early saves there.",
        (5.2, 3.6),
        _by_round,
    ),
    Figure(
        "predicted",
        "Predicted against measured samples",
        "Grey bars: 95% interval of the measured mean. The paper's formula follows the leader "
        "alone; the law of the whole pool knows that rivals keep a pool open.",
        (5.4, 4.4),
        _predicted,
    ),
    Figure(
        "oc",
        "Operating characteristics",
        "tau = .70, 32 votes, eps = 5%. Plug-in declares a class of mass tau about half the "
        "time; the others at most 5% of the time.",
        (5.2, 3.6),
        _oc,
    ),
    Figure(
        "lattice",
        "The lattice under six rules",
        "The same rules. Blue: declared. Orange: out. Dots: a further vote is "
        "drawn. Plug-in declares from 23 votes on, one-look from 28.",
        (5.2, 6.8),
        _lattices,
    ),
)
"""The figures of the experiment."""


def _matplotlib() -> tuple[Any, Any]:
    try:
        from matplotlib import figure, style
    except ImportError:
        raise BadInput("figures need the extra `plot`: pip install 'suffice[plot]'") from None
    return figure, style
