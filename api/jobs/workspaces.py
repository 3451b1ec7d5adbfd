"""Workspaces: the folder of a renter that travels with a job, in pieces that are sent once.

The renter sends the list of files, is told which pieces the server lacks, and sends those. A job
names the digest as a reference of kind `workspace`. No call gives a piece back to an account: the
executor of a node reads those of its own leases (`api/leasing/parcels.py`).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import Response
from pydantic import Field

from api.door.auth import with_scope
from api.door.call import Call, Caller
from api.door.models import AnswerModel, Count, Hex32, Position, RequestModel, with_examples
from api.door.operation import Resource
from api.jobs.workspace_timer import is_open
from api.settings import Settings
from domain.jobs import workspace as rules
from domain.jobs.job import JobSubmitted, SubmitJob
from domain.jobs.plan import workspace_of
from domain.jobs.reasons import JobsReason
from domain.jobs.workspace import FILES_MAX, PIECE_BYTES, PIECES_MAX, RESULTS_MAX, VARIABLES_MAX
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from ledger.beside import workspaces
from projections.lease.leases import LEASES
from projections.pools.pools import POOLS

resource = Resource("workspaces")

WRITE = with_scope("renter", "client")
PROBLEMS = (JobsReason.WORKSPACE_UNKNOWN, JobsReason.WORKSPACE_INCOMPLETE)
"""What refuses a job that names a workspace."""
MIB = 1_048_576
ANSWER_BYTES_MAX = 720_000
"""Of the pieces of one answer, before they are written as text: no answer is longer than 1 MiB."""
Base64Piece = Annotated[
    str, Field(pattern=r"^[0-9A-Za-z+/]+={0,2}$", max_length=-(-PIECE_BYTES // 3) * 4)
]


class WorkspaceFileForm(RequestModel):
    """A regular file, in pieces of 512 KiB: `sha256` of each, in order."""

    path: Annotated[str, Field(min_length=1, max_length=1_024)]
    is_program: bool = False
    size: Annotated[int, Field(ge=0, le=rules.FILE_BYTES_MAX)]
    sha256: Annotated[list[Hex32], Field(max_length=4_096)]


Files = Annotated[list[WorkspaceFileForm], Field(max_length=FILES_MAX)]
Names = Annotated[list[Annotated[str, Field(max_length=128)]], Field(max_length=VARIABLES_MAX)]
Paths = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=1_024)]], Field(max_length=RESULTS_MAX)
]
Environment = Annotated[
    dict[str, Annotated[str, Field(max_length=rules.VALUE_BYTES_MAX)]],
    Field(max_length=VARIABLES_MAX),
]


class WorkspaceContentsForm(RequestModel):
    """What the work finds in its folder. `environment`: variables and their values, which are no
    secrets. `secrets`: names of variables whose values come sealed, for each lease. `results`:
    paths that come back when the work has ended. `salt`: random, so that the digest tells nothing.
    """

    salt: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    files: Files = Field(default_factory=list)
    environment: Environment = Field(default_factory=dict)
    secrets: Names = Field(default_factory=list)
    results: Paths = Field(default_factory=list)

    model_config = with_examples(
        {
            "salt": "5a" * 16,
            "files": [{"path": "train.py", "is_program": False, "size": 6, "sha256": ["5a" * 32]}],
            "environment": {"EPOCHS": "3"},
            "secrets": ["HF_TOKEN"],
            "results": ["out"],
        }
    )


class WorkspaceKeptAnswer(AnswerModel):
    """`missing`: the pieces that are to be sent before work may name the workspace."""

    workspace_sha256: Hex32
    bytes: Count
    missing: list[Hex32]
    position: Position | None = None


class WorkspacePiecesRequest(RequestModel):
    """Pieces of workspaces of yours, base64, of which the server named the hashes as missing."""

    data: Annotated[list[Base64Piece], Field(min_length=1, max_length=PIECES_MAX)]

    model_config = with_examples({"data": ["aGVsbG8K"]})


class PiecesKeptAnswer(AnswerModel):
    """`kept`: how many of them were expected, and are here now."""

    kept: Count
    position: Position | None = None


class PiecesWantedRequest(RequestModel):
    sha256: Annotated[list[Hex32], Field(min_length=1, max_length=PIECES_MAX)]

    model_config = with_examples({"sha256": ["5a" * 32]})


class WorkspacePieceAnswer(AnswerModel):
    sha256: Hex32
    body: Base64Piece


class WorkspacePiecesAnswer(AnswerModel):
    """As many of the wanted pieces as one answer holds; those left out are to be asked for again.
    `unknown`: pieces that are not there.
    """

    data: list[WorkspacePieceAnswer]
    unknown: list[Hex32]
    position: Position | None = None


@resource.post(
    "/v1/workspaces",
    WRITE,
    WorkspaceKeptAnswer,
    status=201,
    records=False,
    problems=[JobsReason.WORKSPACE_INVALID, JobsReason.WORKSPACE_TOO_LARGE],
    items_max=FILES_MAX,
)
def add_workspace(body: WorkspaceContentsForm, call: Caller) -> Response:
    """Keeps the list of files of a folder, and says which pieces of them are to be sent."""
    found = _read(rules.read, body.model_dump())
    settings = call.service.settings
    require_size(settings, found.bytes)
    digest = rules.digest(found)
    with call.read(LEASES, POOLS) as view:
        try:
            missing = workspaces.keep(
                view.connection,
                call.principal.account_id,
                digest,
                rules.canonical(found),
                found.pieces(),
                room(settings),
                call.now_us,
                is_open=partial(is_open, view.connection),
            )
        except workspaces.QuotaReached as full:
            raise no_room(full) from None
        told = WorkspaceKeptAnswer(workspace_sha256=digest, bytes=found.bytes, missing=missing)
        return call.answer(view, told)


@resource.post("/v1/workspaces/pieces", WRITE, PiecesKeptAnswer, records=False)
def add_workspace_pieces(body: WorkspacePiecesRequest, call: Caller) -> Response:
    """Keeps pieces of files. What no workspace of yours names is not kept."""
    bodies = bodies_of(body.data)
    with call.read() as view:
        kept = workspaces.fill(view.connection, call.principal.account_id, bodies)
        return call.answer(view, PiecesKeptAnswer(kept=kept))


def use(call: Call, job: SubmitJob | JobSubmitted) -> None:
    """Work of a job is asked for: the workspace that it names is here, all of it, and stays.

    Raises Refused: WORKSPACE_UNKNOWN, WORKSPACE_INCOMPLETE.
    """
    digest = workspace_of(job.references)
    if digest is None or re.fullmatch(r"[0-9a-f]{64}", digest) is None:
        return
    account_id = job.account_id
    with call.service.connection() as connection:
        workspaces.use(connection, account_id, digest, job.job_id, call.now_us)
        missing = workspaces.missing(connection, account_id, digest)
        if missing is None:
            raise Refused(JobsReason.WORKSPACE_UNKNOWN)
        if missing:
            raise Refused(JobsReason.WORKSPACE_INCOMPLETE, missing=len(missing))


def require_size(settings: Settings, size: int) -> None:
    """Raises Refused: WORKSPACE_TOO_LARGE."""
    most = settings.workspace_mib * MIB
    if size > most:
        raise Refused(JobsReason.WORKSPACE_TOO_LARGE, bytes=size, most=most, limit="one folder")


def room(settings: Settings) -> workspaces.Room:
    """How much may be kept."""
    return workspaces.Room(settings.workspace_account_mib * MIB, settings.workspace_total_mib * MIB)


def no_room(full: workspaces.QuotaReached) -> Refused:
    """What a quota that is reached is answered with."""
    limit = "server" if full.of_all else "account"
    return Refused(JobsReason.WORKSPACE_TOO_LARGE, bytes=full.needed, most=full.most, limit=limit)


def files_of(files: list[WorkspaceFileForm]) -> tuple[rules.File, ...]:
    """A list of files by the same rules. Raises Refused: WORKSPACE_INVALID."""
    found: tuple[rules.File, ...] = _read(rules.read_files, [one.model_dump() for one in files])
    return found


def _read(read: Any, told: Any) -> Any:
    try:
        return read(told)
    except rules.WorkspaceInvalid as invalid:
        raise Refused(JobsReason.WORKSPACE_INVALID, rule=str(invalid)) from None


def bodies_of(data: list[str]) -> list[bytes]:
    """Raises Refused: AMOUNT_OUT_OF_RANGE."""
    found = []
    for text in data:
        try:
            body = base64.b64decode(text, validate=True)
        except binascii.Error:
            body = b""
        if not 1 <= len(body) <= PIECE_BYTES:
            raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, field="data", at_most=PIECE_BYTES)
        found.append(body)
    return found


def pieces_told(
    wanted: list[str], lengths: Mapping[str, int], read: Callable[[list[str]], Mapping[str, bytes]]
) -> WorkspacePiecesAnswer:
    """As many of the wanted pieces as one answer holds, at least one. No others are read: 512 of
    them are 256 MiB.
    """
    asked = dict.fromkeys(wanted)
    fitting: list[str] = []
    left = ANSWER_BYTES_MAX
    for key in (one for one in asked if one in lengths):
        left -= lengths[key] + 100
        if left < 0 and fitting:
            break
        fitting.append(key)
    found = read(fitting)
    data = [
        WorkspacePieceAnswer(sha256=key, body=base64.b64encode(found[key]).decode())
        for key in fitting
        if key in found
    ]
    return WorkspacePiecesAnswer(data=data, unknown=[one for one in asked if one not in lengths])
