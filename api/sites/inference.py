"""What edge devices run: deployments, and how the inference goes."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, get_args

from fastapi import Query, Response
from pydantic import Field

from api.door.call import Call, Caller, View
from api.door.models import AnswerModel, Position, RequestModel, Told_at, with_examples
from api.door.moments import moment
from api.door.operation import Resource
from api.sites.datastores import WRITE, SiteName, StoreMountAnswer, store_mount
from api.sites.device_configs import (
    DeviceWorkAnswer,
    Revision,
    VariableName,
    environment_name,
    told_work,
    work_of,
)
from api.sites.edge_devices import DeviceAccess, EdgeId, EdgeInPath, ExitCode, InferenceStatus
from domain.fleet.reasons import FleetReason
from domain.refusal import Refused
from domain.sites.datastore import existing_datastore
from domain.sites.device_config import DeviceWork
from domain.sites.inference import (
    BOOT_ID,
    STATUSES,
    DeployDeviceConfig,
    DeviceConfigDeployed,
    ReportInference,
    existing_device,
    inference_stream,
)
from domain.sites.reasons import SitesReason
from domain.stream import World
from ledger.beside import sealed_secrets
from projections.sites import edge_devices
from projections.sites.edge_devices import EDGE_DEVICES

resource = Resource("edge")

BootId = Annotated[str, Field(pattern=f"^{BOOT_ID}$")]
BootQuery = Annotated[str, Query(pattern=f"^{BOOT_ID}$", description="Id of the device's boot.")]
Deployment = Annotated[int, Field(ge=1, le=1_000_000_000)]
ToldStatus = Literal["running", "exited"]
assert get_args(ToldStatus) == STATUSES


class DeviceDeploymentRequest(RequestModel):
    """`config`: a configuration of the device's region; its last revision is deployed."""

    config: SiteName

    model_config = with_examples({"config": "counter"})


class DeviceDeploymentAnswer(AnswerModel):
    device_id: EdgeId
    config: SiteName
    revision: Revision
    deployment: Deployment
    deployed_at: Told_at
    position: Position | None = None


class DeviceInferenceRequest(RequestModel):
    """`deployment`: the one that it is told of. `boot_id`: another one after each boot.
    `exit_code`: of a command that exited.
    """

    deployment: Deployment
    boot_id: BootId
    status: ToldStatus
    exit_code: ExitCode | None = None

    model_config = with_examples(
        {"deployment": 1, "boot_id": "3f0c9a52-7d1e-4c1b-9b57", "status": "running"}
    )


class DeviceInferenceAnswer(AnswerModel):
    """`inference` of the last deployment, which `deployment` is."""

    device_id: EdgeId
    deployment: Deployment
    inference: InferenceStatus
    position: Position | None = None


class DeviceVariableAnswer(AnswerModel):
    """A variable of the environment, with its value."""

    name: VariableName
    value: str


class DeviceRunAnswer(AnswerModel):
    """What the device runs, always on. `access`: what of the board the command may use. `mount`:
    the folder of the datastore, with the login of an smb server. `environment`: with its values.
    """

    config: SiteName
    revision: Revision
    deployment: Deployment
    work: DeviceWorkAnswer
    environment: list[DeviceVariableAnswer]
    access: list[DeviceAccess]
    mount: StoreMountAnswer | None = None


class DeviceRunsAnswer(AnswerModel):
    """`run` is absent where nothing was deployed, or where the command exited in this boot: then
    the device runs nothing until it is rebooted or something is deployed.
    """

    device_id: EdgeId
    run: DeviceRunAnswer | None = None
    position: Position | None = None


@resource.post(
    "/v1/edge-devices/{edge_device_id}/deploy",
    WRITE,
    DeviceDeploymentAnswer,
    problems=[
        FleetReason.DEVICE_UNKNOWN,
        SitesReason.DEVICE_STATE,
        SitesReason.DEVICE_CONFIG_UNKNOWN,
        SitesReason.PLAN_NEEDED,
        SitesReason.DATASTORE_UNKNOWN,
    ],
)
def deploy_device_config(
    edge_device_id: EdgeInPath, body: DeviceDeploymentRequest, call: Caller
) -> Response:
    """Deploys the last revision of a configuration to an active edge device, which runs it instead
    of what it ran before.
    """
    command = DeployDeviceConfig(
        device_id=edge_device_id,
        account_id=call.principal.account_id,
        config=body.config,
        by=call.principal.member_id,
        at_us=call.now_us,
    )

    def told(after: Any) -> DeviceDeploymentAnswer:
        deployed = after.state(inference_stream(edge_device_id)).deployed
        return DeviceDeploymentAnswer(
            device_id=edge_device_id,
            config=deployed.config,
            revision=deployed.revision,
            deployment=deployed.deployment,
            deployed_at=moment(deployed.at_us),
        )

    return call.record(lambda: command, told)


@resource.post(
    "/v1/edge-devices/{edge_device_id}/inference",
    WRITE,
    DeviceInferenceAnswer,
    problems=[FleetReason.DEVICE_UNKNOWN, SitesReason.DEVICE_INVALID, SitesReason.DEVICE_STATE],
)
def report_inference(
    edge_device_id: EdgeInPath, body: DeviceInferenceRequest, call: Caller
) -> Response:
    """Reports how the inference of an edge device goes, sent by the device with a key of its
    owner's account.
    """
    command = ReportInference(
        device_id=edge_device_id,
        account_id=call.principal.account_id,
        deployment=body.deployment,
        boot_id=body.boot_id,
        status=body.status,
        exit_code=body.exit_code,
        by=call.principal.member_id,
        at_us=call.now_us,
    )

    def told(after: Any) -> DeviceInferenceAnswer:
        state = after.state(inference_stream(edge_device_id))
        return DeviceInferenceAnswer(
            device_id=edge_device_id,
            deployment=state.deployed.deployment,
            inference="pending" if state.told is None else state.told.status,
        )

    return call.record(lambda: command, told)


@resource.get(
    "/v1/edge-devices/{edge_device_id}/work",
    WRITE,
    DeviceRunsAnswer,
    problems=[FleetReason.DEVICE_UNKNOWN, SitesReason.DATASTORE_UNKNOWN, SitesReason.DEVICE_STATE],
)
def read_device_work(edge_device_id: EdgeInPath, boot_id: BootQuery, call: Caller) -> Response:
    """Returns what an edge device runs in this boot, asked by the device with a key of its owner's
    account. A command that exited begins again after a reboot or a deployment.
    """
    world = call.service.ledger.world()
    existing_device(world, call.principal.account_id, edge_device_id)
    state = world.state(inference_stream(edge_device_id))
    with call.read(EDGE_DEVICES) as view:  # it has reached what the state was made of
        run = None
        if state.deployed is not None and state.is_to_run(boot_id):
            run = _run(call, view, world, state.deployed)
        return call.answer(view, DeviceRunsAnswer(device_id=edge_device_id, run=run))


def _run(call: Call, view: View, world: World, deployed: DeviceConfigDeployed) -> DeviceRunAnswer:
    """Raises Refused: DATASTORE_UNKNOWN, DEVICE_STATE."""
    (row,) = edge_devices.read_revisions(
        view.connection, deployed.region_id, deployed.config, after=deployed.revision - 1, limit=1
    )
    assert row.revision == deployed.revision, deployed
    work = work_of(row)
    mount = None
    if work.datastore is not None:
        name = work.datastore.datastore_id
        existing_datastore(world, name)
        path = work.datastore.path
        mount = store_mount(call, view, name, path, "output", has_login=True)
    variables = _variables(call, view, deployed, work)
    return DeviceRunAnswer(
        config=deployed.config,
        revision=deployed.revision,
        deployment=deployed.deployment,
        work=told_work(work),
        environment=[
            DeviceVariableAnswer(name=key, value=value) for key, value in variables.items()
        ],
        access=list(get_args(DeviceAccess)),
        mount=mount,
    )


def _variables(
    call: Call, view: View, deployed: DeviceConfigDeployed, work: DeviceWork
) -> dict[str, str]:
    """Raises Refused: DEVICE_STATE, where the server that has sealed them is gone."""
    if work.environment is None:
        return {}
    name = environment_name(work.environment.digest)
    kept = sealed_secrets.read(view.connection, call.service.sealing_key, name)
    if kept is None:
        device_id = deployed.device_id
        raise Refused(SitesReason.DEVICE_STATE, device_id=device_id, rule="environment")
    found: dict[str, str] = json.loads(kept)
    return found
