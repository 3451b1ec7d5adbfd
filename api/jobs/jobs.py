"""Jobs: what a renter needs run, and why it runs where it does."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import Field, model_validator

from api.door.amounts import Money, credits_
from api.door.auth import with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AccountId,
    AnswerModel,
    EmptyRequest,
    Hex32,
    JobId,
    JobInPath,
    JobReferenceForm,
    Position,
    Ppm,
    Ref,
    RequestModel,
    Short,
    Told_at,
    VolumeMountForm,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.fleet.constraints import NodeDemandsForm, demands_told
from api.jobs import workspaces
from api.market.explanations import JobQuoteAnswer, LeaseMatchAnswer, match_told, quote_told
from api.market.matching import Wish, look, require_possible, room_of, wish_of
from api.market.performance import performance_of_match
from domain.frozen import replace
from domain.hardware import mig
from domain.hardware.constraints import NOTHING
from domain.jobs.cron import TEXT_MAX
from domain.jobs.job import (
    PARTICIPANTS_MAX,
    CancelJob,
    JobState,
    SubmitJob,
    job_stream,
    require_sharing,
    workload_hash,
)
from domain.jobs.plan import (
    CHUNKS_MAX,
    MEMBERS_MAX,
    REFERENCES_MAX,
    RUN_US_MAX,
    TASKS_PER_MEMBER_MAX,
    JobPlan,
    Reference,
)
from domain.jobs.reasons import JobsReason
from domain.lease.lease import RequestLease
from domain.lease.mounts import MOUNTS_MAX
from domain.lease.shared_escrow import stream_of as escrow_stream
from domain.leasing.escrow_sharing import ReturnEscrow
from domain.market.reasons import MarketReason
from domain.prices.tariff import MeterMax
from domain.references import WORKSPACE
from domain.refusal import Refused
from domain.rules import refused_by
from domain.sites.attached import STORES_MAX, Attached, Mount
from domain.sites.datastore import datastore_stream
from domain.sites.paths import PATH_CHARACTERS_MAX
from domain.sites.reservation import reservation_stream
from domain.trust.reasons import TrustReason
from ledger.log.market import facts_at
from projections.fleet.fleet import FLEET
from projections.lease import leases
from projections.lease.leases import LEASES
from projections.metering.usage import USAGE
from projections.trust import reputation
from projections.trust.reputation import REPUTATION

resource = Resource("jobs")

TOLD_APART = {
    "share_ppm",
    "mem_ppm",
    "participants",
    "constraints",
    "references",
    "plan",
    "volumes",
    "attached",
}
WRITE = with_scope("renter", "client")
READ = with_scope("renter", "client", "operator", "audit:read")
DIRECT = "direct"
"""The client of a job that its renter submits without one."""

JobKind = Literal["batch", "notebook", "endpoint", "scheduled", "queue", "interactive"]
Work = Literal["inference", "training"]
Federated = Literal["inference", "training"]
SlaName = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,32}$")]
JobStateName = Literal["open", "cancelled", "completed", "failed"]
Word = Annotated[str, Field(max_length=4_096)]

EXAMPLE = {
    "kind": "batch",
    "image": "registry.example/train@sha256:" + "0" * 64,
    "command": ["python", "train.py"],
    "gpu_count": 1,
    "max_price_per_gpu_hour": {"asset": "CREDIT", "units": "3000000"},
}


CHUNKED = {
    **EXAMPLE,
    "work": "training",
    "plan": {"chunks": 8},
    "references": [{"kind": "dataset", "name": "s3://corpus/v3"}],
}
NIGHTLY = {**EXAMPLE, "kind": "scheduled", "plan": {"schedule": "30 2 * * *", "run_seconds": 3600}}


class JobPlanForm(RequestModel):
    """Which leases the server opens for the job. `chunks`: a batch job in so many parts, complete
    when all are. `min_members` to `max_members`: members that are kept running, replaced when lost;
    of a queue job one for each `tasks_per_member` open tasks. `schedule`: five fields of cron, UTC:
    a lease at each due time. `run_seconds`: fixed term of each of these leases; absent: open end.
    """

    chunks: Annotated[int, Field(ge=1, le=CHUNKS_MAX)] | None = None
    min_members: Annotated[int, Field(ge=0, le=MEMBERS_MAX)] | None = None
    max_members: Annotated[int, Field(ge=1, le=MEMBERS_MAX)] | None = None
    tasks_per_member: Annotated[int, Field(ge=1, le=TASKS_PER_MEMBER_MAX)] | None = None
    schedule: Annotated[str, Field(min_length=9, max_length=TEXT_MAX)] | None = None
    run_seconds: Annotated[int, Field(ge=1, le=RUN_US_MAX // 1_000_000)] | None = None

    def plan(self) -> JobPlan:
        return JobPlan(
            chunks=self.chunks,
            min_members=self.min_members,
            max_members=self.max_members,
            tasks_per_member=self.tasks_per_member,
            schedule=self.schedule,
            run_us=None if self.run_seconds is None else self.run_seconds * 1_000_000,
        )


class MeterMaxForm(RequestModel):
    """The most that a lease is charged for one resource beside the GPU."""

    meter: Literal["cpu", "memory", "storage", "network"]
    amount: Money


VolumeMounts = Annotated[list[VolumeMountForm], Field(max_length=MOUNTS_MAX)]
MeterMaxima = Annotated[list[MeterMaxForm], Field(max_length=4)]


class StoreMountForm(RequestModel):
    """A folder of a datastore of yours: `path` lies below its root, like /subdir2."""

    datastore_id: Annotated[str, Field(pattern=r"^datastore_[0-9A-Za-z]{1,64}$")]
    path: Annotated[str, Field(min_length=1, max_length=PATH_CHARACTERS_MAX)] = "/"
    use: Literal["input", "output", "scratch"]


class JobAttachmentsForm(RequestModel):
    """What a job uses of a region of yours. It runs there and nowhere else; a lease of it holds the
    reservation until it ends.
    """

    mounts: Annotated[list[StoreMountForm], Field(max_length=STORES_MAX)] = Field(
        default_factory=list
    )
    reservation_id: Annotated[str, Field(pattern=r"^reservation_[0-9A-Za-z]{1,64}$")] | None = None

    def attached(self) -> Attached:
        mounts = tuple(Mount(one.datastore_id, one.path, one.use) for one in self.mounts)
        return Attached(mounts=mounts, reservation_id=self.reservation_id)


class JobRequest(RequestModel):
    """An image or a command, and what it needs: `share_ppm` on each of `gpu_count` devices.

    `env_refs` name secrets and never hold one. `models` empty: any model. `federated`: the accounts
    in `participants` may lease for it in projects of theirs, and pay the usage; the federated fee
    of the tariff is yours. `sla_class`: an availability that the tariff promises. `auto_restart`:
    a lease of it whose funds ended is opened anew when the balance funds an hour. `constraints`:
    what else its nodes must be and have; of a `mig_profile` the shares are the profile's.
    `work`: what it does; of a federated job it settles the fee, and an endpoint is inference.
    `plan`: which leases are opened for it. `parent_job_id`: a job of yours that it is a part of;
    their costs add up. `meter_maxima`: what each of its leases is charged at most for a resource
    beside the GPU, held with its escrow; a resource that is not named is charged nothing.
    `volumes`: what its leases mount; they run in the region of the volumes.
    """

    kind: JobKind = "batch"
    image: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    command: Annotated[list[Word], Field(max_length=256)] = Field(default_factory=list)
    env_refs: Annotated[list[Short], Field(max_length=256)] = Field(default_factory=list)
    gpu_count: Annotated[int, Field(ge=1, le=64)] = 1
    share_ppm: Ppm = 1_000_000
    mem_ppm: Ppm | None = None
    models: Annotated[list[Short], Field(max_length=64)] = Field(default_factory=list)
    max_price_per_gpu_hour: Money
    project_id: Ref = ""
    end_user_ref: Ref = ""
    federated: Federated | None = None
    participants: Annotated[list[AccountId], Field(max_length=PARTICIPANTS_MAX)] = Field(
        default_factory=list
    )
    sla_class: SlaName | None = None
    auto_restart: bool = False
    constraints: NodeDemandsForm | None = None
    work: Work | None = None
    references: Annotated[list[JobReferenceForm], Field(max_length=REFERENCES_MAX)] = Field(
        default_factory=list
    )
    plan: JobPlanForm | None = None
    parent_job_id: JobId | None = None
    meter_maxima: MeterMaxima = Field(default_factory=list)
    volumes: VolumeMounts = Field(default_factory=list)
    attached: JobAttachmentsForm | None = None

    model_config = with_examples(EXAMPLE, CHUNKED, NIGHTLY)

    @model_validator(mode="after")
    def _has_work(self) -> JobRequest:
        if not self.image and not self.command:
            raise ValueError("a job has an image or a command")
        if (self.federated is None) == bool(self.participants):
            raise ValueError("a federated job names its participants, and no other job does")
        return self

    @property
    def names_workspace(self) -> bool:
        """Whether its work begins with files that are kept here."""
        return any(one.kind == WORKSPACE for one in self.references)

    def submit(self, call: Call, job_id: str) -> SubmitJob:
        """The command. Memory goes with the share unless it is named. Raises Refused: as
        `domain.jobs.job.require_sharing`, so that a lease that none can give is no mere "no match".
        """
        share_ppm, mem_ppm = self._shares()
        constraints = None if self.constraints is None else self.constraints.constraints()
        attached = None if self.attached is None else self.attached.attached()
        pinned = None if attached is None else region_of(call, attached)
        if pinned is not None:
            constraints = replace(constraints or NOTHING, pinned_region=pinned)
        require_sharing(constraints or NOTHING, share_ppm, mem_ppm, tuple(self.models))
        is_client = call.principal.account_kind == "client"
        return SubmitJob(
            job_id=job_id,
            account_id=call.principal.account_id,
            client_id=call.principal.account_id if is_client else DIRECT,
            project_id=self.project_id,
            end_user_ref=self.end_user_ref,
            kind=self.kind,
            image=self.image,
            command=tuple(self.command),
            env_refs=tuple(self.env_refs),
            gpu_count=self.gpu_count,
            share_ppm=share_ppm,
            mem_ppm=mem_ppm,
            models=tuple(self.models),
            max_price_per_gpu_hour=self.max_price_per_gpu_hour.amount(),
            at_us=call.now_us,
            federated=self.federated,
            participants=tuple(self.participants),
            sla_class=self.sla_class,
            auto_restart=self.auto_restart,
            constraints=constraints,
            work=self.work,
            plan=None if self.plan is None else self.plan.plan(),
            references=tuple(Reference(one.kind, one.name) for one in self.references),
            parent_job_id=self.parent_job_id,
            key_id=call.principal.key_id,
            meter_maxima=tuple(
                MeterMax(one.meter, one.amount.amount()) for one in self.meter_maxima
            ),
            volumes=tuple(one.mount() for one in self.volumes),
            attached=attached,
        )

    def _shares(self) -> tuple[int, int]:
        """Compute and memory; of a MIG instance those of its profile, unless they are named."""
        profile = None if self.constraints is None else self.constraints.mig_profile
        if profile is None or "share_ppm" in self.model_fields_set:
            return self.share_ppm, self.mem_ppm or self.share_ppm
        share_ppm, mem_ppm = mig.asked_ppm(profile)
        return share_ppm, self.mem_ppm or mem_ppm


class JobAnswer(AnswerModel):
    job_id: JobId
    account_id: AccountId
    client_id: str
    project_id: str
    end_user_ref: str
    kind: JobKind
    image: str | None = None
    command: list[str]
    env_refs: list[str]
    workload_sha256: Hex32
    gpu_count: Annotated[int, Field(ge=1, le=64)]
    share_ppm: Ppm
    mem_ppm: Ppm
    models: list[str]
    max_price_per_gpu_hour: Money
    federated: Federated | None = None
    participants: list[AccountId] | None = None
    sla_class: SlaName | None = None
    auto_restart: bool = False
    constraints: NodeDemandsForm | None = None
    work: Work | None = None
    references: list[JobReferenceForm] | None = None
    plan: JobPlanForm | None = None
    parent_job_id: JobId | None = None
    instance_id: str | None = None
    meter_maxima: MeterMaxima | None = None
    volumes: VolumeMounts | None = None
    attached: JobAttachmentsForm | None = None
    state: JobStateName
    submitted_at: Told_at
    ended_at: Told_at | None = None
    position: Position | None = None


class JobCancelledAnswer(AnswerModel):
    job_id: JobId
    state: JobStateName
    position: Position | None = None


class JobExplanationAnswer(AnswerModel):
    """`matches`: the recorded decisions. `now`: of an open job without one, what it would get at
    this moment, and if nothing, which demand to ease.
    """

    job_id: JobId
    matches: list[LeaseMatchAnswer]
    now: JobQuoteAnswer | None = None
    position: Position


@resource.post(
    "/v1/jobs",
    WRITE,
    JobAnswer,
    status=201,
    problems=[*refused_by(SubmitJob), MarketReason.MATCH_IMPOSSIBLE, *workspaces.PROBLEMS],
)
def submit_job(body: JobRequest, call: Caller) -> Response:
    """Submits a job. Leases are opened for it."""
    job_id = call.id("job")
    command = body.submit(call, job_id)

    def told(after: After) -> JobAnswer:
        submitted = after.state(job_stream(job_id)).submitted
        assert submitted is not None, job_id
        return told_now.model_copy(update={"instance_id": submitted.instance_id})

    told_now = JobAnswer(
        **body.model_dump(exclude=TOLD_APART),
        share_ppm=command.share_ppm,
        mem_ppm=command.mem_ppm,
        constraints=body.constraints,
        plan=body.plan,
        references=body.references or None,
        volumes=body.volumes or None,
        participants=body.participants or None,
        attached=body.attached,
        job_id=job_id,
        account_id=command.account_id,
        client_id=command.client_id,
        state="open",
        workload_sha256=workload_hash(
            command.image, command.command, command.env_refs, command.references
        ),
        submitted_at=moment(call.now_us),
    )

    def commands() -> SubmitJob:
        require_possible(call.service, _first_wish(call, command), call.round())
        workspaces.use(call, command)
        return command

    return call.record(commands, told)


def _first_wish(call: Call, spec: SubmitJob) -> Wish:
    """What a lease of the job would ask for."""
    request = RequestLease(
        lease_id="",
        job_id=spec.job_id,
        account_id=spec.account_id,
        term_us=None,
        funds=None,
        at_us=call.now_us,
    )
    return wish_of(request, spec, call.round())


def region_of(call: Call, attached: Attached) -> str | None:
    """The region that a job is pinned to by what it is attached to; whether all of it is there, the
    decision asks. Of another account's store or port it tells no region: no answer that names the
    pinned region leads from a guessed id to a place.
    """
    market = call.service.ledger.market
    found: list[Any] = [
        market.state_of(datastore_stream(mount.datastore_id)).added for mount in attached.mounts
    ]
    if attached.reservation_id is not None:
        found.append(market.state_of(reservation_stream(attached.reservation_id)).added)
    mine = call.principal.account_id
    regions = (one.region_id for one in found if one is not None and one.account_id == mine)
    return next(regions, None)


@resource.get("/v1/jobs", READ, page_of(JobAnswer), problems=["cursor_invalid"])
def list_jobs(
    call: Caller,
    order: InOrder,
    state: JobStateName | None = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists jobs in order of submission: your own, or all for operators and auditors."""
    place = call.place(cursor, [0], order)
    with call.read(LEASES) as view:
        rows = leases.read_jobs(
            view.connection,
            account_id=call.principal.only,
            state=state,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _job)


@resource.get("/v1/jobs/{job_id}", READ, JobAnswer, problems=[TrustReason.JOB_UNKNOWN])
def read_job(job_id: JobInPath, call: Caller) -> Response:
    """Returns a job."""
    with call.read(LEASES) as view:
        found = leases.read_job(view.connection, job_id, account_id=call.principal.only)
        if found is None:
            raise Refused(TrustReason.JOB_UNKNOWN, job_id=job_id)
        return call.answer(view, _job(found))


def own_job(call: Call, job_id: str, *, as_participant: bool = False) -> JobState:
    """The caller's job, or one they take part in. Raises Refused: JOB_UNKNOWN, also for another
    account's.
    """
    state = call.service.ledger.market.state_of(job_stream(job_id))
    parties: list[str] = []
    if state.submitted is not None:
        parties = [state.submitted.account_id]
        parties += state.submitted.participants if as_participant else ()
    if not any(call.principal.owns(account_id) for account_id in parties):
        raise Refused(TrustReason.JOB_UNKNOWN, job_id=job_id)
    return state


@resource.post(
    "/v1/jobs/{job_id}/cancel",
    WRITE,
    JobCancelledAnswer,
    problems=[TrustReason.JOB_UNKNOWN, JobsReason.JOB_STATE],
)
def cancel_job(job_id: JobInPath, body: EmptyRequest, call: Caller) -> Response:
    """Cancels a job. It gets no new leases; its present leases are closed one by one."""
    del body

    def commands() -> list[Any]:
        own_job(call, job_id)
        cancel = CancelJob(job_id=job_id, by=call.principal.member_id, at_us=call.now_us)
        escrow = call.service.ledger.market.state_of(escrow_stream(job_id))
        is_idle = bool(escrow.held) and not escrow.members
        return [cancel, *([ReturnEscrow(job_id=job_id, at_us=call.now_us)] if is_idle else [])]

    return call.record(
        commands, lambda _after: JobCancelledAnswer(job_id=job_id, state="cancelled")
    )


@resource.get(
    "/v1/jobs/{job_id}/explain", READ, JobExplanationAnswer, problems=[TrustReason.JOB_UNKNOWN]
)
def explain_job(job_id: JobInPath, call: Caller) -> Response:
    """Explains the placement of a job's leases; for a job without one, what stands in its way."""
    with call.read(FLEET, LEASES, REPUTATION, USAGE) as view:
        job = leases.read_job(view.connection, job_id, account_id=call.principal.only)
        if job is None:
            raise Refused(TrustReason.JOB_UNKNOWN, job_id=job_id)
        rows = leases.read_leases(view.connection, job_id=job_id, limit=200)
        positions = [row.match_position for row in rows if row.match_position is not None]
        is_waiting = job.state == "open" and not positions
        told = JobExplanationAnswer(
            job_id=job_id,
            position=view.position,
            now=_now(call, view.connection, job_id) if is_waiting else None,
            matches=[match_told(fact) for fact in facts_at(view.connection, positions)],
        )
        return call.answer(view, told)


def _now(call: Call, connection: Any, job_id: str) -> JobQuoteAnswer | None:
    """What a lease of the job would get now."""
    spec = call.service.ledger.market.state_of(job_stream(job_id)).submitted
    assert spec is not None, job_id
    request = RequestLease(
        lease_id="",
        job_id=job_id,
        account_id=spec.account_id,
        term_us=None,
        funds=None,
        at_us=call.now_us,
    )
    here = call.round()
    found = look(call.service, wish_of(request, spec, here), here)
    known = {one.setting: one for one in reputation.read_settings(connection)}
    performance = performance_of_match(connection, found, call.now_us)
    return quote_told(found, known, performance, room_of(call.service, found))


def plan_told(plan: dict[str, Any] | None) -> JobPlanForm | None:
    """The plan as it was asked for."""
    if plan is None:
        return None
    known = {name: value for name, value in plan.items() if name != "run_us"}
    run_us = plan.get("run_us")
    return JobPlanForm(**known, run_seconds=None if run_us is None else run_us // 1_000_000)


def _job(row: leases.Job) -> JobAnswer:
    told: Any = row
    return JobAnswer(
        job_id=row.job_id,
        account_id=row.account_id,
        client_id=row.client_id,
        project_id=row.project_id,
        end_user_ref=row.end_user_ref,
        kind=told.kind,
        image=row.image,
        command=row.command,
        env_refs=row.env_refs,
        workload_sha256=row.workload_sha256,
        gpu_count=row.gpu_count,
        share_ppm=row.share_ppm,
        mem_ppm=row.mem_ppm,
        models=row.models,
        federated=told.federated,
        participants=row.participants or None,
        sla_class=row.sla_class,
        auto_restart=row.auto_restart,
        constraints=demands_told(row.constraints),
        work=told.work,
        parent_job_id=row.parent_job_id,
        instance_id=row.instance_id,
        meter_maxima=[MeterMaxForm(**one) for one in told.meter_maxima] or None,
        references=[JobReferenceForm(**one) for one in told.refs or ()] or None,
        volumes=[VolumeMountForm(**one) for one in told.volumes] or None,
        plan=plan_told(row.plan),
        attached=None if row.attached is None else JobAttachmentsForm(**row.attached),
        max_price_per_gpu_hour=credits_(row.price_max_units),
        state=told.state,
        submitted_at=moment(row.at_us),
        ended_at=moment_or_none(row.ended_at_us),
    )
