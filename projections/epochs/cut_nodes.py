"""All that a cut says of the nodes, in a few set-based questions: the input of a settlement.

    nodes == f(the log up to the cut, the lanes up to the sizes it pins)

The same nodes however far the views have read past the cut, and after they were rebuilt. The views
of epochs, availability and reputation have to have read as far as the cut. Judging is done in
`domain/`: this gathers. Source: design economics 8, 10, 13 and 16.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec

from domain.duration import DAY_US
from domain.epochs.settlement import Attested, NodeCut, Use
from domain.gpu_time import GPU_HOUR_US
from domain.trust.lifting import lifted_us
from domain.trust.tiers import CHALLENGED, Evidence, Identity, Metered, Place, standing
from ledger.log import lane_store, usage_reads
from ledger.log.lane_store import LanesStopped
from projections.epochs import counted
from projections.epochs.epochs import Preview, Tokens
from projections.epochs.signed import read_signed
from projections.runner import Connection
from projections.trust.evidence import METERED_FIELDS
from projections.trust.scores import read_standings


def read_nodes(
    connection: Connection, preview: Preview, cut_position: int, *, development: bool = False
) -> list[NodeCut]:
    """Every node that was used or was there, by id. `preview` is final: what the epoch moved.

    In development simulated devices are judged by what they can have (`domain/trust/tiers.py`).
    """
    with connection.transaction():
        # A week of a large network's hours is sorted and hashed here, once.
        connection.execute("SET LOCAL work_mem = '128MB'")
        return _nodes(connection, preview, cut_position, development)


def _nodes(
    connection: Connection, preview: Preview, cut_position: int, development: bool
) -> list[NodeCut]:
    epoch = preview.epoch
    _require_read(connection, epoch, cut_position)
    uses: dict[str, list[Use]] = defaultdict(list)
    accounts: dict[str, str] = {}
    for one in counted.read_weights(connection, preview).weights:
        if one.burned or one.gpu_us:
            uses[one.node_id].append(Use(one.source, one.burned, one.gpu_us))
        accounts[one.node_id] = one.account_id
    attested = read_attested(connection, epoch, cut_position, development=development)
    known = read_owners(connection)
    accounts.update({node: known[node] for node in attested if node not in accounts})
    tokens = counted.read_tokens(connection, epoch)
    day = _asked(connection, epoch, cut_position)["end_us"] // DAY_US
    standings = read_standings(connection, sorted(accounts), as_of=cut_position, day=day)
    scores = {node_id: one.score_ppm for node_id, one in standings.items()}
    return [
        NodeCut(
            node_id,
            accounts[node_id],
            tuple(uses.get(node_id, ())),
            sum(tokens.get(node_id, Tokens())),
            scores.get(node_id),
            tuple(attested.get(node_id, ())),
            tokens.get(node_id, Tokens()).bought,
        )
        for node_id in sorted(accounts)
    ]


_UNREAD = f"""
    SELECT p.source FROM proj_availability.position p LEFT JOIN proj_availability.cut c
        ON p.source = 'usage/' || c.lane AND c.epoch = %(epoch)s
    LEFT JOIN {usage_reads.HEADS} h ON h.lane = c.lane
    WHERE p.position < CASE p.source WHEN 'market' THEN %(cut)s
        ELSE least(c.size, h.pos) END
"""


def _require_read(connection: Connection, epoch: int, cut_position: int) -> None:
    """Raises LanesStopped: the server of lanes that the cut holds does not answer."""
    unread = connection.execute(_UNREAD.encode(), {"epoch": epoch, "cut": cut_position}).fetchall()
    logs = {source for (source,) in unread}
    stopped = [lane for lane in lane_store.lanes_elsewhere(connection) if f"usage/{lane}" in logs]
    if stopped:
        raise LanesStopped(stopped)
    assert not unread, (epoch, unread)


def read_owners(connection: Connection) -> dict[str, str]:
    """The account that each node earns for; a node never changes it."""
    found = connection.execute(
        "SELECT node_id, account_id FROM proj_availability.node"
        " JOIN proj_availability.provider USING (provider_id)"
    )
    return {str(node_id): str(account_id) for node_id, account_id in found}


# --- attested time ---------------------------------------------------------------------------

# An hour of this epoch counts up to what its cut holds; of an earlier one, only what an earlier
# cut did not hold. Time from before the first epoch, or from before the device joined, never.
# What is late was promised in its own epoch: else time that is held back would add up, and a
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
_THERE = f"""
    WITH {_KNOWN}, hours AS (
        SELECT node_id, board_id, device_id, hour_us, sum(us) AS us, 0 AS before
        FROM proj_availability.there
        WHERE hour_us >= %(start_us)s AND hour_us < %(end_us)s AND cut <= %(epoch)s
        GROUP BY 1, 2, 3, 4
    ), {_BOARDS}
    SELECT node_id, board_id, hardware_class, joined_us, sum(us)::bigint
    FROM boards JOIN known USING (node_id, board_id)
    WHERE hour_us + {GPU_HOUR_US} > joined_us GROUP BY 1, 2, 3, 4
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
    ), {_BOARDS}
    SELECT node_id, board_id, hardware_class, sum(us - before)::bigint,
        greatest(0, end_us - greatest(start_us, joined_us))::bigint,
        sum(sum(us)) OVER (PARTITION BY board_id, start_us)::bigint
    FROM boards JOIN known USING (node_id, board_id) JOIN late USING (board_id)
    WHERE hour_us >= start_us AND hour_us < end_us AND hour_us + {GPU_HOUR_US} > joined_us
    GROUP BY node_id, board_id, hardware_class, joined_us, start_us, end_us
"""


def read_attested(
    connection: Connection, epoch: int, cut_position: int, *, development: bool = False
) -> dict[str, list[Attested]]:
    """Available time of every board by node, at the trust tier it has as of the cut.

    A board that moved to another node has promised its time once: the promise is divided among its
    nodes as its time is, so that the part of it that was kept is the same on each. What was late
    stands for itself, with its part of what its own epoch was promised. Time that renters signed
    for before the cut is lifted; of late time none is.
    """
    tiers = read_tiers(connection, epoch, cut_position, development=development)
    asked = _asked(connection, epoch, cut_position)
    there = connection.execute(_THERE.encode(), asked).fetchall()
    everywhere: dict[str, int] = defaultdict(int)
    for _, board_id, _, _, us in there:
        everywhere[board_id] += us
    told = [
        (
            node_id,
            board_id,
            name,
            us,
            max(0, asked["end_us"] - max(asked["start_us"], joined_us)),
            everywhere[board_id],
        )
        for node_id, board_id, name, joined_us, us in there
    ]
    signed = read_signed(connection, asked["start_us"], asked["end_us"], cut_position)
    by_node: dict[str, list[tuple[str, int, int, int, int]]] = defaultdict(list)
    for node_id, board_id, *row in sorted(told):
        by_node[node_id].append((*row, tiers.get((node_id, board_id), 1)))
    late = connection.execute(_LATE.encode(), asked).fetchall()
    found: dict[str, list[Attested]] = defaultdict(list)
    for node_id, rows in by_node.items():
        lifted = lifted_us([(tier, us) for _, us, _, _, tier in rows], signed.get(node_id, 0))
        for (name, us, promised_us, of_all_us, tier), up_us in zip(rows, lifted, strict=True):
            found[node_id] += _parts(name, CHALLENGED, up_us, promised_us, of_all_us)
            found[node_id] += _parts(name, tier, us - up_us, promised_us, of_all_us)
    for node_id, board_id, name, us, promised_us, of_all_us in late:
        tier = tiers.get((node_id, board_id), 1)
        found[node_id] += _parts(name, tier, us, promised_us, of_all_us)
    return {node_id: sorted(devices) for node_id, devices in found.items() if devices}


def _parts(name: str, tier: int, us: int, promised_us: int, of_all_us: int) -> list[Attested]:
    """Time of one board at one tier, with its part of the promise; none where there is no time."""
    if not us:
        return []
    return [Attested(name, tier, us, -(-promised_us * us // of_all_us))]


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
    }


# --- tiers -----------------------------------------------------------------------------------

_METERED = """
    SELECT m.node_id, m.device_id, min(m.board_id), min(m.lane), max(m.last_position),
        sum(m.rows)::bigint, least(sum(m.available_us), 9e18)::bigint,
        least(sum(m.energy_us), 9e18)::bigint, least(sum(m.energy_mj), 9e18)::bigint,
        sum(m.power_rows)::bigint, coalesce(min(m.power_mw_min), 0),
        coalesce(max(m.power_mw_max), 0), sum(m.busy_rows)::bigint,
        coalesce(min(m.busy_ppm_min), 0), coalesce(max(m.busy_ppm_max), 0)
    FROM proj_availability.metered m
    WHERE m.hour_us >= %(start_us)s AND m.hour_us < %(end_us)s AND m.cut <= %(epoch)s
    GROUP BY 1, 2
"""
_IDENTITIES = """
    SELECT DISTINCT ON (node_id, device_id) node_id, device_id, told::text, lane, position
    FROM proj_availability.identity WHERE cut <= %(epoch)s ORDER BY node_id, device_id, cut DESC
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
_FASTER = """
    SELECT f.node_id, unnest(h.device_ids), f.position
    FROM proj_availability.faster f JOIN proj_availability.held h USING (lease_id)
    WHERE f.at_us >= %(start_us)s AND f.at_us < %(end_us)s AND f.position <= %(cut)s
        AND h.position <= %(cut)s
"""
_PROOFS = """
    SELECT DISTINCT ON (node_id, device_id, kind) node_id, device_id, kind, verdict, position
    FROM proj_availability.proof
    WHERE at_us >= %(start_us)s AND at_us < %(end_us)s AND position <= %(cut)s
    ORDER BY node_id, device_id, kind, position DESC
"""
_LIBRARIES = """
    SELECT driver, sha256 FROM (
        SELECT DISTINCT ON (driver, sha256) driver, sha256, known FROM proj_availability.library
        WHERE position <= %(cut)s ORDER BY driver, sha256, position DESC) l WHERE known
"""
_identity = msgspec.json.Decoder(Identity).decode
_QUARANTINED = "SELECT node_id FROM proj_availability.quarantined WHERE position <= %(cut)s"


def read_tiers(
    connection: Connection, epoch: int, cut_position: int, *, development: bool = False
) -> dict[tuple[str, str], int]:
    """The tier of every board that was metered in an epoch, by (node, board), as of its cut.

    A board whose parts are judged each for itself has the highest of their tiers: a challenge is
    passed on a part. But one part that is not believed at all is enough to believe none.
    """
    asked: dict[str, Any] = {**_asked(connection, epoch, cut_position), "twice": []}

    def rows(sql: str) -> Any:
        return connection.execute(sql.encode(), asked)

    found: dict[tuple[str, str], dict[str, Any]] = {}
    boards: dict[tuple[str, str], str] = {}
    nodes_of: dict[str, int] = defaultdict(int)
    for node_id, device_id, board_id, lane, position, *sums in rows(_METERED):
        metered = Metered(**dict(zip(METERED_FIELDS, sums, strict=True)))
        found[node_id, device_id] = {"metered": metered, "metered_at": Place(lane, position)}
        boards[node_id, device_id] = board_id
        nodes_of[device_id] += 1
    for node_id, device_id, told, lane, position in rows(_IDENTITIES):
        if (node_id, device_id) in found:
            found[node_id, device_id] |= {
                "identity": _identity(told),
                "told_at": Place(lane, position),
            }
    asked["twice"] = [device_id for device_id, nodes in nodes_of.items() if nodes > 1]
    if asked["twice"]:
        for node_id, device_id, nodes in rows(_ELSEWHERE):
            found[node_id, device_id]["elsewhere"] = tuple(nodes)
    for node_id, device_id, kind, verdict, position in rows(_PROOFS):
        if (node_id, device_id) in found:
            when = "challenged_at" if kind == "challenge" else "attested_at"
            found[node_id, device_id] |= {kind: verdict, when: Place(None, position)}
    faster: dict[tuple[str, str], Place] = {}  # of the devices whose lease claimed it
    for node_id, device_id, position in rows(_FASTER):
        faster[node_id, device_id] = Place(None, position)
    quarantined = {node_id for (node_id,) in rows(_QUARANTINED)}
    libraries = set(rows(_LIBRARIES).fetchall())
    tiers: dict[tuple[str, str], list[int]] = defaultdict(list)
    for (node_id, device_id), told in found.items():
        board_id = boards[node_id, device_id]
        evidence = Evidence(
            device_id=device_id,
            faster_at=faster.get((node_id, device_id)) or faster.get((node_id, board_id)),
            quarantined=node_id in quarantined,
            **told,
        )
        judged = standing(evidence, libraries, development=development)
        tiers[node_id, board_id].append(judged.tier)
    return {board: min(parts) and max(parts) for board, parts in tiers.items()}
