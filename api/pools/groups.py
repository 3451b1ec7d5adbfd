"""Groups with quotas, what a project does when one is full, and with whom an account deals.

A quota is a number of GPUs held at the same time, a whole one being 1,000,000 ppm; the streams
enforce it, so no interleaving of calls passes it. Budgets of money are in `api/funds/funding.py`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path, Response
from pydantic import Field

from api.door.auth import with_scope
from api.door.call import After, Caller
from api.door.models import (
    AccountId,
    AccountInPath,
    AnswerModel,
    Count,
    Position,
    Ref,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.parties.accounts import own, visible
from api.parties.clients import GpuPpm, PoolId
from domain.money import MoneyReason
from domain.parties.counterparty import SetCounterparty
from domain.parties.reasons import PartiesReason
from domain.pools.group import (
    AddGroupMember,
    CreateGroup,
    RemoveGroupMember,
    SetProjectOverflow,
    group_stream,
)
from domain.pools.quota import SetQuota
from domain.pools.quota import stream_of as quota_stream
from domain.pools.reasons import PoolsReason
from domain.refusal import Refused
from projections.parties import demand
from projections.parties.demand import DEMAND

resource = Resource("groups")

ADMIN = with_scope("account:admin")
READ = with_scope("account", "billing:read", "operator", "audit:read")
GroupId = Annotated[str, Field(pattern=r"^group_[0-9A-Za-z]{1,64}$")]
GroupInPath = Annotated[str, Path(pattern=r"^group_[0-9A-Za-z]{1,64}$")]
MemberKind = Literal["project", "member", "account"]
Target = Annotated[str, Field(pattern=r"^[0-9A-Za-z_.:@/-]{1,100}$")]
Verdict = Literal["allow", "deny", "none"]
Overflow = Literal["refuse", "rent"]


class QuotaGroupRequest(RequestModel):
    """Of projects and members of your account, or with `pool_id` of accounts in a pool of yours.
    `parent_id`: what it holds counts there too. `gpu_ppm_max` absent: counted, and not limited.
    """

    pool_id: PoolId | None = None
    parent_id: GroupId | None = None
    gpu_ppm_max: GpuPpm | None = None

    model_config = with_examples({"gpu_ppm_max": 16_000_000})


class QuotaGroupLimitRequest(RequestModel):
    """`gpu_ppm_max` absent: no limit any more. Lowered: what runs goes on."""

    gpu_ppm_max: GpuPpm | None = None

    model_config = with_examples({"gpu_ppm_max": 8_000_000})


class QuotaGroupMemberRequest(RequestModel):
    """A project or a member of your account, or in a group of a pool an account."""

    kind: MemberKind
    target: Target

    model_config = with_examples({"kind": "project", "target": "train-7b"})


class QuotaGroupMemberAnswer(AnswerModel):
    kind: MemberKind
    target: str
    since: Told_at


class QuotaGroupAnswer(AnswerModel):
    """`used_ppm`: what its leases hold now."""

    group_id: GroupId
    account_id: AccountId
    pool_id: PoolId | None = None
    parent_id: GroupId | None = None
    gpu_ppm_max: Count | None = None
    used_ppm: Count
    created_at: Told_at
    members: list[QuotaGroupMemberAnswer] | None = None
    position: Position | None = None


class QuotaGroupMemberAddedAnswer(AnswerModel):
    group_id: GroupId
    kind: MemberKind
    target: str
    position: Position | None = None


class ProjectPolicyRequest(RequestModel):
    """What happens when a quota that a project counts in is full: its next lease is refused, or
    rented elsewhere and not counted.
    """

    project_id: Ref
    overflow: Overflow

    model_config = with_examples({"project_id": "train-7b", "overflow": "rent"})


class ProjectAnswer(AnswerModel):
    project_id: str
    overflow: Overflow
    position: Position | None = None


class ProjectsAnswer(AnswerModel):
    """Projects that have a policy; all others are refused."""

    data: list[ProjectAnswer]
    position: Position


class CounterpartyRequest(RequestModel):
    """`deny`: never deal with it. `allow`: deal with those that are allowed alone. `none`: off the
    list.
    """

    counterparty_id: AccountId
    verdict: Verdict

    model_config = with_examples({"counterparty_id": "acct_" + "4" * 32, "verdict": "deny"})


class CounterpartyAnswer(AnswerModel):
    counterparty_id: AccountId
    verdict: Verdict
    since: Told_at
    position: Position | None = None


# --- groups ----------------------------------------------------------------------------------


@resource.post(
    "/v1/groups",
    ADMIN,
    QuotaGroupAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PoolsReason.POOL_UNKNOWN,
        PartiesReason.GROUP_UNKNOWN,
        PartiesReason.GROUP_EXISTS,
        PartiesReason.COUNT_OUT_OF_RANGE,
    ],
)
def create_group(body: QuotaGroupRequest, call: Caller) -> Response:
    """Creates a group that shares a quota of GPUs."""
    group_id, who = call.id("group"), call.principal.account_id

    def command() -> CreateGroup:
        return CreateGroup(
            group_id=group_id,
            account_id=who,
            pool_id=body.pool_id,
            parent_id=body.parent_id,
            gpu_ppm_max=body.gpu_ppm_max,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    told = QuotaGroupAnswer(
        group_id=group_id,
        account_id=who,
        pool_id=body.pool_id,
        parent_id=body.parent_id,
        gpu_ppm_max=body.gpu_ppm_max,
        used_ppm=0,
        created_at=moment(call.now_us),
    )
    return call.record(command, lambda _after: told)


@resource.get("/v1/groups", READ, page_of(QuotaGroupAnswer), problems=["cursor_invalid"])
def list_groups(
    call: Caller, order: InOrder, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists groups in order of creation: your own, or all for operators and auditors."""
    place = call.place(cursor, [0], order)
    with call.read(DEMAND) as view:
        rows = demand.read_groups(
            view.connection,
            account_id=call.principal.only,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _group)


@resource.get(
    "/v1/groups/{group_id}", READ, QuotaGroupAnswer, problems=[PartiesReason.GROUP_UNKNOWN]
)
def read_group(group_id: GroupInPath, call: Caller) -> Response:
    """Returns a group, its members, and how much of its quota is in use."""
    with call.read(DEMAND) as view:
        rows = demand.read_groups(
            view.connection, account_id=call.principal.only, group_id=group_id, limit=1
        )
        if not rows:
            raise Refused(PartiesReason.GROUP_UNKNOWN, group_id=group_id)
        members = [_member(one) for one in demand.read_members(view.connection, group_id)]
        return call.answer(view, _group(rows[0]).model_copy(update={"members": members}))


@resource.post(
    "/v1/groups/{group_id}/quota", ADMIN, QuotaGroupAnswer, problems=[PartiesReason.GROUP_UNKNOWN]
)
def set_group_quota(group_id: GroupInPath, body: QuotaGroupLimitRequest, call: Caller) -> Response:
    """Changes how many GPUs a group holds at once."""

    def command() -> SetQuota:
        _own_group(call, group_id)
        return SetQuota(
            quota_id=group_id,
            gpu_ppm_max=body.gpu_ppm_max,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(after: After) -> AnswerModel:
        created = after.state(group_stream(group_id)).created
        assert created is not None, group_id
        return QuotaGroupAnswer(
            group_id=group_id,
            account_id=created.account_id,
            pool_id=created.pool_id,
            parent_id=created.parent_id,
            gpu_ppm_max=body.gpu_ppm_max,
            used_ppm=after.state(quota_stream(group_id)).used_ppm,
            created_at=moment(created.at_us),
        )

    return call.record(command, told)


@resource.post(
    "/v1/groups/{group_id}/members",
    ADMIN,
    QuotaGroupMemberAddedAnswer,
    status=201,
    problems=[PartiesReason.GROUP_UNKNOWN, PartiesReason.GROUP_EXISTS, PartiesReason.UNKNOWN_MODE],
)
def add_group_member(
    group_id: GroupInPath, body: QuotaGroupMemberRequest, call: Caller
) -> Response:
    """Adds a member to a group. Its later leases count in the group."""

    def command() -> AddGroupMember:
        return AddGroupMember(
            group_id=group_id,
            account_id=call.principal.account_id,
            kind=body.kind,
            target=body.target,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    told = QuotaGroupMemberAddedAnswer(group_id=group_id, kind=body.kind, target=body.target)
    return call.record(command, lambda _after: told)


@resource.post(
    "/v1/groups/{group_id}/members/remove",
    ADMIN,
    QuotaGroupMemberAddedAnswer,
    problems=[PartiesReason.GROUP_UNKNOWN],
)
def remove_group_member(
    group_id: GroupInPath, body: QuotaGroupMemberRequest, call: Caller
) -> Response:
    """Removes a member from a group. Its later leases do not count; running ones still do."""

    def command() -> RemoveGroupMember:
        return RemoveGroupMember(
            group_id=group_id,
            account_id=call.principal.account_id,
            kind=body.kind,
            target=body.target,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    told = QuotaGroupMemberAddedAnswer(group_id=group_id, kind=body.kind, target=body.target)
    return call.record(command, lambda _after: told)


def _own_group(call: Caller, group_id: str) -> None:
    """Raises Refused: GROUP_UNKNOWN."""
    state = call.service.ledger.market.state_of(group_stream(group_id))
    if state.created is None or not call.principal.owns(state.created.account_id):
        raise Refused(PartiesReason.GROUP_UNKNOWN, group_id=group_id)


# --- projects --------------------------------------------------------------------------------


@resource.post(
    "/v1/accounts/{account_id}/projects",
    ADMIN,
    ProjectAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN, PartiesReason.ACCOUNT_CLOSED],
)
def set_project_policy(
    account_id: AccountInPath, body: ProjectPolicyRequest, call: Caller
) -> Response:
    """Sets what a project does when a quota is full: own the base, rent the burst, or refuse."""

    def command() -> SetProjectOverflow:
        own(call.principal, account_id)
        return SetProjectOverflow(
            account_id=account_id,
            project_id=body.project_id,
            overflow=body.overflow,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    told = ProjectAnswer(project_id=body.project_id, overflow=body.overflow)
    return call.record(command, lambda _after: told)


@resource.get(
    "/v1/accounts/{account_id}/projects",
    READ,
    ProjectsAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def list_project_policies(account_id: AccountInPath, call: Caller) -> Response:
    """Lists what the projects of an account do when a quota is full."""
    visible(call.principal, account_id)
    with call.read(DEMAND) as view:
        rows = demand.read_projects(view.connection, account_id)
        data = [{"project_id": row.project_id, "overflow": row.overflow} for row in rows]
        return call.answer(view, {"data": data})


# --- counterparties --------------------------------------------------------------------------


@resource.post(
    "/v1/accounts/{account_id}/counterparties",
    ADMIN,
    CounterpartyAnswer,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        MoneyReason.DUPLICATE_ID,
        PartiesReason.COUNT_OUT_OF_RANGE,
    ],
)
def set_counterparty(
    account_id: AccountInPath, body: CounterpartyRequest, call: Caller
) -> Response:
    """Allows or denies another account, as renter, client or provider. Running leases go on."""

    def command() -> SetCounterparty:
        own(call.principal, account_id)
        return SetCounterparty(
            account_id=account_id,
            counterparty_id=body.counterparty_id,
            verdict=body.verdict,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    told = CounterpartyAnswer(
        counterparty_id=body.counterparty_id, verdict=body.verdict, since=moment(call.now_us)
    )
    return call.record(command, lambda _after: told)


@resource.get(
    "/v1/accounts/{account_id}/counterparties",
    READ,
    page_of(CounterpartyAnswer),
    problems=[PartiesReason.ACCOUNT_UNKNOWN, "cursor_invalid"],
)
def list_counterparties(
    account_id: AccountInPath,
    call: Caller,
    order: InOrder,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the accounts that an account allows and denies, in the order of listing."""
    visible(call.principal, account_id)
    place = call.place(cursor, [0], order)
    with call.read(DEMAND) as view:
        rows = demand.read_counterparties(
            view.connection, account_id, after=place.after[0], way=place.way, limit=limit + 1
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _listed)


def _listed(row: demand.Counterparty) -> CounterpartyAnswer:
    verdict: Verdict = "allow" if row.verdict == "allow" else "deny"
    return CounterpartyAnswer(
        counterparty_id=row.counterparty_id, verdict=verdict, since=moment(row.at_us)
    )


def _member(row: demand.Member) -> QuotaGroupMemberAnswer:
    kinds: dict[str, MemberKind] = {"project": "project", "member": "member", "account": "account"}
    return QuotaGroupMemberAnswer(kind=kinds[row.kind], target=row.target, since=moment(row.at_us))


def _group(row: demand.Group) -> QuotaGroupAnswer:
    return QuotaGroupAnswer(
        group_id=row.group_id,
        account_id=row.account_id,
        pool_id=row.pool_id,
        parent_id=row.parent_id,
        gpu_ppm_max=row.gpu_ppm_max,
        used_ppm=row.used_ppm,
        created_at=moment(row.at_us),
    )
