"""Which lane a node reports into, and which database holds a lane.

    lane = first 8 bytes of SHA-256("tallystick/lane/v1" || node id) mod 64;   for ever

Not a balancer: a node never changes its lane. Only the database of a lane may change (a lane is
copied, its head compared, then switched), which is why callers ask here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from domain.report import LANES
from domain.report import lane_of as _lane_of

ALL = tuple(range(LANES))

lane_of = lru_cache(maxsize=65_536)(_lane_of)
"""`domain.report.lane_of`, remembered: the hot route asks for the same nodes all day."""


def one_database(conninfo: str) -> dict[int, str]:
    """The map of a small installation: every lane in one database."""
    return dict.fromkeys(ALL, conninfo)


def by_database(databases: Mapping[int, str], lanes: Iterable[int] = ALL) -> dict[str, list[int]]:
    """The lanes of each database, ascending: what one committer may take into one transaction."""
    found: dict[str, list[int]] = {}
    for lane in sorted(lanes):
        found.setdefault(databases[lane], []).append(lane)
    return found
