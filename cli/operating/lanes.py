"""`tallystick move-lanes`: usage lanes go to another PostgreSQL server, or come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.settings import ConfigFile, DataDir, in_force
from cli.terminal import AsJson, InputUnusable, columns, note, tell, top_level
from cli.this_machine import database

if TYPE_CHECKING:
    from ledger.log.lane_map import LaneMap

commands = top_level()

COLUMNS = ("lane", "reports", "head", "root")


@commands.command("move-lanes", epilog="Example: tallystick move-lanes 32-63 --to postgresql://...")
def move_lanes(
    lanes: Annotated[str, typer.Argument(help="The lanes: 32-63, or 5.")],
    to: Annotated[str, typer.Option(help="The address of their new server, or `market`.")],
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Move usage lanes to another PostgreSQL server, and say what to set then.

    Where they lie now is read from TALLYSTICK_USAGE_LANES. Each lane is copied while it goes on;
    then it takes no report until all of its rows are hashed anew at the new place, and head and
    root are those of the old one. The market goes on. Afterwards set what this command says and
    start all processes again: until then, reports of these lanes are refused and sent again.
    Run it again if it was ended.
    """
    from ledger.log.lane_map import MARKET
    from ledger.tree import lane_move

    settings = in_force(config, data_dir=data_dir)
    after = _moved(settings.lanes, lanes, to)
    moved = []
    with database(settings) as conninfo:
        if to != MARKET:
            lane_move.prepare(to)
        for source, some in settings.lanes.servers().items():
            wanted = [lane for lane in some if after.addresses[lane] != source]
            old, new = (conninfo if each == MARKET else each for each in (source, to))
            moved += lane_move.move(old, new, wanted) if wanted else []
    told = [
        {"lane": x.lane, "reports": x.reports, "head": x.head.hex(), "root": x.root.hex()}
        for x in sorted(moved, key=lambda x: x.lane)
    ]
    lines = columns(told, COLUMNS) if told else ["nothing to do: they lie there"]
    tell({"moved": told, "usage_lanes": str(after)}, lines, as_json=as_json)
    note(f"set TALLYSTICK_USAGE_LANES={after}, and start all processes again")


def _moved(now: LaneMap, lanes: str, to: str) -> LaneMap:
    """Where the lanes lie afterwards. Raises InputUnusable."""
    from ledger.log.lane_map import part_of

    try:
        moving, address = part_of(f"{lanes}={to}")
    except ValueError as error:
        raise InputUnusable(str(error)) from None
    return now.moved(moving, address)
