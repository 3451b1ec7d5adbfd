"""Every benchmark, one after the other: one table, and what was measured under which conditions.

    python -m benchmarks            full, some minutes
    python -m benchmarks --short    less; the ratios are rougher
    python -m benchmarks --tiny     whether each runs at all

Each runs in a process of its own and writes `benchmarks/results/latest.json` when it is done, so
that one which fails, dies or hangs costs no other's result: it is named there and at the end, with
its reason. A tiny run and one of `--only` some are written nowhere, unless --output or --keep asks.
Exit 1 when one fails or a figure is not reached. Figures are judged in full size alone.
Before and after each the runner looks how busy the machine is with other work, and says so.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import page
from benchmarks.alone import Failed, run_alone
from benchmarks.lines import BENCHMARKS, Benchmark, Line
from benchmarks.machine import Stolen, is_busy, machine, others
from benchmarks.size import Size, size_options
from benchmarks.table import table

RESULTS = page.RESULTS
ROOT = Path(__file__).parents[1]
WRITTEN_HERE = (":!benchmarks/results", ":!docs/performance.md", ":!docs/performance")
CHANGED = " and changes"
LIMIT_MINUTES = 20.0
LOOK_SECONDS = {Size.FULL: 3.0, Size.SHORT: 2.0, Size.TINY: 0.1}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    size_options(parser)
    parser.add_argument("--only", nargs="+", choices=[each.name for each in BENCHMARKS])
    parser.add_argument("--output", type=Path, help=f"where the JSON goes, else {RESULTS.name}")
    parser.add_argument(
        "--go-on",
        action="store_true",
        help="keep what the output has of this commit, without changes, in this size; run the rest",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="with --only: keep what the output has of the others, whatever code they measured;"
        " those that are measured now say at which commit",
    )
    parser.add_argument(
        "--limit-minutes",
        type=float,
        default=LIMIT_MINUTES,
        help="a benchmark that takes longer is ended and told as failed (default: %(default)g)",
    )
    asked = parser.parse_args(arguments)
    if asked.keep and not asked.only:
        parser.error("--keep needs --only")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what is measured now ends, too
    is_whole = asked.size is not Size.TINY and (asked.keep or not asked.only)
    output = asked.output or (RESULTS if is_whole else None)
    expected = _expected(asked.size)
    told = _begun(asked.size, output if asked.go_on else None)
    if asked.keep:
        told = _kept(asked.size, output) or parser.error(
            f"--keep: {output} holds no results of size {asked.size.value}"
        )
    chosen = [each for each in BENCHMARKS if not asked.only or each.name in asked.only]
    if not asked.keep:
        chosen = [each for each in chosen if each.name not in told["benchmarks"]]
    for number, each in enumerate(chosen):
        _say(f"{each.name}: {_left(chosen[number:], expected)}")
        lines = measured(each, asked.size, told, 60 * asked.limit_minutes)
        told["lines"] = _with(told["lines"], each, lines)
        if not asked.keep:
            told["machine"]["load_average_after"] = [round(load, 2) for load in os.getloadavg()]
        if output is not None:
            _write(output, told)
        if output is not None and output.resolve() == page.RESULTS:
            page.write(told)  # it says what the results say
    lines = page.lines_of(told)
    print(json.dumps(told["machine"]))
    print(table(lines))
    for name, why in told["failed"].items():
        _say(f"FAILED: {name}: {why}")
    if output is not None:
        _say(f"written to {output}")
    return int(bool(told["failed"]) or any(line.reached is False for line in lines))


def _kept(size: Size, output: Path | None) -> dict[str, Any] | None:
    """What was measured before in this size, of whatever code."""
    if output is None or not output.exists():
        return None
    found: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return found if found["size"] == size.value else None


def _begun(size: Size, kept: Path | None) -> dict[str, Any]:
    """What a run begins with: nothing measured, or what an earlier one of the same code kept."""
    told: dict[str, Any] = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "size": size.value,
        "machine": machine(),
        "lines": [],
        "benchmarks": {},
        "failed": {},
    }
    found = _kept(size, kept)
    if found is None or found["commit"] != told["commit"] or not _is_exact(told["commit"]):
        return told
    return {**found, "failed": {}}


def measured(each: Benchmark, size: Size, told: dict[str, Any], limit_seconds: float) -> list[Line]:
    """Run one benchmark and put its result into `told`; one that fails is named under `failed`."""
    for known in ("benchmarks", "failed"):
        told[known].pop(each.name, None)
    before, stolen, began = others(LOOK_SECONDS[size]), Stolen(), time.perf_counter()
    try:
        result = run_alone(each.run, size, limit_seconds)
        seconds, taken = time.perf_counter() - began, stolen.cores()
        lines = list(each.lines(result))
    except Failed as error:
        told["failed"][each.name] = str(error)
        return []
    except Exception as error:  # its result is not what its lines expect
        told["failed"][each.name] = f"{type(error).__name__}: {error}"
        return []
    after = others(LOOK_SECONDS[size])
    load = {"before": before, "after": after, "cores_stolen": taken}
    was_busy = is_busy(before, after, taken)
    told["benchmarks"][each.name] = {
        **result,
        "seconds": round(seconds, 1),
        "machine": {**load, "is_busy": was_busy},
    }
    if (commit := _commit()) != told["commit"]:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        told["benchmarks"][each.name] |= {"commit": commit, "measured_at": now}
    _say(f"{each.name}: {seconds:,.0f} s; others {_others(load)}{'; BUSY' if was_busy else ''}")
    judged = lines if size is Size.FULL else [replace(line, reached=None) for line in lines]
    return [replace(line, is_busy=was_busy) for line in judged]


def _with(kept: list[dict[str, Any]], each: Benchmark, lines: list[Line]) -> list[dict[str, Any]]:
    """The lines of a run with those of one benchmark, in the order of the benchmarks."""
    beside = [line for line in kept if line["benchmark"] != each.name]
    mine = [{"benchmark": each.name, **asdict(line)} for line in lines]
    order = {one.name: number for number, one in enumerate(BENCHMARKS)}
    return sorted(beside + mine, key=lambda line: order.get(line["benchmark"], -1))


def _others(load: dict[str, Any]) -> str:
    before, after = load["before"], load["after"]
    return (
        f"{before['cores_of_others']} cores before, {after['cores_of_others']} after,"
        f" {load['cores_stolen']} stolen; load {before['load_average']}, {after['load_average']}"
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- how long it takes ------------------------------------------------------------------------


def _expected(size: Size) -> dict[str, float]:
    """Seconds that each benchmark took when the kept results were measured in the same size."""
    try:
        kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if kept.get("size") != size.value:
        return {}
    return {name: result["seconds"] for name, result in kept["benchmarks"].items()}


def _left(chosen: Sequence[Benchmark], expected: dict[str, float]) -> str:
    """What a reader who waits wants to know."""
    known = [expected[each.name] for each in chosen if each.name in expected]
    text = f"{len(chosen)} left"
    if not known:
        return text
    unknown = len(chosen) - len(known)
    more = f" and what {unknown} of them take" if unknown else ""
    return f"{text}, about {sum(known) / 60:.0f} minutes{more}"


# --- what is kept -----------------------------------------------------------------------------


def _commit() -> str | None:
    """Which code was measured; None outside a checkout, marked when it was changed. What a run
    writes itself is no change.
    """
    found = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *WRITTEN_HERE)
    return found and found + (CHANGED if changed else "")


def _is_exact(commit: str | None) -> bool:
    """Whether two runs of this name measured the same code: a change has no name."""
    return commit is not None and not commit.endswith(CHANGED)


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _write(path: Path, told: dict[str, Any]) -> None:
    """Whole or not at all: a run that is killed meanwhile keeps what it had."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    beside.replace(path)


if __name__ == "__main__":
    sys.exit(main())
