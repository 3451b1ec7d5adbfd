"""For which leases was each node a candidate, and which did it get?

A row for each node that stands among the recorded candidates of a match, of which there are at most
twenty; what decided between it and the winner is computed again from the match itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from projections import read
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.contest (
        node_id text COLLATE "C" NOT NULL, position bigint NOT NULL, at_us bigint NOT NULL,
        is_won boolean NOT NULL, PRIMARY KEY (node_id, position));
"""
_RULES = (
    Rule(
        ("lease.match_decided.v1",),
        "node_id text, candidates json, at_us bigint",
        """INSERT INTO own.contest
        SELECT DISTINCT one->>'node_id', f.position, f.at_us, one->>'node_id' = f.node_id
        FROM facts f CROSS JOIN LATERAL json_array_elements(f.candidates) one""",
    ),
)
CONTESTS = Projection("contests", _TABLES, _RULES, "")


@dataclass(frozen=True, slots=True)
class Contest:
    """A match in which the node was a candidate."""

    position: int
    at_us: int
    is_won: bool


def read_contests(
    connection: Connection, node_id: str, *, from_us: int, limit: int
) -> list[Contest]:
    """The newest first, since a moment."""
    sql = """SELECT position, at_us, is_won FROM proj_contests.contest
        WHERE node_id = %(node)s AND at_us >= %(from)s ORDER BY position DESC LIMIT %(limit)s"""
    return read.many(connection, Contest, sql, node=node_id, **{"from": from_us}, limit=limit)
