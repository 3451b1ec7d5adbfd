"""The admission of a physical machine, step by step: who asks, who validates, what is shipped."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from fastapi import Path, Response
from pydantic import Field

from api.door.auth import with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AccountId,
    AccountQuery,
    AnswerModel,
    EmptyRequest,
    Position,
    RegionId,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.fleet.joining import JoinCodeAnswer, code_digest, new_code
from api.fleet.providers import own_region
from domain.fleet.node import JOIN_CODE_LIFE_US
from domain.fleet.reasons import FleetReason
from domain.machines.admission import (
    FIRMWARE_STEPS,
    GPUS_MAX,
    WORDS_MAX,
    Admission,
    DoFirmwareStep,
    InstallMachine,
    IssueInstalledCode,
    RefuseAdmission,
    RequestAdmission,
    ShipBootDrive,
    ValidateAdmission,
    admission_stream,
)
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from projections.fleet import supply
from projections.fleet.fleet import FLEET

resource = Resource("nodes")

WRITE = with_scope("provider")
OPERATOR = with_scope("operator")
READ = with_scope("provider", "operator", "audit:read")
AdmissionId = Annotated[str, Field(pattern=r"^admission_[0-9A-Za-z]{1,64}$")]
AdmissionInPath = Annotated[str, Path(pattern=r"^admission_[0-9A-Za-z]{1,64}$")]
Words = Annotated[str, Field(min_length=1, max_length=WORDS_MAX)]
Step = Literal["tpm_cleared", "csm_off", "secure_boot_off"]
assert get_args(Step) == FIRMWARE_STEPS
STATE = [FleetReason.ADMISSION_UNKNOWN, FleetReason.ADMISSION_STATE]


class AdmissionRequest(RequestModel):
    """The machine that is to come in, as its owner describes it."""

    region_id: RegionId
    vendor: Words
    model: Words
    gpus: Annotated[int, Field(ge=1, le=GPUS_MAX)]

    model_config = with_examples(
        {
            "region_id": "region_" + "1" * 32,
            "vendor": "nvidia",
            "model": "NVIDIA A100-PCIE-40GB",
            "gpus": 4,
        }
    )


class AdmissionRefusalRequest(RequestModel):
    why: Words

    model_config = with_examples({"why": "two models of GPUs"})


class BootDriveRequest(RequestModel):
    """Where the parcel can be followed."""

    tracking: Words

    model_config = with_examples({"tracking": "1Z 999 AA1"})


class FirmwareStepRequest(RequestModel):
    step: Step

    model_config = with_examples({"step": "tpm_cleared"})


class InstalledMachineRequest(RequestModel):
    """`minion_id`: what the machine shows once it started from its boot drive, which stays in."""

    minion_id: Words

    model_config = with_examples({"minion_id": "minion-4f21"})


class AdmissionAnswer(AnswerModel):
    """`steps_left`: what the firmware still needs, Secure Boot with NVIDIA's GPUs only."""

    admission_id: AdmissionId
    account_id: AccountId
    region_id: RegionId
    vendor: str
    model: str
    gpus: int
    state: Literal["requested", "validated", "shipped", "installed", "refused"]
    why: str | None = None
    tracking: str | None = None
    steps_done: list[Step]
    steps_left: list[Step]
    minion_id: str | None = None
    requested_at: Told_at
    position: Position | None = None


@resource.post(
    "/v1/admissions",
    WRITE,
    AdmissionAnswer,
    status=201,
    problems=[
        FleetReason.REGION_UNKNOWN,
        FleetReason.REGION_NOT_SUITED,
        PartiesReason.ACCOUNT_CLOSED,
    ],
)
def request_admission(body: AdmissionRequest, call: Caller) -> Response:
    """Requests the admission of a machine to a region of yours that admits by the procedure."""
    admission_id = call.id("admission")

    def commands() -> RequestAdmission:
        own_region(call, body.region_id)
        return RequestAdmission(
            admission_id=admission_id,
            account_id=call.principal.account_id,
            region_id=body.region_id,
            vendor=body.vendor,
            model=body.model,
            gpus=body.gpus,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, _told(admission_id))


@resource.post("/v1/admissions/{admission_id}/validate", OPERATOR, AdmissionAnswer, problems=STATE)
def validate_admission(admission_id: AdmissionInPath, body: EmptyRequest, call: Caller) -> Response:
    """Validates a requested machine."""
    del body
    command = ValidateAdmission(
        admission_id=admission_id, by=call.principal.member_id, at_us=call.now_us
    )
    return call.record(lambda: command, _told(admission_id))


@resource.post("/v1/admissions/{admission_id}/refuse", OPERATOR, AdmissionAnswer, problems=STATE)
def refuse_admission(
    admission_id: AdmissionInPath, body: AdmissionRefusalRequest, call: Caller
) -> Response:
    """Refuses a machine that is not installed yet, and says why."""
    command = RefuseAdmission(
        admission_id=admission_id, why=body.why, by=call.principal.member_id, at_us=call.now_us
    )
    return call.record(lambda: command, _told(admission_id))


@resource.post("/v1/admissions/{admission_id}/ship", OPERATOR, AdmissionAnswer, problems=STATE)
def ship_boot_drive(
    admission_id: AdmissionInPath, body: BootDriveRequest, call: Caller
) -> Response:
    """Records that the boot drive of a validated machine is on its way."""
    command = ShipBootDrive(
        admission_id=admission_id,
        tracking=body.tracking,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    return call.record(lambda: command, _told(admission_id))


@resource.post(
    "/v1/admissions/{admission_id}/firmware",
    WRITE,
    AdmissionAnswer,
    problems=[*STATE, PartiesReason.UNKNOWN_MODE],
)
def do_firmware_step(
    admission_id: AdmissionInPath, body: FirmwareStepRequest, call: Caller
) -> Response:
    """Records a step of the firmware setup: TPM cleared, CSM off, Secure Boot off."""

    def commands() -> DoFirmwareStep:
        own_admission(call, admission_id)
        return DoFirmwareStep(
            admission_id=admission_id,
            step=body.step,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, _told(admission_id))


@resource.post("/v1/admissions/{admission_id}/installed", WRITE, AdmissionAnswer, problems=STATE)
def install_machine(
    admission_id: AdmissionInPath, body: InstalledMachineRequest, call: Caller
) -> Response:
    """Records that the machine started from its boot drive, under the id that it shows."""

    def commands() -> InstallMachine:
        own_admission(call, admission_id)
        return InstallMachine(
            admission_id=admission_id,
            minion_id=body.minion_id,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, _told(admission_id))


@resource.post(
    "/v1/admissions/{admission_id}/join-codes",
    WRITE,
    JoinCodeAnswer,
    status=201,
    problems=[*STATE, FleetReason.STORAGE_NODE_STATE],
)
def create_installed_code(
    admission_id: AdmissionInPath, body: EmptyRequest, call: Caller
) -> Response:
    """Issues a code that lets the installed machine join, valid for ten minutes."""
    del body
    code = new_code(call.secret("join-code/v1"))
    state = call.service.ledger.market.state_of(admission_stream(admission_id))

    def commands() -> IssueInstalledCode:
        own_admission(call, admission_id)
        return IssueInstalledCode(
            admission_id=admission_id,
            code_sha256=code_digest(code),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(_after: After) -> JoinCodeAnswer:
        assert state.requested is not None
        return JoinCodeAnswer(
            region_id=state.requested.region_id, expires_at=moment(call.now_us + JOIN_CODE_LIFE_US)
        )

    return call.record(commands, told, reveal=lambda: {"code": code})


@resource.get("/v1/admissions", READ, page_of(AdmissionAnswer), problems=["cursor_invalid"])
def list_admissions(
    call: Caller,
    order: InOrder,
    account_id: AccountQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists admissions in order of request: your own, or all for operators and auditors."""
    place = call.place(cursor, [0], order)
    with call.read(FLEET) as view:
        rows = supply.read_admissions(
            view.connection,
            account_id=call.principal.among(account_id),
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(
            view,
            place,
            rows,
            limit,
            lambda row: [row.position],
            lambda row: _answer(row.admission_id, _state(call, row.admission_id)),
        )


@resource.get(
    "/v1/admissions/{admission_id}", READ, AdmissionAnswer, problems=[FleetReason.ADMISSION_UNKNOWN]
)
def read_admission(admission_id: AdmissionInPath, call: Caller) -> Response:
    """Returns an admission and what is left to do."""
    with call.read(FLEET) as view:
        state = _state(call, admission_id)
        seen = state.requested is not None and call.principal.may_see(state.requested.account_id)
        if not seen:
            raise Refused(FleetReason.ADMISSION_UNKNOWN, admission_id=admission_id)
        return call.answer(view, _answer(admission_id, state))


def own_admission(call: Call, admission_id: str) -> None:
    """Raises Refused: ADMISSION_UNKNOWN, also for another account's."""
    requested = _state(call, admission_id).requested
    if requested is None or not call.principal.owns(requested.account_id):
        raise Refused(FleetReason.ADMISSION_UNKNOWN, admission_id=admission_id)


def _state(call: Call, admission_id: str) -> Admission:
    return call.service.ledger.market.state_of(admission_stream(admission_id))


def _told(admission_id: str) -> Any:
    def told(after: After) -> AdmissionAnswer:
        return _answer(admission_id, after.state(admission_stream(admission_id)))

    return told


def _answer(admission_id: str, state: Admission) -> AdmissionAnswer:
    asked, status = state.requested, state.status
    assert asked is not None
    name: Any = status
    done: Any = list(state.steps)
    left: Any = [step for step in state.needed_steps if step not in state.steps]
    return AdmissionAnswer(
        admission_id=admission_id,
        account_id=asked.account_id,
        region_id=asked.region_id,
        vendor=asked.vendor,
        model=asked.model,
        gpus=asked.gpus,
        state=name,
        why=state.why,
        tracking=state.tracking,
        steps_done=done,
        steps_left=left,
        minion_id=state.minion_id,
        requested_at=moment(asked.at_us),
    )
