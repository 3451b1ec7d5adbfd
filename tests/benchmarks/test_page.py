"""The document of the figures says what the results say, and nothing else."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import asdict
from typing import Any

from benchmarks import page
from benchmarks.lines import Line
from benchmarks.plot import NAMES, ROOM, Bar, Plot, svg
from benchmarks.reasons import REASONS, UNKNOWN

SVG = "{http://www.w3.org/2000/svg}"


def kept() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.RESULTS.read_text(encoding="utf-8"))
    return found


def test_the_page_and_its_plots_are_those_of_the_results() -> None:
    told = kept()
    assert page.PAGE.read_text(encoding="utf-8") == page.page(told), "python -m benchmarks.page"
    drawn = {f"{name}.svg": svg(plot) for name, plot in page.plots(told).items()}
    found = {path.name: path.read_text(encoding="utf-8") for path in page.PLOTS.iterdir()}
    assert found == drawn, "python -m benchmarks.page"


def test_what_is_not_reached_is_told_with_its_reason_and_so_is_what_failed_or_did_not_run() -> None:
    line = Line("market log append x1", ">= 1.8 x peer", False, 9, 8, 7, 1.12, 0.5)
    told = {
        **kept(),
        "lines": [asdict(line), asdict(Line("new", "< 1 s", False, 1, None, None, None, None))],
        "failed": {"books": "ended after 1,200 s without a result"},
        "benchmarks": {"append_market": {"seconds": 3.0}},
    }
    text = page.page(told)
    told_of = "  - market log append x1: wanted >= 1.8 x peer, measured 1.12 x"
    assert f"- {REASONS['market log append x1']}\n{told_of}\n" in text
    assert f"- {UNKNOWN}\n  - new: wanted < 1 s, measured 1/s\n" in text
    assert "**books** gave no result: ended after 1,200 s" in text
    assert "**ingest** was not part of this run" in text


def measured_beside_others() -> dict[str, Any]:
    seen = {"load_average": 2.5, "cores_of_others": 1.25}
    load = {"before": seen, "after": seen, "cores_stolen": 0.0, "is_busy": True}
    return {"seconds": 3.0, "machine": load}


def test_a_result_of_other_code_than_the_others_says_of_which() -> None:
    later = {**measured_beside_others(), "measured_at": "2026-11-29T20:10"}
    later["commit"] = "c0ffee" * 4 + " and changes"
    told = {**kept(), "benchmarks": {"one": measured_beside_others(), "two": later}}
    text = page.page(told)
    assert "(two later: the last table says when)" in text
    assert "| two (2026-11-29 20:10 UTC, `c0ffeec0ffee` and changes) | 3.0 |" in text


def test_a_row_of_a_busy_machine_is_marked_in_the_page() -> None:
    line = asdict(Line("it", "", None, 1, None, None, None, None, is_busy=True))
    told = {**kept(), "lines": [line], "benchmarks": {"one": measured_beside_others()}}
    text = page.page(told)
    assert "| **busy:** it |" in text
    assert "1 of 1 rows are marked **busy**" in text
    assert "| one | 3.0 | 1.25 | 1.25 | 0.0 | 2.5 | 2.5 |" in text


def test_a_bar_is_as_long_as_its_value_and_stays_in_the_picture() -> None:
    plot = Plot("a < b", [Bar("one & all", 1, "1"), Bar("two", 2, "2", is_reached=False)], (4, "4"))
    root = ET.fromstring(svg(plot))
    widths = [int(one.attrib["width"]) for one in root.iter(f"{SVG}rect")]
    assert widths == [ROOM // 4, ROOM // 2]
    assert len({one.attrib["fill"] for one in root.iter(f"{SVG}rect")}) == 2
    assert "one & all" in [one.text for one in root.iter(f"{SVG}text")]


def test_a_bar_of_less_than_one_goes_to_the_left_where_bars_are_ratios() -> None:
    plot = Plot("ratios", [Bar("slower", 0.1, "0.1"), Bar("faster", 10, "10")], is_log=True)
    slower, faster = ET.fromstring(svg(plot)).iter(f"{SVG}rect")
    middle = NAMES + ROOM // 2
    assert (int(slower.attrib["x"]), int(faster.attrib["x"])) == (NAMES, middle)
    assert slower.attrib["width"] == faster.attrib["width"] == str(ROOM // 2)
