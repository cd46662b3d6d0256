"""Write the experiment's tables and figures into the documents, from the reference logs.

Designs for whole sensing runs are those of the package; with --design they are made anew, which
takes a quarter of an hour, and kept for the package.

A document marks each place: what stands between `<!-- reproduce NAME -->` and `<!-- end -->` is
replaced by the table NAME. Run it again whenever a rule, a log or a figure changes; a test says
when that was forgotten.
"""

import argparse
import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path

from suffice.claims import cut
from suffice.comparison import spent_by_round
from suffice.errors import BadInput, CalibrationInfeasible
from suffice.experiment import BLOCKS, Row
from suffice.figures import FIGURES, draw
from suffice.plan import Plan, plan
from suffice.progress import Progress
from suffice.reference import designs_record, reference_designs, reference_log
from suffice.reproduce import STEPS, Reproduction, reproduce
from suffice.schemes import ADDED, LARGE, SCHEMES, TAU_FREE, WHOLE_RUN
from suffice.tables import Lines, added_lines, claim_lines, matched_lines, papers_lines
from suffice.votes import VoteLog

ROOT = Path(__file__).parents[1]
DOCUMENTS = (ROOT / "README.md", ROOT / "docs" / "experiment.md", ROOT / "docs" / "plan.md")
FOLDER = ROOT / "docs" / "figures"
DESIGNS = ROOT / "src" / "suffice" / "assets" / "designs.json"
PAPERS = ("Plug-in (full)", "One-look", "Sequential")
WHOLE = tuple(scheme.name for scheme in WHOLE_RUN)
MARKED = re.compile(r"(<!-- reproduce (\w+) -->\n).*?(<!-- end -->)", re.S)


def markdown(table: Lines) -> str:
    """The table as Markdown; a heading stands in the first column."""
    lines = [table.header, ("---",) * len(table.header)]
    for line in table.lines:
        heading = (f"**{line[0]}**", *[""] * (len(table.header) - 1))
        lines.append(heading if len(line) == 1 else tuple(cell.strip() for cell in line))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def saved_lines(table: Sequence[Row], added: Sequence[Row]) -> Lines:
    """What a user of plug-in saves at the same certificate, block by block."""
    lines: list[tuple[str, ...]] = []
    for block in BLOCKS:
        base, *others = [
            *(row for row in table if row.block == block.target and row.scheme in PAPERS),
            *(row for row in added if row.block == block.target and row.scheme in WHOLE),
        ]
        low, high = sorted((cut(base.certified_tau), cut(block.certificate)))
        lines.append((f"Certified at tau' = {low} to {high}" if low < high else low,))
        for row in (base, *others):
            told, ratio = row.summary, ""
            if row is not base:
                found = row.outcome.compare(base.outcome)
                low, high = found["samples_ratio_interval"]
                ratio = f"{found['samples_ratio']:.2f} ({low:.2f}-{high:.2f})"
            figures = f"{told['accuracy']:.3f}", f"{told['rounds']:.2f}", f"{told['samples']:.0f}"
            lines.append((row.scheme, *figures, ratio))
    return Lines(("rule", "accuracy", "rounds", "samples", "of plug-in (full)"), tuple(lines))


PLANS = (
    ("accuracy .97", {"accuracy": 0.97}),
    ("accuracy .97, seed 1", {"accuracy": 0.97, "seed": 1}),
    ("guarantee .03", {"guarantee": 0.03}),
    ("guarantee .005", {"guarantee": 0.005}),
)
ROUND_COST = 10.0


def plan_lines(made: Plan) -> Lines:
    """The design that a plan deploys, beside the rivals."""
    header = (
        "", "rule", "tau", "n_max", "accuracy", "rounds", "samples", "cost",
        "deployed / it, cost", "deployed - it, accuracy in points",
    )  # fmt: skip
    lines: list[tuple[str, ...]] = []
    for kind, each in [("deploy", made.deploy), *(("rival", rival) for rival in made.rivals)]:
        told, ratio, points = each.record(), "", ""
        if kind == "rival":
            found = made.deploy.against(each)
            low, high = found["cost_ratio_interval"]
            ratio = f"{found['cost_ratio']:.3f} ({low:.3f} to {high:.3f})"
            apart = (found["accuracy_difference"], *found["accuracy_difference_interval"])
            middle, low, high = (100 * value for value in apart)
            points = f"{middle:+.1f} ({low:+.1f} to {high:+.1f})"
        figures = f"{told['accuracy']:.4f}", f"{told['rounds']:.2f}", f"{told['samples']:.1f}"
        named = told["rule"], f"{told['tau']:g}", str(told["n_max"])
        lines.append((kind, *named, *figures, f"{told['cost']:.1f}", ratio, points))
    return Lines(header, tuple(lines))


def plans(log: VoteLog) -> dict[str, str]:
    """The tables of the page on planning: one plan with its rivals, and what others deploy."""
    lines: list[tuple[str, ...]] = []
    rivals: Lines | None = None
    for name, asked in PLANS:
        try:
            made = plan(log, 1.0, ROUND_COST, **asked)
        except CalibrationInfeasible as error:
            seen = f"{error.best['wrong']} of {error.best['declared']}"
            needed = f"about {error.best['images_needed']:,} images would do"
            lines.append((name, "none passes", "", seen, needed))
            continue
        rivals = rivals or plan_lines(made)
        told, outcome = made.deploy.record(), made.deploy.outcome
        wrong = f"{(outcome.declared & ~outcome.right).sum()} of {outcome.declared.sum()}"
        lines.append((name, told["rule"], f"{told['tau']:g}", wrong, f"{told['cost']:.1f}"))
    header = ("asked", "deployed", "tau", "wrong of declared, held out", "cost")
    assert rivals is not None
    return {"plan": markdown(rivals), "plans": markdown(Lines(header, tuple(lines)))}


def tables(found: Reproduction) -> dict[str, str]:
    """All tables by name, as Markdown."""
    return {
        "paper": markdown(papers_lines(found.table)),
        "added": markdown(added_lines(found.added)),
        "matched": markdown(matched_lines(found.matched)),
        "claims": markdown(claim_lines(found.claims)),
        "saved": markdown(saved_lines(found.table, found.added)),
    }


def filled(text: str, found: dict[str, str]) -> str:
    """The document with its marked places written anew."""

    def place(match: re.Match[str]) -> str:
        if match[2] not in found:
            raise BadInput(f"no table {match[2]!r}; use one of {', '.join(found)}")
        return f"{match[1]}{found[match[2]]}{match[3]}"

    return MARKED.sub(place, text)


def shown(found: Reproduction) -> str:
    """What the figures show, as JSON."""
    frontiers = {
        name: [{key: round(value, 4) for key, value in point.items()} for point in points]
        for name, points in found.frontiers.items()
    }
    by_round = {
        scheme.name: spent_by_round(found.experiment, scheme, BLOCKS[0].certificate)
        .round(3)
        .tolist()
        for scheme in (*SCHEMES[:5], *ADDED)
    }
    return json.dumps({"frontiers": frontiers, "samples_by_round": by_round}, indent=1) + "\n"


def main() -> None:
    """Write the documents, the figures and their data."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--design", action="store_true", help="make the designs anew")
    anew = parser.parse_args().design
    logs = reference_log(32), reference_log(128)
    with Progress(STEPS, "steps") as progress:
        done = itertools.count(1)
        found = reproduce(
            *logs,
            lambda: progress(next(done)),
            None if anew else reference_designs(*logs),
        )
    slow = {scheme.name for scheme in (*WHOLE_RUN, *LARGE, *TAU_FREE)}
    fitted = {
        key: [rules for rules, _ in halves]
        for key, halves in found.experiment.fitted.items()
        if key[0] in slow
    }
    DESIGNS.write_text(json.dumps(designs_record(logs, fitted), separators=(",", ":")) + "\n")
    all_tables = tables(found) | plans(logs[0])
    for path in DOCUMENTS:
        path.write_text(filled(path.read_text(), all_tables))
    for figure in FIGURES:
        (FOLDER / f"{figure.name}.svg").write_text(draw(figure, found))
    (FOLDER / "data.json").write_text(shown(found))


if __name__ == "__main__":
    main()
