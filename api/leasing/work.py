"""The work of leases: taken up, ended, given back; what it printed; the key of a node's executor.

The executor is the program that runs what was leased. Its key opens these calls of its own node and
nothing else: it cannot sign usage, change what the node has, or read anything of other nodes. What
work prints is for the two parties of the lease, kept for a week, and bounded.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Annotated, Any, Literal

from fastapi import Query, Response
from pydantic import Field, model_validator

from api.door import auth
from api.door.auth import executors_only, executors_or_scope, nodes_or_scope, with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AnswerModel,
    Count,
    EmptyRequest,
    Hex32,
    LeaseId,
    LeaseInPath,
    NodeId,
    NodeInPath,
    Position,
    RequestModel,
    Told_at,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.fleet import node_signatures
from api.fleet.nodes import own_node
from api.leasing.leases import State
from domain.fleet.executor_key import IssueExecutorKey, RevokeExecutorKey, executor_stream
from domain.fleet.keys import sealing
from domain.fleet.node import node_stream
from domain.fleet.provider import provider_stream
from domain.fleet.reasons import FleetReason
from domain.jobs.reasons import JobsReason
from domain.lease.close_codes import COMPLETED, SPEC_MISMATCH, UNSTABLE
from domain.lease.lease import CloseLease, Lease, lease_stream
from domain.lease.reasons import LeaseReason
from domain.lease.work_commands import LOST, NOT_STARTED, LeaseCommandAcknowledged, LeaseWorkEnded
from domain.leasing.work import AcknowledgeCommand, EndWork
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from ledger.beside import lease_logs
from projections.lease import leases, work
from projections.lease.leases import LEASES
from projections.lease.work import WORK

resource = Resource("work")

CHUNKS_MAX = 32
PARTIES = with_scope("renter", "client", "provider")
ExecutorId = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Runner = Literal["process", "trusted", "docker", "other"]
LogStream = Literal["stdout", "stderr", "note"]
Outcome = Literal["exited", "limited", "lost", "not_started"]
Base64 = Annotated[str, Field(pattern=r"^[0-9A-Za-z+/]*={0,2}$", max_length=21_848)]


# --- the executor's key ------------------------------------------------------------------------


class ExecutorKeyRequest(RequestModel):
    """`sealing_key`: an X25519 key of the executor, hex, to which renters seal what it alone may
    read; `sealing_signature`: by the node's own key over the key and the node's id.
    """

    sealing_key: Hex32 | None = None
    sealing_signature: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")] | None = None

    model_config = with_examples({})

    @model_validator(mode="after")
    def _both(self) -> ExecutorKeyRequest:
        if (self.sealing_key is None) != (self.sealing_signature is None):
            raise ValueError("sealing_key and sealing_signature go together")
        return self


class ExecutorKeyAnswer(AnswerModel):
    """`executor_key` is shown once, in this answer; the key before it ends now."""

    node_id: NodeId
    executor_key: str | None = None
    position: Position | None = None


@resource.post(
    "/v1/nodes/{node_id}/executor-key",
    nodes_or_scope("provider"),
    ExecutorKeyAnswer,
    status=201,
    problems=[FleetReason.NODE_UNKNOWN, FleetReason.NODE_STATE, "bad_signature"],
)
def issue_executor_key(node_id: NodeInPath, body: ExecutorKeyRequest, call: Caller) -> Response:
    """Issues a key for the program that runs the work of a node's leases. It can do nothing
    else.
    """
    key = auth.executor_key(call.secret("executor-key/v1", node_id))

    def commands() -> IssueExecutorKey:
        own_machine(call, node_id)
        _require_signed(call, node_id, body)
        return IssueExecutorKey(
            node_id=node_id,
            key_sha256=hashlib.sha256(key.encode()).hexdigest(),
            by=call.principal.member_id or node_id,
            at_us=call.now_us,
            sealing_key=body.sealing_key,
            sealing_signature=body.sealing_signature,
        )

    return call.record(
        commands,
        lambda _after: ExecutorKeyAnswer(node_id=node_id),
        reveal=lambda: {"executor_key": key},
    )


def _require_signed(call: Call, node_id: str, body: ExecutorKeyRequest) -> None:
    """The node's present key has signed the executor's. Raises Problem: 401 bad_signature."""
    if body.sealing_key is None or body.sealing_signature is None:
        return
    public_key = call.service.ledger.market.state_of(node_stream(node_id)).public_key
    signature = bytes.fromhex(body.sealing_signature)
    node_signatures.require(public_key, sealing(node_id, body.sealing_key), signature)


@resource.post(
    "/v1/nodes/{node_id}/executor-key/revoke",
    with_scope("provider"),
    ExecutorKeyAnswer,
    problems=[FleetReason.NODE_UNKNOWN],
)
def revoke_executor_key(node_id: NodeInPath, body: EmptyRequest, call: Caller) -> Response:
    """Revokes the executor's key. No executor acts for the node until it gets another key."""
    del body

    def commands() -> RevokeExecutorKey:
        own_machine(call, node_id)
        return RevokeExecutorKey(node_id=node_id, by=call.principal.member_id, at_us=call.now_us)

    return call.record(commands, lambda _after: ExecutorKeyAnswer(node_id=node_id))


def own_machine(call: Call, node_id: str) -> None:
    """The caller is the node, its executor or its provider. Raises Refused: NODE_UNKNOWN."""
    if not (call.node_of_caller(node_id) or call.executor_of_caller(node_id)):
        own_node(call, node_id)


# --- commands and their answers ------------------------------------------------------------------


class WorkAcknowledgementRequest(RequestModel):
    """`workload_sha256` as the node computed it from the work it was told; `executor` names the
    program that has it, and stays the same when that program starts again.
    """

    command: Literal["start", "stop"]
    workload_sha256: Hex32
    executor: ExecutorId
    runner: Runner

    model_config = with_examples(
        {
            "command": "start",
            "workload_sha256": "5a" * 32,
            "executor": "0" * 16,
            "runner": "process",
        }
    )


class WorkStateAnswer(AnswerModel):
    """The work of a lease as far as its node has told. `free_start_us`: billing begins at most so
    long after the work was taken up, and in a gang with all of it; without it not before the
    program's start succeeded. `start_us`: how long the start took before it was billed; all of it
    is free.
    """

    lease_id: LeaseId
    state: State
    acknowledged_at: Told_at | None = None
    free_start_us: Count | None = None
    start_us: Count | None = None
    ended_at: Told_at | None = None
    exit_code: Count | None = None
    stopped_at: Told_at | None = None
    position: Position | None = None


class WorkEndRequest(RequestModel):
    """`exit_code` of a process that a signal ended: 128 and its number. `limited`: a limit of the
    lease ended it. `lost`: the node no longer has it, because it was started anew. `not_started`:
    the node could not begin it after it had said `ready`; nothing of the lease is charged.
    """

    executor: ExecutorId
    outcome: Outcome
    exit_code: Annotated[int, Field(ge=0, le=255)] | None = None

    model_config = with_examples({"executor": "0" * 16, "outcome": "exited", "exit_code": 0})


_AT = "/v1/nodes/{node_id}/assignments/{lease_id}"
_PROBLEMS = (FleetReason.NODE_UNKNOWN, LeaseReason.LEASE_UNKNOWN, FleetReason.LEASE_STATE)


@resource.post(
    _AT + "/acknowledge",
    executors_or_scope("provider"),
    WorkStateAnswer,
    problems=[*_PROBLEMS, JobsReason.WORKLOAD_MISMATCH],
)
def acknowledge_command(
    node_id: NodeInPath, lease_id: LeaseInPath, body: WorkAcknowledgementRequest, call: Caller
) -> Response:
    """Records that the executor will start the work, or has stopped all of it."""

    def commands() -> AcknowledgeCommand:
        own_machine(call, node_id)
        return AcknowledgeCommand(
            lease_id=lease_id,
            node_id=node_id,
            command=body.command,
            workload_sha256=body.workload_sha256,
            executor=body.executor,
            runner=body.runner,
            at_us=call.now_us,
        )

    return call.record(commands, _state_of(lease_id))


@resource.post(
    _AT + "/ended",
    executors_only(),
    WorkStateAnswer,
    problems=[*_PROBLEMS, LeaseReason.CLOSE_CODE_PARTY],
)
def end_work(
    node_id: NodeInPath, lease_id: LeaseInPath, body: WorkEndRequest, call: Caller
) -> Response:
    """Records that the work ended by itself, or was lost.
    The lease and its bill end with it. Only the executor that runs the work reports this; a
    provider that wants its devices back waits for the reclaim window it quoted. A reserved term
    does not end with its work: it is paid, and the renter decides.
    """

    def commands() -> list[Any]:
        own_machine(call, node_id)
        lease = leased(call, node_id, lease_id)
        reserved = lease.reserved
        ended = EndWork(
            lease_id=lease_id,
            node_id=node_id,
            executor=body.executor,
            outcome=body.outcome,
            exit_code=body.exit_code,
            at_us=call.now_us,
        )
        is_nodes = body.outcome in (LOST, NOT_STARTED)
        if reserved is not None and reserved.prepaid is not None and not is_nodes:
            return [ended]
        opened = lease.opened
        is_unpaid = body.outcome == NOT_STARTED and opened is not None
        close = CloseLease(
            lease_id=lease_id,
            closed_at_us=opened.opened_at_us if is_unpaid and opened else call.now_us,
            party="job",
            code=UNSTABLE if is_nodes else COMPLETED,
            at_us=call.now_us,
        )
        return [ended, close]

    return call.record(commands, _state_of(lease_id))


@resource.post(
    _AT + "/decline",
    executors_or_scope("provider"),
    WorkStateAnswer,
    problems=[*_PROBLEMS, LeaseReason.CLOSE_CODE_PARTY],
)
def decline_work(
    node_id: NodeInPath, lease_id: LeaseInPath, body: EmptyRequest, call: Caller
) -> Response:
    """Declines work that the node cannot or may not run. The lease ends uncharged, code 10006."""
    del body

    def commands() -> CloseLease:
        own_machine(call, node_id)
        lease = leased(call, node_id, lease_id)
        if lease.opened is not None:
            raise Refused(FleetReason.LEASE_STATE, lease_id=lease_id, status=lease.status)
        return CloseLease(
            lease_id=lease_id,
            closed_at_us=call.now_us,
            party="provider",
            code=SPEC_MISMATCH,
            at_us=call.now_us,
        )

    return call.record(commands, _state_of(lease_id))


def leased(call: Call, node_id: str, lease_id: str) -> Lease:
    """A lease of this node. Raises Refused: LEASE_UNKNOWN."""
    lease = call.service.ledger.market.state_of(lease_stream(lease_id))
    if lease.reserved is None or lease.reserved.node_id != node_id:
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
    return lease


def _state_of(lease_id: str) -> Any:
    def told(after: After) -> AnswerModel:
        lease = after.state(lease_stream(lease_id))
        state: Any = lease.status
        done = lease.work
        return WorkStateAnswer(
            lease_id=lease_id,
            state=state,
            acknowledged_at=_at(done.started),
            free_start_us=None if done.started is None else done.started.free_us,
            start_us=_start_us(lease),
            ended_at=_at(done.ended),
            exit_code=None if done.ended is None else done.ended.exit_code,
            stopped_at=_at(done.stopped),
        )

    return told


def _start_us(lease: Lease) -> int | None:
    """From the moment the node took the work up until it was billed; None: not billed yet."""
    if lease.work.started is None or lease.opened is None:
        return None
    return max(0, lease.opened.opened_at_us - lease.work.started.at_us)


def _at(fact: LeaseCommandAcknowledged | LeaseWorkEnded | None) -> str | None:
    return None if fact is None else moment(fact.at_us)


# --- what it printed ------------------------------------------------------------------------------


class WorkLogPieceRequest(RequestModel):
    """`note`: said by the executor itself, not by the work."""

    stream: LogStream
    body: Annotated[Base64, Field(min_length=4, description="at most 16 KiB")]


class WorkLogPiecesRequest(RequestModel):
    """Pieces numbered from `seq` on; known numbers are passed over. `left_out`: bytes that were
    printed and that the executor did not keep.
    """

    seq: Annotated[int, Field(ge=0, le=2**31 - 1)]
    left_out: Annotated[int, Field(ge=0, le=2**53 - 1)] = 0
    data: Annotated[list[WorkLogPieceRequest], Field(min_length=1, max_length=CHUNKS_MAX)]

    model_config = with_examples({"seq": 0, "data": [{"stream": "stdout", "body": "aGVsbG8K"}]})


class WorkLogHeadAnswer(AnswerModel):
    """`next_seq`: what comes next; of a piece that left a gap nothing was kept."""

    lease_id: LeaseId
    next_seq: Count
    bytes: Count
    left_out: Count
    position: Position | None = None


class WorkLogPieceAnswer(AnswerModel):
    seq: Count
    stream: LogStream
    at: Told_at
    body: Base64


class WorkLogAnswer(WorkLogHeadAnswer):
    """Pieces from `from_seq` on. `ended`: nothing more will come."""

    data: list[WorkLogPieceAnswer]
    ended: bool
    exit_code: Count | None = None


@resource.post(
    _AT + "/log",
    executors_only(),
    WorkLogHeadAnswer,
    records=False,
    problems=[LeaseReason.LEASE_UNKNOWN],
)
def ingest_lease_log(
    node_id: NodeInPath, lease_id: LeaseInPath, body: WorkLogPiecesRequest, call: Caller
) -> Response:
    """Stores pieces of the work's output. A piece that is sent twice is kept once."""
    if not call.executor_of_caller(node_id):
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
    leased(call, node_id, lease_id)
    pieces = [(piece.stream, _bytes(piece.body)) for piece in body.data]
    with call.read() as view:
        head = lease_logs.append(
            view.connection, lease_id, body.seq, pieces, body.left_out, call.now_us
        )
        told = WorkLogHeadAnswer(
            lease_id=lease_id, next_seq=head.next_seq, bytes=head.bytes, left_out=head.left_out
        )
        return call.answer(view, told)


def _bytes(text: str) -> bytes:
    """Raises Refused: AMOUNT_OUT_OF_RANGE."""
    try:
        found = base64.b64decode(text, validate=True)
    except binascii.Error:
        found = b""
    if not 1 <= len(found) <= lease_logs.CHUNK_BYTES_MAX:
        raise Refused(
            PricesReason.AMOUNT_OUT_OF_RANGE, field="body", at_most=lease_logs.CHUNK_BYTES_MAX
        )
    return found


@resource.get(
    "/v1/leases/{lease_id}/log", PARTIES, WorkLogAnswer, problems=[LeaseReason.LEASE_UNKNOWN]
)
def read_lease_log(
    lease_id: LeaseInPath, call: Caller, from_seq: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0
) -> Response:
    """Returns the output of a lease's work, for its renter and its provider. Kept for a week."""
    lease = party_of(call, lease_id)
    with call.read() as view:
        head = lease_logs.head(view.connection, lease_id)
        chunks = lease_logs.read(view.connection, lease_id, from_seq, CHUNKS_MAX)
        next_seq = chunks[-1].seq + 1 if chunks else max(from_seq, head.next_seq)
        is_over = lease.status != "closing" or not lease.work.may_run
        told = WorkLogAnswer(
            lease_id=lease_id,
            next_seq=next_seq,
            bytes=head.bytes,
            left_out=head.left_out,
            data=[
                WorkLogPieceAnswer(
                    seq=chunk.seq,
                    stream=_stream(chunk.stream),
                    at=moment(chunk.at_us),
                    body=base64.b64encode(chunk.body).decode(),
                )
                for chunk in chunks
            ],
            ended=lease.closed is not None and is_over and next_seq >= head.next_seq,
            exit_code=None if lease.work.ended is None else lease.work.ended.exit_code,
        )
        return call.answer(view, told)


def _stream(name: str) -> LogStream:
    assert name in lease_logs.STREAMS
    return name  # type: ignore[return-value]


def party_of(call: Call, lease_id: str) -> Lease:
    """The lease, for its renter and its provider alone. Raises Refused: LEASE_UNKNOWN."""
    market = call.service.ledger.market
    lease = market.state_of(lease_stream(lease_id))
    owners = set()
    if lease.requested is not None:
        owners.add(lease.requested.account_id)
    if lease.reserved is not None:
        provider = market.state_of(provider_stream(lease.reserved.provider_id))
        owners.add(provider.account_id)
    if not any(call.principal.owns(owner) for owner in owners):
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
    return lease


# --- how it goes ----------------------------------------------------------------------------------


class LeaseWorkAnswer(WorkStateAnswer):
    """`credentials` are sealed to the key the renter named: base64 of a libsodium sealed box.
    `sealing_key`: the executor's X25519 key, for what it alone may read; `sealing_signature` is
    over it by `node_key`, which signed the node's usage then.
    """

    executor: ExecutorId | None = None
    runner: Runner | None = None
    workload_sha256: Hex32 | None = None
    outcome: Outcome | None = None
    endpoint: str | None = None
    credentials: str | None = None
    node_id: NodeId | None = None
    node_key: Hex32 | None = None
    sealing_key: Hex32 | None = None
    sealing_signature: str | None = None


@resource.get(
    "/v1/leases/{lease_id}/work", PARTIES, LeaseWorkAnswer, problems=[LeaseReason.LEASE_UNKNOWN]
)
def read_lease_work(lease_id: LeaseInPath, call: Caller) -> Response:
    """Returns whether the work of a lease was started, how it ended, and how to reach it."""
    lease = party_of(call, lease_id)
    with call.read(WORK, LEASES) as view:
        row = work.read_work(view.connection, lease_id)
        terms = leases.read_lease(view.connection, lease_id)
        state, done = _state_of(lease_id)(After.now(call.service)), lease.work
        started: Any = None if done.started is None else done.started
        outcome: Any = None if done.ended is None else done.ended.outcome
        told = LeaseWorkAnswer(
            **state.model_dump(),
            outcome=outcome,
            executor=started and started.executor,
            runner=started and started.runner,
            workload_sha256=started and started.workload_sha256,
            endpoint=None if terms is None else terms.endpoint,
            credentials=None if row is None else row.credentials,
            **_sealing_of(call, lease),
        )
        return call.answer(view, told)


def _sealing_of(call: Call, lease: Lease) -> dict[str, Any]:
    """To which key the renter seals what only the executor of the node may read."""
    if lease.reserved is None:
        return {}
    node_id, market = lease.reserved.node_id, call.service.ledger.market
    executor = market.state_of(executor_stream(node_id))
    return {
        "node_id": node_id,
        "node_key": executor.sealing_signed_by,
        "sealing_key": executor.sealing_key,
        "sealing_signature": executor.sealing_signature,
    }
