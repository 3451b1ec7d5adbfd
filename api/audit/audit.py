"""Audit: who did what, the signed head of the log, and the proof that a fact is under it.

Reading the events is for those they name, and for auditors; the head and the key that signs it are
for everybody. A proof holds the whole fact, so it is given to whoever may read the fact.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import Path, Query, Response
from pydantic import Field

from api.door import errors
from api.door.auth import everybody, with_scope
from api.door.call import Call, Caller
from api.door.models import (
    AnswerModel,
    Count,
    Digits,
    FactAnswer,
    FromQuery,
    Hex32,
    MomentQuery,
    Position,
    PositionInPath,
    PositionQuery,
    Told_at,
    page_of,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, ByNumber, Cursor, Limit
from api.door.positions import POSITION, ReadAsOf
from api.parties.webhook_sender import of_the_renter
from ledger.log.lanes import lane_of
from ledger.log.usage_reads import report_at
from ledger.tree import prove, trees
from ledger.tree.log_keys import Rotation
from projections.audit import audit_index
from projections.audit.audit_index import AUDIT_INDEX
from projections.fleet import fleet
from projections.fleet.fleet import FLEET

resource = Resource("audit")

READ = with_scope("audit:read", "operator")
Party = Annotated[
    str | None,
    Query(
        pattern=r"^[!-~]{1,100}$",
        description="An id that the fact names: account, node, lease, device and so on",
    ),
]
TopicQuery = Annotated[str | None, Query(alias="type", pattern=r"^[a-z_]+(\.[a-z0-9_]+){1,3}$")]
HEAD_CACHED = "public, max-age=2"
"""A head is signed again within seconds, and the same one is asked for by everybody."""
LaneInPath = Annotated[int, Path(ge=0, le=63), Digits]


class LogEventAnswer(FactAnswer):
    """One fact as stored. `body` is what the leaf's hash covers, the blind left out."""

    position: Position
    type: Annotated[str, Field(examples=["lease.opened.v1"])]
    version: Count
    recorded_at: Told_at
    leaf: Hex32
    body: dict[str, Any]


class LogKeyRotationAnswer(AnswerModel):
    """One replacement of the key. Both keys sign `tallystick/log-key/v1`, origin, number, old key,
    new key (hex) and the microseconds of `old_key_signs_until`, each with a line end.
    """

    number: Count
    old: str
    new: str
    position: Position
    rotated_at: Told_at
    old_key_signs_until: Told_at
    old_key_signed: bool
    fact: dict[str, Any]


class LogKeyAnswer(AnswerModel):
    """`name+key id+key`, as C2SP writes it, and the keys before it by their replacements."""

    verifier_key: str
    rotations: list[LogKeyRotationAnswer]
    position: Position | None = None


@resource.get(
    "/v1/audit/events",
    READ,
    page_of(LogEventAnswer),
    problems=["cursor_invalid", "as_of_unsupported"],
)
def list_events(
    call: Caller,
    as_of: ReadAsOf,
    order: ByNumber,
    party: Party = None,
    topic: TopicQuery = None,
    from_: FromQuery = None,
    to: MomentQuery = None,
    from_position: PositionQuery = None,
    to_position: PositionQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists facts in order.
    Filters: party, type, recorded in [from, to), and positions in [from_position, to_position). A
    party reads its own facts.
    """
    first = (from_position or 1) - 1
    place = call.place(cursor, [first], order)
    newest = place.way.newest
    with call.read(AUDIT_INDEX, as_of=as_of) as view:
        until = place.first_position or (view.position if view.as_of is None else view.as_of)
        if to_position is not None:
            until = min(until, to_position - 1)
        after = first if newest else place.after[0]
        until = min(until, place.after[0] - 1) if newest else until
        own = call.principal.only
        if own is not None and party not in (None, own):
            rows = _of_both(
                view.connection, own, party, topic, from_, to, after, until, newest, limit + 1
            )
        else:
            rows = audit_index.read_events(
                view.connection,
                party=party or own,
                topic=topic,
                from_us=from_,
                to_us=to,
                after=after,
                until_position=until,
                newest=newest,
                limit=limit + 1,
            )
        return call.page(
            view, place, rows, limit, lambda row: [row.position], partial(_event, call)
        )


def _of_both(
    connection: Any,
    own: str,
    party: str | None,
    topic: str | None,
    from_us: int | None,
    to_us: int | None,
    after: int,
    until: int,
    newest: bool,
    limit: int,
) -> list[audit_index.Event]:
    """Facts that name the caller and the party asked for; reads on until the page is full."""
    found: list[audit_index.Event] = []
    while len(found) < limit:
        rows = audit_index.read_events(
            connection,
            party=party,
            topic=topic,
            from_us=from_us,
            to_us=to_us,
            after=after,
            until_position=until,
            newest=newest,
            limit=_STRIDE,
        )
        allowed = _naming(connection, own, [row.position for row in rows])
        found.extend(row for row in rows if row.position in allowed)
        if len(rows) < _STRIDE:
            break
        after = after if newest else rows[-1].position
        until = rows[-1].position - 1 if newest else until
    return found[:limit]


_STRIDE = 500
_NAMING = """
    SELECT position FROM proj_audit_index.mention WHERE id = %s AND position = ANY(%s)
"""


def _naming(connection: Any, who: str, positions: list[int]) -> set[int]:
    return {row[0] for row in connection.execute(_NAMING, (who, positions))}


@resource.get("/v1/audit/events/{position}", READ, LogEventAnswer, problems=["not_found"])
def read_event(position: PositionInPath, call: Caller) -> Response:
    """Returns the fact at a position."""
    with call.read(AUDIT_INDEX) as view:
        found = audit_index.read_event(view.connection, position)
        if found is None or not _may_read(call, view.connection, position):
            raise errors.problem("not_found", f"no fact at {position}")
        return call.answer(view, _event(call, found))


def _may_read(call: Call, connection: Any, position: int) -> bool:
    own = call.principal.only
    return own is None or bool(_naming(connection, own, [position]))


@resource.get(
    "/v1/audit/log/checkpoint", everybody(), str, problems=["not_covered"], media_type="text/plain"
)
def read_checkpoint(call: Caller) -> Response:
    """Returns the last signed head of the log: a C2SP signed note over origin, size and root."""
    with call.read() as view:
        found = trees.latest_checkpoint(view.connection)
        if found is None:
            raise errors.problem("not_covered", "no head has been signed yet", Retry_After="1")
        headers = {POSITION: str(view.position), "Cache-Control": HEAD_CACHED}
        return Response(found[1], headers=headers, media_type="text/plain")


@resource.get("/v1/audit/log/key", everybody(), LogKeyAnswer)
def read_log_key(call: Caller) -> Response:
    """Returns the public key that signs the log's heads, and every announced replacement of it.
    `fact` is the announcement as the log has it: with the signatures in it a verifier of an
    earlier key follows to this one.
    """
    with call.read() as view:
        told = [_rotation(one) for one in trees.rotations(view.connection)]
        key = call.service.verifier_key
        return call.answer(view, LogKeyAnswer(verifier_key=key, rotations=told))


def _rotation(one: Rotation) -> LogKeyRotationAnswer:
    return LogKeyRotationAnswer(
        number=one.number,
        old=str(one.old),
        new=str(one.new),
        position=one.position,
        rotated_at=moment(one.at_us),
        old_key_signs_until=moment(one.until_us),
        old_key_signed=one.old_signature is not None,
        fact=one.body,
    )


@resource.get(
    "/v1/audit/proofs/{position}",
    READ,
    str,
    problems=["not_found", "not_covered"],
    media_type="text/plain",
)
def read_proof(position: PositionInPath, call: Caller) -> Response:
    """Returns the proof of one fact under the last signed head, as a `.tlog-proof` file."""
    with call.read(AUDIT_INDEX) as view:
        if audit_index.read_event(view.connection, position) is None or not _may_read(
            call, view.connection, position
        ):
            raise errors.problem("not_found", f"no fact at {position}")
        return _proof(call, view.position, lambda: prove.prove_fact(view.connection, position))


@resource.get(
    "/v1/audit/proofs/usage/{lane}/{usage_position}",
    READ,
    str,
    problems=["not_found", "not_covered"],
    media_type="text/plain",
)
def read_usage_proof(lane: LaneInPath, usage_position: PositionInPath, call: Caller) -> Response:
    """Returns the proof of one usage report under the first pin that covers it."""
    with call.read(FLEET) as view:
        found = report_at(view.connection, lane, usage_position)
        node = None if found is None else fleet.read_node(view.connection, found.node_id)
        if node is None or not call.principal.may_see(node.account_id):
            raise errors.problem(
                "not_found",
                f"no report at {lane}/{usage_position} of a node of yours; what is behind a line of"
                " your bill: `tallystick statement line POSITION --proof FILE`",
            )
        assert lane_of(node.node_id) == lane
        return _proof(
            call, view.position, lambda: prove.prove_report(view.connection, lane, usage_position)
        )


def _proof(call: Call, position: int, make: Any) -> Response:
    del call
    try:
        text: str = make()
    except prove.NotCovered as uncovered:
        raise errors.problem("not_covered", str(uncovered), Retry_After="1") from None
    return Response(text, headers={POSITION: str(position)}, media_type="text/plain")


def _event(call: Call, row: audit_index.Event) -> LogEventAnswer:
    """The fact, without its blind and, for the provider in it, without what is the renter's."""
    only = call.principal.only
    withheld = {"blind"} | (set() if only is None else of_the_renter(only, row.body))
    body = {name: value for name, value in row.body.items() if name not in withheld}
    return LogEventAnswer(
        position=row.position,
        type=row.topic,
        version=row.version,
        recorded_at=moment(row.recorded_us),
        leaf=bytes(row.leaf).hex(),
        body=body,
    )
