"""What is a node, an owner or a renter worth now, or at any position? Read from its evidence.

    score as of p, on day d == rate(weighed(rows known at p, d)): `domain/trust/evidence.py`

Nothing is kept but evidence: a score changes every day by itself. SQL adds up, the domain decides.
The view `reputation` must have reached the position asked for. For a seal: `standing_questions`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from domain.decay import WEIGHT_BITS, weights
from domain.duration import DAY_US
from domain.trust.evidence import US_PER_MICRO
from domain.trust.reputation_terms import (
    KINDS,
    NODE,
    PROVIDER,
    REPUTATION_TERMS,
    UPTIME,
    ReputationTerms,
)
from domain.trust.scores import Evidence, Rating, lesser, rate, rate_for_client, score
from projections.runner import Connection

KNOWN_MAX = 1_000
"""Nodes whose scores are read by one statement where nobody may wait for all of them."""

Seen = dict[str, dict[str, Evidence]]
"""By subject and input."""
EvidenceRow = tuple[Any, ...]
"""Subject, input, and what was counted (`domain/trust/scores.py`, `Evidence`)."""

_WHEN = """kind = %(kind)s AND from_day <= %(day)s
    AND (%(client)s::text IS NULL OR (client_id = %(client)s) = %(mine)s)"""
_ALL = f"SELECT * FROM proj_reputation.day WHERE {_WHEN}"
# Each by the primary key (OFFSET keeps it so): planned together, a few thousand of a large fleet
# read the whole table.
_NAMED = f"""
    SELECT d.* FROM (SELECT DISTINCT unnest(%(ids)s::text[]) COLLATE "C" AS subject_id) named
    CROSS JOIN LATERAL (
        SELECT * FROM proj_reputation.day WHERE subject_id = named.subject_id AND {_WHEN} OFFSET 0
    ) d
"""
_THEN = f"""
    SELECT d.subject_id, d.input, d.day, d.good - coalesce(l.good, 0) AS good,
        d.total - coalesce(l.total, 0) AS total
    FROM ({{now}}) d LEFT JOIN (
        SELECT subject_id, input, day, from_day, client_id, sum(good)::bigint AS good,
            sum(total)::bigint AS total
        FROM proj_reputation.evidence WHERE position > %(as_of)s AND {_WHEN}
            AND (%(ids)s::text[] IS NULL OR subject_id = ANY(%(ids)s))
        GROUP BY 1, 2, 3, 4, 5
    ) l USING (subject_id, input, day, from_day, client_id)
"""
_ONE = 1 << WEIGHT_BITS
# A weight is taken in two halves, so that products stay within 64 bits whatever was counted. One
# floor per day turns microseconds into observations; what a day lost is at most what it had. A
# day's uptime is one row: no client has seen it, and it waits for nothing.
_FOLDED = f"""
    SELECT subject_id, input,
        div(sum(good * (weight >> 16)) * 65536 + sum(good * (weight & 65535)), {_ONE})::bigint,
        div(sum(total * (weight >> 16)) * 65536 + sum(total * (weight & 65535)), {_ONE})::bigint,
        sum(good)::bigint, sum(total)::bigint
    FROM (
        SELECT subject_id, input, least(greatest(0, good), total) / unit AS good,
            total / unit AS total, coalesce((%(weights)s::bigint[])[1 + %(day)s - day], 0) AS weight
        FROM (
            SELECT *, CASE input WHEN '{UPTIME}' THEN {US_PER_MICRO} ELSE 1 END AS unit
            FROM ({{rows}}) r) u) w
    GROUP BY subject_id, input HAVING sum(total) > 0
"""


def read_evidence(
    connection: Connection,
    kind: str,
    subject_ids: Sequence[str] | None,
    *,
    day: int,
    as_of: int | None = None,
    terms: ReputationTerms = REPUTATION_TERMS,
    client_id: str | None = None,
    others: bool = False,
) -> Seen:
    """What is known of these subjects, or of all, as it weighs on a UTC day.

    `as_of`: a position of the market log; what became known later is not counted, nor is what was
    recorded on a later day, nor faults whose dispute window is not over on that day. `client_id`:
    what came through that client only or, with `others`, all the rest.
    """
    values: dict[str, Any] = {
        **_asked(kind, day, as_of, terms),
        "ids": None if subject_ids is None else list(subject_ids),
        "client": client_id,
        "mine": not others,
    }
    if as_of is not None:
        _require_reached(connection, as_of)
    now = _ALL if subject_ids is None else _NAMED
    sql = _FOLDED.format(rows=now if as_of is None else _THEN.format(now=now))
    with connection.cursor(binary=True) as cursor:
        return _seen(cursor.execute(sql.encode(), values).fetchall())


def _asked(kind: str, day: int, as_of: int | None, terms: ReputationTerms) -> dict[str, Any]:
    """Of all subjects, by what everybody saw."""
    assert kind in KINDS, kind
    return {
        "kind": kind,
        "day": day,
        "ids": None,
        "as_of": as_of,
        "client": None,
        "mine": True,
        "weights": list(weights(terms.half_life_days, terms.horizon_days)),
    }


def _require_reached(connection: Connection, as_of: int) -> None:
    row = connection.execute(
        "SELECT position FROM proj_reputation.position WHERE source = 'market'"
    ).fetchone()
    assert row is not None
    assert row[0] >= as_of, f"the view of reputation is at {row[0]}, not yet at {as_of}"


def read_rating(
    connection: Connection,
    kind: str,
    subject_id: str,
    *,
    day: int,
    as_of: int | None = None,
    terms: ReputationTerms = REPUTATION_TERMS,
    client_id: str | None = None,
) -> Rating:
    """One score with all its inputs: what everybody saw, or what one client saw."""

    def seen(client: str | None, others: bool = False) -> Mapping[str, Evidence]:
        found = read_evidence(
            connection,
            kind,
            [subject_id],
            day=day,
            as_of=as_of,
            terms=terms,
            client_id=client,
            others=others,
        )
        return found.get(subject_id, {})

    if client_id is None:
        return rate(kind, seen(None), terms)
    return rate_for_client(kind, seen(client_id), seen(client_id, others=True), terms)


@dataclass(frozen=True, slots=True)
class Scored:
    """What matters of a score where many are compared."""

    score_ppm: int
    is_provisional: bool


def read_scores(
    connection: Connection,
    kind: str,
    subject_ids: Sequence[str] | None,
    *,
    day: int,
    as_of: int | None = None,
    terms: ReputationTerms = REPUTATION_TERMS,
) -> dict[str, Scored]:
    """The scores of many subjects, by what everybody saw; None: of all with any evidence.

    Of those that are named nobody is left out: without evidence it is the start.
    """
    seen = read_evidence(connection, kind, subject_ids, day=day, as_of=as_of, terms=terms)
    named = seen if subject_ids is None else subject_ids
    return {subject_id: _scored(kind, seen.get(subject_id, {}), terms) for subject_id in named}


def _scored(kind: str, seen: Mapping[str, Evidence], terms: ReputationTerms) -> Scored:
    """Without evidence it is the start."""
    return Scored(*score(kind, seen, terms))


@dataclass(frozen=True, slots=True)
class Standing:
    """What settlement asks of a node: its score and its owner's."""

    node_id: str
    owner_id: str
    node_score_ppm: int
    owner_score_ppm: int
    is_provisional: bool  # of the node or of its owner

    @property
    def score_ppm(self) -> int | None:
        """What a settled node carries."""
        return lesser(self.node_score_ppm, self.owner_score_ppm, is_provisional=self.is_provisional)


class StandingRows(NamedTuple):
    """What standings are made of, as it was read; the node comes first in each row. The columns are
    those of `standing_questions`.
    """

    owner_of: Sequence[tuple[str, str]]
    nodes: Sequence[EvidenceRow]
    owners: Sequence[EvidenceRow]


_OWNER_OF = """
    SELECT subject_id, owner_id FROM proj_reputation.subject
    WHERE kind = 'node' AND position <= %(as_of)s ORDER BY subject_id
"""
_OF_ALL = _FOLDED.format(rows=_THEN.format(now=_ALL))
_OF_NODES = f"{_OF_ALL} ORDER BY subject_id"
# The evidence of an owner beside each of its nodes: so it is read in their order too.
_OF_OWNERS = f"""
    SELECT s.subject_id, o.input, o.g, o.n, o.good, o.total
    FROM ({_OF_ALL}) o (owner_id, input, g, n, good, total)
    JOIN proj_reputation.subject s USING (owner_id)
    WHERE s.kind = 'node' AND s.position <= %(as_of)s ORDER BY s.subject_id
"""
INPUTS = len(REPUTATION_TERMS.node_weights)
"""Rows that a node or its owner commonly has."""


def standing_questions(
    connection: Connection, *, as_of: int, day: int, terms: ReputationTerms = REPUTATION_TERMS
) -> list[tuple[str, dict[str, Any]]]:
    """What to ask for the fields of `StandingRows`, all nodes at once and in their order: each
    question with its values. A few thousand nodes at a time cost twice as much.
    """
    _require_reached(connection, as_of)
    of_nodes, of_owners = (_asked(kind, day, as_of, terms) for kind in (NODE, PROVIDER))
    return [(_OWNER_OF, of_nodes), (_OF_NODES, of_nodes), (_OF_OWNERS, of_owners)]


def read_standings(
    connection: Connection,
    node_ids: Collection[str],
    *,
    as_of: int,
    day: int,
    terms: ReputationTerms = REPUTATION_TERMS,
) -> dict[str, Standing]:
    """The scores of these nodes as of an epoch's cut: `as_of` the position of its pin, `day`
    the UTC day of the epoch's end, from which ages count.

    Deterministic: the same facts up to `as_of` give the same answer, whenever it is asked. Nodes
    nobody registered by then are left out. Three queries, whatever the number of nodes.
    """
    asked = standing_questions(connection, as_of=as_of, day=day, terms=terms)
    rows = [connection.execute(sql.encode(), values).fetchall() for sql, values in asked]
    return standings_of(StandingRows(*rows), node_ids, terms)


def standings_of(
    rows: StandingRows, node_ids: Collection[str], terms: ReputationTerms = REPUTATION_TERMS
) -> dict[str, Standing]:
    """Judge these nodes by what was read, here or in another process."""
    nodes, owners = _seen(rows.nodes), _seen(rows.owners)
    of_owner: dict[str, Scored] = {}
    found = {}
    for node_id, owner_id in rows.owner_of:
        if node_id not in node_ids:
            continue
        owner = of_owner.get(owner_id)
        if owner is None:
            owner = of_owner[owner_id] = _scored(PROVIDER, owners.get(node_id, {}), terms)
        node = _scored(NODE, nodes.get(node_id, {}), terms)
        is_provisional = node.is_provisional or owner.is_provisional
        found[node_id] = Standing(
            node_id, owner_id, node.score_ppm, owner.score_ppm, is_provisional
        )
    return found


def _seen(rows: Sequence[EvidenceRow]) -> Seen:
    seen: Seen = defaultdict(dict)
    for subject_id, name, *counted in rows:
        seen[subject_id][name] = Evidence(*counted)
    return seen


@dataclass(frozen=True, slots=True)
class Subject:
    """Since when a node, an owner or a renter is here, and of a node whose it is."""

    subject_id: str
    owner_id: str | None
    since_us: int


def read_subject(connection: Connection, kind: str, subject_id: str) -> Subject | None:
    sql = """SELECT subject_id, owner_id, since_us FROM proj_reputation.subject
        WHERE kind = %s AND subject_id = %s"""
    row = connection.execute(sql, (kind, subject_id)).fetchone()
    return None if row is None else Subject(*row)


def day_at(connection: Connection, position: int) -> int:
    """The UTC day on which a position was recorded: what its readers took for today."""
    row = connection.execute(
        "SELECT recorded_us FROM public.market_events WHERE notification_id = %s", (position,)
    ).fetchone()
    return 0 if row is None else int(row[0]) // DAY_US


def read_known(connection: Connection, node_ids: Sequence[str] | None, day: int) -> dict[str, int]:
    """The scores of nodes that are not provisional; None: of all nodes, KNOWN_MAX at a time."""
    if node_ids is None:
        rows = connection.execute(
            "SELECT subject_id FROM proj_reputation.subject WHERE kind = 'node' ORDER BY 1"
        ).fetchall()
        node_ids = [str(row[0]) for row in rows]
    found: dict[str, int] = {}
    for first in range(0, len(node_ids), KNOWN_MAX):
        scored = read_scores(connection, NODE, node_ids[first : first + KNOWN_MAX], day=day)
        found |= {node: one.score_ppm for node, one in scored.items() if not one.is_provisional}
    return found
