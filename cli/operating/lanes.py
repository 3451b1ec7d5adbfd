"""`tallystick move-lanes`: usage lanes go to another PostgreSQL server, or come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.settings import ConfigFile, DataDir, in_force
from cli.terminal import AsJson, InputUnusable, columns, note, tell, top_level
from cli.this_machine import database

if TYPE_CHECKING:
    from ledger.log.lane_map import LaneMap
    from ledger.tree.lane_move import Moved

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

    Where they lie now is read from TALLYSTICK_USAGE_LANES. Each lane is copied and its rows are
    hashed anew at the new place while it goes on; then it takes no report until what came meanwhile
    is there as well, and head and root are those of the old one. The market goes on. Afterwards set
    what this command says and start all processes again: until then, reports of these lanes are
    refused and sent again. If it was ended, run it again; or give the move up: move the lane to
    where TALLYSTICK_USAGE_LANES says that it lies.
    """
    settings = in_force(config, data_dir=data_dir)
    after = _moved(settings.lanes, lanes, to)
    with database(settings) as conninfo:
        moved = _move(conninfo, settings.lanes, after)
        back = _give_up(conninfo, settings.lanes, lanes, to)
    told = [
        {"lane": x.lane, "reports": x.reports, "head": x.head.hex(), "root": x.root.hex()}
        for x in sorted(moved, key=lambda x: x.lane)
    ]
    lines = columns(told, COLUMNS) if told else [_said(back)]
    result: dict[str, Any] = {"moved": told, "gave_up": back, "usage_lanes": after.shown()}
    tell(result, lines, as_json=as_json)
    note(f"set TALLYSTICK_USAGE_LANES={after.shown()}, and start all processes again")


def _move(conninfo: str, now: LaneMap, after: LaneMap) -> list[Moved]:
    """The lanes whose address changes; each is told when it has arrived."""
    from ledger.tree import lane_move

    def told(moved: Moved) -> None:
        note(f"lane {moved.lane}: {moved.reports} reports are at the new place")

    moved: list[Moved] = []
    for source, some in now.servers().items():
        going: dict[str, list[int]] = {}
        for lane in some:
            if after.addresses[lane] != source:
                going.setdefault(after.addresses[lane], []).append(lane)
        for target, wanted in going.items():
            moved += lane_move.move(conninfo, source, target, wanted, told)
    return moved


def _give_up(conninfo: str, now: LaneMap, lanes: str, to: str) -> list[int]:
    """Those that lie there by the setting, if a move that was ended had taken them out."""
    from ledger.log.lane_map import part_of
    from ledger.tree import lane_move

    staying = [lane for lane in part_of(f"{lanes}={to}")[0] if now.addresses[lane] == to]
    return lane_move.give_up(conninfo, to, staying) if staying else []


def _said(back: list[int]) -> str:
    from ledger.log.lane_map import ranges

    if back:
        return f"lanes {ranges(back)} take reports again where they were"
    return "nothing to do: they lie there"


def _moved(now: LaneMap, lanes: str, to: str) -> LaneMap:
    """Where the lanes lie afterwards. Raises InputUnusable."""
    from ledger.log.lane_map import part_of

    try:
        moving, address = part_of(f"{lanes}={to}")
    except ValueError as error:
        raise InputUnusable(str(error)) from None
    return now.moved(moving, address)
