"""Volumes over HTTP: disk of a region that outlives jobs. Created, mounted by jobs, deleted."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import BeforeValidator, Field

from api.door.amounts import Money, credits_
from api.door.auth import machines_or_scope, with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AccountId,
    AccountQuery,
    AnswerModel,
    Count,
    EmptyRequest,
    JobId,
    LeaseId,
    MountPath,
    NodeId,
    NodeInPath,
    Position,
    RegionId,
    RequestModel,
    Told_at,
    VolumeId,
    VolumeMountForm,
    no_address,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.fleet.nodes import own_node
from domain.fleet.reasons import FleetReason
from domain.funds.reasons import FundsReason
from domain.jobs.job import AttachVolume, DetachVolume, existing_job, job_stream
from domain.lease.funds import total
from domain.lease.mounts import VolumeMount
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.rules import refused_by
from domain.storage.reasons import StorageReason
from domain.storage.volume import (
    SIZE_GIB_MAX,
    ConfirmErased,
    DeleteVolume,
    ProvisionVolume,
    Volume,
    gb_seconds,
    own_volume,
    volume_stream,
)
from domain.trust.reasons import TrustReason
from projections.storage import volumes
from projections.storage.volumes import VOLUMES

resource = Resource("volumes")

WRITE = with_scope("renter", "client")
READ = with_scope("renter", "client", "billing:read", "operator", "audit:read")
ATTACHMENTS_TOLD = 200
VolumeInPath = Annotated[str, Path(pattern=r"^volume_[0-9a-f]{32}$")]
VolumeName = Annotated[
    str,
    BeforeValidator(no_address),
    Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]*$"),
]
VolumeStateName = Literal["detached", "attached", "grace", "deleted", "erased"]


class VolumeRequest(RequestModel):
    """Disk in one region, charged from now until it is deleted. `project_id`: only jobs of this
    project mount it; absent: all of your jobs. The price of its grace of 72 hours is held.
    """

    name: VolumeName
    region_id: RegionId
    size_gib: Annotated[int, Field(ge=1, le=SIZE_GIB_MAX)]
    project_id: Annotated[str, Field(min_length=1, max_length=100)] | None = None

    model_config = with_examples(
        {"name": "checkpoints", "region_id": "region_" + "1" * 32, "size_gib": 100}
    )


class VolumeRateAnswer(AnswerModel):
    """So many GB-seconds cost `price`."""

    price: Money
    per: Annotated[int, Field(ge=1)]


class JobAttachmentAnswer(AnswerModel):
    """A lease that has the volume, or had it until `detached_at`."""

    lease_id: LeaseId
    job_id: JobId
    node_id: NodeId
    path: MountPath
    read_only: bool
    attached_at: Told_at
    detached_at: Told_at | None = None
    cause: Literal["lease_over", "funds_ended"] | None = None


class VolumeAnswer(AnswerModel):
    """`leases` have it attached now. `charge` covers the time until `charged_until`, once for the
    volume. In state grace its funds have ended: it is deleted at `deletes_at`, unless credits come
    before. `reserve` is held for that time. Deleted: `nodes_left` have not said yet that nothing of
    it is left with them. Erased: every node that ever had it attached has.
    """

    volume_id: VolumeId
    name: str
    account_id: AccountId
    project_id: str | None = None
    region_id: RegionId
    size_gib: Count
    state: VolumeStateName
    leases: Count
    rate: VolumeRateAnswer | None = None
    tariff_version: Count
    gb_seconds: Count
    charge: Money
    charged_until: Told_at
    reserve: Money
    provisioned_at: Told_at
    deletes_at: Told_at | None = None
    deleted_at: Told_at | None = None
    deleted_because: Literal["owner", "funds_ended"] | None = None
    nodes_left: Count | None = None
    erased_at: Told_at | None = None
    position: Position | None = None


class VolumeShownAnswer(VolumeAnswer):
    """A volume with the leases that have or had it, the last ones first."""

    attachments: list[JobAttachmentAnswer]


class VolumeAttachRequest(RequestModel):
    """Every lease of the job that is asked for from now on mounts the volume at `path`, below
    /vol/. Leases that run already keep what they have.
    """

    job_id: JobId
    path: MountPath
    read_only: bool = False

    model_config = with_examples({"job_id": "job_" + "1" * 32, "path": "/vol/data"})


class VolumeDetachRequest(RequestModel):
    """Leases of the job that are asked for from now on do not mount the volume."""

    job_id: JobId

    model_config = with_examples({"job_id": "job_" + "1" * 32})


class JobVolumesAnswer(AnswerModel):
    """What the next leases of the job mount."""

    job_id: JobId
    volumes: list[VolumeMountForm]
    position: Position | None = None


class VolumeErasedAnswer(AnswerModel):
    volume_id: VolumeId
    state: VolumeStateName
    position: Position | None = None


@resource.post(
    "/v1/volumes",
    WRITE,
    VolumeAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_CLOSED,
        StorageReason.VOLUME_EXISTS,
        FleetReason.REGION_UNKNOWN,
        FleetReason.STORAGE_NODE_STATE,
        StorageReason.VOLUME_REGION,
        PartiesReason.COUNT_OUT_OF_RANGE,
        PricesReason.TARIFF_UNKNOWN,
        FundsReason.UNPAID_DEBT,
        FundsReason.CREDIT_TOO_LOW,
    ],
)
def create_volume(body: VolumeRequest, call: Caller) -> Response:
    """Creates a volume, for an account whose balance covers its grace and an hour."""
    volume_id = call.id("volume")
    command = ProvisionVolume(
        volume_id=volume_id,
        name=body.name,
        account_id=call.principal.account_id,
        project_id=body.project_id,
        region_id=body.region_id,
        size_gib=body.size_gib,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    return call.record(lambda: command, lambda after: _told(after.state(volume_stream(volume_id))))


@resource.get("/v1/volumes", READ, page_of(VolumeAnswer), problems=["cursor_invalid"])
def list_volumes(
    call: Caller,
    order: InOrder,
    account_id: AccountQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists volumes in the order in which they were created, deleted ones too."""
    place = call.place(cursor, [0], order)
    with call.read(VOLUMES) as view:
        rows = volumes.read_volumes(
            view.connection,
            account_id=call.principal.among(account_id),
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _volume)


@resource.get(
    "/v1/volumes/{volume_id}", READ, VolumeShownAnswer, problems=[StorageReason.VOLUME_UNKNOWN]
)
def read_volume(volume_id: VolumeInPath, call: Caller) -> Response:
    """Returns a volume with the leases that have or had it."""
    with call.read(VOLUMES) as view:
        only = call.principal.only
        rows = volumes.read_volumes(view.connection, account_id=only, volume_id=volume_id, limit=1)
        if not rows:
            raise Refused(StorageReason.VOLUME_UNKNOWN, volume_id=volume_id)
        found = volumes.read_attachments(view.connection, volume_id, ATTACHMENTS_TOLD)
        told = VolumeShownAnswer(
            **_volume(rows[0]).model_dump(exclude={"position"}),
            attachments=[_attachment(row) for row in found],
            position=view.position,
        )
        return call.answer(view, told)


@resource.post(
    "/v1/volumes/{volume_id}/attach", WRITE, JobVolumesAnswer, problems=refused_by(AttachVolume)
)
def attach_volume(volume_id: VolumeInPath, body: VolumeAttachRequest, call: Caller) -> Response:
    """Attaches a volume to a job: its next leases mount it."""

    def commands() -> AttachVolume:
        _own_job(call, body.job_id)
        return AttachVolume(
            job_id=body.job_id,
            mount=VolumeMount(volume_id, body.path, body.read_only),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda after: _mounts(body.job_id, after))


@resource.post(
    "/v1/volumes/{volume_id}/detach",
    WRITE,
    JobVolumesAnswer,
    problems=[*refused_by(DetachVolume), StorageReason.VOLUME_UNKNOWN],
)
def detach_volume(volume_id: VolumeInPath, body: VolumeDetachRequest, call: Caller) -> Response:
    """Detaches a volume from a job: its next leases do not mount it."""

    def commands() -> DetachVolume:
        _own_job(call, body.job_id)
        own_volume(call.service.ledger.world(), volume_id, call.principal.account_id)
        return DetachVolume(
            job_id=body.job_id, volume_id=volume_id, by=call.principal.member_id, at_us=call.now_us
        )

    return call.record(commands, lambda after: _mounts(body.job_id, after))


@resource.post(
    "/v1/volumes/{volume_id}/delete",
    WRITE,
    VolumeAnswer,
    problems=[StorageReason.VOLUME_UNKNOWN, StorageReason.VOLUME_ATTACHED],
)
def delete_volume(volume_id: VolumeInPath, body: EmptyRequest, call: Caller) -> Response:
    """Deletes a volume that no lease has attached. Its data are erased, and it costs no more."""
    del body
    command = DeleteVolume(
        volume_id=volume_id,
        account_id=call.principal.account_id,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    return call.record(lambda: command, lambda after: _told(after.state(volume_stream(volume_id))))


@resource.post(
    "/v1/nodes/{node_id}/volumes/{volume_id}/erased",
    machines_or_scope("provider"),
    VolumeErasedAnswer,
    problems=[FleetReason.NODE_UNKNOWN, StorageReason.VOLUME_UNKNOWN, StorageReason.VOLUME_STATE],
)
def confirm_volume_erased(
    node_id: NodeInPath, volume_id: VolumeInPath, body: EmptyRequest, call: Caller
) -> Response:
    """Confirms that nothing of a deleted volume is left where the node keeps volumes."""
    del body

    def commands() -> ConfirmErased:
        if not (call.node_of_caller(node_id) or call.executor_of_caller(node_id)):
            own_node(call, node_id)
        return ConfirmErased(volume_id=volume_id, node_id=node_id, at_us=call.now_us)

    def told(after: After) -> VolumeErasedAnswer:
        state: Any = after.state(volume_stream(volume_id)).state
        return VolumeErasedAnswer(volume_id=volume_id, state=state)

    return call.record(commands, told)


def _own_job(call: Call, job_id: str) -> None:
    """Raises Refused: JOB_UNKNOWN, also for a job of another account."""
    spec = existing_job(call.service.ledger.world(), job_id)
    if spec.account_id != call.principal.account_id:
        raise Refused(TrustReason.JOB_UNKNOWN, job_id=job_id)


def _mounts(job_id: str, after: After) -> JobVolumesAnswer:
    mounts = after.state(job_stream(job_id)).volumes
    return JobVolumesAnswer(job_id=job_id, volumes=[VolumeMountForm.of(one) for one in mounts])


def _told(state: Volume) -> VolumeAnswer:
    """A volume as its stream has it, told as the view's row of it would be."""
    made, deleted, grace = state.provisioned, state.deleted, state.grace
    assert made is not None
    rate = made.rate
    row = volumes.VolumeRow(
        volume_id=made.volume_id,
        name=made.name,
        account_id=made.account_id,
        project_id=made.project_id,
        region_id=made.region_id,
        size_gib=made.size_gib,
        price_units=None if rate is None else rate.price.units,
        per=None if rate is None else rate.per,
        tariff_version=made.tariff_version,
        charged_until_us=state.charged_until_us,
        charge_units=state.charge_units,
        reserve_units=total(state.held),
        deletes_at_us=None if grace is None else grace.deletes_at_us,
        deleted_at_us=None if deleted is None else deleted.deleted_at_us,
        cause=None if deleted is None else deleted.cause,
        at_us=made.at_us,
        position=0,
        leases=len(state.attached),
        nodes_left=len(state.nodes - state.erased_on),
        erased_at_us=deleted.deleted_at_us if deleted is not None and state.is_erased else None,
    )
    return _volume(row)


def _volume(row: volumes.VolumeRow) -> VolumeAnswer:
    name: Any = "attached" if row.leases else "detached"
    if row.deletes_at_us is not None:
        name = "grace"
    if row.deleted_at_us is not None:
        name = "deleted" if row.erased_at_us is None else "erased"
    rate = None
    if row.price_units is not None and row.per is not None:
        rate = VolumeRateAnswer(price=credits_(row.price_units), per=row.per)
    because: Any = row.cause
    return VolumeAnswer(
        volume_id=row.volume_id,
        name=row.name,
        account_id=row.account_id,
        project_id=row.project_id,
        region_id=row.region_id,
        size_gib=row.size_gib,
        state=name,
        leases=row.leases,
        rate=rate,
        tariff_version=row.tariff_version,
        gb_seconds=gb_seconds(row.size_gib, row.charged_until_us - row.at_us),
        charge=credits_(row.charge_units),
        charged_until=moment(row.charged_until_us),
        reserve=credits_(row.reserve_units),
        provisioned_at=moment(row.at_us),
        deletes_at=None if row.deleted_at_us else moment_or_none(row.deletes_at_us),
        deleted_at=moment_or_none(row.deleted_at_us),
        deleted_because=because,
        nodes_left=None if row.deleted_at_us is None else row.nodes_left,
        erased_at=moment_or_none(row.erased_at_us),
    )


def _attachment(row: volumes.AttachmentRow) -> JobAttachmentAnswer:
    cause: Any = row.cause
    return JobAttachmentAnswer(
        lease_id=row.lease_id,
        job_id=row.job_id,
        node_id=row.node_id,
        path=row.path,
        read_only=row.read_only,
        attached_at=moment(row.at_us),
        detached_at=moment_or_none(row.detached_at_us),
        cause=cause,
    )
