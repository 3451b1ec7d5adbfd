"""What a lease brings to its node beside the command, and what comes back: files and variables.

A workspace is read by the executor of the lease's node, for this lease, until the lease is closed;
knowing a hash opens nothing. Sealed variables are taken once, before the work begins, told to that
executor alone, and deleted when it has begun. Results are read by the renter alone.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from functools import partial
from typing import Annotated, Any

from fastapi import Response
from pydantic import Field

from api.door.auth import executors_only, with_scope
from api.door.call import Call, Caller
from api.door.models import (
    AnswerModel,
    EmptyRequest,
    Hex32,
    LeaseId,
    LeaseInPath,
    NodeInPath,
    Position,
    RequestModel,
    with_examples,
)
from api.door.operation import Resource
from api.jobs.workspaces import (
    Files,
    PiecesKeptAnswer,
    PiecesWantedRequest,
    WorkspaceContentsForm,
    WorkspaceFileForm,
    WorkspacePiecesAnswer,
    WorkspacePiecesRequest,
    bodies_of,
    files_of,
    no_room,
    pieces_told,
    require_size,
    room,
)
from api.leasing.parcel_timer import BEFORE
from api.leasing.work import leased
from domain.duration import HOUR_US
from domain.fleet.reasons import FleetReason
from domain.jobs.job import job_stream
from domain.jobs.plan import workspace_of
from domain.jobs.reasons import JobsReason
from domain.jobs.workspace import (
    DETAIL_MAX,
    DOCUMENT_BYTES_MAX,
    FILES_MAX,
    LEFT_OUT_MAX,
    PATH_BYTES_MAX,
    File,
    is_below,
    pieces_of,
)
from domain.lease.lease import Lease, lease_stream
from domain.lease.reasons import LeaseReason
from domain.refusal import Refused
from ledger.beside import lease_parcels, workspaces

resource = Resource("work")

RENTERS = with_scope("renter", "client")
SEALED_MAX = 200_000
"""States of a lease whose work has not begun."""
Sealed = Annotated[
    str, Field(pattern=r"^[0-9A-Za-z+/]+={0,2}$", min_length=68, max_length=SEALED_MAX * 4 // 3)
]
_AT = "/v1/nodes/{node_id}/assignments/{lease_id}"
_LEASE = (LeaseReason.LEASE_UNKNOWN,)


# --- to the node ---------------------------------------------------------------------------------


class LeaseWorkspaceAnswer(AnswerModel):
    """What the job of the lease brings. `sealed`: variables in a box that the executor's sealing
    key opens, once the renter has sent them.
    """

    lease_id: LeaseId
    workspace: WorkspaceContentsForm
    sealed: Sealed | None = None
    position: Position | None = None


@resource.get(
    _AT + "/workspace",
    executors_only(),
    LeaseWorkspaceAnswer,
    problems=[*_LEASE, JobsReason.WORKSPACE_UNKNOWN],
)
def read_lease_workspace(node_id: NodeInPath, lease_id: LeaseInPath, call: Caller) -> Response:
    """Returns the list of files of a lease's work, for the executor that starts it."""
    account_id, digest = _named(call, node_id, lease_id)
    with call.read() as view:
        document = workspaces.document_of(view.connection, account_id, digest)
        if document is None:
            raise Refused(JobsReason.WORKSPACE_UNKNOWN, lease_id=lease_id)
        sealed = lease_parcels.sealed_of(view.connection, lease_id)
        told = LeaseWorkspaceAnswer(
            lease_id=lease_id,
            workspace=WorkspaceContentsForm.model_validate(json.loads(document)),
            sealed=None if sealed is None else base64.b64encode(sealed).decode(),
        )
        return call.answer(view, told)


@resource.post(
    _AT + "/workspace/pieces",
    executors_only(),
    WorkspacePiecesAnswer,
    records=False,
    problems=[*_LEASE, JobsReason.WORKSPACE_UNKNOWN],
)
def read_workspace_pieces(
    node_id: NodeInPath, lease_id: LeaseInPath, body: PiecesWantedRequest, call: Caller
) -> Response:
    """Returns pieces of the files of a lease's work, for the executor that starts it."""
    account_id, digest = _named(call, node_id, lease_id)
    with call.read() as view:
        of_it = (view.connection, account_id, digest)
        lengths = workspaces.lengths(*of_it, body.sha256)
        told = pieces_told(body.sha256, lengths, partial(workspaces.pieces, *of_it))
        return call.answer(view, told)


def _named(call: Call, node_id: str, lease_id: str) -> tuple[str, str]:
    """Account and digest of the workspace of a lease of this executor's node, which is not over.

    Raises Refused: LEASE_UNKNOWN, WORKSPACE_UNKNOWN.
    """
    lease = _of_executor(call, node_id, lease_id)
    if lease.closed is not None:
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
    return _workspace(call, lease, lease_id)


def _workspace(call: Call, lease: Lease, lease_id: str) -> tuple[str, str]:
    """Account and digest of the workspace that the job of a lease names. Raises Refused:
    WORKSPACE_UNKNOWN: it names none.
    """
    assert lease.requested is not None
    job = call.service.ledger.market.state_of(job_stream(lease.requested.job_id)).submitted
    assert job is not None
    digest = workspace_of(job.references)
    if digest is None:
        raise Refused(JobsReason.WORKSPACE_UNKNOWN, lease_id=lease_id)
    return job.account_id, digest


def _of_executor(call: Call, node_id: str, lease_id: str) -> Lease:
    """Raises Refused: LEASE_UNKNOWN: the caller is not this node's executor, or not its lease."""
    if not call.executor_of_caller(node_id):
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
    return leased(call, node_id, lease_id)


class LeaseSecretsRequest(RequestModel):
    """`sealed`: base64 of a libsodium sealed box for the executor's sealing key, over the JSON
    `{"lease_id": ..., "variables": {...}}`. The server cannot open it.
    """

    sealed: Sealed

    model_config = with_examples({"sealed": "5a" * 48})


class LeaseSecretsAnswer(AnswerModel):
    lease_id: LeaseId
    position: Position | None = None


@resource.post(
    "/v1/leases/{lease_id}/secrets",
    RENTERS,
    LeaseSecretsAnswer,
    records=False,
    problems=[*_LEASE, JobsReason.SECRETS_UNUSABLE, JobsReason.WORKSPACE_INVALID],
)
def add_lease_secrets(lease_id: LeaseInPath, body: LeaseSecretsRequest, call: Caller) -> Response:
    """Hands sealed variables to the executor of a lease's node. They are in no log and no list."""
    lease = _of_renter(call, lease_id)
    try:
        sealed = base64.b64decode(body.sealed, validate=True)
    except binascii.Error:
        raise Refused(JobsReason.WORKSPACE_INVALID, rule="sealed is base64") from None
    if lease.status not in BEFORE:
        raise Refused(JobsReason.SECRETS_UNUSABLE, lease_id=lease_id)
    with call.read() as view:
        is_new = lease_parcels.seal(view.connection, lease_id, sealed, call.now_us)
        if not is_new and lease_parcels.sealed_of(view.connection, lease_id) != sealed:
            raise Refused(JobsReason.SECRETS_UNUSABLE, lease_id=lease_id)
        return call.answer(view, LeaseSecretsAnswer(lease_id=lease_id))


def _of_renter(call: Call, lease_id: str) -> Lease:
    """The lease, for its renter alone. Raises Refused: LEASE_UNKNOWN."""
    lease = call.service.ledger.market.state_of(lease_stream(lease_id))
    if lease.requested is None or not call.principal.owns(lease.requested.account_id):
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
    return lease


# --- back to the renter --------------------------------------------------------------------------


class ResultLeftOutForm(RequestModel):
    """What does not come back, and why. `is_lost`: it was asked back by its name, or may be a file
    of the work; not so a link, a pipe or a device, which never come back.
    """

    path: Annotated[str, Field(min_length=1, max_length=PATH_BYTES_MAX)]
    detail: Annotated[str, Field(min_length=1, max_length=DETAIL_MAX)]
    is_lost: bool = True


LeftOut = Annotated[list[ResultLeftOutForm], Field(max_length=LEFT_OUT_MAX)]


class LeaseResultsRequest(RequestModel):
    """The files that lie under the paths which the workspace asks back, and what is left out."""

    files: Files
    left_out: LeftOut = Field(default_factory=list)

    model_config = with_examples(
        {"files": [{"path": "out/a", "is_program": False, "size": 6, "sha256": ["5a" * 32]}]}
    )


class ResultsListedAnswer(AnswerModel):
    """`missing`: the pieces that are to be sent."""

    lease_id: LeaseId
    missing: list[Hex32]
    position: Position | None = None


class LeaseResultsAnswer(ResultsListedAnswer):
    """`is_listed`: the node has said which files there are. `missing`: pieces that it has still to
    send. `left_out`: what does not come back, or all of it where the node or the server refused.
    """

    is_listed: bool
    files: list[WorkspaceFileForm]
    left_out: list[ResultLeftOutForm]


@resource.post(
    _AT + "/results",
    executors_only(),
    ResultsListedAnswer,
    status=201,
    records=False,
    problems=[
        *_LEASE,
        FleetReason.LEASE_STATE,
        JobsReason.WORKSPACE_UNKNOWN,
        JobsReason.WORKSPACE_INVALID,
        JobsReason.WORKSPACE_TOO_LARGE,
    ],
    items_max=FILES_MAX,
)
def add_lease_results(
    node_id: NodeInPath, lease_id: LeaseInPath, body: LeaseResultsRequest, call: Caller
) -> Response:
    """Keeps the list of files that the work of a lease left, once. Files that its renter did not
    ask back are refused.
    """
    lease = _of_executor(call, node_id, lease_id)
    _require_kept(call, lease, lease_id)
    files = files_of(body.files)
    require_size(call.service.settings, sum(one.size for one in files))
    workspace = _workspace(call, lease, lease_id)
    assert lease.requested is not None
    document = _kept(body)
    with call.read() as view:
        _require_asked(workspaces.document_of(view.connection, *workspace), files)
        try:
            missing = lease_parcels.list_results(
                view.connection,
                lease_id,
                lease.requested.account_id,
                document,
                pieces_of(files),
                room(call.service.settings),
                call.now_us,
            )
        except workspaces.QuotaReached as full:
            raise no_room(full) from None
        return call.answer(view, ResultsListedAnswer(lease_id=lease_id, missing=missing))


@resource.post(
    _AT + "/results/pieces",
    executors_only(),
    PiecesKeptAnswer,
    records=False,
    problems=[*_LEASE, FleetReason.LEASE_STATE],
)
def add_result_pieces(
    node_id: NodeInPath, lease_id: LeaseInPath, body: WorkspacePiecesRequest, call: Caller
) -> Response:
    """Keeps pieces of the files that the work of a lease left."""
    _require_kept(call, _of_executor(call, node_id, lease_id), lease_id)
    bodies = bodies_of(body.data)
    with call.read() as view:
        kept = lease_parcels.fill(view.connection, lease_id, bodies)
        return call.answer(view, PiecesKeptAnswer(kept=kept))


def _require_asked(document: bytes | None, files: tuple[File, ...]) -> None:
    """A node fills the renter's room with nothing else than what the workspace asks back. Work that
    ran for a day may have outlived its workspace's list: then nothing is held against it.

    Raises Refused: WORKSPACE_INVALID.
    """
    if document is None:
        return
    asked = tuple(json.loads(document)["results"])
    for one in files:
        if not is_below(one.path, asked):
            raise Refused(JobsReason.WORKSPACE_INVALID, rule="files that the renter asked back")


def _require_kept(call: Call, lease: Lease, lease_id: str) -> None:
    """Work that has begun leaves results, until an hour after its lease was closed.

    Raises Refused: LEASE_STATE.
    """
    closed = lease.closed
    is_late = closed is not None and call.now_us > closed.at_us + HOUR_US
    if lease.opened is None or lease.work.started is None or is_late:
        raise Refused(FleetReason.LEASE_STATE, lease_id=lease_id, status=lease.status)


@resource.get("/v1/leases/{lease_id}/results", RENTERS, LeaseResultsAnswer, problems=[*_LEASE])
def read_lease_results(lease_id: LeaseInPath, call: Caller) -> Response:
    """Returns the list of files that the work of a lease left. Kept for a day."""
    _of_renter(call, lease_id)
    with call.read() as view:
        document = lease_parcels.results_of(view.connection, lease_id)
        listed = _listed(document)
        told = LeaseResultsAnswer(
            lease_id=lease_id,
            missing=lease_parcels.missing(view.connection, lease_id),
            is_listed=document is not None,
            files=listed.files,
            left_out=listed.left_out,
        )
        return call.answer(view, told)


def _kept(body: LeaseResultsRequest) -> bytes:
    """As it is kept: the list of files alone where nothing is left out. Files may take all the room
    that there is: what is left out beside so long a list is kept compressed with it.

    Raises Refused: WORKSPACE_INVALID.
    """
    told = body.model_dump()
    files = _json(told["files"])
    document = _json(told) if body.left_out else files
    if len(files) <= DOCUMENT_BYTES_MAX < len(document):
        document = zlib.compress(document)
    if max(len(files), len(document)) > DOCUMENT_BYTES_MAX:
        raise Refused(JobsReason.WORKSPACE_INVALID, rule="a shorter list of files")
    return document


def _json(told: Any) -> bytes:
    return json.dumps(told, separators=(",", ":")).encode()


def _listed(document: bytes | None) -> LeaseResultsRequest:
    """What the node told, of what `_kept` made."""
    if document is not None and document[:1] not in (b"[", b"{"):
        document = zlib.decompress(document)
    told: Any = [] if document is None else json.loads(document)
    return LeaseResultsRequest.model_validate({"files": told} if isinstance(told, list) else told)


@resource.post(
    "/v1/leases/{lease_id}/results/pieces",
    RENTERS,
    WorkspacePiecesAnswer,
    records=False,
    problems=[*_LEASE],
)
def read_result_pieces(lease_id: LeaseInPath, body: PiecesWantedRequest, call: Caller) -> Response:
    """Returns pieces of the files that the work of a lease left, for its renter."""
    _of_renter(call, lease_id)
    with call.read() as view:
        lengths = lease_parcels.lengths(view.connection, lease_id, body.sha256)
        read = partial(lease_parcels.pieces, view.connection, lease_id)
        return call.answer(view, pieces_told(body.sha256, lengths, read))


class LeaseResultsDeletedAnswer(AnswerModel):
    """`is_deleted`: there was something, and nothing of it is kept any more."""

    lease_id: LeaseId
    is_deleted: bool
    position: Position | None = None


@resource.post(
    "/v1/leases/{lease_id}/results/delete",
    RENTERS,
    LeaseResultsDeletedAnswer,
    records=False,
    problems=[*_LEASE],
)
def delete_lease_results(lease_id: LeaseInPath, body: EmptyRequest, call: Caller) -> Response:
    """Deletes the files that the work of a lease left, before their day is over.
    Their room is free again. Pieces that the node still sends are not kept.
    """
    del body
    _of_renter(call, lease_id)
    with call.read() as view:
        is_deleted = lease_parcels.delete_results(view.connection, lease_id)
        told = LeaseResultsDeletedAnswer(lease_id=lease_id, is_deleted=is_deleted)
        return call.answer(view, told)
