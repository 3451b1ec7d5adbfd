"""The lines of all benchmarks as one table for a terminal: ratios first."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.lines import Line

HEADS = (
    "of peer",
    "of limit",
    "slope",
    "ours/s",
    "peer/s",
    "limit/s",
    "processor us",
    "figure to reach",
    "",
    "",
)
NUMBERS = 6
"""So many columns stand on the right."""
BUSY = "BUSY: "
"""Before the name of what was measured while others used the machine."""


def table(lines: Sequence[Line]) -> str:
    """Ratios, then the rates they come from, then what one operation costs the processor."""
    cells = [HEADS, *map(_row, lines)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(HEADS) - 1)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place < NUMBERS else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=False))
        )
        + "  "
        + row[-1]
        for row in cells
    )


def _row(line: Line) -> tuple[str, ...]:
    return (
        "" if line.of_peer is None else f"{line.of_peer:.2f} x",
        "" if line.of_limit is None else f"{line.of_limit:.1%}",
        "" if line.slope is None else f"{line.slope:.2f} x",
        *("" if rate is None else f"{rate:,}" for rate in (line.ours, line.peer, line.limit)),
        processor(line.processor_ns),
        line.wanted,
        {None: "", True: "reached", False: "NOT REACHED"}[line.reached],
        (BUSY if line.is_busy else "") + line.what + (f" ({line.more})" if line.more else ""),
    )


def processor(spent_ns: dict[str, int] | None) -> str:
    """Microseconds of an operation, by who spends them."""
    return ", ".join(f"{who} {_us(ns)}" for who, ns in (spent_ns or {}).items())


def _us(ns: int) -> str:
    return f"{ns / 1_000:,.1f}" if ns < 100_000 else f"{ns // 1_000:,}"
