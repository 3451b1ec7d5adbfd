"""The controller of a pool: its components, its metadata, and the heads that its contract anchors.

    the log decides, the contract anchors           row J-4

The contract is deployed and filled by `tallystick pool deploy-controller` and `publish`, with a key
of the pool's owner. The job of the chain holds it against the log; a difference is told here and
stops nothing else.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path, Response
from pydantic import BeforeValidator, Field

from api.door.auth import everybody
from api.door.call import After, Call, Caller
from api.door.models import (
    Address,
    AnswerModel,
    Count,
    EmptyRequest,
    Hex32,
    Position,
    RequestModel,
    Told_at,
    no_address,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit, NewestFirst
from api.pools.pools import OWNER, PoolId, PoolInPath, own_pool
from domain.fleet.reasons import FleetReason
from domain.pools import component as components
from domain.pools.component import RegisterComponent, RemoveComponent, ReportComponentHealth
from domain.pools.controller import (
    ENTRIES_MAX,
    ENTRY_NAME_MAX,
    ENTRY_VALUE_MAX,
    CutPoolHeads,
    MetadataEntry,
    SetPoolMetadata,
    pool_controller_stream,
)
from domain.pools.pool import pool_stream
from domain.pools.reasons import PoolsReason
from domain.refusal import Refused
from projections.pools import controllers
from projections.pools.controllers import CONTROLLERS, ComponentRow

resource = Resource("pools")

ComponentInPath = Annotated[str, Path(pattern=r"^comp_[0-9A-Za-z]{1,64}$")]
ComponentId = Annotated[str, Field(pattern=r"^comp_[0-9A-Za-z]{1,64}$")]
Kind = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,30}$")]
Plain = BeforeValidator(no_address)
Name = Annotated[str, Plain, Field(min_length=1, max_length=components.NAME_MAX)]
Endpoint = Annotated[str, Plain, Field(min_length=1, max_length=components.ENDPOINT_MAX)]
Detail = Annotated[str, Plain, Field(max_length=components.DETAIL_MAX)]
LicenceId = Annotated[str, Field(pattern=r"^lic_[0-9A-Za-z]{1,64}$")]
EntryName = Annotated[str, Plain, Field(min_length=1, max_length=ENTRY_NAME_MAX)]
EntryValue = Annotated[str, Plain, Field(max_length=ENTRY_VALUE_MAX)]
Health = Literal["well", "degraded", "down"]


class PoolComponentRequest(RequestModel):
    """`kind`: gateway, scheduler, storage, monitor, licence or a word of your own. `endpoint`:
    where others of the pool reach it. `licence_id`: of the kind licence alone.
    """

    kind: Kind
    name: Name
    endpoint: Endpoint | None = None
    licence_id: LicenceId | None = None

    model_config = with_examples(
        {"kind": "gateway", "name": "gateway-1", "endpoint": "https://gateway-1.example:8443"}
    )


class PoolComponentAnswer(AnswerModel):
    """`health`: as last reported; `silent` after two hours without a report, `unknown` before the
    first. `reference`: its id on the controller contract.
    """

    pool_id: PoolId
    component_id: ComponentId
    kind: str
    name: str
    endpoint: str | None = None
    licence_id: str | None = None
    reference: Hex32
    is_removed: bool
    health: Literal["well", "degraded", "down", "silent", "unknown"]
    detail: str | None = None
    health_since: Told_at | None = None
    reported_at: Told_at | None = None
    registered_at: Told_at
    position: Position | None = None


class PoolComponentRegisteredAnswer(AnswerModel):
    pool_id: PoolId
    component_id: ComponentId
    kind: str
    name: str
    endpoint: str | None = None
    licence_id: str | None = None
    position: Position | None = None


class PoolComponentRemovedAnswer(AnswerModel):
    pool_id: PoolId
    component_id: ComponentId
    is_removed: bool
    position: Position | None = None


class PoolComponentHealthRequest(RequestModel):
    """What a component, or its watcher, says of it."""

    health: Health
    detail: Detail = ""

    model_config = with_examples({"health": "degraded", "detail": "one of two links is down"})


class PoolComponentHealthAnswer(AnswerModel):
    pool_id: PoolId
    component_id: ComponentId
    health: Health
    position: Position | None = None


class PoolMetadataRequest(RequestModel):
    """All entries of the pool's metadata; those that are left out are gone."""

    metadata: Annotated[dict[EntryName, EntryValue], Field(max_length=ENTRIES_MAX)]

    model_config = with_examples({"metadata": {"region": "eu-west", "contact": "ops-desk"}})


class PoolMetadataAnswer(AnswerModel):
    """`sha256`: over the canonical JSON of metadata, pool_id and version; the contract keeps it."""

    pool_id: PoolId
    version: Count
    metadata: dict[str, str]
    sha256: Hex32
    position: Position | None = None


class PoolHeadsAnswer(AnswerModel):
    """Heads over all facts that count up to `cut_position` of the market log."""

    pool_id: PoolId
    cut_position: Position
    allocation_head: Hex32
    licence_head: Hex32
    cut_at: Told_at
    position: Position | None = None


class ControllerCheckAnswer(AnswerModel):
    """What the contract said at a final block. No differences: it says what the log says."""

    block: Count
    agrees: bool
    differences: list[str]
    checked_at: Told_at


class PoolControllerAnswer(AnswerModel):
    """Of a pool without a contract there is no `address`. `checked`: absent before the first."""

    pool_id: PoolId
    address: Address | None = None
    metadata: PoolMetadataAnswer | None = None
    heads: PoolHeadsAnswer | None = None
    checked: ControllerCheckAnswer | None = None
    position: Position | None = None


# --- components --------------------------------------------------------------------------------


@resource.post(
    "/v1/pools/{pool_id}/components",
    OWNER,
    PoolComponentRegisteredAnswer,
    status=201,
    problems=[
        PoolsReason.POOL_UNKNOWN,
        PoolsReason.COMPONENT_INVALID,
        FleetReason.LICENCE_UNKNOWN,
        PoolsReason.COMPONENT_TAKEN,
        PoolsReason.COMPONENTS_FULL,
    ],
)
def register_component(pool_id: PoolInPath, body: PoolComponentRequest, call: Caller) -> Response:
    """Registers a component of your pool, such as a gateway, a storage service or a licence."""
    component_id = call.id("comp")

    def commands() -> RegisterComponent:
        own_pool(call, pool_id)
        return RegisterComponent(
            pool_id=pool_id,
            component_id=component_id,
            **body.model_dump(),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    told = PoolComponentRegisteredAnswer(
        pool_id=pool_id, component_id=component_id, **body.model_dump()
    )
    return call.record(commands, lambda _after: told)


@resource.post(
    "/v1/pools/{pool_id}/components/{component_id}/remove",
    OWNER,
    PoolComponentRemovedAnswer,
    problems=[PoolsReason.POOL_UNKNOWN, PoolsReason.COMPONENT_UNKNOWN],
)
def remove_component(
    pool_id: PoolInPath, component_id: ComponentInPath, body: EmptyRequest, call: Caller
) -> Response:
    """Removes a component from your pool, for good."""
    del body

    def commands() -> RemoveComponent:
        own_pool(call, pool_id)
        return RemoveComponent(
            pool_id=pool_id,
            component_id=component_id,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    told = PoolComponentRemovedAnswer(pool_id=pool_id, component_id=component_id, is_removed=True)
    return call.record(commands, lambda _after: told)


@resource.post(
    "/v1/pools/{pool_id}/components/{component_id}/health",
    OWNER,
    PoolComponentHealthAnswer,
    problems=[
        PoolsReason.POOL_UNKNOWN,
        PoolsReason.COMPONENT_UNKNOWN,
        PoolsReason.COMPONENT_REMOVED,
        PoolsReason.COMPONENT_INVALID,
    ],
)
def report_component_health(
    pool_id: PoolInPath,
    component_id: ComponentInPath,
    body: PoolComponentHealthRequest,
    call: Caller,
) -> Response:
    """Records the health of a component of your pool. The last report counts, for two hours."""

    def commands() -> ReportComponentHealth:
        own_pool(call, pool_id)
        return ReportComponentHealth(
            pool_id=pool_id,
            component_id=component_id,
            health=body.health,
            detail=body.detail,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    told = PoolComponentHealthAnswer(pool_id=pool_id, component_id=component_id, health=body.health)
    return call.record(commands, lambda _after: told)


@resource.get(
    "/v1/pools/{pool_id}/components",
    everybody(),
    page_of(PoolComponentAnswer),
    problems=[PoolsReason.POOL_UNKNOWN, "cursor_invalid"],
)
def list_components(
    pool_id: PoolInPath,
    call: Caller,
    order: InOrder,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the components of a pool with their health; removed ones say so."""
    place = call.place(cursor, [0], order)
    _known(call, pool_id)
    with call.read(CONTROLLERS) as view:
        rows = controllers.read_components(
            view.connection, pool_id, after=place.after[0], way=place.way, limit=limit + 1
        )
        return call.page(
            view,
            place,
            rows,
            limit,
            lambda row: [row.position],
            lambda row: component_told(row, call.now_us),
        )


# --- metadata and heads ------------------------------------------------------------------------


@resource.post(
    "/v1/pools/{pool_id}/metadata",
    OWNER,
    PoolMetadataAnswer,
    problems=[PoolsReason.POOL_UNKNOWN, PoolsReason.METADATA_INVALID],
)
def set_pool_metadata(pool_id: PoolInPath, body: PoolMetadataRequest, call: Caller) -> Response:
    """Sets the whole metadata of your pool. Its hash goes to the pool's contract."""

    def commands() -> SetPoolMetadata:
        own_pool(call, pool_id)
        return SetPoolMetadata(
            pool_id=pool_id,
            metadata=tuple(MetadataEntry(*one) for one in sorted(body.metadata.items())),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(after: After) -> AnswerModel:
        found = after.state(pool_controller_stream(pool_id)).metadata
        assert found is not None
        return PoolMetadataAnswer(
            pool_id=pool_id, version=found.version, metadata=body.metadata, sha256=found.sha256
        )

    return call.record(commands, told)


@resource.post(
    "/v1/pools/{pool_id}/heads",
    OWNER,
    PoolHeadsAnswer,
    status=201,
    problems=[PoolsReason.POOL_UNKNOWN, PoolsReason.CUT_MOVED],
)
def create_pool_heads(pool_id: PoolInPath, body: EmptyRequest, call: Caller) -> Response:
    """Cuts the heads of your pool at the present end of the log, to be anchored by its contract."""
    del body

    def commands() -> CutPoolHeads:
        own_pool(call, pool_id)
        last = call.service.ledger.market.state_of(pool_controller_stream(pool_id)).last
        after = 0 if last is None else last.cut_position
        with call.read(CONTROLLERS) as view:
            allocation, licence = (
                controllers.read_leaves(
                    view.connection,
                    pool_id,
                    is_licence=is_licence,
                    after=after,
                    until=view.position,
                )
                for is_licence in (False, True)
            )
            return CutPoolHeads(
                pool_id=pool_id,
                cut_position=view.position,
                allocation=allocation,
                licence=licence,
                by=call.principal.member_id,
                at_us=call.now_us,
            )

    def told(after: After) -> AnswerModel:
        last = after.state(pool_controller_stream(pool_id)).last
        assert last is not None
        return PoolHeadsAnswer(
            pool_id=pool_id,
            cut_position=last.cut_position,
            allocation_head=last.allocation_head,
            licence_head=last.licence_head,
            cut_at=moment(last.at_us),
        )

    return call.record(commands, told)


@resource.get(
    "/v1/pools/{pool_id}/heads",
    everybody(),
    page_of(PoolHeadsAnswer),
    problems=[PoolsReason.POOL_UNKNOWN, "cursor_invalid"],
)
def list_pool_heads(
    pool_id: PoolInPath,
    call: Caller,
    order: NewestFirst,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the heads that a pool has cut, the latest first."""
    place = call.place(cursor, [0], order)
    _known(call, pool_id)
    with call.read(CONTROLLERS) as view:
        rows = controllers.read_cuts(
            view.connection, pool_id, after=place.after[0], way=place.way, limit=limit + 1
        )
        return call.page(
            view, place, rows, limit, lambda row: [row.position], lambda row: _cut(pool_id, row)
        )


@resource.get(
    "/v1/pools/{pool_id}/controller",
    everybody(),
    PoolControllerAnswer,
    problems=[PoolsReason.POOL_UNKNOWN],
)
def read_pool_controller(pool_id: PoolInPath, call: Caller) -> Response:
    """Returns the contract of a pool, what it is to say, and what the last check of it found."""
    address = _known(call, pool_id)
    with call.read(CONTROLLERS) as view:
        metadata = controllers.read_metadata(view.connection, pool_id, limit=1)
        cuts = controllers.read_cuts(view.connection, pool_id, limit=1)
        checked = controllers.read_checked(view.connection, pool_id)
        told = PoolControllerAnswer(
            pool_id=pool_id,
            address=address,
            metadata=_metadata(pool_id, metadata[0]) if metadata else None,
            heads=_cut(pool_id, cuts[0]) if cuts else None,
            checked=None if checked is None else _checked(checked),
        )
        return call.answer(view, told)


def _known(call: Call, pool_id: str) -> str | None:
    """The contract's address of a pool that is there. Raises Refused: POOL_UNKNOWN."""
    created = call.service.ledger.market.state_of(pool_stream(pool_id)).created
    if created is None:
        raise Refused(PoolsReason.POOL_UNKNOWN, pool_id=pool_id)
    return created.controller_address


# --- telling -----------------------------------------------------------------------------------


def component_told(row: ComponentRow, now_us: int) -> PoolComponentAnswer:
    """A component with its health as of now."""
    reported_us = row.health_at_us
    health: Literal["well", "degraded", "down", "silent", "unknown"] = "unknown"
    if reported_us is not None:
        is_silent = now_us - reported_us > components.SILENT_AFTER_US
        health = "silent" if is_silent else row.health  # type: ignore[assignment]
    return PoolComponentAnswer(
        pool_id=row.pool_id,
        component_id=row.component_id,
        kind=row.kind,
        name=row.name,
        endpoint=row.endpoint,
        licence_id=row.licence_id,
        reference=components.reference_of(row.component_id).hex(),
        is_removed=row.removed_position is not None,
        health=health,
        detail=row.detail or None,
        health_since=moment_or_none(row.health_since_us),
        reported_at=moment_or_none(reported_us),
        registered_at=moment(row.at_us),
        position=row.position,
    )


def _metadata(pool_id: str, row: controllers.Metadata) -> PoolMetadataAnswer:
    entries = {one["name"]: one["value"] for one in row.metadata}
    return PoolMetadataAnswer(
        pool_id=pool_id, version=row.version, metadata=entries, sha256=row.sha256
    )


def _cut(pool_id: str, row: controllers.Cut) -> PoolHeadsAnswer:
    return PoolHeadsAnswer(
        pool_id=pool_id,
        cut_position=row.position,
        allocation_head=row.allocation_head,
        licence_head=row.licence_head,
        cut_at=moment(row.at_us),
    )


def _checked(row: controllers.Checked) -> ControllerCheckAnswer:
    return ControllerCheckAnswer(
        block=row.block,
        agrees=not row.differences,
        differences=row.differences,
        checked_at=moment(row.at_us),
    )
