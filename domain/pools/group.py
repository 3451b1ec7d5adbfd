"""Groups: projects, people and accounts that share a quota of GPUs, one group inside another.

    a lease counts in every group its project, its member or its account is in, and in all above it

A group belongs to an account, or to a pool: then its members are accounts, and leases count that
run on its nodes. What a lease counts in is settled when it is reserved and does not change later.
What a project does when a quota is full is its overflow policy: it is refused, or what it asks for
is rented elsewhere and not counted ("own the base, rent the burst", C-39). A project that says
`refuse` itself also rents nothing while its account has nodes of its own: they are its base.

Read top to bottom: what can happen, what can be asked, what we remember, how we decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, assert_never

from domain.parties.account import account_of, open_account
from domain.parties.reasons import PartiesReason
from domain.pools.pool import pool_of
from domain.pools.quota import SetQuota, client_quota, decide_set, exceeded
from domain.pools.reasons import PoolsReason
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts.


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCreated:
    """Stream `group:{group_id}`."""

    group_id: str
    account_id: str  # whose it is
    pool_id: str | None  # a group within a pool: its members are accounts
    parent_id: str | None  # the group it is part of
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMemberAdded:
    """Stream `group_member:{scope}|{kind}|{target}`: one group at a time within its scope."""

    group_id: str
    scope: str  # the account, or the pool
    kind: str  # project, member, account
    target: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMemberRemoved:
    group_id: str
    scope: str
    kind: str
    target: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectOverflowSet:
    """Stream `project:{account_id}|{project_id}`."""

    account_id: str
    project_id: str
    overflow: str  # OVERFLOWS
    by: str
    at_us: int


MemberFact: TypeAlias = GroupMemberAdded | GroupMemberRemoved

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateGroup:
    group_id: str
    account_id: str
    pool_id: str | None
    parent_id: str | None
    gpu_ppm_max: int | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddGroupMember:
    group_id: str
    account_id: str  # who asks: the group's owner
    kind: str
    target: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveGroupMember:
    group_id: str
    account_id: str
    kind: str
    target: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetProjectOverflow:
    account_id: str
    project_id: str
    overflow: str
    by: str
    at_us: int


PROJECT, MEMBER, ACCOUNT = "project", "member", "account"
REFUSE, RENT = "refuse", "rent"
OVERFLOWS = (REFUSE, RENT)
DEPTH_MAX = 8
"""Groups above a group, itself included."""

# State.


@dataclass(frozen=True, slots=True)
class GroupState:
    created: GroupCreated | None = None


@dataclass(frozen=True, slots=True)
class MembershipState:
    group_id: str | None = None


@dataclass(frozen=True, slots=True)
class ProjectState:
    overflow: str | None = None  # None: never said


def evolve(_state: GroupState, fact: GroupCreated) -> GroupState:
    return GroupState(fact)


def evolve_membership(_state: MembershipState, fact: MemberFact) -> MembershipState:
    match fact:
        case GroupMemberAdded():
            return MembershipState(fact.group_id)
        case GroupMemberRemoved():
            return MembershipState()
        case _:
            assert_never(fact)


def evolve_project(_state: ProjectState, fact: ProjectOverflowSet) -> ProjectState:
    return ProjectState(fact.overflow)


# Decisions.


def group_stream(group_id: str) -> Stream[GroupState]:
    return Stream("group", group_id)


def existing_group(world: World, group_id: str) -> GroupCreated:
    """Raises Refused: GROUP_UNKNOWN."""
    state = world.state(group_stream(group_id))
    if state.created is None:
        raise Refused(PartiesReason.GROUP_UNKNOWN, group_id=group_id)
    return state.created


def own_group(world: World, group_id: str, account_id: str) -> GroupCreated:
    """Raises Refused: GROUP_UNKNOWN, also for another account's."""
    group = existing_group(world, group_id)
    if group.account_id != account_id:
        raise Refused(PartiesReason.GROUP_UNKNOWN, group_id=group_id)
    return group


def project_stream(account_id: str, project_id: str) -> Stream[ProjectState]:
    return Stream("project", f"{account_id}|{project_id}")


def overflow_of(world: World, account_id: str, project_id: str) -> str:
    """What a project does when a quota is full: REFUSE unless it was set."""
    return world.state(project_stream(account_id, project_id)).overflow or REFUSE


def stays_at_home(world: World, account_id: str, project_id: str) -> bool:
    """Whether a project said itself that it rents nothing when its base is full."""
    return world.state(project_stream(account_id, project_id)).overflow == REFUSE


def with_parents(world: World, group_id: str) -> tuple[str, ...]:
    """A group and all above it, the nearest first."""
    found = [group_id]
    while (parent := existing_group(world, found[-1]).parent_id) is not None:
        assert len(found) < DEPTH_MAX, found
        found.append(parent)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Holder:
    """Whose lease counts where."""

    account_id: str
    client_id: str
    project_id: str
    key_id: str | None = None
    pool_id: str | None = None


def quotas_of(world: World, holder: Holder) -> tuple[str, ...]:
    """Every quota a lease counts in: of groups, of those above them, and of its client."""
    member = account_of(world, holder.account_id).keys.get(holder.key_id or "")
    asked = [(holder.account_id, PROJECT, holder.project_id)]
    if member is not None:
        asked.append((holder.account_id, MEMBER, member.member_id))
    found = [*_groups_with(world, asked), *pool_groups_of(world, holder)]
    found.append(client_quota(holder.client_id))
    if holder.pool_id is not None:
        found.append(client_quota(holder.client_id, holder.pool_id))
    return tuple(dict.fromkeys(found))


def pool_groups_of(world: World, holder: Holder) -> list[str]:
    """The groups of the pool that the holder's account or client is in, and those above them."""
    if holder.pool_id is None:
        return []
    whos = dict.fromkeys((holder.account_id, holder.client_id))
    return _groups_with(world, [(holder.pool_id, ACCOUNT, who) for who in whos])


def _groups_with(world: World, asked: Sequence[tuple[str, str, str]]) -> list[str]:
    found: list[str] = []
    for scope, kind, target in asked:
        group_id = _membership(world, scope, kind, target).group_id
        if group_id is not None:
            found += with_parents(world, group_id)
    return found


def must_overflow(world: World, holder: Holder, gpu_ppm: int) -> bool:
    """Whether a lease of so much is to be rented elsewhere, as its quotas are full now.

    Raises Refused: QUOTA_EXHAUSTED, when its project's policy is to be refused then.
    """
    refused = exceeded(world, quotas_of(world, holder), gpu_ppm)
    if refused is None:
        return False
    if overflow_of(world, holder.account_id, holder.project_id) == RENT:
        return True
    raise refused


def pool_owner(world: World, pool_id: str) -> str:
    """Raises Refused: POOL_UNKNOWN."""
    created = pool_of(world, pool_id).created
    assert created is not None
    return created.account_id


def decide_create(command: CreateGroup, world: World) -> list[Change]:
    """A group and its quota, counted from the first lease on.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, POOL_UNKNOWN, GROUP_UNKNOWN, GROUP_EXISTS,
    COUNT_OUT_OF_RANGE, AMOUNT_OUT_OF_RANGE.
    """
    open_account(world, command.account_id)
    stream = group_stream(command.group_id)
    if world.state(stream).created is not None:
        raise Refused(PartiesReason.GROUP_EXISTS, group_id=command.group_id)
    if command.pool_id is not None and (pool_owner(world, command.pool_id) != command.account_id):
        raise Refused(PoolsReason.POOL_UNKNOWN, pool_id=command.pool_id)
    if command.parent_id is not None:
        parent = own_group(world, command.parent_id, command.account_id)
        if parent.pool_id != command.pool_id:
            raise Refused(
                PartiesReason.GROUP_UNKNOWN, group_id=command.parent_id, pool_id=command.pool_id
            )
        depth = len(with_parents(world, command.parent_id)) + 1
        if depth > DEPTH_MAX:
            raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, depth=depth, at_most=DEPTH_MAX)
    created = GroupCreated(
        group_id=command.group_id,
        account_id=command.account_id,
        pool_id=command.pool_id,
        parent_id=command.parent_id,
        by=command.by,
        at_us=command.at_us,
    )
    quota = SetQuota(
        quota_id=command.group_id,
        gpu_ppm_max=command.gpu_ppm_max,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream, created), *decide_set(quota, world)]


def decide_add(command: AddGroupMember, world: World) -> list[Change]:
    """Somebody counts in the group from the next lease on. Twice is once.

    Raises Refused: GROUP_UNKNOWN, UNKNOWN_MODE, GROUP_EXISTS when it is in another one.
    """
    group = own_group(world, command.group_id, command.account_id)
    kinds = (PROJECT, MEMBER) if group.pool_id is None else (ACCOUNT,)
    if command.kind not in kinds:
        raise Refused(
            PartiesReason.UNKNOWN_MODE, kind=command.kind, allowed=", ".join(kinds), rule="members"
        )
    scope = group.pool_id or group.account_id
    present = _membership(world, scope, command.kind, command.target).group_id
    if present == command.group_id:
        return []
    if present is not None:
        raise Refused(PartiesReason.GROUP_EXISTS, group_id=present, target=command.target)
    fact = GroupMemberAdded(
        group_id=command.group_id,
        scope=scope,
        kind=command.kind,
        target=command.target,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(_member_stream(scope, command.kind, command.target), fact)]


def decide_remove(command: RemoveGroupMember, world: World) -> list[Change]:
    """Leases it has go on counting where they did. Raises Refused: GROUP_UNKNOWN."""
    group = own_group(world, command.group_id, command.account_id)
    scope = group.pool_id or group.account_id
    if _membership(world, scope, command.kind, command.target).group_id != command.group_id:
        return []
    fact = GroupMemberRemoved(
        group_id=command.group_id,
        scope=scope,
        kind=command.kind,
        target=command.target,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(_member_stream(scope, command.kind, command.target), fact)]


def decide_overflow(command: SetProjectOverflow, world: World) -> list[Change]:
    """Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, UNKNOWN_MODE."""
    open_account(world, command.account_id)
    if command.overflow not in OVERFLOWS:
        raise Refused(PartiesReason.UNKNOWN_MODE, overflow=command.overflow)
    stream = project_stream(command.account_id, command.project_id)
    if world.state(stream).overflow == command.overflow:
        return []
    fact = ProjectOverflowSet(
        account_id=command.account_id,
        project_id=command.project_id,
        overflow=command.overflow,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream, fact)]


def _member_stream(scope: str, kind: str, target: str) -> Stream[MembershipState]:
    return Stream("group_member", f"{scope}|{kind}|{target}")


def _membership(world: World, scope: str, kind: str, target: str) -> MembershipState:
    return world.state(_member_stream(scope, kind, target))


STREAMS: dict[str, tuple[Any, Any]] = {
    "group": (GroupState(), evolve),
    "group_member": (MembershipState(), evolve_membership),
    "project": (ProjectState(), evolve_project),
}
DECIDERS: dict[type[Any], Any] = {
    CreateGroup: decide_create,
    AddGroupMember: decide_add,
    RemoveGroupMember: decide_remove,
    SetProjectOverflow: decide_overflow,
}
