"""The components of a pool: registered, found again, watched, and removed for good.

    components in the pool <= COMPONENTS_MAX          a licence is in a pool at most once

A component is a part that is no node: a gateway, a scheduler, a storage service, a monitor, a
licence. Nodes are in the pool by `domain/pools/pool.py`. What a component says of its health
decides nothing: it is shown. Source: design marketplace 8, rows J-4 and J-8.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, assert_never

from domain.duration import HOUR_US
from domain.fleet.licence import licence_of
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.pools.pool import pool_of
from domain.pools.reasons import PoolsReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# What can happen.


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentRegistered:
    """Stream `pool_components:{pool_id}`."""

    pool_id: str
    component_id: str
    kind: str  # of an open list: "gateway", "scheduler", "storage", "monitor", "licence"
    name: str
    endpoint: str | None  # where others of the pool reach it; we never call it
    licence_id: str | None  # of the kind "licence", and of it alone
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentRemoved:
    pool_id: str
    component_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentHealthReported:
    """Recorded when what it says changes, and once an hour as a sign of life."""

    pool_id: str
    component_id: str
    health: str  # HEALTHS
    detail: str
    by: str
    at_us: int


# What can be asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterComponent:
    pool_id: str
    component_id: str
    kind: str
    name: str
    endpoint: str | None
    licence_id: str | None
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveComponent:
    pool_id: str
    component_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportComponentHealth:
    pool_id: str
    component_id: str
    health: str
    detail: str
    by: str
    at_us: int


LICENCE = "licence"
HEALTHS = WELL, DEGRADED, DOWN = "well", "degraded", "down"
COMPONENTS_MAX = 1_000
REFERENCE = b"tallystick/component/v1"
NAME_MAX = 64
ENDPOINT_MAX = 200
DETAIL_MAX = 200
SIGN_OF_LIFE_US = HOUR_US
SILENT_AFTER_US = 2 * HOUR_US
"""Without a report for so long a component is shown as silent."""
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,30}")  # 31 characters: it is a bytes32 on chain
_ENDPOINT = re.compile(
    r"[a-z][a-z0-9+.-]{0,15}://[A-Za-z0-9._~\-\[\]:]{1,120}(/[A-Za-z0-9._~/-]*)?"
)

# What is remembered.


@dataclass(frozen=True, slots=True)
class PoolComponent:
    registered: ComponentRegistered
    is_removed: bool = False
    report: ComponentHealthReported | None = None  # the last one recorded


@dataclass(frozen=True, slots=True)
class Components:
    by_id: dict[str, PoolComponent] = field(default_factory=dict)

    @property
    def present(self) -> list[PoolComponent]:
        return [one for one in self.by_id.values() if not one.is_removed]


def evolve(
    state: Components, fact: ComponentRegistered | ComponentRemoved | ComponentHealthReported
) -> Components:
    match fact:
        case ComponentRegistered():
            changed = PoolComponent(fact)
        case ComponentRemoved():
            changed = replace(state.by_id[fact.component_id], is_removed=True)
        case ComponentHealthReported():
            changed = replace(state.by_id[fact.component_id], report=fact)
        case _:
            assert_never(fact)
    return Components({**state.by_id, fact.component_id: changed})


def components_stream(pool_id: str) -> Stream[Components]:
    return Stream("pool_components", pool_id)


def reference_of(component_id: str) -> bytes:
    """Its id on the contract: SHA-256("tallystick/component/v1" + id), 32 bytes."""
    return sha256(REFERENCE + component_id.encode()).digest()


def component_of(world: World, pool_id: str, component_id: str) -> PoolComponent:
    """A component that the pool has or had. Raises Refused: POOL_UNKNOWN, COMPONENT_UNKNOWN."""
    pool_of(world, pool_id)
    found = world.state(components_stream(pool_id)).by_id.get(component_id)
    if found is None:
        raise Refused(PoolsReason.COMPONENT_UNKNOWN, component_id=component_id)
    return found


# How it is decided.


def decide_register(command: RegisterComponent, world: World) -> list[Change]:
    """Registering the same again gives no fact.

    Raises Refused: POOL_UNKNOWN, COMPONENT_INVALID, LICENCE_UNKNOWN, COMPONENT_TAKEN,
    COMPONENTS_FULL.
    """
    pool_of(world, command.pool_id)
    _check(command)
    stream = components_stream(command.pool_id)
    state = world.state(stream)
    if command.component_id in state.by_id:
        return []
    if command.licence_id is not None and licence_of(world, command.licence_id).granted is None:
        raise Refused(FleetReason.LICENCE_UNKNOWN, licence_id=command.licence_id)
    for one in state.present:
        same = one.registered
        if same.name == command.name or (same.licence_id or "") == command.licence_id:
            raise Refused(PoolsReason.COMPONENT_TAKEN, component_id=same.component_id)
    if len(state.by_id) >= COMPONENTS_MAX:
        raise Refused(PoolsReason.COMPONENTS_FULL, most=COMPONENTS_MAX)
    fact = ComponentRegistered(
        pool_id=command.pool_id,
        component_id=command.component_id,
        kind=command.kind,
        name=command.name,
        endpoint=command.endpoint,
        licence_id=command.licence_id,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream, fact)]


def decide_remove(command: RemoveComponent, world: World) -> list[Change]:
    """Removing it again gives no fact. Raises Refused: POOL_UNKNOWN, COMPONENT_UNKNOWN."""
    if component_of(world, command.pool_id, command.component_id).is_removed:
        return []
    fact = ComponentRemoved(
        pool_id=command.pool_id,
        component_id=command.component_id,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(components_stream(command.pool_id), fact)]


def decide_health(command: ReportComponentHealth, world: World) -> list[Change]:
    """What says nothing new within the hour gives no fact.

    Raises Refused: POOL_UNKNOWN, COMPONENT_UNKNOWN, COMPONENT_REMOVED, COMPONENT_INVALID.
    """
    component = component_of(world, command.pool_id, command.component_id)
    if component.is_removed:
        raise Refused(PoolsReason.COMPONENT_REMOVED, component_id=command.component_id)
    if command.health not in HEALTHS:
        raise _invalid("health", f"one of {', '.join(HEALTHS)}")
    if len(command.detail) > DETAIL_MAX:
        raise _invalid("detail", f"at most {DETAIL_MAX} characters")
    last = component.report
    said = (command.health, command.detail)
    if last is not None and said == (last.health, last.detail) and _is_young(last, command):
        return []
    fact = ComponentHealthReported(
        pool_id=command.pool_id,
        component_id=command.component_id,
        health=command.health,
        detail=command.detail,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(components_stream(command.pool_id), fact)]


def _is_young(last: ComponentHealthReported, command: ReportComponentHealth) -> bool:
    return command.at_us - last.at_us < SIGN_OF_LIFE_US


def _check(command: RegisterComponent) -> None:
    if not _KIND.fullmatch(command.kind):
        raise _invalid("kind", "a word of at most 31 small letters, digits, - and _")
    if not 1 <= len(command.name) <= NAME_MAX:
        raise _invalid("name", f"1 to {NAME_MAX} characters")
    endpoint = command.endpoint
    if endpoint is not None and (len(endpoint) > ENDPOINT_MAX or not _ENDPOINT.fullmatch(endpoint)):
        raise _invalid("endpoint", "scheme://host:port/path without user, password and query")
    if (command.kind == LICENCE) != (command.licence_id is not None):
        raise _invalid("licence_id", "of a component of the kind licence, and of it alone")


def _invalid(name: str, rule: str) -> Refused:
    return Refused(PoolsReason.COMPONENT_INVALID, field=name, rule=rule)


STREAMS: dict[str, tuple[Any, Any]] = {"pool_components": (Components(), evolve)}
DECIDERS: dict[type[Any], Any] = {
    RegisterComponent: decide_register,
    RemoveComponent: decide_remove,
    ReportComponentHealth: decide_health,
}
