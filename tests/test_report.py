"""The page is whole, alone, and says what the rows say."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from suffice.claims import claims
from suffice.comparison import against, frontier, row_of
from suffice.errors import BadInput, RunFailed
from suffice.experiment import Experiment, papers_table
from suffice.figures import FIGURES, draw
from suffice.reference import reference_log
from suffice.report import page, write_report
from suffice.reproduce import Reproduction
from suffice.schemes import ADDED, SCHEMES
from suffice.votes import VoteLog


@pytest.fixture(scope="module")
def reproduction() -> Reproduction:
    """The experiment on the first 30 images, with two schemes only beside the paper's."""
    logs = [reference_log(32), reference_log(128)]
    few = [VoteLog(log.images[:30], log.truth[:30], log.votes[:30], log.metadata) for log in logs]
    experiment = Experiment(*few)
    table = papers_table(experiment)
    base = next(row for row in table if row.scheme == "Sequential")
    one_rule = next(scheme for scheme in ADDED if scheme.name == "Optimal (one rule)")
    added = [base, against(row_of(experiment, one_rule, 1.0, 0.78, pools=True), base)]
    matched = [replace(row, extra={"target": row.block, "matched": True}) for row in table]
    frontiers = {scheme.name: frontier(experiment, scheme) for scheme in SCHEMES[2:6]}
    found = claims(experiment, table, matched)
    return Reproduction(experiment, table, added, matched, found, frontiers)


@pytest.fixture(scope="module")
def html(reproduction: Reproduction) -> str:
    return page(reproduction)


class Tags(HTMLParser):
    """Collects tags and identities, and checks that what opens closes."""

    VOID = frozenset({"meta", "br", "link", "img", "use", "path", "rect"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "data", "srcset"):
                self.links.append(value)

    def handle_endtag(self, tag) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()


def test_the_page_is_well_formed_and_fetches_nothing(html: str) -> None:
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert len(tags.ids) == len(set(tags.ids))
    assert tags.links
    assert all(link.startswith("#") and link[1:] in tags.ids for link in tags.links)
    assert not re.search(r"@import|url\((?!#)|<script", html)


def test_the_page_names_its_figures_for_readers_and_takes_the_pages_ink(html: str) -> None:
    for figure in FIGURES:
        assert f'aria-label="{figure.title}"' in html
    assert html.count("<svg") == len(FIGURES)
    assert "currentColor" in html
    assert "#010203" not in html


def test_the_page_says_what_the_rows_say(reproduction: Reproduction, html: str) -> None:
    for row in reproduction.table:
        assert f"{row.summary['samples']:.0f} (" in html
    for claim in reproduction.claims:
        assert html.count(f">{claim.verdict}<") >= 1
    assert "154/137/144" in html


def test_a_figure_for_a_document_is_the_same_each_time(reproduction: Reproduction) -> None:
    figure = next(figure for figure in FIGURES if figure.name == "oc")
    once, again = (draw(figure, reproduction) for _ in range(2))
    assert once == again
    assert once.startswith("<?xml")


def test_the_report_is_written_into_a_folder_that_is_made(
    reproduction: Reproduction, html: str, tmp_path: Path
) -> None:
    path = write_report(tmp_path / "deep" / "out", reproduction)
    assert path.name == "report.html"
    assert path.read_text() == html
    with pytest.raises((BadInput, RunFailed)):
        write_report(path, reproduction)
