"""All that a cut says of the nodes, in a few set-based questions: the input of a settlement.

    nodes == f(the log up to the cut, the lanes up to the sizes it pins)

The same nodes however far the views have read past the cut, and after they were rebuilt. The views
of epochs, availability and reputation have to have read as far as the cut. Judging is done in
`domain/`: this gathers. Source: design economics 8, 10, 13 and 16.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from domain.duration import DAY_US
from domain.gpu_time import GPU_HOUR_US
from domain.settlement import Attested, NodeCut, Use
from domain.trust import Evidence, Identity, Metered, Place, standing
from projections import read
from projections.epochs import Preview, read_burned_tokens
from projections.runner import Connection
from projections.scores import read_standings
from projections.trust import METERED_FIELDS


def read_nodes(
    connection: Connection, preview: Preview, cut_position: int, *, development: bool = False
) -> list[NodeCut]:
    """Every node that was used or was there, by id. `preview` is final: the epoch's weights.

    In development simulated devices are judged by what they can have (`domain/trust.py`).
    """
    epoch = preview.epoch
    _require_read(connection, epoch, cut_position)
    uses: dict[str, list[Use]] = defaultdict(list)
    accounts: dict[str, str] = {}
    for one in preview.weights:
        uses[one.node_id].append(Use(one.source, one.burned, one.gpu_us))
        accounts[one.node_id] = one.account_id
    attested = read_attested(connection, epoch, cut_position, development=development)
    known = read_owners(connection)
    accounts.update({node: known[node] for node in attested if node not in accounts})
    tokens = read_burned_tokens(connection, epoch)
    ended_us = read.number(connection, _END, epoch=epoch)
    standings = read_standings(
        connection, sorted(accounts), as_of=cut_position, day=ended_us // DAY_US
    )
    scores = {node_id: one.score_ppm for node_id, one in standings.items()}
    return [
        NodeCut(
            node_id,
            accounts[node_id],
            tuple(uses.get(node_id, ())),
            tokens.get(node_id, 0),
            scores.get(node_id),
            tuple(attested.get(node_id, ())),
        )
        for node_id in sorted(accounts)
    ]


_END = "SELECT end_us FROM proj_availability.epoch WHERE epoch = %(epoch)s"
_UNREAD = """
    SELECT p.source FROM proj_availability.position p LEFT JOIN proj_availability.cut c
        ON p.source = 'usage/' || c.lane AND c.epoch = %(epoch)s
    LEFT JOIN public.usage_head h ON h.lane = c.lane
    WHERE p.position < CASE p.source WHEN 'market' THEN %(cut)s
        ELSE least(c.size, h.pos) END
"""


def _require_read(connection: Connection, epoch: int, cut_position: int) -> None:
    unread = connection.execute(_UNREAD, {"epoch": epoch, "cut": cut_position}).fetchall()
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
_SPAN = """
    WITH span AS (
        SELECT e.epoch, e.start_us, e.end_us, (
            SELECT min(start_us) FROM proj_availability.epoch) AS first_us
        FROM proj_availability.epoch e WHERE e.epoch = %(epoch)s)
"""
_THERE = f"""{_SPAN}, joined AS (
        SELECT device_id, min(at_us) AS at_us FROM proj_availability.registered
        WHERE position <= %(cut)s GROUP BY 1
    ), hours AS (
        SELECT t.node_id, t.board_id, t.device_id, t.hour_us, sum(t.us) AS us, 0::numeric AS before
        FROM span CROSS JOIN proj_availability.there t
        WHERE t.hour_us >= span.start_us AND t.hour_us < span.end_us AND t.cut <= span.epoch
        GROUP BY 1, 2, 3, 4
        UNION ALL
        SELECT t.node_id, t.board_id, t.device_id, t.hour_us, sum(t.us),
            coalesce(sum(t.us) FILTER (WHERE t.cut < span.epoch), 0)
        FROM span CROSS JOIN proj_availability.there late
        JOIN proj_availability.there t USING (node_id, board_id, device_id, hour_us)
        WHERE late.cut = span.epoch AND late.hour_us < span.start_us
            AND late.hour_us >= span.first_us AND t.cut <= span.epoch
        GROUP BY 1, 2, 3, 4
    ), boards AS (
        SELECT node_id, board_id, hour_us, max(least(us, {GPU_HOUR_US})) AS us,
            max(least(before, {GPU_HOUR_US})) AS before
        FROM hours GROUP BY 1, 2, 3
    ), totals AS (
        SELECT b.node_id, b.board_id, r.hardware_class, min(j.at_us) AS joined_us,
            sum(b.us - b.before)::bigint AS us
        FROM boards b JOIN proj_availability.registered r
            ON r.device_id = b.board_id AND r.node_id = b.node_id AND r.position <= %(cut)s
        JOIN joined j ON j.device_id = b.board_id AND b.hour_us + {GPU_HOUR_US} > j.at_us
        GROUP BY 1, 2, 3
    )
    SELECT node_id, board_id, hardware_class, us,
        greatest(0, span.end_us - greatest(span.start_us, joined_us)) AS promised_us,
        sum(us) OVER (PARTITION BY board_id)::bigint AS everywhere_us
    FROM totals CROSS JOIN span WHERE us > 0 ORDER BY node_id, board_id
"""


def read_attested(
    connection: Connection, epoch: int, cut_position: int, *, development: bool = False
) -> dict[str, list[Attested]]:
    """Available time of every board by node, at the trust tier it has as of the cut.

    A board that moved to another node has promised its time once: the promise is divided among its
    nodes as its time is, so that the part of it that was kept is the same on each.
    """
    tiers = read_tiers(connection, epoch, cut_position, development=development)
    found: dict[str, list[Attested]] = defaultdict(list)
    asked = {"epoch": epoch, "cut": cut_position}
    for node_id, board_id, name, us, promised_us, everywhere_us in connection.execute(
        _THERE.encode(), asked
    ):
        here_us = promised_us if us == everywhere_us else -(-promised_us * us // everywhere_us)
        tier = tiers.get((node_id, board_id), 1)
        found[node_id].append(Attested(name, tier, us, here_us))
    return {node_id: sorted(devices) for node_id, devices in found.items()}


# --- tiers -----------------------------------------------------------------------------------

_METERED = f"""{_SPAN}
    SELECT m.node_id, m.device_id, min(m.board_id), min(m.lane), max(m.last_position),
        sum(m.rows)::bigint, least(sum(m.available_us), 9e18)::bigint,
        least(sum(m.energy_us), 9e18)::bigint, least(sum(m.energy_mj), 9e18)::bigint,
        sum(m.power_rows)::bigint, coalesce(min(m.power_mw_min), 0),
        coalesce(max(m.power_mw_max), 0), sum(m.busy_rows)::bigint,
        coalesce(min(m.busy_ppm_min), 0), coalesce(max(m.busy_ppm_max), 0)
    FROM span CROSS JOIN proj_availability.metered m
    WHERE m.hour_us >= span.start_us AND m.hour_us < span.end_us AND m.cut <= span.epoch
    GROUP BY 1, 2
"""
_IDENTITIES = """
    SELECT DISTINCT ON (node_id, device_id) node_id, device_id, told, lane, position
    FROM proj_availability.identity WHERE cut <= %(epoch)s ORDER BY node_id, device_id, cut DESC
"""
# As `projections/trust.py` has it: nobody is accused of what happened at the device's home.
_ELSEWHERE = f"""{_SPAN}
    SELECT m.node_id, m.device_id, array_agg(DISTINCT o.node_id ORDER BY o.node_id)
    FROM span CROSS JOIN proj_availability.metered m
    JOIN proj_availability.metered o USING (device_id, hour_us)
    LEFT JOIN LATERAL (
        SELECT node_id FROM proj_availability.home
        WHERE device_id = m.board_id AND position <= %(cut)s ORDER BY position DESC LIMIT 1
    ) h ON true
    WHERE m.device_id = ANY(%(twice)s) AND m.hour_us >= span.start_us AND m.hour_us < span.end_us
        AND m.cut <= span.epoch AND o.cut <= span.epoch AND o.node_id <> m.node_id
        AND h.node_id IS DISTINCT FROM m.node_id
        AND greatest(m.from_us, o.from_us) < least(m.to_us, o.to_us)
    GROUP BY 1, 2
"""
_FASTER = f"""{_SPAN}
    SELECT f.node_id, unnest(h.device_ids), f.position
    FROM span CROSS JOIN proj_availability.faster f JOIN proj_availability.held h USING (lease_id)
    WHERE f.at_us >= span.start_us AND f.at_us < span.end_us AND f.position <= %(cut)s
        AND h.position <= %(cut)s
"""
_PROOFS = f"""{_SPAN}
    SELECT DISTINCT ON (node_id, device_id, kind) node_id, device_id, kind, verdict, position
    FROM span CROSS JOIN proj_availability.proof
    WHERE at_us >= span.start_us AND at_us < span.end_us AND position <= %(cut)s
    ORDER BY node_id, device_id, kind, position DESC
"""
_LIBRARIES = """
    SELECT driver, sha256 FROM (
        SELECT DISTINCT ON (driver, sha256) driver, sha256, known FROM proj_availability.library
        WHERE position <= %(cut)s ORDER BY driver, sha256, position DESC) l WHERE known
"""
_QUARANTINED = "SELECT node_id FROM proj_availability.quarantined WHERE position <= %(cut)s"


def read_tiers(
    connection: Connection, epoch: int, cut_position: int, *, development: bool = False
) -> dict[tuple[str, str], int]:
    """The tier of every board that was metered in an epoch, by (node, board), as of its cut.

    A board whose parts are judged each for itself has the highest of their tiers: a challenge is
    passed on a part. But one part that is not believed at all is enough to believe none.
    """
    asked: dict[str, Any] = {"epoch": epoch, "cut": cut_position, "twice": []}

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
                "identity": Identity(**told), "told_at": Place(lane, position)
            }  # fmt: skip
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
