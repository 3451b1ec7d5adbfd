"""Stores of data of a region: file servers that jobs of the region's owner mount."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, get_args

from fastapi import Path, Response
from pydantic import Field, model_validator

from api.door.auth import with_scope
from api.door.call import Call, Caller, View
from api.door.models import (
    AccountId,
    AccountQuery,
    AnswerModel,
    EmptyRequest,
    Position,
    RegionId,
    RegionInPath,
    RegionQuery,
    RequestModel,
    Short,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.fleet.providers import own_region
from api.process.service import Service
from domain.fleet.reasons import FleetReason
from domain.refusal import Refused
from domain.sites.datastore import (
    DATASTORE_KINDS,
    SMB,
    AddDatastore,
    RemoveDatastore,
    advice_of,
    datastore_stream,
)
from domain.sites.paths import PATH_CHARACTERS_MAX, joined, place_of
from domain.sites.reasons import SitesReason
from ledger.beside import sealed_secrets
from projections.fleet import fleet
from projections.fleet.fleet import FLEET
from projections.runner import Connection
from projections.sites import edge_devices, sites
from projections.sites.edge_devices import EDGE_DEVICES
from projections.sites.sites import SITES

resource = Resource("sites")

WRITE = with_scope("provider")
READ = with_scope("provider", "operator", "audit:read")
DatastoreId = Annotated[str, Field(pattern=r"^datastore_[0-9A-Za-z]{1,64}$")]
DatastoreInPath = Annotated[str, Path(pattern=r"^datastore_[0-9A-Za-z]{1,64}$")]
DatastoreKind = Literal["nfs", "smb"]
assert get_args(DatastoreKind) == DATASTORE_KINDS
SiteName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
StorePath = Annotated[str, Field(min_length=1, max_length=PATH_CHARACTERS_MAX)]


class DatastoreRequest(RequestModel):
    """`root_path`: what lies beside it stays hidden. `user` and `password`: of an smb server; they
    enter no log, and only a node that mounts the store is told them.
    """

    name: SiteName
    kind: DatastoreKind
    address: Annotated[str, Field(min_length=1, max_length=253)]
    root_path: StorePath
    user: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    password: Annotated[str, Field(min_length=1, max_length=256)] | None = None

    model_config = with_examples(
        {"name": "renders", "kind": "nfs", "address": "10.0.0.5", "root_path": "/dir2"}
    )

    @model_validator(mode="after")
    def _has_login(self) -> DatastoreRequest:
        if (self.kind == SMB) != (self.user is not None and self.password is not None):
            raise ValueError("an smb server has a user and a password, and an nfs server neither")
        if self.kind != SMB and (self.user, self.password) != (None, None):
            raise ValueError("an smb server has a user and a password, and an nfs server neither")
        return self


class DatastoreAnswer(AnswerModel):
    """`advice`: for the server that it is on. User and password are never told here."""

    datastore_id: DatastoreId
    region_id: RegionId
    account_id: AccountId
    name: SiteName
    kind: DatastoreKind
    address: Short
    root_path: str
    has_login: bool
    advice: list[str]
    added_at: Told_at
    position: Position | None = None


class StoreMountAnswer(AnswerModel):
    """A folder that the work mounts: `path` on the server, with its root. The work finds it at
    `at`, to be read only where its use is `input`. `user` and `password` are told to the node
    alone.
    """

    name: SiteName
    kind: Literal["nfs", "smb"]
    address: str
    root_path: str
    path: str
    use: Literal["input", "output", "scratch"]
    at: str
    user: str | None = None
    password: str | None = None


class DatastoreRemovedAnswer(AnswerModel):
    datastore_id: DatastoreId
    position: Position | None = None


@resource.post(
    "/v1/regions/{region_id}/datastores",
    WRITE,
    DatastoreAnswer,
    status=201,
    problems=[
        FleetReason.REGION_UNKNOWN,
        SitesReason.PLAN_NEEDED,
        SitesReason.REGION_EMPTY,
        SitesReason.DATASTORE_INVALID,
        SitesReason.PATH_REFUSED,
        SitesReason.SITE_NAME_TAKEN,
    ],
)
def add_datastore(region_id: RegionInPath, body: DatastoreRequest, call: Caller) -> Response:
    """Adds a datastore to a region of yours. It needs the plan team and a node in the region."""
    datastore_id = call.id("datastore")

    def commands() -> AddDatastore:
        own_region(call, region_id)
        return AddDatastore(
            datastore_id=datastore_id,
            region_id=region_id,
            name=body.name,
            kind=body.kind,
            address=body.address,
            root_path=body.root_path,
            has_login=body.user is not None,
            machines=machines_of(call, region_id),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(after: Any) -> DatastoreAnswer:
        return _told(after.state(datastore_stream(datastore_id)).added)

    def keep(connection: Connection) -> None:
        if body.user is not None:
            login = json.dumps([body.user, body.password]).encode()
            name, key = _login(datastore_id), call.service.sealing_key
            sealed_secrets.keep(connection, key, name, login, call.now_us)

    return call.record(commands, told, beside=keep)


@resource.get("/v1/datastores", READ, page_of(DatastoreAnswer), problems=["cursor_invalid"])
def list_datastores(
    call: Caller,
    order: InOrder,
    account_id: AccountQuery = None,
    region_id: RegionQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists datastores in the order in which they were added."""
    place = call.place(cursor, [0], order)
    with call.read(SITES) as view:
        rows = sites.read_datastores(
            view.connection,
            account_id=call.principal.among(account_id),
            region_id=region_id,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _told)


@resource.post(
    "/v1/datastores/{datastore_id}/remove",
    WRITE,
    DatastoreRemovedAnswer,
    problems=[SitesReason.DATASTORE_UNKNOWN],
)
def remove_datastore(datastore_id: DatastoreInPath, body: EmptyRequest, call: Caller) -> Response:
    """Removes a datastore, and forgets its user and password. No new lease mounts it."""
    del body

    def commands() -> RemoveDatastore:
        added = call.service.ledger.market.state_of(datastore_stream(datastore_id)).added
        if added is None or not call.principal.owns(added.account_id):
            raise Refused(SitesReason.DATASTORE_UNKNOWN, datastore_id=datastore_id)
        return RemoveDatastore(
            datastore_id=datastore_id, by=call.principal.member_id, at_us=call.now_us
        )

    answer = call.record(commands, lambda _after: DatastoreRemovedAnswer(datastore_id=datastore_id))
    with call.service.connection() as connection:
        sealed_secrets.erase(connection, _login(datastore_id))
    return answer


def store_mount(
    call: Call, view: View, datastore_id: str, path: str, use: Any, *, has_login: bool
) -> StoreMountAnswer:
    """A folder of a store as a machine mounts it; `has_login`: with user and password, for the
    machine alone.
    """
    store = call.service.ledger.market.state_of(datastore_stream(datastore_id)).added
    assert store is not None, datastore_id
    user, password = None, None
    if has_login and store.has_login:
        user, password = _login_of(call.service, view.connection, datastore_id)
    kind: Any = store.kind
    return StoreMountAnswer(
        name=store.name,
        kind=kind,
        address=store.address,
        root_path=store.root_path,
        path=joined(store.root_path, path),
        use=use,
        at=place_of(use, store.name, path),
        user=user,
        password=password,
    )


def _login_of(
    service: Service, connection: Connection, datastore_id: str
) -> tuple[str, str] | tuple[None, None]:
    """User and password of an SMB store, for the node that mounts it."""
    kept = sealed_secrets.read(connection, service.sealing_key, _login(datastore_id))
    if kept is None:
        return None, None
    user, password = json.loads(kept)
    return str(user), str(password)


def _login(datastore_id: str) -> str:
    """The name of a store's sealed login."""
    return f"datastore/{datastore_id}"


def machines_of(call: Call, region_id: str) -> int:
    """How many compute nodes and edge devices stand in the region."""
    with call.read(FLEET, EDGE_DEVICES) as view:
        nodes = fleet.count_standing(view.connection, region_id)
        return nodes + edge_devices.count_edge_devices(view.connection, region_id)


def _told(row: Any) -> DatastoreAnswer:
    return DatastoreAnswer(
        datastore_id=row.datastore_id,
        region_id=row.region_id,
        account_id=row.account_id,
        name=row.name,
        kind=row.kind,
        address=row.address,
        root_path=row.root_path,
        has_login=row.has_login,
        advice=list(advice_of(row.kind)),
        added_at=moment(row.at_us),
    )
