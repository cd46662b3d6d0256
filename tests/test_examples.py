"""The examples run, and the documents say what they print."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def printed(name: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    return capsys.readouterr().out.splitlines()


def test_the_paper_page_is_what_the_example_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/paper.md").read_text().splitlines()
    rows = printed("paper_numbers.py", capsys)
    start = page.index(rows[0])
    assert page[start : start + len(rows)] == rows


def test_the_running_example_orders_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed("running_example.py", capsys)
    rows = {line[:20].strip(): [float(x) for x in line[20:].split()] for line in lines[4:]}
    assert len(rows) == 6
    size, cost = 0, 4
    assert rows["plug-in"][size] == rows["plug-in (full)"][size] == 0.495
    assert rows["one-look"][size] == 0.019
    assert rows["sequential"][cost] < rows["one-look"][cost] < rows["one-look (full)"][cost] == 32
