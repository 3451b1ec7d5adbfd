"""How the leases of a job come about when it is more than one lease opened by hand.

    chunks:    parts 0 .. chunks - 1, each until it is completed; then the job is
    members:   parts 0 .. members - 1, each while the job is open; as many as `JobScaled` says
    schedule:  one lease at each due time

and what a job is about: training or inference, and references to keys, checkpoints and datasets. A
reference names a thing that is kept elsewhere; nothing secret can be in one. Parts of a job are
opened and replaced by the timer of `api/jobs/parts.py`; the rules are in `domain/jobs/parts.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from domain.jobs.cron import parse
from domain.jobs.reasons import JobsReason
from domain.money import MoneyReason
from domain.parties.reasons import PartiesReason
from domain.references import DATASET, REFERENCE_KINDS, WORKSPACE, reference_rule
from domain.refusal import Refused
from domain.trust.reasons import TrustReason

KINDS = ("batch", "notebook", "endpoint", "scheduled", "queue", "interactive")
TRAINING, INFERENCE = "training", "inference"
WORKS = (TRAINING, INFERENCE)
CHUNKS_MAX = 1_000
MEMBERS_MAX = 256
TASKS_PER_MEMBER_MAX = 10_000
RUN_US_MAX = 366 * 24 * 3_600_000_000
REFERENCES_MAX = 64


@dataclass(frozen=True, slots=True)
class Reference:
    """Something a job uses that is kept elsewhere (C-40): by name, never by value."""

    kind: str  # REFERENCE_KINDS
    name: str  # of a key: its name in a secret store; of the others an address without a query


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """Which leases the server opens for a job by itself."""

    chunks: int | None = None
    min_members: int | None = None
    max_members: int | None = None
    tasks_per_member: int | None = None  # of a queue: one more member for each so many open tasks
    schedule: str | None = None  # five fields of cron, UTC
    run_us: int | None = None  # term of each lease that is opened; None: open end, refilled

    @property
    def is_elastic(self) -> bool:
        return self.max_members is not None

    @property
    def has_parts(self) -> bool:
        """Whether its leases are numbered parts."""
        return self.chunks is not None or self.is_elastic


def datasets_of(references: Sequence[Reference]) -> tuple[str, ...]:
    """The names of the datasets among them."""
    return tuple(one.name for one in references if one.kind == DATASET)


def workspace_of(references: Sequence[Reference]) -> str | None:
    """The digest of the workspace among them."""
    return next((one.name for one in references if one.kind == WORKSPACE), None)


def require_references(references: Sequence[Reference]) -> None:
    """Raises Refused: COUNT_OUT_OF_RANGE, UNKNOWN_MODE, REFERENCE_INVALID, DUPLICATE_ID."""
    if len(references) > REFERENCES_MAX:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE, references=len(references), most=REFERENCES_MAX
        )
    for one in references:
        if one.kind not in REFERENCE_KINDS:
            raise Refused(PartiesReason.UNKNOWN_MODE, reference=one.kind, allowed=REFERENCE_KINDS)
        broken = reference_rule(one.kind, one.name)
        if broken is not None:
            raise Refused(TrustReason.REFERENCE_INVALID, kind=one.kind, rule=broken)
    if len(set(references)) != len(references):
        raise Refused(MoneyReason.DUPLICATE_ID, rule="each reference once")
    if sum(one.kind == WORKSPACE for one in references) > 1:
        raise Refused(MoneyReason.DUPLICATE_ID, rule="one workspace")


def require_plan(kind: str, plan: JobPlan | None) -> None:
    """Raises Refused: PLAN_INVALID with the rule, COUNT_OUT_OF_RANGE, SCHEDULE_INVALID."""
    plan = plan or JobPlan()
    if plan.schedule is not None:
        if kind != "scheduled":
            raise _invalid("schedule", "only a job of the kind scheduled has a schedule")
        parse(plan.schedule)
    if plan.chunks is not None:
        if kind != "batch" or plan.is_elastic:
            raise _invalid("chunks", "a batch job has chunks, and no members then")
        _require_between("chunks", plan.chunks, 1, CHUNKS_MAX)
    if plan.is_elastic or plan.min_members is not None:
        _require_members(kind, plan)
    if plan.tasks_per_member is not None:
        if kind != "queue" or not plan.is_elastic:
            raise _invalid("tasks_per_member", "the members of a queue follow its tasks")
        _require_between("tasks_per_member", plan.tasks_per_member, 1, TASKS_PER_MEMBER_MAX)
    if plan.run_us is not None:
        if not plan.has_parts and plan.schedule is None:
            raise _invalid("run_us", "of leases that are opened by the plan")
        _require_between("run_us", plan.run_us, 1_000_000, RUN_US_MAX)


def _require_members(kind: str, plan: JobPlan) -> None:
    least, most = plan.min_members, plan.max_members
    if kind not in ("batch", "endpoint", "queue"):
        raise _invalid("max_members", "batch, endpoint and queue jobs have members")
    if least is None or most is None:
        raise _invalid("max_members", "min_members and max_members go together")
    _require_between("max_members", most, 1, MEMBERS_MAX)
    _require_between("min_members", least, 0 if kind == "queue" else 1, most)


def _require_between(field: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE, field=field, value=value, at_least=least, at_most=most
        )


def require_work(kind: str, work: str | None, federated: str | None) -> None:
    """Training and inference have fees of their own where a job is federated (C-21), so the kind of
    work settles which one: an endpoint is inference, and nobody names one and does the other.

    Raises Refused: UNKNOWN_MODE.
    """
    if work not in (None, *WORKS):
        raise Refused(PartiesReason.UNKNOWN_MODE, work=work)
    settled = INFERENCE if kind == "endpoint" else work
    if work is not None and settled != work:
        raise Refused(PartiesReason.UNKNOWN_MODE, work=work, rule="an endpoint is inference")
    if federated is not None and settled is not None and federated != settled:
        raise Refused(PartiesReason.UNKNOWN_MODE, federated=federated, work=settled)


def _invalid(field: str, rule: str) -> Refused:
    return Refused(JobsReason.PLAN_INVALID, field=field, rule=rule)
