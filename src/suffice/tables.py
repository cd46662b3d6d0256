"""The tables of the experiment as text, the same on the terminal, in the page and in documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from suffice.claims import Claim, cut
from suffice.experiment import Paper, Row
from suffice.live_check import Agreement

__all__ = ["Lines", "added_lines", "claim_lines", "live_lines", "matched_lines", "papers_lines"]


@dataclass(frozen=True)
class Lines:
    """A table: a header, and lines of as many cells; a line of one cell is a heading."""

    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


def papers_lines(rows: Sequence[Row]) -> Lines:
    """The paper's table in its layout: our figures, and below each row those of the paper."""
    header = ("scheme", "tau/tau'", "accuracy M/P32/P128", "rounds M", "samples M/P32/P128")
    lines: list[tuple[str, ...]] = []
    for block, part in groupby(rows, lambda row: row.block):
        lines.append((f"Target measured accuracy {block:.2f}",))
        for row in part:
            lines.append(
                (
                    row.scheme,
                    _taus(row),
                    f"{_accuracy(row)} /{_predicted(row, 'accuracy', ('32', '128'))}",
                    _measured(row, "rounds", "{:.2f}"),
                    f"{_measured(row, 'samples', '{:.0f}')} "
                    f"/{_predicted(row, 'samples', ('32', '128'))}",
                )
            )
            if row.paper is not None:
                lines.append(_papers(row.paper))
    return Lines(header, tuple(lines))


def added_lines(rows: Sequence[Row]) -> Lines:
    """This library's rules at the certificate of each block's sequential rule."""
    header = (
        "scheme", "tau/tau'", "accuracy", "declared", "rounds", "samples",
        "predicted P128/pool", "of sequential",
    )  # fmt: skip
    lines: list[tuple[str, ...]] = []
    for block, part in groupby(rows, lambda row: row.block):
        listed = list(part)
        lines.append((f"Block {block:.2f}: certificate 5% at tau = {_share(listed[0].tau)}",))
        for row in listed:
            pools = _predicted(row, "samples", ("128", "pool_128"))
            lines.append((*_shown(row), pools, _ratio(row)))
    return Lines(header, tuple(lines))


def matched_lines(rows: Sequence[Row]) -> Lines:
    """Every scheme at the measured accuracy of the block."""
    header = (
        "scheme", "tau/tau'", "accuracy", "declared", "rounds", "samples", "of sequential", "",
    )  # fmt: skip
    lines: list[tuple[str, ...]] = []
    for target, part in groupby(rows, lambda row: row.extra["target"]):
        lines.append((f"Measured accuracy {target:.3f}",))
        for row in part:
            above = row.summary["accuracy"] > target
            note = "more accurate" if above else "nearest there is"
            note = "" if row.extra["matched"] else note
            lines.append((*_shown(row), _ratio(row), note))
    return Lines(header, tuple(lines))


def claim_lines(claims: Iterable[Claim]) -> Lines:
    """The paper's claims with a verdict on each."""
    lines = [(claim.name, claim.paper, claim.here, claim.verdict) for claim in claims]
    return Lines(("claim", "the paper", "here", "verdict"), tuple(lines))


def live_lines(found: Sequence[Agreement]) -> Lines:
    """How far the live loop's rows agree with the replayed ones."""
    lines: list[tuple[str, ...]] = []
    for each in found:
        named = "; ".join(
            f"image {d.image}, round {d.round}, draw {d.draw}: {d.live} for {d.logged}"
            for d in each.disagreements
        )
        lines.append(
            (
                f"{' = '.join(each.schemes)}, {each.block:.2f}",
                f"{each.agree} of {each.images}",
                f"{len(each.differing)} of {each.votes}",
                named or "none",
            )
        )
    return Lines(
        ("rows", "images that end alike", "votes that differ", "where ends part"), tuple(lines)
    )


def _shown(row: Row) -> tuple[str, ...]:
    return (
        row.scheme,
        _taus(row),
        _accuracy(row),
        _share(row.summary["declared"], 3),
        _measured(row, "rounds", "{:.2f}"),
        _measured(row, "samples", "{:.0f}"),
    )


def _taus(row: Row) -> str:
    digits = 3 if round(row.tau * 1000) % 10 else 2
    return f"{_share(row.tau, digits)}/{cut(row.certified_tau)}"


def _accuracy(row: Row) -> str:
    low, high = row.summary["accuracy_interval"]
    return f"{_share(row.summary['accuracy'], 3)} ({_share(low, 3)}-{_share(high, 3)})"


def _measured(row: Row, name: str, form: str) -> str:
    low, high = row.summary[f"{name}_interval"]
    return f"{form.format(row.summary[name])} ({form.format(low)}-{form.format(high)})"


def _predicted(row: Row, name: str, keys: Sequence[str]) -> str:
    values = [getattr(row.predicted[key], name) for key in keys]
    return "/".join(_share(value, 3) if name == "accuracy" else f"{value:.0f}" for value in values)


def _ratio(row: Row) -> str:
    if "samples_ratio" not in row.extra:
        return ""
    low, high = row.extra["samples_ratio_interval"]
    return f"{row.extra['samples_ratio']:.2f} ({low:.2f}-{high:.2f})"


def _papers(paper: Paper) -> tuple[str, ...]:
    return (
        "  paper",
        f"{_share(paper.tau)}/{_share(paper.certified_tau)}",
        "/".join(map(_share, paper.accuracy)),
        f"{paper.rounds:.1f}",
        "/".join(f"{value:.0f}" for value in paper.samples),
    )


def _share(value: float, digits: int = 2) -> str:
    """A share as the paper prints it, without the zero."""
    return f"{value:.{digits}f}".removeprefix("0")
