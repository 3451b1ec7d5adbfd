"""Both halves of a lease, watched: the initiator, a machine of the renter's, and the acceptor, the
node that does the work.

    earned by the acceptor's owner, billed to the initiator's        V-5

The renter's program says how it is; the node's executor says how the work is; and whether the node
is there at all its signed reports say. Nothing is charged or decided by what is told here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import Field

from api.door.auth import executors_only, with_scope
from api.door.call import Call, Caller
from api.door.models import (
    AccountId,
    AnswerModel,
    LeaseId,
    LeaseInPath,
    NodeId,
    NodeInPath,
    Position,
    RequestModel,
    Short,
    Told_at,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.fleet.node_state import StateInWord, node_state_of
from api.leasing.leases import WRITE, State, visible_lease
from domain.fleet.executor_key import executor_stream
from domain.fleet.provider import provider_stream
from domain.lease.lease import DEGRADED_AFTER_US, Lease, lease_stream
from domain.lease.reasons import LeaseReason
from domain.refusal import Refused
from ledger.beside import lease_halves as lease_health
from ledger.beside.lease_halves import ACCEPTOR, INITIATOR, Half
from projections.fleet import fleet
from projections.fleet.fleet import FLEET
from projections.lease.leases import LEASES
from projections.metering import usage
from projections.metering.usage import USAGE

resource = Resource("leases")

RUNS = ("active", "degraded", "reclaiming")
Detail = Annotated[str, Field(max_length=200)]
Health = Literal["well", "unwell", "silent", "unknown"]


class LeaseCheckInRequest(RequestModel):
    """A machine of the renter's that uses the lease. `well`: it reaches the node and goes on."""

    machine: Short
    arch: Short | None = None
    os: Short | None = None
    kernel: Short | None = None
    well: bool = True
    detail: Detail = ""

    model_config = with_examples(
        {"machine": "workstation-7", "arch": "x86_64", "os": "linux", "kernel": "6.1.0"}
    )


class WorkHealthRequest(RequestModel):
    """How the work of a lease is, as its executor finds it: an endpoint that answers is well."""

    well: bool
    detail: Detail = ""

    model_config = with_examples({"well": False, "detail": "port 9000 does not answer"})


class LeaseHalfHealthAnswer(AnswerModel):
    """`health`: well or unwell, as reported; silent, when no report came for three minutes while
    the lease runs; unknown, when no report ever came. `since`: the time of the present value.
    """

    account_id: AccountId
    machine: str | None = None
    arch: str | None = None
    os: str | None = None
    kernel: str | None = None
    health: Health
    detail: str = ""
    since: Told_at | None = None
    seen_at: Told_at | None = None


class LeaseAcceptorAnswer(LeaseHalfHealthAnswer):
    """`reported_at`: when the node's last signed report was stored. If the node is silent, its work
    counts as silent, whatever its executor reports. `node_state`: what the node is now, in one
    word; `heard_at`: when it last told its inventory or sent a report. `has_executor`: its owner
    has given an executor a key; without one nothing starts the work by itself. These three are
    told until the lease is closed.
    """

    node_id: NodeId | None = None
    node_state: StateInWord | None = None
    heard_at: Told_at | None = None
    has_executor: bool | None = None
    substrate: list[str] | None = None
    reported_at: Told_at | None = None


class LeaseHealthAnswer(AnswerModel):
    """The initiator pays, the acceptor's owner earns."""

    lease_id: LeaseId
    state: State
    remoting_session_id: str | None = None
    initiator: LeaseHalfHealthAnswer
    acceptor: LeaseAcceptorAnswer
    position: Position | None = None


class HealthReportAnswer(AnswerModel):
    lease_id: LeaseId
    half: Literal["initiator", "acceptor"]
    well: bool
    position: Position | None = None


@resource.post(
    "/v1/leases/{lease_id}/check-in",
    WRITE,
    HealthReportAnswer,
    records=False,
    problems=[LeaseReason.LEASE_UNKNOWN],
)
def report_renter_health(
    lease_id: LeaseInPath, body: LeaseCheckInRequest, call: Caller
) -> Response:
    """Records the health of the renter's half. The last report counts."""
    lease = _lease(call, lease_id)
    if lease.requested is None or not call.principal.owns(lease.requested.account_id):
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
    return _heard(
        call,
        lease_id,
        INITIATOR,
        machine=body.machine,
        arch=body.arch,
        os=body.os,
        kernel=body.kernel,
        is_well=body.well,
        detail=body.detail,
    )


@resource.post(
    "/v1/nodes/{node_id}/assignments/{lease_id}/health",
    executors_only(),
    HealthReportAnswer,
    records=False,
    problems=[LeaseReason.LEASE_UNKNOWN],
)
def report_work_health(
    node_id: NodeInPath, lease_id: LeaseInPath, body: WorkHealthRequest, call: Caller
) -> Response:
    """Records the health of the work, reported by the node's half."""
    lease = _lease(call, lease_id)
    is_here = lease.reserved is not None and lease.reserved.node_id == node_id
    if not is_here or not call.executor_of_caller(node_id):
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
    return _heard(call, lease_id, ACCEPTOR, machine=node_id, is_well=body.well, detail=body.detail)


@resource.get(
    "/v1/leases/{lease_id}/health",
    with_scope("renter", "client", "provider", "operator", "audit:read"),
    LeaseHealthAnswer,
    problems=[LeaseReason.LEASE_UNKNOWN],
)
def read_lease_health(lease_id: LeaseInPath, call: Caller) -> Response:
    """Returns the health of both halves of a lease, with machine, kernel and last report."""
    with call.read(FLEET, LEASES, USAGE) as view:
        visible_lease(call, view.connection, lease_id)
        lease = _lease(call, lease_id)
        assert lease.requested is not None
        status: Any = lease.status
        heard = lease_health.read(view.connection, lease_id)
        told = LeaseHealthAnswer(
            lease_id=lease_id,
            state=status,
            remoting_session_id=lease.requested.remoting_session_id,
            initiator=LeaseHalfHealthAnswer(
                account_id=lease.requested.account_id, **_half(call, lease, heard.get(INITIATOR))
            ),
            acceptor=_acceptor(call, view.connection, lease, heard.get(ACCEPTOR)),
        )
        return call.answer(view, told)


def _acceptor(call: Call, connection: Any, lease: Lease, half: Half | None) -> LeaseAcceptorAnswer:
    """The node's half; before there is one, it is the renter's own to wait for."""
    assert lease.requested is not None
    if lease.reserved is None:
        return LeaseAcceptorAnswer(account_id=lease.requested.account_id, health="unknown")
    node_id = lease.reserved.node_id
    provider = call.service.ledger.market.state_of(provider_stream(lease.reserved.provider_id))
    node = fleet.read_node(connection, node_id)
    reports = usage.read_node_reports(connection, node_id)
    reported_us = None if reports is None else reports.last_recorded_us
    found = _half(call, lease, half)
    if lease.status in RUNS:
        is_fresh = reported_us is not None and reported_us > call.now_us - DEGRADED_AFTER_US
        if lease.status == "degraded" or not is_fresh:
            found["health"] = "unknown" if reports is None else "silent"
        elif found["health"] in ("unknown", "silent"):
            found["health"] = "well"  # nobody watches the work, and the node signs that it is there
    host: dict[str, Any] = {} if node is None or node.specs is None else node.specs["host"]
    if node is not None and lease.closed is None:
        heard_us = fleet.read_last_heard(connection, [node_id])[node_id]
        found["node_state"] = node_state_of(node, heard_us, call.now_us)
        found["heard_at"] = moment(heard_us)
        executor = call.service.ledger.market.state_of(executor_stream(node_id))
        found["has_executor"] = executor.key_sha256 is not None
    found |= {name: host.get(name) for name in ("arch", "os", "kernel", "substrate")}
    return LeaseAcceptorAnswer(
        account_id=provider.account_id,
        node_id=node_id,
        reported_at=None if reported_us is None else moment(reported_us),
        **found,
    )


def _half(call: Call, lease: Lease, half: Half | None) -> dict[str, Any]:
    """What a half said, and whether that is still so."""
    if half is None:
        return {"health": "unknown"}
    is_silent = lease.status in RUNS and half.seen_us <= call.now_us - DEGRADED_AFTER_US
    health = "silent" if is_silent else "well" if half.is_well else "unwell"
    return {
        "machine": half.machine,
        "arch": half.arch,
        "os": half.os,
        "kernel": half.kernel,
        "health": health,
        "detail": half.detail,
        "since": moment(half.since_us),
        "seen_at": moment(half.seen_us),
    }


def _heard(call: Call, lease_id: str, half: Any, **said: Any) -> Response:
    with call.read() as view:
        lease_health.hear(view.connection, lease_id, half, now_us=call.now_us, **said)
        return call.answer(
            view, HealthReportAnswer(lease_id=lease_id, half=half, well=said["is_well"])
        )


def _lease(call: Call, lease_id: str) -> Lease:
    return call.service.ledger.market.state_of(lease_stream(lease_id))
