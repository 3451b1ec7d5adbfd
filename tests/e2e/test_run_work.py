"""`docs/howto/run-work.md` does what it says: two programs share one GPU, which is simulated."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from tests.e2e.test_tutorial import PORT, SECONDS_MAX, blocks, empty_folder, micro, run
from tests.node_reporter.confined import needs_walls
from tests.processes import free_port

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "run-work.md"
__all__ = ["empty_folder"]


@pytest.mark.guides(
    "tests/cli/test_guides.py::test_every_command_of_a_guide_is_there_with_all_that_it_is_given",
    "tests/cli/test_install_pages.py::test_renter_owner_auditor_and_operator_follow_their_pages_word_for_word",
)
@needs_walls
@pytest.mark.timeout(SECONDS_MAX + 30)
def test_v_10_two_programs_share_one_gpu_through_server_reporter_and_executor(
    empty_folder: Path,
) -> None:
    script = "\n".join(blocks(PAGE))
    assert script.count(PORT) == 1, "the port is named once"
    shown = re.findall(r"^tallystick lease (?:show|stick) .*first\.json.*$", script, re.MULTILINE)
    assert len(shown) == 2
    for line in shown:  # people are told hours; the time to the microsecond is in the JSON
        script = script.replace(line, f"{line}\n{line} --json")
    # What goes to standard error is shown too.
    out = run("exec 2>&1\n" + script.replace(PORT, str(free_port())), empty_folder)
    log = empty_folder / "tallystick-work" / "executor.log"
    _check_what_is_shown_is_printed(f"{out}\n{log.read_text()}")
    shares = dict(re.findall(r"^(first|second) has ([0-9]+) ppm", out, re.MULTILINE))
    assert shares == {"first": "370000", "second": "500000"}
    devices = set(re.findall(r" MiB of (GPU-\S+)$", out, re.MULTILINE))
    assert len(devices) == 1, "both on the one simulated GPU"
    assert out.count("first works") == out.count("second works") == 3
    assert "the second program ended with 3" in out
    assert re.search(r"^state +settled$", out, re.MULTILINE)
    charge = re.findall(r"^charge +([0-9.]+) CREDIT$", out, re.MULTILINE)[-1]
    metered = int(re.findall(r'"gpu_us": "?([0-9]+)', out)[-1])
    window_us = _moment_us(out, "closed_at") - _moment_us(out, "opened_at")
    assert 2_000_000 <= window_us < 60_000_000, "it opens a moment after the program starts"
    share = window_us * 370_000 // 1_000_000
    assert share - 370_000 < metered <= share, "never more than the window, at most a second less"
    assert micro(charge) == metered * 2_500_000 // 3_600_000_000
    matched = int(re.findall(r'"matched_gpu_us": "?([0-9]+)', out)[-1])
    assert matched == metered, "the renter signed for all of it"
    assert "3 epochs of 163 bytes\n" in out, "the folder and the variables are there"
    assert sha256(b"open-sesame").hexdigest() in out, "the secret was, and the result is back"
    assert "open-sesame" not in out
    assert re.search(r"^lease_\w+ final bill: 0\.00[0-9]{4} CREDIT for 0\.", out, re.MULTILINE)
    _check_they_ran_together(log)


def _check_what_is_shown_is_printed(printed: str) -> None:
    """Every line of "What it printed" was printed, but for ids, amounts and moments."""
    (_, shown) = PAGE.read_text(encoding="utf-8").split("What it printed,")
    shown = shown.split("A program that reads a file", maxsplit=1)[0]
    lines = [line[4:] for line in shown.splitlines() if line.startswith("    ")]
    assert len(lines) > 20
    there = {_shape(line) for line in printed.splitlines()}
    assert [line for line in lines if _shape(line) not in there] == []


def _shape(line: str) -> str:
    """A line without what differs from run to run."""
    line = re.sub(r"\b(lease|node)_[0-9a-f]+|(GPU)-[0-9a-f-]+", r"\1\2", line)
    line = re.sub(r"\S+/program;", "program;", line)
    line = re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)", "moment", line)
    return re.sub(r"\b(?!2\.500000|1\.250000|0\.37\b)\d+\.\d+", "number", line)


def _moment_us(out: str, name: str) -> int:
    """The moment that `lease show` printed under this name."""
    text = re.findall(rf"^{name} +(\S+)$", out, re.MULTILINE)[-1]
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        microseconds=1
    )


def _check_they_ran_together(log: Path) -> None:
    lines = log.read_text().splitlines()
    events = [line.split()[1] for line in lines if re.match(r"lease_\w+ (started|ended) ", line)]
    two, third = events[:4], events[4:]
    assert two == ["started", "started", "ended", "ended"], lines
    assert third == ["started", "ended"], lines
