"""`tallystick utilisation | fragmentation`: how well the accelerators are used, as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from api.cli_billing import From, To
from api.cli_remote import Limit, Remote, reads
from api.cli_terminal import columns, top_level

commands = top_level()

WIDTH = 40
MARKS = {"leased": "#", "idle": ".", "stranded": "x", "unavailable": "?"}
_NAMES = ("hour", "day", "pool", "region", "model", "node")


@commands.command(epilog="Example: tallystick utilisation --by day,pool")
@reads
def utilisation(
    remote: Remote,
    by: Annotated[str, typer.Option(help="hour or day first; pool, region, model, node.")] = "pool",
    pool: Annotated[str | None, typer.Option(help="Only of this pool.")] = None,
    from_: From = None,
    to: To = None,
    limit: Limit = 50,
) -> None:
    """Where the accelerators' time went.

    In the last column # is leased, . is idle, x is stranded and ? is unavailable.
    """
    found = remote.list(
        lambda c, size, cursor: c.list_utilisation(
            by=by, pool_id=pool, from_=from_, to=to, limit=size, cursor=cursor
        ),
        limit,
    )
    rows = [{**row, "leased": _percent(row["leased_ppm"]), "time": bar(row)}
            for row in found["data"]]  # fmt: skip
    remote.tell(found, columns(rows, (*_told(rows), "asset", "leased", "time")))


@commands.command(epilog="Example: tallystick fragmentation --by model --json")
@reads
def fragmentation(
    remote: Remote,
    by: Annotated[str, typer.Option(help="Some of pool, region, model.")] = "pool",
    pool: Annotated[str | None, typer.Option(help="Only of this pool.")] = None,
) -> None:
    """What is free now, and how many requests for 1, 2, 4 or 8 whole devices of a node fit."""
    found = remote.ask(lambda c: c.list_fragmentation(by=by, pool_id=pool))
    rows = [
        {**row, "free": f"{int(row['free_ppm']) / 1e6:.2f}",
         "in parts": _percent(row["fragmented_ppm"])}
        for row in found["data"]
    ]  # fmt: skip
    names = ("devices", "whole_free", "free", "in parts", "room_1", "room_2", "room_4", "room_8")
    remote.tell(found, columns(rows, (*_told(rows), *names)))


def bar(row: Mapping[str, Any], width: int = WIDTH) -> str:
    """A line of marks whose lengths add up to the width; the last part takes what is left over."""
    physical = int(row["physical"])
    if not physical:
        return ""
    ends, total = [], 0
    for name in MARKS:
        total += int(row[name])
        ends.append(total * width // physical)
    lengths = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    return "".join(mark * length for mark, length in zip(MARKS.values(), lengths, strict=True))


def _told(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [name for name in _NAMES if any(row.get(name) is not None for row in rows)]


def _percent(ppm: int) -> str:
    return f"{ppm / 10_000:.1f} %"
