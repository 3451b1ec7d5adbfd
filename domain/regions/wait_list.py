"""Wait lists: who wants to join where there is no region yet, and what their number starts.

    an account is on a list at most once
    RegionThresholdReached(n)  =>  n == threshold accounts waited, told once

A list belongs to a region that is waitlisted, or to a place (a state or a country) that no region
holds. What a region's list starts: nodes may join it (`opening`), with its first user as its
administrator if its terms say so; then one is enough. A place's list starts nothing by itself: it
tells where a region is wanted. Source: design marketplace 8; rows K-5, K-11, K-16.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, assert_never

from domain.fleet.growth import FIRST_USER, WAIT_LIST, WAITLISTED, growth_of, opening_changes
from domain.fleet.provider import existing_region, region_of
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.regions.administrators import admins_of, granting
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitListTermsSet:
    """Stream `wait-list:{list_id}`."""

    list_id: str
    threshold: int
    first_user_administers: bool  # of a region: the first on the list is made its administrator
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionWaitlistJoined:
    """`latitude_e6`, `longitude_e6`: a dot on the map, as coarse as the database of places."""

    list_id: str
    account_id: str
    number: int  # 1 for the first
    latitude_e6: int | None
    longitude_e6: int | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionWaitlistLeft:
    list_id: str
    account_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionThresholdReached:
    list_id: str
    waiting: int
    threshold: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetWaitListTerms:
    list_id: str
    threshold: int
    first_user_administers: bool
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinWaitList:
    list_id: str
    account_id: str
    latitude_e6: int | None
    longitude_e6: int | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveWaitList:
    list_id: str
    account_id: str
    by: str
    at_us: int


THRESHOLD = 10
"""Of a list whose terms nobody set."""
WAITING_MAX = 10_000
PLACE = "place_"
_PLACE_LIST = re.compile(r"place_[A-Z]{2}(-[A-Z0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class WaitList:
    account_ids: tuple[str, ...] = ()  # in the order in which they came
    joined: int = 0  # ever
    threshold: int = THRESHOLD
    first_user_administers: bool = False
    is_reached: bool = False


WaitListFact = WaitListTermsSet | RegionWaitlistJoined | RegionWaitlistLeft | RegionThresholdReached


def evolve(state: WaitList, fact: WaitListFact) -> WaitList:
    match fact:
        case WaitListTermsSet():
            return replace(
                state, threshold=fact.threshold, first_user_administers=fact.first_user_administers
            )
        case RegionWaitlistJoined():
            ids = (*state.account_ids, fact.account_id)
            return replace(state, account_ids=ids, joined=fact.number)
        case RegionWaitlistLeft():
            ids = tuple(one for one in state.account_ids if one != fact.account_id)
            return replace(state, account_ids=ids)
        case RegionThresholdReached():
            return replace(state, is_reached=True)
        case _:
            assert_never(fact)


def wait_list_stream(list_id: str) -> Stream[WaitList]:
    return Stream("wait-list", list_id)


def wait_list_of(world: World, list_id: str) -> WaitList:
    return world.state(wait_list_stream(list_id))


def list_of_place(code: str) -> str:
    """The list of a place that no region holds: `code` as ISO 3166 has it."""
    return PLACE + code


def decide_terms(command: SetWaitListTerms, world: World) -> list[Change]:
    """Terms that are met already count at once. Raises Refused: REGION_UNKNOWN,
    COUNT_OUT_OF_RANGE, UNKNOWN_MODE.
    """
    _require_list(command.list_id, world)
    if not 1 <= command.threshold <= WAITING_MAX:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE, threshold=command.threshold, at_most=WAITING_MAX
        )
    if command.first_user_administers and command.list_id.startswith(PLACE):
        raise Refused(PartiesReason.UNKNOWN_MODE, rule="a place has no region to administer")
    state = wait_list_of(world, command.list_id)
    told = WaitListTermsSet(
        list_id=command.list_id,
        threshold=command.threshold,
        first_user_administers=command.first_user_administers,
        by=command.by,
        at_us=command.at_us,
    )
    after = evolve(state, told)
    if after == state:
        return []
    started = _started(command.list_id, after, command.by, command.at_us, world)
    return [Change(wait_list_stream(command.list_id), told), *started]


def decide_join(command: JoinWaitList, world: World) -> list[Change]:
    """An account that waits already changes nothing. Raises Refused: REGION_UNKNOWN, REGION_PHASE,
    ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, COUNT_OUT_OF_RANGE.
    """
    _require_list(command.list_id, world)
    open_account(world, command.account_id)
    state = wait_list_of(world, command.list_id)
    if command.account_id in state.account_ids:
        return []
    if not command.list_id.startswith(PLACE):
        phase = growth_of(world, command.list_id).phase
        if phase != WAITLISTED:
            raise Refused(
                FleetReason.REGION_PHASE, region_id=command.list_id, phase=phase, rule="waits"
            )
    if len(state.account_ids) >= WAITING_MAX:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE, waiting=len(state.account_ids), at_most=WAITING_MAX
        )
    joined = RegionWaitlistJoined(
        list_id=command.list_id,
        account_id=command.account_id,
        number=state.joined + 1,
        latitude_e6=command.latitude_e6,
        longitude_e6=command.longitude_e6,
        by=command.by,
        at_us=command.at_us,
    )
    after = evolve(state, joined)
    started = _started(command.list_id, after, command.by, command.at_us, world)
    return [Change(wait_list_stream(command.list_id), joined), *started]


def decide_leave(command: LeaveWaitList, world: World) -> list[Change]:
    """Raises Refused: REGION_UNKNOWN."""
    _require_list(command.list_id, world)
    if command.account_id not in wait_list_of(world, command.list_id).account_ids:
        return []
    left = RegionWaitlistLeft(
        list_id=command.list_id, account_id=command.account_id, by=command.by, at_us=command.at_us
    )
    return [Change(wait_list_stream(command.list_id), left)]


def _require_list(list_id: str, world: World) -> None:
    if list_id.startswith(PLACE):
        if not _PLACE_LIST.fullmatch(list_id):
            raise Refused(PartiesReason.UNKNOWN_MODE, list_id=list_id[:40])
        return
    existing_region(world, list_id)


def _started(list_id: str, state: WaitList, by: str, at_us: int, world: World) -> list[Change]:
    """What the list starts, once: that enough wait, or that its region has its first user."""
    changes: list[Change] = []
    if not state.is_reached and len(state.account_ids) >= state.threshold:
        reached = RegionThresholdReached(
            list_id=list_id, waiting=len(state.account_ids), threshold=state.threshold, at_us=at_us
        )
        changes.append(Change(wait_list_stream(list_id), reached))
    if region_of(world, list_id).opened is None:
        return changes
    if state.first_user_administers and state.account_ids:
        first = state.account_ids[0]
        if first not in admins_of(world, list_id):
            changes.append(granting(list_id, first, FIRST_USER, by, at_us))
        return [*changes, *opening_changes(world, list_id, FIRST_USER, by, at_us)]
    if changes:
        changes += opening_changes(world, list_id, WAIT_LIST, by, at_us)
    return changes


STREAMS: dict[str, tuple[Any, Any]] = {"wait-list": (WaitList(), evolve)}
DECIDERS: dict[type[Any], Any] = {
    SetWaitListTerms: decide_terms,
    JoinWaitList: decide_join,
    LeaveWaitList: decide_leave,
}
