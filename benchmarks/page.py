"""`docs/performance.md` and its plots, made of `benchmarks/results/latest.json` and nothing else.

    python -m benchmarks.page

`make bench` does it by itself. No number in the page is typed by hand; a reason why a figure is not
reached is, and names none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from benchmarks.books import projections
from benchmarks.history import slopes
from benchmarks.lines import BENCHMARKS, Line
from benchmarks.plot import Bar, Plot, svg
from benchmarks.reasons import reason_of
from benchmarks.table import processor

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "latest.json"
PAGE = ROOT / "docs" / "performance.md"
PLOTS = ROOT / "docs" / "performance"
REBUILD = "rebuild of "

_HEAD = """# Performance

Written by `make bench` from `benchmarks/results/latest.json`: do not edit. How each figure is
measured says [the folder of the benchmarks](../benchmarks/README.md).

{run}

Every figure stands beside a **peer** (what a careful team would otherwise use) and the **limit** of
the machine (the same bytes with none of the work), measured in the same run: take the ratios, for a
rate is one of this machine and of this hour. The **slope** of an operation is its time in a market
with 100 times the history, as a multiple of its time in the young one. **Processor** is what one
operation of ours costs in microseconds: of the load generator (`client`), the server, this process
where there is no HTTP between, and PostgreSQL. {busy}
"""


def page(told: dict[str, Any]) -> str:
    """The document."""
    lines = lines_of(told)
    parts = [_HEAD.format(run=_run(told), busy=_busy(told, lines))]
    for name, plot in plots(told).items():
        parts.append(f"![{plot.title}](performance/{name}.svg)\n")
    parts += ["## All figures\n", _figures(lines)]
    parts += ["## What is not reached, and why\n", _not_reached(told, lines)]
    parts += ["## How busy the machine was\n", _loads(told)]
    return "\n".join(parts)


def lines_of(told: dict[str, Any]) -> list[Line]:
    """The lines of a run as they were written."""
    known = {each.name for each in fields(Line)}
    return [Line(**{k: v for k, v in one.items() if k in known}) for one in told["lines"]]


def plots(told: dict[str, Any]) -> dict[str, Plot]:
    """By the name of the file; none without bars."""
    lines = lines_of(told)
    views = [one for one in lines if one.what.startswith(REBUILD) and "market facts" in one.what]
    found = {
        "peers": Plot(
            "Ours as a multiple of the peer (to the right: faster)",
            _bars((one for one in lines if one not in views), "of_peer", " x"),
            (1.0, "the peer"),
            is_log=True,
        ),
        "slopes": Plot(
            "Time of one operation at 100 x the history, as a multiple of 1 x",
            _bars(lines, "slope", " x"),
            (slopes.FIGURE, f"{slopes.FIGURE} x"),
        ),
        "views": Plot(
            "Views made anew: facts of the market log a second",
            [Bar(_short(one), one.ours, f"{one.ours:,}", one.reached) for one in views],
            (projections.FIGURE, f"{projections.FIGURE:,}"),
        ),
    }
    return {name: plot for name, plot in found.items() if plot.bars}


def _bars(lines: Iterable[Line], of: str, unit: str) -> list[Bar]:
    return [
        Bar(_short(line), value, f"{value:.2f}{unit}", line.reached)
        for line in lines
        if (value := getattr(line, of))
    ]


def _short(line: Line) -> str:
    return line.what.removesuffix(", market facts")


# --- the parts --------------------------------------------------------------------------------


def _run(told: dict[str, Any]) -> str:
    machine = told["machine"]
    postgres = machine["postgres"]
    settings = ", ".join(f"{k} {v}" for k, v in postgres.items() if k != "server_version")
    return (
        f"Measured on {told['measured_at'][:16].replace('T', ' ')} UTC at commit"
        f" {_commit(told['commit'])}{_but(told)}, size `{told['size']}`, on"
        f" {machine['cores']} cores of {machine['processor']}, {machine['memory_mib']:,} MiB,"
        f" {machine['system']}, Python {machine['python']}, PostgreSQL"
        f" {postgres['server_version']} ({settings}), {machine['fdatasync_per_second']:,} syncs"
        f" of 8 kB a second; load average before"
        f" {machine['load_average_before'][0]}, after {machine['load_average_after'][0]}."
    )


def _but(told: dict[str, Any]) -> str:
    later = [name for name, result in told["benchmarks"].items() if "measured_at" in result]
    return f" ({', '.join(later)} later: the last table says when)" if later else ""


def _busy(told: dict[str, Any], lines: Sequence[Line]) -> str:
    if not any("machine" in result for result in told["benchmarks"].values()):
        return "How much others used the machine in this run is not known."
    count = sum(line.is_busy for line in lines)
    if not count:
        return "In the seconds before and after each row nothing else used the machine."
    return f"{count} of {len(lines)} rows are marked **busy**: others used the machine meanwhile."


def _figures(lines: Sequence[Line]) -> str:
    rows = [
        "| what | ours/s | peer/s | limit/s | of peer | of limit | slope | processor, us |"
        " figure to reach |",
        "|---|---:|---:|---:|---:|---:|---:|---|---|",
    ]
    for line in lines:
        numbers = [line.ours, line.peer, line.limit]
        cells = [
            ("**busy:** " if line.is_busy else "") + line.what,
            *("" if one is None else f"{one:,}" for one in numbers),
            "" if line.of_peer is None else f"{line.of_peer:.2f} x",
            "" if line.of_limit is None else f"{line.of_limit:.1%}",
            "" if line.slope is None else f"{line.slope:.2f} x",
            processor(line.processor_ns),
            _figure(line),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _figure(line: Line) -> str:
    said = {None: "", True: ": reached", False: ": **not reached**"}[line.reached]
    return f"{line.wanted}{said}" + (f" ({line.more})" if line.more else "")


def _not_reached(told: dict[str, Any], lines: Sequence[Line]) -> str:
    missed: dict[str, list[Line]] = {}
    for line in lines:
        if line.reached is False:
            missed.setdefault(reason_of(line.what), []).append(line)
    rows = [
        "\n".join(
            (f"- {reason}", *(f"  - {one.what}: wanted {one.wanted}, {_got(one)}" for one in some))
        )
        for reason, some in missed.items()
    ]
    rows += [f"- **{name}** gave no result: {why}" for name, why in told["failed"].items()]
    there = {*told["benchmarks"], *told["failed"]}
    rows += [
        f"- **{each.name}** was not part of this run"
        for each in BENCHMARKS
        if each.name not in there
    ]
    if not any(line.reached is not None for line in lines):
        rows.insert(0, f"- No figure is judged by a run of size `{told['size']}`.")
    return "\n".join(rows or ["All figures are reached."]) + "\n"


def _got(line: Line) -> str:
    if line.slope is not None:
        return f"measured {line.slope:.2f} x"
    if line.of_peer is not None and "peer" in line.wanted:
        return f"measured {line.of_peer:.2f} x"
    if line.of_limit is not None and "limit" in line.wanted:
        return f"measured {line.of_limit:.1%}"
    return f"measured {line.ours:,}/s" + (f", {line.more}" if line.more else "")


def _loads(told: dict[str, Any]) -> str:
    rows = [
        "| benchmark | seconds | cores of others before | after | stolen | load before | after |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, result in told["benchmarks"].items():
        seen = result.get("machine")
        if seen is None:
            rows.append(f"| {name} | {result['seconds']} | | | | | |")
            continue
        before, after = seen["before"], seen["after"]
        cells = [
            name + _when(result),
            result["seconds"],
            before["cores_of_others"],
            after["cores_of_others"],
            seen["cores_stolen"],
            before["load_average"],
            after["load_average"],
        ]
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(rows) + "\n"


def _when(result: dict[str, Any]) -> str:
    """Which code a result is of, and when, where the others are of another one."""
    if "measured_at" not in result:
        return ""
    at = result["measured_at"][:16].replace("T", " ")
    return f" ({at} UTC, {_commit(result['commit'])})"


def _commit(name: str | None) -> str:
    """Its first letters, and whether there were changes."""
    commit, _, more = (name or "unknown").partition(" ")
    return f"`{commit[:12]}`{' ' + more if more else ''}"


def write(told: dict[str, Any]) -> None:
    """The page and its plots, those that are no longer made taken away."""
    PLOTS.mkdir(exist_ok=True)
    drawn = {PLOTS / f"{name}.svg": svg(plot) for name, plot in plots(told).items()}
    for old in set(PLOTS.glob("*.svg")) - drawn.keys():
        old.unlink()
    for path, text in {PAGE: page(told), **drawn}.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(json.loads(RESULTS.read_text(encoding="utf-8")))
