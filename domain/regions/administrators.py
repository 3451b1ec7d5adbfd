"""Administrators of a region: accounts beside its provider's that see and manage its nodes.

    manages(account, region)   <=>  it is the provider's, or it was granted and not revoked

An administrator lets nodes in, activates, drains and retires them, gives them roles and sets how
the region grows. Money stays the provider's: offers, sharing terms and owners. The provider or the
operator grants and revokes; an administrator may step down by itself. Source: design marketplace 8;
rows K-10, K-16.
"""

from __future__ import annotations

from typing import Any, assert_never

from domain.fleet.provider import existing_provider, existing_region
from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionAdminGranted:
    """Stream `region-admins:{region_id}`."""

    region_id: str
    account_id: str
    cause: str  # "hand", or "first_user": the first that waited for the region
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionAdminRevoked:
    region_id: str
    account_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRegionAdmin:
    region_id: str
    account_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeRegionAdmin:
    region_id: str
    account_id: str
    by: str
    at_us: int


ADMINS_MAX = 32


@dataclass(frozen=True, slots=True)
class Administrators:
    """In the order of their grants."""

    account_ids: tuple[str, ...] = ()


def evolve(state: Administrators, fact: RegionAdminGranted | RegionAdminRevoked) -> Administrators:
    match fact:
        case RegionAdminGranted():
            return Administrators((*state.account_ids, fact.account_id))
        case RegionAdminRevoked():
            return Administrators(tuple(one for one in state.account_ids if one != fact.account_id))
        case _:
            assert_never(fact)


def admins_stream(region_id: str) -> Stream[Administrators]:
    return Stream("region-admins", region_id)


def admins_of(world: World, region_id: str) -> tuple[str, ...]:
    return world.state(admins_stream(region_id)).account_ids


def decide_grant(command: GrantRegionAdmin, world: World) -> list[Change]:
    """Raises Refused: REGION_UNKNOWN, ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, NOT_PERMITTED,
    COUNT_OUT_OF_RANGE.
    """
    region = existing_region(world, command.region_id)
    account = open_account(world, command.account_id)
    if account.kind not in ("party", "operator"):
        raise Refused(PartiesReason.NOT_PERMITTED, kind=account.kind)
    present = admins_of(world, command.region_id)
    is_provider = existing_provider(world, region.provider_id).account_id == command.account_id
    if is_provider or command.account_id in present:
        return []
    if len(present) >= ADMINS_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, admins=len(present), at_most=ADMINS_MAX)
    return [granting(command.region_id, command.account_id, "hand", command.by, command.at_us)]


def granting(region_id: str, account_id: str, cause: str, by: str, at_us: int) -> Change:
    fact = RegionAdminGranted(
        region_id=region_id, account_id=account_id, cause=cause, by=by, at_us=at_us
    )
    return Change(admins_stream(region_id), fact)


def decide_revoke(command: RevokeRegionAdmin, world: World) -> list[Change]:
    """Raises Refused: REGION_UNKNOWN."""
    existing_region(world, command.region_id)
    if command.account_id not in admins_of(world, command.region_id):
        return []
    fact = RegionAdminRevoked(
        region_id=command.region_id,
        account_id=command.account_id,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(admins_stream(command.region_id), fact)]


STREAMS: dict[str, tuple[Any, Any]] = {"region-admins": (Administrators(), evolve)}
DECIDERS: dict[type[Any], Any] = {GrantRegionAdmin: decide_grant, RevokeRegionAdmin: decide_revoke}
