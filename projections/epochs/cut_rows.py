"""The rows of the views that a cut is made of, read in order of nodes, some nodes at a time.

    rows == f(the log up to the cut, the lanes up to the sizes it pins)

Each question is asked once, whatever the number of nodes, and read through a cursor of the server.
The same rows however far the views have read past the cut, and after they were rebuilt. The views
of epochs, availability and reputation have to have read as far as the cut. Nothing is judged here:
`projections/epochs/cut_nodes.py` does, in any process. Source: design economics 8, 10, 13 and 16.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, count
from typing import Any, NamedTuple

import psycopg

from domain.duration import DAY_US
from domain.gpu_time import GPU_HOUR_US
from ledger.log import lane_store, usage_reads
from ledger.log.lane_store import LanesStopped
from projections.epochs import counted, signed
from projections.epochs.epochs import BURNT_OF_EPOCH, read_bought_tokens
from projections.epochs.streams import Known, Row, Source, sliced
from projections.runner import Connection
from projections.trust.scores import INPUTS, StandingRows, standing_questions


class CutRows(NamedTuple):
    """Of some nodes, in order of their ids, all that a cut says. The columns of each field are
    those of its question below; the node comes first.
    """

    weights: Sequence[Row]
    there: Sequence[Row]
    late: Sequence[Row]
    metered: Sequence[Row]
    identities: Sequence[Row]
    proofs: Sequence[Row]
    signed: Sequence[Row]
    burnt: Sequence[Row]
    brought: Sequence[Row]
    bought: Sequence[Row]
    tokens: Sequence[Row]  # that count, of accounts that owe: instead of `burnt` and `bought`
    faster: Sequence[Row]
    quarantined: Sequence[Row]
    elsewhere: Sequence[Row]
    standings: StandingRows
    libraries: frozenset[tuple[str, str]]
    is_development: bool


# --- questions -------------------------------------------------------------------------------

_WEIGHTS = """
    SELECT node_id, account_id, source, burned, gpu_us FROM proj_epochs.weight
    WHERE epoch = %(epoch)s AND (burned <> 0 OR gpu_us <> 0) AND account_id <> ALL(%(owing)s)
    ORDER BY node_id, account_id, source
"""
_BROUGHT = """
    SELECT node_id, client_id, source, burned, gpu_us FROM proj_epochs.brought
    WHERE epoch = %(epoch)s ORDER BY node_id, client_id, source
"""

# Attested time. An hour of this epoch counts up to what its cut holds; of an earlier one, only what
# an earlier cut did not hold. Time from before the first epoch, or from before the device joined,
# never. What is late was promised in its own epoch: else time that is held back would add up, and a
# device that was there for too little of each epoch be paid for every second one.
_KNOWN = """known AS MATERIALIZED (
        SELECT r.device_id AS board_id, r.node_id, r.hardware_class, j.at_us AS joined_us
        FROM proj_availability.registered r JOIN (
            SELECT device_id, min(at_us) AS at_us FROM proj_availability.registered
            WHERE position <= %(cut)s GROUP BY 1) j USING (device_id)
        WHERE r.position <= %(cut)s)"""
_BOARDS = f"""boards AS (
        SELECT node_id, board_id, hour_us, max(least(us, {GPU_HOUR_US})) AS us,
            max(least(before, {GPU_HOUR_US})) AS before
        FROM hours GROUP BY 1, 2, 3)"""
_OWNERS = """LEFT JOIN proj_availability.node n USING (node_id)
    LEFT JOIN proj_availability.provider p USING (provider_id)"""
# Each board by a number, in the order of the answer: what is sorted and added up by hour stays
# narrow. A part's time is its own, the board's the longest of its parts.
_THERE = f"""
    WITH {_KNOWN}, numbered AS MATERIALIZED (
        SELECT row_number() OVER (ORDER BY node_id, board_id) AS number, node_id, board_id,
            account_id, hardware_class, joined_us
        FROM known {_OWNERS}
    ), hours AS (
        SELECT number, hour_us, nullif(device_id, board_id) AS part, sum(us) AS us
        FROM proj_availability.there JOIN numbered USING (node_id, board_id)
        WHERE hour_us >= %(start_us)s AND hour_us < %(end_us)s AND cut <= %(epoch)s
            AND hour_us + {GPU_HOUR_US} > joined_us
        GROUP BY 1, 2, 3
    ), found AS (
        SELECT number, sum(us) AS us FROM (
            SELECT number, max(least(us, {GPU_HOUR_US})) AS us FROM hours GROUP BY number, hour_us
        ) boards GROUP BY number)
    SELECT node_id, board_id, account_id, hardware_class, us::bigint,
        greatest(0, %(end_us)s - greatest(%(start_us)s, joined_us))::bigint AS promised_us,
        sum(us) OVER (PARTITION BY board_id)::bigint AS of_all_us
    FROM found JOIN numbered USING (number) ORDER BY number
"""
_LATE = f"""
    WITH {_KNOWN}, late AS MATERIALIZED (
        SELECT DISTINCT l.board_id, e.start_us, e.end_us
        FROM proj_availability.there l JOIN proj_availability.epoch e
            ON l.hour_us >= e.start_us AND l.hour_us < e.end_us
        WHERE l.cut = %(epoch)s AND l.hour_us < %(start_us)s AND l.hour_us >= %(first_us)s
    ), hours AS (
        SELECT t.node_id, t.board_id, t.device_id, t.hour_us, sum(t.us) AS us,
            coalesce(sum(t.us) FILTER (WHERE t.cut < %(epoch)s), 0) AS before
        FROM late l JOIN known USING (board_id)
        JOIN proj_availability.there t ON t.node_id = known.node_id
            AND t.board_id = known.board_id AND t.hour_us >= l.start_us AND t.hour_us < l.end_us
        WHERE t.cut <= %(epoch)s GROUP BY 1, 2, 3, 4
    ), {_BOARDS}, found AS (
        SELECT node_id, board_id, hardware_class, sum(us - before)::bigint AS us,
            greatest(0, end_us - greatest(start_us, joined_us))::bigint AS promised_us,
            sum(sum(us)) OVER (PARTITION BY board_id, start_us)::bigint AS of_all_us
        FROM boards JOIN known USING (node_id, board_id) JOIN late USING (board_id)
        WHERE hour_us >= start_us AND hour_us < end_us AND hour_us + {GPU_HOUR_US} > joined_us
        GROUP BY node_id, board_id, hardware_class, joined_us, start_us, end_us)
    SELECT node_id, board_id, account_id, hardware_class, us, promised_us, of_all_us
    FROM found {_OWNERS} ORDER BY node_id
"""

# Tiers. `nodes`: on how many of them the device was metered.
_METERED = """
    SELECT node_id, device_id, board_id, count(*) OVER (PARTITION BY device_id) AS nodes, lane,
        last_position, rows, available_us, energy_us, energy_mj, power_rows, power_mw_min,
        power_mw_max, busy_rows, busy_ppm_min, busy_ppm_max
    FROM (
        SELECT m.node_id, m.device_id, min(m.board_id) AS board_id, min(m.lane) AS lane,
            max(m.last_position) AS last_position, sum(m.rows)::bigint AS rows,
            least(sum(m.available_us), 9e18)::bigint AS available_us,
            least(sum(m.energy_us), 9e18)::bigint AS energy_us,
            least(sum(m.energy_mj), 9e18)::bigint AS energy_mj,
            sum(m.power_rows)::bigint AS power_rows,
            coalesce(min(m.power_mw_min), 0) AS power_mw_min,
            coalesce(max(m.power_mw_max), 0) AS power_mw_max,
            sum(m.busy_rows)::bigint AS busy_rows,
            coalesce(min(m.busy_ppm_min), 0) AS busy_ppm_min,
            coalesce(max(m.busy_ppm_max), 0) AS busy_ppm_max
        FROM proj_availability.metered m
        WHERE m.hour_us >= %(start_us)s AND m.hour_us < %(end_us)s AND m.cut <= %(epoch)s
        GROUP BY 1, 2) found
    ORDER BY node_id, device_id
"""
_IDENTITIES = """
    SELECT DISTINCT ON (node_id, device_id) node_id, device_id, told::text, lane, position
    FROM proj_availability.identity WHERE cut <= %(epoch)s ORDER BY node_id, device_id, cut DESC
"""
_PROOFS = """
    SELECT DISTINCT ON (node_id, device_id, kind) node_id, device_id, kind, verdict, position
    FROM proj_availability.proof
    WHERE at_us >= %(start_us)s AND at_us < %(end_us)s AND position <= %(cut)s
    ORDER BY node_id, device_id, kind, position DESC
"""
_FASTER = """
    SELECT f.node_id, unnest(h.device_ids), f.position
    FROM proj_availability.faster f JOIN proj_availability.held h USING (lease_id)
    WHERE f.at_us >= %(start_us)s AND f.at_us < %(end_us)s AND f.position <= %(cut)s
        AND h.position <= %(cut)s
"""
_QUARANTINED = "SELECT node_id FROM proj_availability.quarantined WHERE position <= %(cut)s"
_LIBRARIES = """
    SELECT driver, sha256 FROM (
        SELECT DISTINCT ON (driver, sha256) driver, sha256, known FROM proj_availability.library
        WHERE position <= %(cut)s ORDER BY driver, sha256, position DESC) l WHERE known
"""
# As `projections/trust/evidence.py` has it: nobody is accused of what happened at the device's
# home.
_ELSEWHERE = """
    SELECT m.node_id, m.device_id, array_agg(DISTINCT o.node_id ORDER BY o.node_id)
    FROM proj_availability.metered m
    JOIN proj_availability.metered o USING (device_id, hour_us)
    LEFT JOIN LATERAL (
        SELECT node_id FROM proj_availability.home
        WHERE device_id = m.board_id AND position <= %(cut)s ORDER BY position DESC LIMIT 1
    ) h ON true
    WHERE m.device_id = ANY(%(twice)s) AND m.hour_us >= %(start_us)s AND m.hour_us < %(end_us)s
        AND m.cut <= %(epoch)s AND o.cut <= %(epoch)s AND o.node_id <> m.node_id
        AND h.node_id IS DISTINCT FROM m.node_id
        AND greatest(m.from_us, o.from_us) < least(m.to_us, o.to_us)
    GROUP BY 1, 2
"""

_STREAMED = (
    _WEIGHTS,
    _THERE,
    _LATE,
    _METERED,
    _IDENTITIES,
    _PROOFS,
    signed.SIGNED,
    BURNT_OF_EPOCH,
    _BROUGHT,
)
"""In the order of the fields of `CutRows`."""
_WIDTHS = {len(_STREAMED) + place: INPUTS for place in (1, 2)}
"""Of the evidence of nodes and of their owners, which follow."""


# --- reading ---------------------------------------------------------------------------------


def read_rows(
    connection: Connection, epoch: int, cut_position: int, *, development: bool = False
) -> Generator[CutRows, None, None]:
    """The rows of a closed epoch, so many nodes at a time that they fit into memory.

    In development simulated devices are judged by what they can have (`domain/trust/tiers.py`).
    """
    with connection.transaction(), ExitStack() as cursors:
        # A week of a large network's hours is sorted and hashed here, once, and read to its end.
        connection.execute("SET LOCAL work_mem = '64MB'")
        connection.execute("SET LOCAL cursor_tuple_fraction = 1.0")
        _require_read(connection, epoch, cut_position)
        asked = _asked(connection, epoch, cut_position)
        libraries = frozenset(connection.execute(_LIBRARIES.encode(), asked).fetchall())
        first = len(_STREAMED)
        for found in sliced(_sources(connection, asked, cursors), _WIDTHS):
            (weights, *streamed), standings = found[:first], StandingRows(*found[first : first + 3])
            *known, owed = found[first + 3 :]
            elsewhere = _elsewhere(connection, streamed[2], asked)
            told = [sorted(weights + owed), *streamed, *known, elsewhere]
            yield CutRows._make([*told, standings, libraries, development])


def _sources(connection: Connection, asked: Mapping[str, Any], cursors: ExitStack) -> list[Source]:
    """Where the fields of `CutRows` come from: what is streamed, what standings are made of, what
    is in memory; and at last the weights of accounts that owe.
    """
    epoch = asked["epoch"]
    owing = counted.read_owing(connection, epoch)
    named = (f"cut_{number}" for number in count())
    day = asked["end_us"] // DAY_US
    standings = standing_questions(connection, as_of=asked["cut"], day=day)
    # Here the planner may expect a single row, and would look through all the others for each.
    hashed = {_THERE, *(question for question, _ in standings)}
    streamed = [(question, {**asked, "owing": owing}) for question in _STREAMED]
    found: list[Source] = []
    for question, values in chain(streamed, standings):
        nested = "off" if question in hashed else "DEFAULT"
        connection.execute(f"SET LOCAL enable_nestloop = {nested}")
        cursor = cursors.enter_context(psycopg.ServerCursor(connection, next(named)))
        cursor.execute(question.encode(), values, binary=True)
        found.append(cursor)
    connection.execute("SET LOCAL enable_nestloop = DEFAULT")
    bought: dict[str, int] = {}
    for at, node_id, tokens in read_bought_tokens(connection, epoch):
        if at == epoch:
            bought[node_id] = bought.get(node_id, 0) + tokens
    owed_tokens = counted.read_owed_tokens(connection, epoch, owing)
    return [
        *found,
        Known(list(bought.items())),
        Known([(node_id, *tokens) for node_id, tokens in owed_tokens.items()]),
        Known(connection.execute(_FASTER.encode(), asked).fetchall()),
        Known(connection.execute(_QUARANTINED.encode(), asked).fetchall()),
        Known(counted.read_owed_weights(connection, epoch, owing)),
    ]


def _elsewhere(
    connection: Connection, metered: Sequence[Row], asked: Mapping[str, Any]
) -> list[Row]:
    twice = sorted({device_id for _, device_id, _, nodes, *_ in metered if nodes > 1})
    if not twice:
        return []
    return connection.execute(_ELSEWHERE.encode(), {**asked, "twice": twice}).fetchall()


_UNREAD = f"""
    SELECT p.source FROM proj_availability.position p LEFT JOIN proj_availability.cut c
        ON p.source = 'usage/' || c.lane AND c.epoch = %(epoch)s
    LEFT JOIN {usage_reads.HEADS} h ON h.lane = c.lane
    WHERE p.position < CASE p.source WHEN 'market' THEN %(cut)s
        ELSE least(c.size, h.pos) END
"""
_CLOSED = """SELECT 1 FROM proj_epochs.cut WHERE epoch = %(epoch)s"""


def _require_read(connection: Connection, epoch: int, cut_position: int) -> None:
    """Raises LanesStopped: the server of lanes that the cut holds does not answer."""
    asked = {"epoch": epoch, "cut": cut_position}
    unread = connection.execute(_UNREAD.encode(), asked).fetchall()
    logs = {source for (source,) in unread}
    stopped = [lane for lane in lane_store.lanes_elsewhere(connection) if f"usage/{lane}" in logs]
    if stopped:
        raise LanesStopped(stopped)
    assert not unread, (epoch, unread)
    assert connection.execute(_CLOSED.encode(), asked).fetchone(), f"epoch {epoch} is not closed"


def _asked(connection: Connection, epoch: int, cut_position: int) -> dict[str, int]:
    row = connection.execute(
        "SELECT start_us, end_us, (SELECT min(start_us) FROM proj_availability.epoch)"
        " FROM proj_availability.epoch WHERE epoch = %s",
        (epoch,),
    ).fetchone()
    assert row is not None, epoch
    start_us, end_us, first_us = map(int, row)
    return {
        "epoch": epoch,
        "cut": cut_position,
        "start_us": start_us,
        "end_us": end_us,
        "first_us": first_us,
        "from": start_us,
        "to": end_us,
        "as_of": cut_position,
    }
