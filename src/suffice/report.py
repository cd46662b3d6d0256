"""One self-contained HTML page: tables, verdicts and figures, nothing fetched from anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from suffice.errors import BadInput
from suffice.figures import FIGURES, draw
from suffice.files import write_whole
from suffice.live_check import Agreement
from suffice.reproduce import Reproduction
from suffice.tables import (
    Lines,
    added_lines,
    claim_lines,
    live_lines,
    matched_lines,
    papers_lines,
)

__all__ = ["make_folder", "page", "write_report"]

STYLE = """
:root { color-scheme: light dark; --ink: #1d1f21; --soft: #5c6166; --paper: #fdfdfc;
  --line: #d9dbdd; --tint: #f2f4f5; --good: #0b7a58; --bad: #b3401a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6e8; --soft: #a0a6ab; --paper: #15181a;
  --line: #383d41; --tint: #1e2225; --good: #39c299; --bad: #f08a5d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.2rem 4rem; max-width: 74rem; color: var(--ink);
  background: var(--paper); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .6rem; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .5rem; }
p { max-width: 46rem; margin: .5rem 0; }
.soft, figcaption { color: var(--soft); font-size: .92rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(10.5rem, 1fr)); gap: .8rem;
  margin: 1.4rem 0; padding: 0; list-style: none; }
.facts li { border-top: 3px solid #1b7fc4; padding-top: .4rem; font-size: .92rem; }
.facts b { display: block; font-size: 1.7rem; line-height: 1.2; font-weight: 600; }
.wide { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .7rem .28rem 0; text-align: left; vertical-align: top;
  white-space: nowrap; }
thead th { border-bottom: 1px solid var(--ink); font-weight: 600; }
tbody th { font-weight: 600; padding-top: .9rem; border-bottom: 1px solid var(--line); }
tr.paper td { color: var(--soft); padding-top: 0; }
tr.paper td:first-child { padding-left: 1rem; }
.claims td { white-space: normal; min-width: 9rem; border-bottom: 1px solid var(--line); }
.claims td:first-child { font-weight: 600; }
.claims td:nth-child(3) { min-width: 15rem; }
.holds { color: var(--good); } .fails { color: var(--bad); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 29rem), 1fr));
  gap: 2rem 2.4rem; align-items: start; }
figure { margin: 0; min-width: 0; }
figure svg { width: 100%; height: auto; display: block; max-width: 36rem; }
figure h3 { font-size: 1rem; margin: 0 0 .5rem; }
@media (max-width: 44rem) {
  .claims thead { display: none; }
  .claims, .claims tbody, .claims tr, .claims td { display: block; }
  .claims td { border: 0; padding: 0 0 .15rem; }
  .claims td:nth-child(2)::before { content: "The paper: "; color: var(--soft); }
  .claims td:nth-child(3)::before { content: "Here: "; color: var(--soft); }
  .claims tr { border-bottom: 1px solid var(--line); padding: .6rem 0; }
  .rows td:first-child { position: sticky; left: 0; background: var(--paper); }
}
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .88rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
"""


def page(reproduction: Reproduction, live: Sequence[Agreement] = ()) -> str:
    """The whole page as text."""
    log = reproduction.experiment.logs["32"]
    sections = [
        f"<h1>How many posterior samples?</h1><p>The paper's experiment on {len(log.images)} "
        f"MNIST images, up to {log.rounds} rounds each: thirteen rules replayed on one log of "
        "votes, judged against what the paper says, and beside the rules of this library. "
        "Intervals hold 95% of the bootstrap over images.</p>",
        _facts(reproduction),
        _section("What the paper says, judged", _claims(reproduction)),
        _section(
            "The paper's table",
            "<p class=soft>M measured; P32 and P128 predicted by the paper's formulas from the "
            "votes of the log and from 128 further votes. Below each row, the paper's.</p>"
            + _table(papers_lines(reproduction.table)),
        ),
        _section("Figures", f"<div class=figures>{_figures(reproduction)}</div>"),
        _section(
            "This library's rules at the same certificate",
            "<p class=soft>All hold 5% at the tau of the block's sequential rule. Fitted rules "
            "were designed on one half of the images and reported on the other, both ways round. "
            "The last column is the share of the sequential rule's samples on the same images."
            "</p>" + _table(added_lines(reproduction.added)),
        ),
        _section(
            "Every rule at matched accuracy",
            "<p class=soft>Each tau was moved until the measured accuracy was that of the "
            "block.</p>" + _table(matched_lines(reproduction.matched)),
        ),
    ]
    if live:
        sections.append(
            _section(
                "Sensed live",
                "<p class=soft>The same images sensed again by the live loop. A vote can differ "
                "between machines where two labels nearly tie; each image that ends otherwise is "
                "named with its first such vote.</p>" + _table(live_lines(live)),
            )
        )
    sections.append(_section("What was run", _run(reproduction)))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>suffice: the paper's experiment</title><style>{STYLE}</style></head>"
        f"<body>{''.join(sections)}</body></html>\n"
    )


def write_report(
    folder: str | Path, reproduction: Reproduction, live: Sequence[Agreement] = ()
) -> Path:
    """Write `report.html` into a folder, which is made where it is missing."""
    path = make_folder(folder) / "report.html"
    write_whole(path, page(reproduction, live))
    return path


def make_folder(folder: str | Path) -> Path:
    """The folder of the report, made where it is missing."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"{folder}: cannot be made a folder ({error.strerror}); name another"
        ) from None
    return folder


def _facts(reproduction: Reproduction) -> str:
    """Four numbers worth knowing first."""
    by_name = {claim.name: claim for claim in reproduction.claims}
    top = max(row.block for row in reproduction.table)
    saving = by_name["curtailment"].figures["savings"][0]
    rivals = [row for row in reproduction.added if row.scheme == "Optimal (one rule)"]
    shares = [row.extra["samples_ratio"] for row in rivals]
    closed = by_name["what closes the gap"].figures["closed"]
    holds = sum(claim.verdict == "holds" for claim in reproduction.claims)
    facts = [
        (f"{saving:.0%}", f"of the samples saved by curtailment at the target {top:.2f}"),
        (
            f"{1 - max(shares):.0%} to {1 - min(shares):.0%}",
            "fewer samples than the sequential rule, at its certificate, by one optimal rule",
        ),
        (f"{closed:.0%}", "of the error in predicted cost gone with the law of the whole pool"),
        (f"{holds} of {len(reproduction.claims)}", "statements of the paper hold here in full"),
    ]
    items = "".join(f"<li><b>{escape(a)}</b>{escape(b)}</li>" for a, b in facts)
    return f"<ul class=facts>{items}</ul>"


def _claims(reproduction: Reproduction) -> str:
    table = claim_lines(reproduction.claims)
    body = []
    for *cells, verdict in table.lines:
        kind = "holds" if verdict == "holds" else "fails"
        told = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        body.append(f"<tr>{told}<td class={kind}>{escape(verdict)}</td></tr>")
    return _wrapped(table.header, body, "claims")


def _table(table: Lines) -> str:
    body = []
    for line in table.lines:
        if len(line) == 1:
            body.append(f'<tr><th colspan="{len(table.header)}">{escape(line[0])}</th></tr>')
            continue
        kind = " class=paper" if line[0].startswith(" ") else ""
        told = "".join(f"<td>{escape(cell.strip())}</td>" for cell in line)
        body.append(f"<tr{kind}>{told}</tr>")
    return _wrapped(table.header, body, "rows")


def _wrapped(header: Sequence[str], body: Sequence[str], kind: str) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    return (
        f'<div class=wide tabindex=0><table class="{kind}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _figures(reproduction: Reproduction) -> str:
    return "".join(
        f"<figure><h3>{escape(figure.title)}</h3>{draw(figure, reproduction, page=True)}"
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
        for figure in FIGURES
    )


def _run(reproduction: Reproduction) -> str:
    told: dict[str, object] = {}
    for key, value in sorted(reproduction.experiment.logs["32"].metadata.items()):
        told |= (
            {f"{key}: {name}": part for name, part in value.items()}
            if isinstance(value, dict)
            else {key: value}
        )
    items = "".join(
        f"<dt>{escape(str(key))}</dt><dd>{escape(str(value))}</dd>" for key, value in told.items()
    )
    return f"<dl>{items}</dl>"


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"
