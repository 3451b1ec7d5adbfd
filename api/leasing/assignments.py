"""Assignments: the work that a node has to run, run on or stop, and its word that the work runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import Field

from api.door.amounts import INTEGER_MAX
from api.door.auth import machines_or_scope
from api.door.call import After, Call, Caller, View
from api.door.models import (
    AccountId,
    AnswerModel,
    Count,
    DeviceId,
    Hex32,
    JobReferenceForm,
    LeaseId,
    LeaseInPath,
    LeaseState,
    NodeInPath,
    Position,
    Ppm,
    RequestModel,
    Told_at,
    VolumeId,
    VolumeMountForm,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.fleet.constraints import MigStart, Mode
from api.fleet.nodes import own_node, visible_node
from api.sites.datastores import StoreMountAnswer, store_mount
from domain.fleet.reasons import FleetReason
from domain.jobs.gang import gang_stream
from domain.jobs.job import job_stream, workload_hash
from domain.jobs.parts import plan_of
from domain.jobs.plan import Reference
from domain.lease.lease import RUNNING, Lease, LeaseRequested, ReadyLease, lease_stream
from domain.lease.reasons import LeaseReason
from domain.money import PPM
from domain.refusal import Refused
from domain.sites.reservation import reservation_stream
from domain.storage.volume import volume_stream
from projections.fleet import fleet
from projections.fleet.fleet import FLEET
from projections.lease import leases, work
from projections.lease.leases import LEASES
from projections.lease.work import WORK
from projections.storage import volumes
from projections.storage.volumes import VOLUMES

resource = Resource("nodes")

ASSIGNMENTS_MAX = 500
TO_ERASE_MAX = 100


class ReservedPortAnswer(AnswerModel):
    """The name that is published with mDNS, and the port that the work listens on."""

    host_name: str
    port: Annotated[int, Field(ge=1, le=65_535)]


class LeaseWorkloadAnswer(AnswerModel):
    """What the executor runs. `workload_sha256` covers all of it but the kind. `references` name
    keys, checkpoints and datasets, and hold no secret.
    """

    kind: str
    image: str | None = None
    command: list[str]
    env_refs: list[str]
    references: list[JobReferenceForm] | None = None
    mounts: list[StoreMountAnswer] | None = None
    reserved_port: ReservedPortAnswer | None = None
    workload_sha256: Hex32


class AssignmentAnswer(AnswerModel):
    """One lease on one device, in server time; without `until_us` its end is not known. `mode`
    says how the lease shares the device; a MIG instance begins at memory slice `mig_start`.
    `executor` has taken up its work, which runs until it ended or was stopped.
    """

    lease_id: LeaseId
    device_id: DeviceId
    from_us: Annotated[int, Field(ge=0, le=INTEGER_MAX)]
    until_us: Annotated[int, Field(ge=0, le=INTEGER_MAX)] | None = None
    share_ppm: Ppm
    mem_ppm: Ppm
    mode: Mode
    mig_profile: str | None = None
    mig_start: MigStart | None = None
    state: Literal["active", "paused", "degraded", "reclaiming", "closing"]
    job_id: str
    executor: str | None = None
    work_ended: bool = False


class MountedVolumeAnswer(VolumeMountForm):
    """A volume that the work finds at `path`, and how much may lie in it."""

    size_gib: Count


class PendingLeaseAnswer(AnswerModel):
    """A lease that waits for the node to say that its work runs. `executor` has acknowledged it.
    `memory_mib`: its part of the memory of the smallest of its devices. Credentials are sealed to
    `encryption_key`. `part` counts the chunks or members of a job from 0, of `parts` where that
    number is fixed; `attempt` counts the leases of the part from 1. `waits_for_gang`: say `ready`
    when all but the program is there, and begin it when `data` lists the lease: it is billed then.
    """

    lease_id: LeaseId
    job_id: str
    account_id: AccountId
    device_ids: list[DeviceId]
    share_ppm: Ppm
    mem_ppm: Ppm
    mode: Mode
    mig_profile: str | None = None
    mig_starts: list[MigStart] | None = None
    reserved_at: Told_at
    work: LeaseWorkloadAnswer
    memory_mib: Count | None = None
    encryption_key: Hex32 | None = None
    route_id: str | None = None
    volumes: list[MountedVolumeAnswer] | None = None
    executor: str | None = None
    part: Count | None = None
    parts: Count | None = None
    attempt: Count | None = None
    waits_for_gang: bool | None = None


class WorkToStopAnswer(AnswerModel):
    """A lease that is over while its work may still run: stop it, then acknowledge the stop."""

    lease_id: LeaseId
    workload_sha256: Hex32
    closed_at: Told_at
    close_code: Count


class AssignmentsAnswer(AnswerModel):
    """`data`: leases that are running or have not been reported to their end. `pending` is to be
    started, `stopping` to be stopped. `to_erase`: deleted volumes that this node had
    attached: their data are to be erased here.
    """

    data: list[AssignmentAnswer]
    pending: list[PendingLeaseAnswer]
    stopping: list[WorkToStopAnswer]
    to_erase: list[VolumeId]
    position: Position


class LeaseReadinessRequest(RequestModel):
    """Where the renter reaches the work, if anywhere. `credentials`: base64 of a libsodium sealed
    box for the key that the renter named; only the renter can open it.
    """

    endpoint: Annotated[str, Field(min_length=1, max_length=2_000)] | None = None
    credentials: (
        Annotated[str, Field(pattern=r"^[0-9A-Za-z+/]+={0,2}$", min_length=64, max_length=8_192)]
        | None
    ) = None

    model_config = with_examples({"endpoint": "https://10.0.0.7:8888"})


class LeaseReadyAnswer(AnswerModel):
    """Billing starts at `opened_at`; it ends at `funds_end_at` or at the term's end. In a gang that
    is the moment the last member is ready: before it, neither is there.
    """

    lease_id: LeaseId
    state: LeaseState
    opened_at: Told_at | None = None
    funds_end_at: Told_at | None = None
    term_end_at: Told_at | None = None
    position: Position | None = None


@resource.get(
    "/v1/nodes/{node_id}/assignments",
    machines_or_scope("provider", "operator", "audit:read"),
    AssignmentsAnswer,
    problems=[FleetReason.NODE_UNKNOWN],
)
def list_assignments(node_id: NodeInPath, call: Caller) -> Response:
    """Lists the leases of a node: device, start and end of each.

    With the `ETag` of an earlier answer in `If-None-Match`, 304 while they are the same.
    """
    with call.read(FLEET, LEASES, WORK, VOLUMES) as view:
        node = visible_node(call, view, node_id, to_owners=False)
        taken = {
            row.lease_id: row
            for row in work.read_on_node(view.connection, node_id, ASSIGNMENTS_MAX)
        }
        rows = [
            row
            for state in ("reserved", *RUNNING, "closing")
            for row in leases.read_leases(
                view.connection, node_id=node_id, state=state, limit=ASSIGNMENTS_MAX
            )
        ]
        told = AssignmentsAnswer(
            data=[one for row in rows for one in _assignments(row, taken.get(row.lease_id))],
            pending=[_pending(call, view, row, node) for row in rows if row.state == "reserved"],
            to_erase=volumes.read_to_erase(view.connection, node_id, TO_ERASE_MAX),
            stopping=[_stop(row) for row in taken.values() if row.closed_at_us is not None],
            position=view.position,
        )
        return call.answer_if_new(view, told)


def _stop(row: work.WorkRow) -> WorkToStopAnswer:
    assert row.workload_sha256 is not None
    return WorkToStopAnswer(
        lease_id=row.lease_id,
        workload_sha256=row.workload_sha256,
        closed_at=moment(row.closed_at_us or 0),
        close_code=row.close_code or 0,
    )


def _assignments(row: leases.LeaseRow, taken: work.WorkRow | None) -> list[AssignmentAnswer]:
    if row.opened_at_us is None:
        return []
    ends = [row.closed_at_us or row.funds_end_us, row.term_end_us]
    if row.state == "paused":
        ends.append(row.moment_us)  # the device may be somebody else's since then
    until_us = min((end for end in ends if end is not None), default=None)
    told: Any = row
    starts: list[int | None] = [None] * len(row.device_ids or ())
    starts = [*row.mig_starts] if row.mig_starts else starts
    return [
        AssignmentAnswer(
            lease_id=row.lease_id,
            device_id=device_id,
            from_us=row.opened_at_us,
            until_us=None if until_us is None else min(until_us, INTEGER_MAX),
            share_ppm=row.share_ppm,
            mem_ppm=row.mem_ppm,
            mode=told.mode,
            mig_profile=row.mig_profile,
            mig_start=start,
            state=told.state,
            job_id=row.job_id,
            executor=None if taken is None else taken.executor,
            work_ended=taken is not None and taken.ended_at_us is not None,
        )
        for device_id, start in zip(row.device_ids or (), starts, strict=True)
    ]


def _pending(call: Call, view: View, row: leases.LeaseRow, node: fleet.Node) -> PendingLeaseAnswer:
    job = leases.read_job(view.connection, row.job_id)
    assert job is not None, row.job_id
    assert row.reserved_at_us is not None
    told: Any = row
    lease = call.service.ledger.market.state_of(lease_stream(row.lease_id))
    assert lease.requested is not None
    return PendingLeaseAnswer(
        lease_id=row.lease_id,
        job_id=row.job_id,
        account_id=row.account_id,
        device_ids=row.device_ids or [],
        share_ppm=row.share_ppm,
        mem_ppm=row.mem_ppm,
        mode=told.mode,
        mig_profile=row.mig_profile,
        mig_starts=row.mig_starts,
        reserved_at=moment(row.reserved_at_us),
        work=LeaseWorkloadAnswer(
            kind=job.kind,
            image=job.image,
            command=job.command,
            env_refs=job.env_refs,
            references=_references(job),
            mounts=_mounts(call, view, job, node.node_id) or None,
            reserved_port=_port(call, job),
            workload_sha256=job.workload_sha256,
        ),
        memory_mib=_memory_of(row, node),
        encryption_key=lease.requested.encryption_key,
        route_id=lease.requested.route_id,
        volumes=_mounted(call, lease) or None,
        executor=None if lease.work.started is None else lease.work.started.executor,
        **_part(call, lease.requested),
    )


def _mounts(call: Call, view: View, job: leases.Job, node_id: str) -> list[StoreMountAnswer]:
    """What the work mounts, with the logins for the node that mounts it."""
    is_machine = call.node_of_caller(node_id) or call.executor_of_caller(node_id)
    return [
        store_mount(call, view, one["datastore_id"], one["path"], one["use"], has_login=is_machine)
        for one in (job.attached or {}).get("mounts", ())
    ]


def _port(call: Call, job: leases.Job) -> ReservedPortAnswer | None:
    """The reserved name and port of the work."""
    name = (job.attached or {}).get("reservation_id")
    if name is None:
        return None
    reserved = call.service.ledger.market.state_of(reservation_stream(name)).added
    assert reserved is not None, name
    return ReservedPortAnswer(host_name=reserved.host_name, port=reserved.port)


def _part(call: Call, asked: LeaseRequested) -> dict[str, Any]:
    """Which chunk or member of its job a lease is, or which member of its gang (R-4), and whether
    that has still to open.
    """
    market = call.service.ledger.market
    if asked.part is not None:
        chunks = plan_of(market.state_of(job_stream(asked.job_id))).chunks
        return {"part": asked.part, "parts": chunks, "attempt": asked.attempt}
    if asked.gang_id is None:
        return {}
    gang = market.state_of(gang_stream(asked.gang_id))
    told = {"part": gang.lease_ids.index(asked.lease_id), "parts": len(gang.lease_ids)}
    return {**told, "waits_for_gang": True} if gang.status == "reserved" else told


def _mounted(call: Call, lease: Lease) -> list[MountedVolumeAnswer]:
    """What the work mounts: of volumes that were taken back meanwhile, nothing."""
    assert lease.requested is not None
    found = []
    for one in lease.requested.volumes:
        state = call.service.ledger.market.state_of(volume_stream(one.volume_id))
        if state.provisioned is not None and lease.requested.lease_id in state.attached:
            form = VolumeMountForm.of(one).model_dump()
            found.append(MountedVolumeAnswer(**form, size_gib=state.provisioned.size_gib))
    return found


def _references(job: leases.Job) -> list[JobReferenceForm] | None:
    """Those that the hash covers: of jobs submitted before it did, the node is told none."""
    told: Any = job
    found = tuple(Reference(**one) for one in told.refs or ())
    covering = workload_hash(job.image, tuple(job.command), tuple(job.env_refs), found)
    if not found or covering != job.workload_sha256:
        return None
    return [JobReferenceForm(**one) for one in told.refs]


def _memory_of(row: leases.LeaseRow, node: fleet.Node) -> int | None:
    """The lease's part of a device's memory, in MiB, rounded down."""
    specs = [] if node.specs is None else node.specs["devices"]
    whole = [one["memory_mib"] for one in specs if one["device_id"] in (row.device_ids or ())]
    return min(whole) * row.mem_ppm // PPM if whole else None


@resource.post(
    "/v1/nodes/{node_id}/assignments/{lease_id}/ready",
    machines_or_scope("provider"),
    LeaseReadyAnswer,
    problems=[
        FleetReason.NODE_UNKNOWN,
        LeaseReason.LEASE_UNKNOWN,
        FleetReason.LEASE_STATE,
        LeaseReason.ENCRYPTION_KEY_UNKNOWN,
    ],
)
def start_lease(
    node_id: NodeInPath, lease_id: LeaseInPath, body: LeaseReadinessRequest, call: Caller
) -> Response:
    """Starts a lease whose work runs. Billing starts now, at the price that is locked here."""

    def commands() -> ReadyLease:
        if not (call.node_of_caller(node_id) or call.executor_of_caller(node_id)):
            own_node(call, node_id)
        lease = call.service.ledger.market.state_of(lease_stream(lease_id))
        if lease.reserved is None or lease.reserved.node_id != node_id:
            raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
        return ReadyLease(
            lease_id=lease_id,
            node_id=node_id,
            endpoint=body.endpoint,
            at_us=call.now_us,
            credentials=body.credentials,
        )

    def told(after: After) -> AnswerModel:
        lease = after.state(lease_stream(lease_id))
        opened = lease.opened
        status: Any = lease.status
        return LeaseReadyAnswer(
            lease_id=lease_id,
            state=status,
            opened_at=None if opened is None else moment(opened.opened_at_us),
            funds_end_at=None if opened is None else moment(opened.funds_end_us),
            term_end_at=None if opened is None else moment_or_none(opened.term_end_us),
        )

    return call.record(commands, told)


# --- usage -----------------------------------------------------------------------------------
