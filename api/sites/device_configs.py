"""Configurations of edge devices: what they can run, in revisions."""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec
from fastapi import Path, Response
from pydantic import Field

from api.door.call import Call, Caller
from api.door.models import (
    AccountId,
    AccountQuery,
    AnswerModel,
    Position,
    RegionId,
    RegionInPath,
    RegionQuery,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, ByNumber, Cursor, InOrder, Limit
from api.fleet.providers import own_region, visible_region
from api.process.secret_files import derive
from api.process.service import Service
from api.sites.datastores import READ, WRITE, DatastoreId, SiteName, StorePath
from domain.fleet.reasons import FleetReason
from domain.references import REFERENCE_MAX
from domain.sites.device_config import (
    COMMAND_BYTES_MAX,
    COMMAND_WORDS_MAX,
    IMAGE_MAX,
    LIST_MAX,
    VALUE_MAX,
    DeviceConfigSet,
    DeviceEnvironment,
    DeviceMount,
    DeviceWork,
    SetDeviceConfig,
    device_config_stream,
)
from domain.sites.reasons import SitesReason
from ledger.beside import sealed_secrets
from projections.fleet.fleet import FLEET
from projections.runner import Connection
from projections.sites import edge_devices
from projections.sites.edge_devices import EDGE_DEVICES

resource = Resource("edge")

ConfigInPath = Annotated[str, Path(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
Revision = Annotated[int, Field(ge=1, le=1_000_000_000)]
ReferenceName = Annotated[str, Field(min_length=1, max_length=REFERENCE_MAX)]
ReferenceNames = Annotated[list[ReferenceName], Field(max_length=LIST_MAX)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][0-9A-Za-z_]{0,99}$")]
Image = Annotated[str, Field(min_length=1, max_length=IMAGE_MAX)]
Words = Annotated[
    list[Annotated[str, Field(max_length=COMMAND_BYTES_MAX)]],
    Field(min_length=1, max_length=COMMAND_WORDS_MAX),
]


class DeviceVariableRequest(RequestModel):
    """A variable of the environment. Its value enters no log, and only the device is told it."""

    name: VariableName
    value: Annotated[str, Field(max_length=VALUE_MAX, pattern=r"^[^\x00]*$")]


class DeviceMountRequest(RequestModel):
    """A datastore of the region, and the folder below its root that the command uses."""

    datastore_id: DatastoreId
    path: StorePath = "/"


class DeviceWorkRequest(RequestModel):
    """`model`: where the code is kept; `command` begins in its root folder. `checkpoints`,
    `datastore`, `environment` and `keys` may be left out; keys are names in a secret store of
    yours.
    """

    image: Image
    model: ReferenceName
    command: Words
    checkpoints: ReferenceNames = Field(default_factory=list)
    datastore: DeviceMountRequest | None = None
    environment: Annotated[list[DeviceVariableRequest], Field(max_length=LIST_MAX)] = Field(
        default_factory=list
    )
    keys: ReferenceNames = Field(default_factory=list)


class DeviceConfigRequest(RequestModel):
    """`revision`: 1 for a new name, and one more than the last one's after that."""

    name: SiteName
    revision: Revision
    work: DeviceWorkRequest

    model_config = with_examples(
        {
            "name": "counter",
            "revision": 1,
            "work": {
                "image": "registry.example/counter:1",
                "model": "models/counter",
                "command": ["python", "run.py"],
                "environment": [{"name": "THRESHOLD", "value": "70"}],
            },
        }
    )


class DeviceMountAnswer(AnswerModel):
    """A datastore of the region, and the folder below its root that the command uses."""

    datastore_id: DatastoreId
    path: StorePath


class DeviceWorkAnswer(AnswerModel):
    """`environment`: names of variables; their values are told to the device alone."""

    image: Image
    model: ReferenceName
    command: Words
    checkpoints: list[ReferenceName]
    datastore: DeviceMountAnswer | None = None
    environment: list[VariableName]
    keys: list[ReferenceName]


class DeviceConfigAnswer(AnswerModel):
    """One revision, which never changes."""

    region_id: RegionId
    account_id: AccountId
    name: SiteName
    revision: Revision
    work: DeviceWorkAnswer
    set_at: Told_at
    position: Position | None = None


@resource.post(
    "/v1/regions/{region_id}/device-configs",
    WRITE,
    DeviceConfigAnswer,
    status=201,
    problems=[
        FleetReason.REGION_UNKNOWN,
        SitesReason.DEVICE_INVALID,
        SitesReason.SITE_NAME_TAKEN,
        SitesReason.DEVICE_CONFIG_REVISION,
        SitesReason.PLAN_NEEDED,
        SitesReason.DATASTORE_UNKNOWN,
        SitesReason.PATH_REFUSED,
    ],
)
def set_device_config(region_id: RegionInPath, body: DeviceConfigRequest, call: Caller) -> Response:
    """Sets a revision of a device configuration of a region of yours. Devices keep what they run
    until it is deployed to them. Values of variables stand beside the log, sealed.
    """

    variables = {one.name: one.value for one in body.work.environment}
    digest = _digest(call, region_id, body.name, variables)

    def commands() -> SetDeviceConfig:
        own_region(call, region_id)
        return SetDeviceConfig(
            region_id=region_id,
            name=body.name,
            revision=body.revision,
            work=_work(body.work, digest),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(after: Any) -> DeviceConfigAnswer:
        last = after.state(device_config_stream(region_id, body.name)).last
        return _config(last, last.work)

    def keep(connection: Connection) -> None:
        if variables:
            name, key = _environment(digest), call.service.sealing_key
            sealed_secrets.keep(connection, key, name, json.dumps(variables).encode(), call.now_us)

    return call.record(commands, told, beside=keep)


@resource.get("/v1/device-configs", READ, page_of(DeviceConfigAnswer), problems=["cursor_invalid"])
def list_device_configs(
    call: Caller,
    order: InOrder,
    account_id: AccountQuery = None,
    region_id: RegionQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists device configurations, each with its last revision."""
    place = call.place(cursor, [0], order)
    with call.read(EDGE_DEVICES) as view:
        rows = edge_devices.read_device_configs(
            view.connection,
            account_id=call.principal.among(account_id),
            region_id=region_id,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _of_row)


@resource.get(
    "/v1/regions/{region_id}/device-configs/{config}",
    READ,
    page_of(DeviceConfigAnswer),
    problems=[FleetReason.REGION_UNKNOWN, "cursor_invalid"],
)
def list_device_config_revisions(
    region_id: RegionInPath,
    config: ConfigInPath,
    call: Caller,
    order: ByNumber,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the revisions of a device configuration, from the first on."""
    place = call.place(cursor, [0], order)
    with call.read(FLEET, EDGE_DEVICES) as view:
        visible_region(call, view.connection, region_id)
        rows = edge_devices.read_revisions(
            view.connection, region_id, config, after=place.after[0], way=place.way, limit=limit + 1
        )
        return call.page(view, place, rows, limit, lambda row: [row.revision], _of_row)


def environment_of(service: Service, connection: Connection, digest: str) -> dict[str, str] | None:
    """The variables that have this digest; None: this server has not sealed them."""
    kept = sealed_secrets.read(connection, service.sealing_key, _environment(digest))
    if kept is None:
        return None
    found: dict[str, str] = json.loads(kept)
    return found


def _environment(digest: str) -> str:
    """The name of sealed variables: a digest covers its values, so what it names never changes."""
    return f"device-environment/{digest}"


def _digest(call: Call, region_id: str, name: str, variables: dict[str, str]) -> str:
    """What the log holds of the values of a configuration's variables; nobody guesses them by it,
    for the sealing key is in it.
    """
    told = json.dumps(variables, sort_keys=True)
    key = call.service.sealing_key
    return derive(key, "device-environment/v1", region_id, name, told)[:32].hex()


def told_work(work: DeviceWork) -> DeviceWorkAnswer:
    """What a device runs, without the values of its variables."""
    mount = work.datastore
    return DeviceWorkAnswer(
        image=work.image,
        model=work.model,
        command=list(work.command),
        checkpoints=list(work.checkpoints),
        datastore=None
        if mount is None
        else DeviceMountAnswer(datastore_id=mount.datastore_id, path=mount.path),
        environment=[] if work.environment is None else list(work.environment.names),
        keys=list(work.keys),
    )


def _work(form: DeviceWorkRequest, digest: str) -> DeviceWork:
    store, names = form.datastore, [one.name for one in form.environment]
    return DeviceWork(
        image=form.image,
        model=form.model,
        command=tuple(form.command),
        checkpoints=tuple(form.checkpoints),
        datastore=None if store is None else DeviceMount(store.datastore_id, store.path),
        environment=DeviceEnvironment(tuple(sorted(names)), digest) if names else None,
        keys=tuple(form.keys),
    )


def work_of(row: edge_devices.DeviceConfig) -> DeviceWork:
    """The work of a revision, as its fact has it."""
    return msgspec.convert(row.work, DeviceWork)


def _of_row(row: edge_devices.DeviceConfig) -> DeviceConfigAnswer:
    return _config(row, work_of(row))


def _config(
    row: DeviceConfigSet | edge_devices.DeviceConfig, work: DeviceWork
) -> DeviceConfigAnswer:
    return DeviceConfigAnswer(
        region_id=row.region_id,
        account_id=row.account_id,
        name=row.name,
        revision=row.revision,
        work=told_work(work),
        set_at=moment(row.at_us),
    )
