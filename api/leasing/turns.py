"""The turns of a lease over HTTP: pause, resume, extend, reclaim, quote and accept; and its life
fact by fact, each with its cause and its money.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import Field

from api.door.amounts import Money, credits_, money
from api.door.auth import with_scope
from api.door.call import After, Call, Caller
from api.door.errors import Problem
from api.door.models import (
    TERM_SECONDS_MAX,
    AnswerModel,
    Count,
    DeviceId,
    JobId,
    LeaseId,
    LeaseInPath,
    LeaseState,
    NodeId,
    OfferId,
    Position,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, Limit
from api.jobs.jobs import EXAMPLE
from api.leasing.leases import (
    READ,
    WRITE,
    LeaseOpenedAnswer,
    LeaseRequest,
    asked_with,
    caller_party,
    opened_told,
    opening,
    visible_lease,
)
from api.market.matching import looked_again
from api.market.placing import BID_FOR, IN_ONE_APPEND
from api.market.unmatched import keep_unmatched
from domain.duration import SECOND_US
from domain.fleet.reasons import FleetReason
from domain.funds.reasons import FundsReason
from domain.hardware.reasons import HardwareReason
from domain.jobs.job import SubmitJob
from domain.lease.close_codes import CLOSE_REASONS, fault_of
from domain.lease.lease import Lease, RequestLease, ReserveLease, lease_stream
from domain.lease.looked import Looked
from domain.lease.reasons import LeaseReason
from domain.lease.turns import (
    CancelReclaim,
    ExtendLease,
    LeaseQuoted,
    PauseLease,
    QuoteLease,
    ResumeLease,
    StartReclaim,
)
from domain.leasing.taking import quoted_instead, quoted_place, reserving
from domain.market.reasons import MarketReason
from domain.parties.reasons import PartiesReason
from domain.pools.reasons import PoolsReason
from domain.prices.modules import Posted, label
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.rules import refused_by
from projections.lease import turns as lease_turns
from projections.lease.leases import LEASES

resource = Resource("leases")

POSTED_LABEL = label(Posted())

PROVIDER = with_scope("provider")


class LeaseTurnRequest(RequestModel):
    """No fields: `{}`."""

    model_config = with_examples({})


class LeaseExtensionRequest(RequestModel):
    """How much longer, in seconds; all of it is held at once, at the locked price."""

    seconds: Annotated[int, Field(ge=1, le=TERM_SECONDS_MAX)]

    model_config = with_examples({"seconds": 3600})


class LeaseReclaimRequest(RequestModel):
    """Why, by a provider's code: 10000 unstable, 10001 decommission, 10002 unspecified."""

    code: Annotated[int, Field(ge=10_000, le=19_999)] = 10_002

    model_config = with_examples({"code": 10_001})


class LeaseQuoteRequest(LeaseRequest):
    """As for a lease; `valid_seconds`: how long the price is promised."""

    valid_seconds: Annotated[int, Field(ge=1, le=86_400)] = 900

    model_config = with_examples({"job": EXAMPLE, "valid_seconds": 600})


class QuoteAcceptanceRequest(RequestModel):
    """The quote that is accepted."""

    quote_id: Annotated[str, Field(pattern=r"^quote_[0-9a-f]{32}$")]

    model_config = with_examples({"quote_id": "quote_" + "0" * 32})


class LeaseStateAnswer(AnswerModel):
    """A lease after a turn. Moments that go with other states are absent."""

    lease_id: LeaseId
    state: LeaseState
    funds_end_at: Told_at | None = None
    term_end_at: Told_at | None = None
    paused_at: Told_at | None = None
    reclaim_deadline: Told_at | None = None
    reclaim_code: Count | None = None
    held: Money
    position: Position | None = None


class LeaseQuoteAnswer(AnswerModel):
    """A price that holds until `expires_at`. Nothing is held for it, and no device either."""

    quote_id: str
    lease_id: LeaseId
    job_id: JobId
    state: LeaseState
    node_id: NodeId
    offer_id: OfferId
    device_ids: list[DeviceId]
    price_per_gpu_hour: Money
    reclaim_window_seconds: Count | None = None
    expires_at: Told_at
    position: Position | None = None


class LeaseStepLineAnswer(AnswerModel):
    """One line of the books: debits are positive. Of accounts that are others' the name is `*`."""

    account: str
    asset: str
    units: Annotated[str, Field(pattern=r"^-?[0-9]+$")]


class LeaseStepAnswer(AnswerModel):
    """One fact: its cause, its actor, the state it led to, and its money.

    `by_timer`: the server's own timer. `fault`: the party that the code names.
    """

    type: str
    position: Position
    version: Count
    at: Told_at
    recorded_at: Told_at
    state_before: LeaseState | None = None
    state: LeaseState
    party: str
    by: str | None = None
    by_timer: bool
    code: Count | None = None
    reason: str | None = None
    fault: Literal["none", "renter", "provider", "network", "client"] | None = None
    command_id: str | None = None
    money: list[LeaseStepLineAnswer]


# --- turns ---------------------------------------------------------------------------------------


@resource.post(
    "/v1/leases/{lease_id}/pause",
    WRITE,
    LeaseStateAnswer,
    problems=[LeaseReason.LEASE_UNKNOWN, FleetReason.LEASE_STATE, PartiesReason.COUNT_OUT_OF_RANGE],
)
def pause_lease(lease_id: LeaseInPath, body: LeaseTurnRequest, call: Caller) -> Response:
    """Pauses an interruptible lease. It costs nothing until it is resumed."""
    del body

    def command() -> PauseLease:
        _required(call, lease_id, "renter")
        return PauseLease(
            lease_id=lease_id, reason="renter", by=call.principal.account_id, at_us=call.now_us
        )

    return call.record(command, _told(lease_id))


@resource.post(
    "/v1/leases/{lease_id}/resume",
    WRITE,
    LeaseStateAnswer,
    problems=[
        LeaseReason.LEASE_UNKNOWN,
        FleetReason.LEASE_STATE,
        HardwareReason.DEVICE_TAKEN,
        FleetReason.DEVICE_UNKNOWN,
        MarketReason.OFFER_MISMATCH,
    ],
)
def resume_lease(lease_id: LeaseInPath, body: LeaseTurnRequest, call: Caller) -> Response:
    """Resumes a lease on the same devices, if they are free."""
    del body

    def command() -> ResumeLease:
        _required(call, lease_id, "renter")
        return ResumeLease(lease_id=lease_id, by=call.principal.account_id, at_us=call.now_us)

    return call.record(command, _told(lease_id))


@resource.post(
    "/v1/leases/{lease_id}/extend",
    WRITE,
    LeaseStateAnswer,
    problems=[
        LeaseReason.LEASE_UNKNOWN,
        FleetReason.LEASE_STATE,
        MarketReason.OFFER_WITHDRAWN,
        MarketReason.OFFER_MISMATCH,
        FundsReason.UNPAID_DEBT,
        FundsReason.CREDIT_TOO_LOW,
        PartiesReason.BUDGET_EXHAUSTED,
        FundsReason.AMOUNT_NOT_POSITIVE,
        PricesReason.TERM_NOT_OFFERED,
    ],
)
def extend_lease(lease_id: LeaseInPath, body: LeaseExtensionRequest, call: Caller) -> Response:
    """Extends a fixed term. Top up an open-ended lease instead."""

    def command() -> ExtendLease:
        _required(call, lease_id, "renter")
        return ExtendLease(
            lease_id=lease_id,
            account_id=call.principal.account_id,
            more_us=body.seconds * SECOND_US,
            at_us=call.now_us,
        )

    return call.record(command, _told(lease_id))


@resource.post(
    "/v1/leases/{lease_id}/reclaim",
    PROVIDER,
    LeaseStateAnswer,
    problems=[LeaseReason.LEASE_UNKNOWN, FleetReason.LEASE_STATE, LeaseReason.CLOSE_CODE_PARTY],
)
def reclaim_lease(lease_id: LeaseInPath, body: LeaseReclaimRequest, call: Caller) -> Response:
    """Reclaims the devices: the quoted reclaim window begins, at the full rate."""

    def command() -> StartReclaim:
        _required(call, lease_id, "provider")
        return StartReclaim(
            lease_id=lease_id, code=body.code, by=call.principal.account_id, at_us=call.now_us
        )

    return call.record(command, _told(lease_id))


@resource.post(
    "/v1/leases/{lease_id}/reclaim/cancel",
    PROVIDER,
    LeaseStateAnswer,
    problems=[LeaseReason.LEASE_UNKNOWN, FleetReason.LEASE_STATE],
)
def cancel_reclaim(lease_id: LeaseInPath, body: LeaseTurnRequest, call: Caller) -> Response:
    """Cancels a reclaim. The renter keeps the devices."""
    del body

    def command() -> CancelReclaim:
        _required(call, lease_id, "provider")
        return CancelReclaim(lease_id=lease_id, by=call.principal.account_id, at_us=call.now_us)

    return call.record(command, _told(lease_id))


def _required(call: Call, lease_id: str, party: str) -> Lease:
    """Raises Refused: LEASE_UNKNOWN, for everybody who is not this party of it."""
    lease = call.service.ledger.market.state_of(lease_stream(lease_id))
    found = caller_party(call, lease, lease_id)
    if found != party and (found, party) != ("client", "renter"):
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
    return lease


def _told(lease_id: str) -> Any:
    def told(after: After) -> AnswerModel:
        lease = after.state(lease_stream(lease_id))
        state: Any = lease.status
        reclaim = lease.reclaim if lease.status == "reclaiming" else None
        return LeaseStateAnswer(
            lease_id=lease_id,
            state=state,
            funds_end_at=None
            if lease.opened is None or lease.paused_at_us is not None
            else moment(lease.window_end_us),
            term_end_at=moment_or_none(lease.term_end_us),
            paused_at=moment_or_none(lease.paused_at_us),
            reclaim_deadline=None if reclaim is None else moment(reclaim.deadline_us),
            reclaim_code=None if reclaim is None else reclaim.code,
            held=credits_(lease.held_units),
        )

    return told


# --- quotes --------------------------------------------------------------------------------------


@resource.post(
    "/v1/lease-quotes",
    WRITE,
    LeaseQuoteAnswer,
    status=201,
    problems=[
        *refused_by(SubmitJob, RequestLease, QuoteLease, never=IN_ONE_APPEND),
        PoolsReason.POOL_UNKNOWN,
        MarketReason.NO_MATCH,
        MarketReason.MATCH_IMPOSSIBLE,
    ],
)
def quote_lease(body: LeaseQuoteRequest, call: Caller) -> Response:
    """Requests a lease and quotes its price, valid for a limited time."""
    lease_id, quote_id = call.id("lease"), call.id("quote")

    def commands() -> list[Any]:
        *asked, matched = opening(body, call, lease_id, call.round())
        assert isinstance(matched, ReserveLease)
        expires_us = call.now_us + body.valid_seconds * SECOND_US
        return [*asked, quoted_instead(matched, quote_id, POSTED_LABEL, expires_us)]

    def told(after: After) -> AnswerModel:
        return _quote(after.state(lease_stream(lease_id)), quote_id)

    try:
        return call.record(commands, told)
    except Problem as problem:
        keep_unmatched(call, problem, lambda: asked_with(body, call, lease_id))
        raise


@resource.post(
    "/v1/leases/{lease_id}/accept",
    WRITE,
    LeaseOpenedAnswer,
    problems=refused_by(ReserveLease, never=BID_FOR),
)
def accept_quote(lease_id: LeaseInPath, body: QuoteAcceptanceRequest, call: Caller) -> Response:
    """Accepts a quote before it expires. The devices are reserved and the money is held."""

    def command() -> ReserveLease:
        lease = _required(call, lease_id, "renter")
        quote = next((one for one in lease.quotes if one.quote_id == body.quote_id), None)
        if quote is None:
            raise Refused(FleetReason.LEASE_STATE, lease_id=lease_id, status=lease.status)
        place = quoted_place(quote, _looked_at_quote(call, lease, quote))
        return reserving(
            lease_id, place, call.now_us, quote_id=quote.quote_id, by=call.principal.member_id
        )

    def told(after: After) -> AnswerModel:
        return opened_told(after.state(lease_stream(lease_id)))

    return call.record(command, told)


def _looked_at_quote(call: Call, lease: Lease, quote: LeaseQuoted) -> Looked:
    assert lease.requested is not None
    place = quote.node_id, quote.offer_id, quote.device_ids
    return looked_again(call.service, lease.requested, place, call.now_us)


def _quote(lease: Lease, quote_id: str) -> LeaseQuoteAnswer:
    asked: Any = lease.requested
    quote = next(one for one in lease.quotes if one.quote_id == quote_id)
    state: Any = lease.status
    window_us = quote.reclaim_window_us
    return LeaseQuoteAnswer(
        quote_id=quote_id,
        lease_id=quote.lease_id,
        job_id=asked.job_id,
        state=state,
        node_id=quote.node_id,
        offer_id=quote.offer_id,
        device_ids=list(quote.device_ids),
        price_per_gpu_hour=money(quote.price_per_gpu_hour),
        reclaim_window_seconds=None if window_us is None else window_us // SECOND_US,
        expires_at=moment(quote.expires_at_us),
    )


# --- its life ------------------------------------------------------------------------------------


@resource.get(
    "/v1/leases/{lease_id}/events",
    READ,
    page_of(LeaseStepAnswer),
    problems=[LeaseReason.LEASE_UNKNOWN, "cursor_invalid"],
)
def list_lease_steps(
    lease_id: LeaseInPath, call: Caller, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists the life of a lease, from request to archive: each fact with cause and money."""
    place = call.place(cursor, [0])
    with call.read(LEASES) as view:
        row = visible_lease(call, view.connection, lease_id)
        before, steps = lease_turns.read_steps(
            view.connection, lease_id, after=place.after[0], limit=limit + 1
        )
        told = dict(
            zip(
                (step.position for step in steps),
                _steps(call, before, steps, row.account_id),
                strict=True,
            )
        )
        return call.page(
            view,
            place,
            steps,
            limit,
            lambda step: [step.position],
            lambda step: told[step.position],
        )


_BY = {
    "lease.requested.v1": ("renter", "account_id"),
    "lease.queued.v1": ("timer", None),
    "lease.match_decided.v1": ("matcher", "rule"),
    "lease.reserved.v1": ("matcher", None),
    "lease.quoted.v1": ("matcher", "rule"),
    "lease.ready.v1": ("node", "node_id"),
    "lease.command_acknowledged.v1": ("node", "node_id"),
    "lease.work_ended.v1": ("node", "node_id"),
    "lease.opened.v1": ("node", None),
    "lease.topped_up.v1": ("renter", "depositor_account_id"),
    "lease.extended.v1": ("renter", "account_id"),
    "lease.paused.v1": ("matcher", "by"),
    "lease.resumed.v1": ("matcher", "by"),
    "lease.reclaim_started.v1": ("provider", "by"),
    "lease.reclaim_cancelled.v1": ("provider", "by"),
    "lease.disputed.v1": ("party", "dispute_id"),
    "lease.resolved.v1": ("arbiter", "dispute_id"),
    "lease.restarted.v1": ("renter", "as_lease_id"),
}
"""Who causes a fact, and which of its fields says so; all others are timers of the server."""


def _steps(
    call: Call, before: str | None, steps: list[lease_turns.Step], account_id: str
) -> list[LeaseStepAnswer]:
    told = []
    for step in steps:
        told.append(_step(call, before, step, account_id))
        before = step.state
    return told


def _step(
    call: Call, before: str | None, step: lease_turns.Step, account_id: str
) -> LeaseStepAnswer:
    party, field = _BY.get(step.topic, ("timer", None))
    body = step.body
    if step.topic == "lease.closed.v1":
        party, field = str(body["party"]), "by"
    if step.topic in ("lease.paused.v1", "lease.resumed.v1") and body["by"] == account_id:
        party = "renter"
    code = body.get("code")
    known = CLOSE_REASONS.get(code) if code is not None else None
    states: Any = (before, step.state)
    fault: Any = None if code is None else fault_of(code)
    return LeaseStepAnswer(
        type=step.topic,
        position=step.position,
        version=step.version,
        at=moment(step.at_us),
        recorded_at=moment(step.recorded_us),
        state_before=states[0],
        state=states[1],
        party="timer" if party == "job" else party,
        by=None if field is None else body.get(field),
        by_timer=party in ("timer", "job"),
        code=code,
        reason=body.get("reason") if known is None else known.name,
        fault=fault,
        command_id=body.get("command_id"),
        money=[
            LeaseStepLineAnswer(account=_name(call, name), asset=asset, units=str(units))
            for name, asset, units in step.money
        ],
    )


def _name(call: Call, account: str) -> str:
    """The name of an account of the books, without whose it is when it is somebody else's."""
    kind, _, rest = account.partition(":")
    who, _, source = rest.partition(":")
    if kind == "party" and not call.principal.may_see(who):
        return f"party:*:{source}"
    return account
