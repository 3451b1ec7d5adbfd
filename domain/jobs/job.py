"""Jobs: what a renter needs run. The lease carries the work; the job says what the work is.

`workload_sha256` covers image, command, environment references and what the work refers to (keys,
checkpoints, datasets), so the node can show that it ran what was asked. Secrets never enter: an
environment reference names one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias, assert_never

from domain.frozen import replace
from domain.funds.reasons import FundsReason
from domain.hardware.constraints import NOTHING, Constraints, require_constraints
from domain.hardware.mig import has_profile
from domain.hardware.reasons import HardwareReason
from domain.hardware.sharing import MIG, require_mode
from domain.jobs.plan import (
    KINDS,
    JobPlan,
    Reference,
    datasets_of,
    require_plan,
    require_references,
    require_work,
)
from domain.jobs.reasons import JobsReason
from domain.lease.mounts import VolumeMount
from domain.market.offer import require_price
from domain.money import PPM, Amount, Asset, MoneyReason
from domain.parties.account import existing_account, require_open
from domain.parties.client import instance_of
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.prices.tariff import METERS, MeterMax
from domain.refusal import Reason, Refused
from domain.sites.attached import Attached, require_attached
from domain.sites.reasons import SitesReason
from domain.storage.pins import pinned_to
from domain.storage.reasons import StorageReason
from domain.storage.volume import require_mounts
from domain.stream import Change, Stream, World
from domain.trust.reasons import TrustReason


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubmitted:
    """Stream `job:{job_id}`."""

    job_id: str
    account_id: str
    client_id: str
    project_id: str
    end_user_ref: str
    kind: str  # JOB_KINDS
    image: str | None
    command: tuple[str, ...]
    env_refs: tuple[str, ...]
    workload_sha256: str
    gpu_count: int
    share_ppm: int
    mem_ppm: int
    models: tuple[str, ...]  # allowed models; empty: any
    max_price_per_gpu_hour: Amount
    at_us: int
    federated: str | None  # FEDERATED_KINDS: it runs across projects (C-21)
    participants: tuple[str, ...]  # accounts that may lease for it, beside its own
    sla_class: str | None  # of the tariff: what availability its leases are promised
    auto_restart: bool  # goes on by itself when money is back after its funds ended
    constraints: Constraints | None  # what else its nodes must be
    work: str | None  # "training" or "inference"
    references: tuple[Reference, ...]  # keys, checkpoints, datasets: by name
    plan: JobPlan | None  # which leases are opened for it
    parent_job_id: str | None  # the job it is a part of: their costs add up
    instance_id: str | None  # of the compute client: which one submitted it
    key_id: str | None  # of the API key: what its plan opens counts for the key's budget
    meter_maxima: tuple[MeterMax, ...]  # beside GPU time: the most for each resource of a lease
    volumes: tuple[VolumeMount, ...]  # its leases mount them, until `JobVolumesSet` says otherwise
    attached: Attached | None  # stores that it mounts, the port that it keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class FederatedFeeCarried:
    """This lease carries the federated fee of the job, where the tariff counts it once a job."""

    job_id: str
    lease_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEscrowOpened:
    """Its leases draw on one escrow from now on (`domain/leasing/escrow_sharing.py`)."""

    job_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobVolumesSet:
    """Leases that are asked for from now on mount these; those before keep what they have."""

    job_id: str
    volumes: tuple[VolumeMount, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCancelled:
    job_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCompleted:
    job_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFailed:
    """A chunk of it failed too often; no more leases are opened."""

    job_id: str
    part: int
    attempts: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobScaled:
    """So many members from now on: leases are added, or closed with code 4."""

    job_id: str
    members: int
    cause: str  # "renter", or "tasks": the queue's length
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPartStarted:
    """A chunk or a member of the job has a lease."""

    job_id: str
    part: int  # 0 .. chunks - 1, or 0 .. members - 1
    attempt: int  # 1, and one more each time the part gets a new lease
    lease_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPartEnded:
    job_id: str
    part: int
    attempt: int
    lease_id: str
    code: int  # of the lease's close; 0: completed
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunStarted:
    """A scheduled job has a lease for one due time, and for no due time two."""

    job_id: str
    lease_id: str
    due_us: int
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitJob:
    job_id: str
    account_id: str
    client_id: str
    project_id: str
    end_user_ref: str
    kind: str
    image: str | None
    command: tuple[str, ...]
    env_refs: tuple[str, ...]
    gpu_count: int
    share_ppm: int  # on each of gpu_count devices
    mem_ppm: int
    models: tuple[str, ...]
    max_price_per_gpu_hour: Amount
    at_us: int
    federated: str | None = None
    participants: tuple[str, ...] = ()
    sla_class: str | None = None
    auto_restart: bool = False
    constraints: Constraints | None = None
    work: str | None = None
    references: tuple[Reference, ...] = ()
    plan: JobPlan | None = None
    parent_job_id: str | None = None
    key_id: str | None = None  # of the API key that asks: a compute client's acts for an instance
    meter_maxima: tuple[MeterMax, ...] = ()
    volumes: tuple[VolumeMount, ...] = ()
    attached: Attached | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachVolume:
    """Mount a volume in the leases of a job that are asked for from now on."""

    job_id: str
    mount: VolumeMount
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachVolume:
    """Mount it no more in leases that are asked for from now on."""

    job_id: str
    volume_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelJob:
    job_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteJob:
    job_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleJob:
    """Change how many members an elastic job has, within its plan."""

    job_id: str
    members: int
    cause: str
    by: str
    at_us: int


JOB_KINDS = KINDS
FEDERATED_KINDS = ("inference", "training")
PARTICIPANTS_MAX = 100

GPU_COUNT_MAX = 64
"""Devices of one lease, which is one node."""

WORK_BYTES_MAX = 40_000
"""All text of a job, as JSON: a fact holds 60,000 bytes. Larger work goes by reference."""

METER_MAX_UNITS = 10**15
"""A thousand million credits for one resource of one lease."""

GENERATIONS_MAX = 8
"""A job, the job it is part of, and so on."""

# State.


@dataclass(frozen=True, slots=True)
class Part:
    """A chunk or a member, and its latest lease."""

    lease_id: str
    attempt: int
    started_us: int
    ended_us: int | None = None
    code: int | None = None

    @property
    def is_live(self) -> bool:
        return self.ended_us is None


@dataclass(frozen=True, slots=True)
class JobState:
    submitted: JobSubmitted | None = None
    phase: str = ""  # "", "submitted", "cancelled", "completed", "failed"
    fee_carrier: str | None = None  # the lease that carries the federated fee of the whole job
    members: int = 0  # of an elastic job: how many it shall have
    parts: dict[int, Part] = field(default_factory=dict)
    last_due_us: int = 0  # of a scheduled job: nothing due up to here is started any more
    changed_us: int = 0  # since when it wants as many parts as it does
    has_escrow: bool = False
    volumes: tuple[VolumeMount, ...] = ()

    @property
    def exists(self) -> bool:
        return self.submitted is not None

    @property
    def is_open(self) -> bool:
        """Whether leases may still be opened for it."""
        return self.phase == "submitted"


Fact: TypeAlias = (
    JobSubmitted
    | JobCancelled
    | JobCompleted
    | JobFailed
    | FederatedFeeCarried
    | JobEscrowOpened
    | JobScaled
    | JobPartStarted
    | JobPartEnded
    | JobRunStarted
    | JobVolumesSet
)


def evolve(state: JobState, fact: Fact) -> JobState:
    match fact:
        case JobSubmitted():
            members = 0 if fact.plan is None else fact.plan.min_members or 0
            return JobState(
                fact,
                "submitted",
                members=members,
                last_due_us=fact.at_us,
                changed_us=fact.at_us,
                volumes=fact.volumes,
            )
        case JobCancelled():
            return replace(state, phase="cancelled", changed_us=fact.at_us)
        case JobCompleted():
            return replace(state, phase="completed", changed_us=fact.at_us)
        case JobFailed():
            return replace(state, phase="failed", changed_us=fact.at_us)
        case FederatedFeeCarried():
            return replace(state, fee_carrier=fact.lease_id)
        case JobEscrowOpened():
            return replace(state, has_escrow=True)
        case JobScaled():
            return replace(state, members=fact.members, changed_us=fact.at_us)
        case JobPartStarted():
            part = Part(fact.lease_id, fact.attempt, fact.at_us)
            return replace(state, parts={**state.parts, fact.part: part})
        case JobPartEnded():
            part = replace(state.parts[fact.part], ended_us=fact.at_us, code=fact.code)
            return replace(state, parts={**state.parts, fact.part: part})
        case JobVolumesSet():
            return replace(state, volumes=fact.volumes)
        case JobRunStarted():
            return replace(state, last_due_us=fact.due_us)
        case _:
            assert_never(fact)


# Decisions.


def job_stream(job_id: str) -> Stream[JobState]:
    return Stream("job", job_id)


def job_of(world: World, job_id: str) -> JobState:
    return world.state(job_stream(job_id))


def existing_job(world: World, job_id: str) -> JobSubmitted:
    """What was submitted. Raises Refused: JOB_UNKNOWN."""
    submitted = job_of(world, job_id).submitted
    if submitted is None:
        raise Refused(TrustReason.JOB_UNKNOWN, job_id=job_id)
    return submitted


def workload_hash(
    image: str | None,
    command: tuple[str, ...],
    env_refs: tuple[str, ...],
    references: tuple[Reference, ...] = (),
) -> str:
    """SHA-256, hex, of the work as JSON: keys sorted, no spaces, ASCII with escapes, UTF-8.

    {"command":[...],"env_refs":[...],"image":...}, lists in the order given; of work that refers to
    something also "references":[{"kind":...,"name":...}].
    """
    work: dict[str, Any] = {"command": list(command), "env_refs": list(env_refs), "image": image}
    if references:
        work["references"] = [{"kind": one.kind, "name": one.name} for one in references]
    text = json.dumps(work, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def decide_submit(command: SubmitJob, world: World) -> list[Change]:
    """A share below a whole with several devices means exactly that share on each of them.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, MODE_NOT_SUPPORTED, JOB_UNKNOWN, JOB_EXISTS,
    JOB_STATE, WORKLOAD_EMPTY, CONSTRAINT_INVALID, CLIENT_NOT_AUTHORISED, PLAN_INVALID,
    SCHEDULE_INVALID, REFERENCE_INVALID, AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE,
    COUNT_OUT_OF_RANGE, SHARE_OUT_OF_RANGE, UNKNOWN_MODE, DUPLICATE_ID, UNKNOWN_PROFILE,
    MOUNT_INVALID, VOLUME_UNKNOWN, VOLUME_STATE, VOLUME_REGION,
    and like `require_attached`.
    """
    account = existing_account(world, command.account_id)
    submitted = replace(
        _submitted(command), instance_id=instance_of(world, command.account_id, command.key_id)
    )
    present = job_of(world, command.job_id).submitted
    if present is not None and replace(submitted, at_us=present.at_us) == present:
        return []
    require_open(account, command.account_id)
    if present is not None:
        raise Refused(JobsReason.JOB_EXISTS, job_id=command.job_id)
    if not command.image and not command.command:
        raise Refused(JobsReason.WORKLOAD_EMPTY, job_id=command.job_id)
    _require_text(command)
    require_price(command.max_price_per_gpu_hour)
    require_shape(command.gpu_count, command.share_ppm, command.mem_ppm)
    if command.kind not in JOB_KINDS:
        raise Refused(PartiesReason.UNKNOWN_MODE, kind=command.kind, allowed=JOB_KINDS)
    _require_participants(command)
    _require_maxima(command.meter_maxima)
    require_work(command.kind, command.work, command.federated)
    require_references(command.references)
    require_plan(command.kind, command.plan)
    require_mounts(command.volumes, command.account_id, command.project_id, world)
    _require_pin(command, world)
    _require_no_restart(command)
    _require_parent(command, world)
    asked = command.constraints or NOTHING
    require_constraints(asked)
    require_sharing(asked, command.share_ppm, command.mem_ppm, command.models)
    require_attached(world, command.account_id, command.attached, asked)
    return [Change(job_stream(command.job_id), submitted)]


def _require_pin(command: SubmitJob, world: World) -> None:
    """Volumes and pinned datasets leave a region, of those that the job names if it names some.

    Raises Refused: VOLUME_REGION.
    """
    datasets = datasets_of(command.references)
    places = pinned_to(world, command.account_id, command.volumes, datasets)
    named = None if command.constraints is None else command.constraints.regions
    if places is not None and not (places if named is None else places & set(named)):
        raise Refused(
            StorageReason.VOLUME_REGION, regions=", ".join(named or ()) or None, rule="no_region"
        )


def decide_attach(command: AttachVolume, world: World) -> list[Change]:
    """The same mount again changes nothing; a volume has one path in a job.

    Raises Refused: JOB_UNKNOWN, JOB_STATE, MOUNT_INVALID, VOLUME_UNKNOWN, VOLUME_STATE,
    VOLUME_REGION.
    """
    spec, job = existing_job(world, command.job_id), job_of(world, command.job_id)
    if command.mount in job.volumes:
        return []
    if not job.is_open:
        raise Refused(JobsReason.JOB_STATE, job_id=command.job_id, phase=job.phase)
    others = [one for one in job.volumes if one.volume_id != command.mount.volume_id]
    mounts = (*others, command.mount)
    require_mounts(mounts, spec.account_id, spec.project_id, world)
    return [_volumes_set(command.job_id, mounts, command.by, command.at_us)]


def decide_detach(command: DetachVolume, world: World) -> list[Change]:
    """Twice is once. Raises Refused: JOB_UNKNOWN."""
    existing_job(world, command.job_id)
    present = job_of(world, command.job_id).volumes
    left = tuple(one for one in present if one.volume_id != command.volume_id)
    if left == present:
        return []
    return [_volumes_set(command.job_id, left, command.by, command.at_us)]


def _volumes_set(job_id: str, mounts: tuple[VolumeMount, ...], by: str, at_us: int) -> Change:
    fact = JobVolumesSet(job_id=job_id, volumes=mounts, by=by, at_us=at_us)
    return Change(job_stream(job_id), fact)


def decide_cancel(command: CancelJob, world: World) -> list[Change]:
    """Its leases are closed by their own commands; a cancelled job gets no new ones.

    Raises Refused: JOB_UNKNOWN, JOB_STATE.
    """
    existing_job(world, command.job_id)
    phase = job_of(world, command.job_id).phase
    if phase == "cancelled":
        return []
    if phase != "submitted":
        raise Refused(JobsReason.JOB_STATE, job_id=command.job_id, phase=phase)
    cancelled = JobCancelled(job_id=command.job_id, by=command.by, at_us=command.at_us)
    return [Change(job_stream(command.job_id), cancelled)]


def decide_complete(command: CompleteJob, world: World) -> list[Change]:
    """Raises Refused: JOB_UNKNOWN, JOB_STATE."""
    existing_job(world, command.job_id)
    phase = job_of(world, command.job_id).phase
    if phase == "completed":
        return []
    if phase != "submitted":
        raise Refused(JobsReason.JOB_STATE, job_id=command.job_id, phase=phase)
    completed = JobCompleted(job_id=command.job_id, at_us=command.at_us)
    return [Change(job_stream(command.job_id), completed)]


def require_shape(gpu_count: int, share_ppm: int, mem_ppm: int) -> None:
    """Raises Refused: COUNT_OUT_OF_RANGE, SHARE_OUT_OF_RANGE."""
    if not 1 <= gpu_count <= GPU_COUNT_MAX:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE, gpu_count=gpu_count, gpu_count_max=GPU_COUNT_MAX
        )
    if not (1 <= share_ppm <= PPM and 1 <= mem_ppm <= PPM):
        raise Refused(PartiesReason.SHARE_OUT_OF_RANGE, share_ppm=share_ppm, mem_ppm=mem_ppm)


def require_sharing(
    asked: Constraints, share_ppm: int, mem_ppm: int, models: tuple[str, ...]
) -> None:
    """That some device can be shared so. Raises Refused: UNKNOWN_MODE, UNKNOWN_PROFILE,
    SHARE_OUT_OF_RANGE, and MODE_NOT_SUPPORTED when no model that is allowed has the profile.
    """
    require_mode(asked.mode, asked.mig_profile, share_ppm, mem_ppm)
    profile = asked.mig_profile
    if profile is not None and models and not any(has_profile(one, profile) for one in models):
        raise Refused(
            HardwareReason.MODE_NOT_SUPPORTED,
            mode=MIG,
            mig_profile=profile,
            models=", ".join(models),
            rule="mig_not_on_this_model",
        )


def _require_maxima(maxima: tuple[MeterMax, ...]) -> None:
    """Each resource at most once. Raises Refused: UNKNOWN_MODE, AMOUNT_NOT_POSITIVE,
    AMOUNT_OUT_OF_RANGE, COUNT_OUT_OF_RANGE.
    """
    if len({one.meter for one in maxima}) != len(maxima):
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, field="meter_maxima")
    for one in maxima:
        if one.meter not in METERS:
            raise Refused(PartiesReason.UNKNOWN_MODE, meter=one.meter)
        if one.amount.units <= 0:
            raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, field="meter_maxima")
        if one.amount.asset is not Asset.CREDIT or one.amount.units > METER_MAX_UNITS:
            raise Refused(
                PricesReason.AMOUNT_OUT_OF_RANGE, field="meter_maxima", at_most=METER_MAX_UNITS
            )


def _require_text(command: SubmitJob) -> None:
    parties = (command.client_id, command.project_id, command.end_user_ref)
    work = (command.image, command.command, command.env_refs, command.models)
    demands = None if command.constraints is None else asdict(command.constraints)
    references = [one.name for one in command.references]
    mounts = [asdict(one) for one in command.volumes]
    work_bytes = len(json.dumps([*parties, *work, demands, references, mounts]))
    if work_bytes > WORK_BYTES_MAX:
        raise Refused(
            PricesReason.AMOUNT_OUT_OF_RANGE, work_bytes=work_bytes, work_bytes_max=WORK_BYTES_MAX
        )


def _require_participants(command: SubmitJob) -> None:
    """Raises Refused: UNKNOWN_MODE, COUNT_OUT_OF_RANGE, DUPLICATE_ID."""
    participants = command.participants
    if command.federated is None and not participants:
        return
    if command.federated not in FEDERATED_KINDS:
        raise Refused(PartiesReason.UNKNOWN_MODE, federated=command.federated)
    if not 1 <= len(participants) <= PARTICIPANTS_MAX:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE, participants=len(participants), most=PARTICIPANTS_MAX
        )
    if len({command.account_id, *participants}) != len(participants) + 1:
        raise Refused(MoneyReason.DUPLICATE_ID, rule="each participant once, and not the creator")


def _require_no_restart(command: SubmitJob) -> None:
    """Raises Refused: PLAN_INVALID. A lease would go on twice: restarted, and replaced."""
    if command.auto_restart and command.plan is not None and command.plan.has_parts:
        raise Refused(JobsReason.PLAN_INVALID, field="auto_restart", rule="its parts are replaced")


def _require_parent(command: SubmitJob, world: World) -> None:
    """Raises Refused: JOB_UNKNOWN, JOB_STATE, COUNT_OUT_OF_RANGE."""
    parent_id, generations = command.parent_job_id, 1
    while parent_id is not None:
        parent = existing_job(world, parent_id)
        if parent.account_id != command.account_id:
            raise Refused(TrustReason.JOB_UNKNOWN, job_id=parent_id)
        generations += 1
        if generations > GENERATIONS_MAX:
            raise Refused(
                PartiesReason.COUNT_OUT_OF_RANGE, generations=generations, most=GENERATIONS_MAX
            )
        phase = job_of(world, parent_id).phase
        if parent_id == command.parent_job_id and phase != "submitted":
            raise Refused(JobsReason.JOB_STATE, job_id=parent_id, phase=phase)
        parent_id = parent.parent_job_id


def _submitted(command: SubmitJob) -> JobSubmitted:
    return JobSubmitted(
        job_id=command.job_id,
        account_id=command.account_id,
        client_id=command.client_id,
        project_id=command.project_id,
        end_user_ref=command.end_user_ref,
        kind=command.kind,
        image=command.image,
        command=command.command,
        env_refs=command.env_refs,
        workload_sha256=workload_hash(
            command.image, command.command, command.env_refs, command.references
        ),
        gpu_count=command.gpu_count,
        share_ppm=command.share_ppm,
        mem_ppm=command.mem_ppm,
        models=command.models,
        max_price_per_gpu_hour=command.max_price_per_gpu_hour,
        at_us=command.at_us,
        federated=command.federated,
        participants=command.participants,
        sla_class=command.sla_class,
        auto_restart=command.auto_restart,
        constraints=command.constraints,
        work=command.work,
        references=command.references,
        plan=command.plan,
        parent_job_id=command.parent_job_id,
        key_id=command.key_id,
        instance_id=None,
        meter_maxima=command.meter_maxima,
        volumes=command.volumes,
        attached=command.attached,
    )


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {"job": (JobState(), evolve)}
REFUSES: dict[type[Any], tuple[Reason, ...]] = {
    SubmitJob: (
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        HardwareReason.MODE_NOT_SUPPORTED,
        TrustReason.JOB_UNKNOWN,
        JobsReason.JOB_EXISTS,
        JobsReason.JOB_STATE,
        JobsReason.WORKLOAD_EMPTY,
        HardwareReason.CONSTRAINT_INVALID,
        PartiesReason.CLIENT_NOT_AUTHORISED,
        JobsReason.PLAN_INVALID,
        JobsReason.SCHEDULE_INVALID,
        TrustReason.REFERENCE_INVALID,
        FundsReason.AMOUNT_NOT_POSITIVE,
        PricesReason.AMOUNT_OUT_OF_RANGE,
        PartiesReason.COUNT_OUT_OF_RANGE,
        PartiesReason.SHARE_OUT_OF_RANGE,
        PartiesReason.UNKNOWN_MODE,
        MoneyReason.DUPLICATE_ID,
        HardwareReason.UNKNOWN_PROFILE,
        StorageReason.MOUNT_INVALID,
        StorageReason.VOLUME_UNKNOWN,
        StorageReason.VOLUME_STATE,
        StorageReason.VOLUME_REGION,
        SitesReason.PLAN_NEEDED,
        SitesReason.DATASTORE_UNKNOWN,
        SitesReason.RESERVATION_UNKNOWN,
        SitesReason.PATH_REFUSED,
        SitesReason.DATASTORE_INVALID,
        SitesReason.ATTACHED_ELSEWHERE,
    ),
    AttachVolume: (
        TrustReason.JOB_UNKNOWN,
        JobsReason.JOB_STATE,
        StorageReason.MOUNT_INVALID,
        StorageReason.VOLUME_UNKNOWN,
        StorageReason.VOLUME_STATE,
        StorageReason.VOLUME_REGION,
    ),
    DetachVolume: (TrustReason.JOB_UNKNOWN,),
}
"""What a command can be refused for, in the order of its docstring."""
DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    SubmitJob: decide_submit,
    CancelJob: decide_cancel,
    CompleteJob: decide_complete,
    AttachVolume: decide_attach,
    DetachVolume: decide_detach,
}
