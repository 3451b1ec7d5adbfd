"""One line of a bill, down to the signed reports: all that is needed to check it.

    line -> fact -> the reports it read -> signed bytes -> lane tree -> pin -> log tree -> head

Whoever has a line may read the fact behind it, the reports the fact read and the proofs of both. A
report is signed as a whole, so it shows what else its node did: other leases stand in it as ids.
The public keys of nodes and of the log are for everybody.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Response
from pydantic import Field

from api.door import errors
from api.door.amounts import SignedMoney, Units
from api.door.auth import with_scope
from api.door.call import Call, Caller, View
from api.door.models import (
    AccountInPath,
    AnswerModel,
    Count,
    FactAnswer,
    Hex32,
    NodeId,
    Position,
    PositionInPath,
    Told_at,
    page_of,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, Limit
from api.door.positions import POSITION
from api.income.statements import StatementLineAnswer, line_told
from api.metering import consumed, resource_rows
from api.parties.accounts import visible
from domain.lease.accrual_steps import Step, steps
from domain.lease.lease import UsageAccrued
from domain.leasing.other_resources import ResourceAccrued, resource_steps
from domain.metering.report import report_hash
from domain.storage.volume import VolumeCharged, volume_steps
from ledger.log import codec
from ledger.log.chain import split_body, usage_leaf
from ledger.tree import prove
from projections.audit import audit_index
from projections.income import movements
from projections.income.movements import MOVEMENTS

resource = Resource("statements")

READ = with_scope("account", "billing:read", "earnings:read", "operator")
LinePosition = Annotated[PositionInPath, Path(description="The line's position")]
UsagePosition = Annotated[PositionInPath, Path(description="The report's position in its lane")]


class BookMovementAnswer(AnswerModel):
    """One account's part of the entry: debits above zero, credits below; an entry sums to zero."""

    name: Annotated[str, Field(examples=["escrow:lease_" + "1" * 32 + ":1:cash"])]
    movement: SignedMoney


class ArithmeticStepAnswer(AnswerModel):
    """One quantity of the arithmetic: its formula, the numbers in it, its total before and after.

    `new` = `after` - `before` is what this accrual added.
    """

    name: Annotated[str, Field(examples=["charge"])]
    formula: Annotated[str, Field(examples=["floor(gpu_us x price_per_gpu_hour / 3600000000)"])]
    given: dict[str, Units]
    before: Units
    after: Units
    new: Units


class StatementLineDetailAnswer(FactAnswer):
    """A fact as stored, the entry it booked, the caller's lines of it, and the arithmetic.

    `body` is what the leaf's hash covers, the blind left out; the proof holds it whole.
    """

    position: Position
    type: Annotated[str, Field(examples=["lease.usage_accrued.v1"])]
    version: Count
    recorded_at: Told_at
    leaf: Hex32
    lines: list[StatementLineAnswer]
    entry: list[BookMovementAnswer]
    arithmetic: list[ArithmeticStepAnswer]
    body: dict[str, Any]


class ConsumedReportAnswer(AnswerModel):
    """A signed report that the accrual read, and what its rows of this lease came to.

    `hash` is what the next report of the node names as `prev`; `leaf` stands in the lane's tree.
    Of GPU time `ppm_us` is what it came to and `refused_us` what not; of another resource
    `measured` and `refused`, in microseconds of processor, byte-seconds or bytes.
    """

    lane: Annotated[int, Field(ge=0, le=63)]
    usage_position: Position
    node_id: NodeId
    seq: Count
    key_id: str
    received_at: Told_at
    hash: Hex32
    leaf: Hex32
    rows: Count
    ppm_us: Units | None = None
    refused_us: Units | None = None
    measured: Units | None = None
    refused: Units | None = None


@resource.get(
    "/v1/accounts/{account_id}/statements/lines/{position}",
    READ,
    StatementLineDetailAnswer,
    problems=["account_unknown", "not_found"],
)
def read_statement_line(
    account_id: AccountInPath, position: LinePosition, call: Caller
) -> Response:
    """Returns the fact behind a line, its booked entry, and the arithmetic of its amounts."""
    with call.read(MOVEMENTS) as view:
        lines = _lines(call, view, account_id, position)
        event = _event(view, position)
        told = StatementLineDetailAnswer(
            position=position,
            type=event.topic,
            version=event.version,
            recorded_at=moment(event.recorded_us),
            leaf=bytes(event.leaf).hex(),
            lines=[line_told(line) for line in lines],
            entry=moved_told(call, position),
            arithmetic=[step_told(step) for step in arithmetic(call, event)],
            body={name: value for name, value in event.body.items() if name != "blind"},
        )
        return call.answer(view, told)


@resource.get(
    "/v1/accounts/{account_id}/statements/lines/{position}/proof",
    READ,
    str,
    problems=["account_unknown", "not_found", "not_covered"],
    media_type="text/plain",
)
def read_statement_line_proof(
    account_id: AccountInPath, position: LinePosition, call: Caller
) -> Response:
    """Returns the proof of a line's fact under the last signed head, as a `.tlog-proof` file."""
    with call.read(MOVEMENTS) as view:
        _lines(call, view, account_id, position)
        return _proof(view, lambda: prove.prove_fact(view.connection, position))


@resource.get(
    "/v1/accounts/{account_id}/statements/lines/{position}/reports",
    READ,
    page_of(ConsumedReportAnswer),
    problems=["account_unknown", "not_found", "cursor_invalid"],
)
def list_statement_line_reports(
    account_id: AccountInPath,
    position: LinePosition,
    call: Caller,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the signed reports that an accrual read, and the worth of each. Their sum is the
    line.
    """
    place = call.place(cursor, [0])
    with call.read(MOVEMENTS) as view:
        _lines(call, view, account_id, position)
        after = int(place.after[0])
        rows = [one for one in _reports(call, view, position) if one.report.position > after]
        return call.page(
            view, place, rows[: limit + 1], limit, lambda row: [row.report.position], _report
        )


@resource.get(
    "/v1/accounts/{account_id}/statements/lines/{position}/reports/{usage_position}/proof",
    READ,
    str,
    problems=["account_unknown", "not_found", "not_covered"],
    media_type="text/plain",
)
def read_statement_line_report_proof(
    account_id: AccountInPath, position: LinePosition, usage_position: UsagePosition, call: Caller
) -> Response:
    """Returns one report's signed bytes and its proof under the first pin that covers it."""
    with call.read(MOVEMENTS) as view:
        _lines(call, view, account_id, position)
        found = [
            one.report
            for one in _reports(call, view, position)
            if one.report.position == usage_position
        ]
        if not found:
            raise errors.problem("not_found", f"{position} read no report at {usage_position}")
        return _proof(
            view, lambda: prove.prove_report(view.connection, found[0].lane, usage_position)
        )


def _lines(call: Call, view: View, account_id: str, position: int) -> list[movements.Movement]:
    """The account's lines at this position. Raises Refused: ACCOUNT_UNKNOWN; Problem: 404."""
    visible(call.principal, account_id)
    lines = movements.read_movements(
        view.connection, account_id, first=position - 1, last=position, limit=100
    )
    if not lines:
        raise errors.problem("not_found", f"no line of this account at {position}")
    return lines


def _event(view: View, position: int) -> audit_index.Event:
    found = audit_index.read_event(view.connection, position)
    assert found is not None, position
    return found


def arithmetic(call: Call, event: audit_index.Event) -> list[Step]:
    """The steps of an accrual's amounts; other facts state theirs."""
    fact = codec.decode_values(event.topic, event.body)
    if isinstance(fact, ResourceAccrued):
        return resource_steps(fact)
    if isinstance(fact, VolumeCharged):
        return volume_steps(fact)
    if not isinstance(fact, UsageAccrued):
        return []
    return steps(consumed.lease_before(call.service.ledger, fact, event.position), fact)


def _reports(
    call: Call, view: View, position: int
) -> tuple[consumed.Consumed | resource_rows.ConsumedRows, ...]:
    event = _event(view, position)
    fact = codec.decode_values(event.topic, event.body)
    if isinstance(fact, ResourceAccrued):
        return resource_rows.consumed(call.service.ledger, view.connection, fact, position)
    if not isinstance(fact, UsageAccrued):
        return ()
    return consumed.read(call.service.ledger, view.connection, fact, position).reports


def moved_told(call: Call, position: int) -> list[BookMovementAnswer]:
    """What the fact at a position booked: every account's part of it."""
    booked = call.service.ledger.books.postings(position)
    return [
        BookMovementAnswer(name=name, movement=_signed(asset.value, units))
        for asset, moved in booked.items()
        for name, units in moved.items()
    ]


def step_told(step: Step) -> ArithmeticStepAnswer:
    """A step as it is told."""
    return ArithmeticStepAnswer(
        name=step.name,
        formula=step.formula,
        given={name: str(value) for name, value in step.given.items()},
        before=str(step.before),
        after=str(step.after),
        new=str(step.new),
    )


def _report(row: consumed.Consumed | resource_rows.ConsumedRows) -> ConsumedReportAnswer:
    one = row.report
    if isinstance(row, consumed.Consumed):
        worth = {"ppm_us": str(row.ppm_us), "refused_us": str(row.refused_us)}
    else:
        worth = {"measured": str(row.measured), "refused": str(row.refused)}
    signed, key_id, _ = split_body(one.body)
    return ConsumedReportAnswer(
        lane=one.lane,
        usage_position=one.position,
        node_id=one.node_id,
        seq=one.node_seq,
        key_id=key_id,
        received_at=moment(one.recorded_us),
        hash=report_hash(signed).hex(),
        leaf=usage_leaf(one.lane, one.node_id, one.node_seq, one.body).hex(),
        rows=row.rows,
        **worth,
    )


def _signed(asset: Any, units: int) -> SignedMoney:
    return SignedMoney(asset=asset, units=str(units))


def _proof(view: View, make: Any) -> Response:
    try:
        text: str = make()
    except prove.NotCovered as uncovered:
        raise errors.problem("not_covered", str(uncovered), Retry_After="1") from None
    return Response(text, headers={POSITION: str(view.position)}, media_type="text/plain")
