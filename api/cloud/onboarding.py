"""How a cloud provider is set up: the checklist of its account, and the regions it may open."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from fastapi import Response
from pydantic import Field

from api.door.auth import everybody
from api.door.call import Call, Caller
from api.door.models import (
    AnswerModel,
    Position,
    ProviderId,
    ProviderInPath,
    RequestModel,
    Short,
    Told_at,
    with_examples,
)
from api.door.moments import moment_or_none
from api.door.operation import Resource
from api.fleet.providers import READ, WRITE, own_provider
from domain.calendar import day_of, day_text
from domain.cloud.onboarding import PROJECT_ID, STEPS, CheckCloudAccount, decide_check, required_of
from domain.cloud.reasons import CloudReason
from domain.fleet.cloud_regions import regions_on
from domain.fleet.provider import CloudAccountChecked, provider_stream
from domain.fleet.reasons import FleetReason
from domain.prices.provider_kinds import is_cloud
from domain.refusal import Refused
from ledger.beside import service_accounts
from ledger.beside.service_accounts import EMAIL_MAX

resource = Resource("clouds")

StepName = Literal[
    "paid_billing",
    "project",
    "api_compute",
    "api_pubsub",
    "api_logging",
    "api_billing",
    "service_account",
    "role_compute_admin",
    "role_pubsub_admin",
    "role_logs_writer",
    "role_service_account_user",
    "role_billing_viewer",
    "token_creator",
]
assert get_args(StepName) == tuple(step.name for step in STEPS)
Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", examples=["2022-03-01"])]
ProjectId = Annotated[str, Field(pattern=f"^{PROJECT_ID}$", examples=["render-farm-7"])]
Email = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9][a-z0-9.-]*@[a-z0-9.-]+\.[a-z]+$",
        max_length=EMAIL_MAX,
        examples=["market@render-farm-7.iam.gserviceaccount.com"],
    ),
]


class CloudAccountRequest(RequestModel):
    """The whole checklist at once: what is not in `done` is not done.

    `service_account`: its e-mail address, which enters no log and stays as it is when it is left
    out. Never send its key file: this server does not need it and refuses it.
    """

    project_id: ProjectId
    project_made_on: Day
    done: Annotated[list[StepName], Field(max_length=len(STEPS))]
    service_account: Email | None = None

    model_config = with_examples(
        {
            "project_id": "render-farm-7",
            "project_made_on": "2022-03-01",
            "done": ["paid_billing", "project", "api_compute"],
            "service_account": "market@render-farm-7.iam.gserviceaccount.com",
        }
    )


class CloudStepAnswer(AnswerModel):
    step: StepName
    what: Short
    required: bool
    done: bool


class CloudAccountAnswer(AnswerModel):
    """`ready`: every required step is done, and regions can be opened."""

    provider_id: ProviderId
    ready: bool
    steps: list[CloudStepAnswer]
    project_id: str | None = None
    project_made_on: Day | None = None
    service_account: str | None = None
    reported_at: Told_at | None = None
    position: Position | None = None


class CloudRegionAnswer(AnswerModel):
    cloud: str
    name: str
    place: str


class CloudRegionsAnswer(AnswerModel):
    """The regions that can be opened, by the cloud's own names; the list is in force from a day."""

    from_day: Day
    data: list[CloudRegionAnswer]
    position: Position | None = None


@resource.post(
    "/v1/providers/{provider_id}/cloud-account",
    WRITE,
    CloudAccountAnswer,
    problems=[
        FleetReason.PROVIDER_UNKNOWN,
        CloudReason.NOT_A_CLOUD_PROVIDER,
        CloudReason.CHECKLIST_INVALID,
    ],
)
def report_cloud_account(
    provider_id: ProviderInPath, body: CloudAccountRequest, call: Caller
) -> Response:
    """Reports the checklist of a cloud provider's account; the last report counts."""

    def commands() -> CheckCloudAccount:
        own_provider(call, provider_id)
        command = CheckCloudAccount(
            provider_id=provider_id,
            project_id=body.project_id,
            project_made_on=body.project_made_on,
            done=tuple(body.done),
            by=call.principal.member_id,
            at_us=call.now_us,
        )
        if body.service_account is not None:
            decide_check(command, call.service.ledger.world())  # what is refused changes no address
            with call.service.connection() as connection:
                service_accounts.keep(connection, provider_id, body.service_account, call.now_us)
        return command

    # What is stored with the idempotency key is kept for good: no address is in it.
    return call.record(
        commands, lambda after: _account(provider_id, _told(after, provider_id), None)
    )


@resource.get(
    "/v1/providers/{provider_id}/cloud-account",
    READ,
    CloudAccountAnswer,
    problems=[FleetReason.PROVIDER_UNKNOWN, CloudReason.NOT_A_CLOUD_PROVIDER],
)
def read_cloud_account(provider_id: ProviderInPath, call: Caller) -> Response:
    """Returns the checklist of a cloud provider: what is done, and what is missing."""
    with call.read() as view:
        state = call.service.ledger.market.state_of(provider_stream(provider_id))
        if not state.exists or not call.principal.may_see(state.account_id):
            raise Refused(FleetReason.PROVIDER_UNKNOWN, provider_id=provider_id)
        _require_cloud(call, provider_id)
        email = service_accounts.read(view.connection, provider_id)
        return call.answer(view, _account(provider_id, state.cloud_account, email))


@resource.get("/v1/cloud-regions", everybody(), CloudRegionsAnswer)
def list_cloud_regions(call: Caller) -> Response:
    """Lists the regions of clouds that can be opened here."""
    with call.read() as view:
        found = regions_on(day_text(day_of(call.now_us)))
        data = [
            CloudRegionAnswer(cloud=one.cloud, name=one.name, place=one.place)
            for one in found.regions
        ]
        return call.answer(view, CloudRegionsAnswer(from_day=found.from_day, data=data))


def _require_cloud(call: Call, provider_id: str) -> None:
    """Raises Refused: NOT_A_CLOUD_PROVIDER."""
    world = call.service.ledger.world()
    if not is_cloud(world, world.state(provider_stream(provider_id)).kind, call.now_us):
        raise Refused(CloudReason.NOT_A_CLOUD_PROVIDER, provider_id=provider_id)


def _told(after: Any, provider_id: str) -> CloudAccountChecked | None:
    told: CloudAccountChecked | None = after.state(provider_stream(provider_id)).cloud_account
    return told


def _account(
    provider_id: str, told: CloudAccountChecked | None, email: str | None
) -> CloudAccountAnswer:
    made_on = "" if told is None else told.project_made_on
    required, done = required_of(made_on), () if told is None else told.done
    return CloudAccountAnswer(
        provider_id=provider_id,
        ready=told is not None and not told.missing,
        steps=[
            CloudStepAnswer(
                step=_name(step.name),
                what=step.what,
                required=step.name in required,
                done=step.name in done,
            )
            for step in STEPS
        ],
        project_id=None if told is None else told.project_id,
        project_made_on=None if told is None else told.project_made_on,
        service_account=email,
        reported_at=moment_or_none(None if told is None else told.at_us),
    )


def _name(name: Any) -> StepName:
    found: StepName = name
    return found
