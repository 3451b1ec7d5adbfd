"""Providers and their regions: who offers nodes, and where."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from fastapi import Response
from pydantic import Field

from api.door.auth import with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AccountId,
    AccountQuery,
    AnswerModel,
    NodeId,
    Position,
    ProviderId,
    ProviderInPath,
    ProviderQuery,
    RegionId,
    RegionInPath,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.fleet.node_state import StateInWord, node_state_of
from api.process import founding
from domain.fleet.provider import (
    PAYMENT_MODES,
    REGION_NAME_PATTERN,
    SECURITY_TIERS,
    SITE_LENGTH_MAX,
    WORKLOADS_MAX,
    OpenRegion,
    RegionState,
    RegisterProvider,
    SetRegionHardware,
    SetRegionPolicy,
    provider_stream,
    region_stream,
)
from domain.fleet.reasons import FleetReason
from domain.hardware.admission import WAIVABLE
from domain.income.maturity import SetPaymentMode
from domain.income.maturity import stream_of as earnings_stream
from domain.income.reasons import IncomeReason
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.regions.administrators import admins_stream
from projections.fleet import fleet, supply
from projections.fleet.fleet import FLEET
from projections.metering.usage import USAGE

resource = Resource("providers")

WRITE = with_scope("provider")
READ = with_scope("provider", "operator", "audit:read")

Kind = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$", examples=["physical"])]
PaymentMode = Literal["credits", "cash"]
assert get_args(PaymentMode) == PAYMENT_MODES
CloudRegion = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,39}$", examples=["us-central1"])]
Site = Annotated[str, Field(min_length=1, max_length=SITE_LENGTH_MAX, examples=["Hall 2"])]
StorageMode = Literal["local", "central"]
Setting = Literal["edge", "datacenter"]
Admission = Literal["operator", "permissionless", "approved"]
Workload = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
Workloads = Annotated[list[Workload], Field(max_length=WORKLOADS_MAX)]
Tier = Annotated[int, Field(ge=0, le=SECURITY_TIERS[-1])]
HardwareRule = Literal[
    "nvme_count",
    "nvme_size",
    "tpm_2_0",
    "sata_drives",
    "ethernet",
    "ram",
    "pcie_lanes",
    "cpu_cores",
]
assert get_args(HardwareRule) == WAIVABLE
Name = Annotated[str, Field(pattern=f"^{REGION_NAME_PATTERN}$", examples=["lab-1"])]


class ProviderRequest(RequestModel):
    """`payment_mode`: how the account is paid, set in the same append. An account that has set one
    leaves it out, or names the same; cash is set with its destination, at `/payment-mode`.
    """

    kind: Kind
    payment_mode: PaymentMode | None = None

    model_config = with_examples({"kind": "physical", "payment_mode": "credits"})


class ProviderAnswer(AnswerModel):
    provider_id: ProviderId
    account_id: AccountId
    kind: Kind
    payment_mode: PaymentMode
    registered_at: Told_at | None = None
    position: Position | None = None


class RegionRequest(RequestModel):
    """The storage mode never changes: another mode needs a new region. `cloud_region`: of a cloud
    provider, each used by one region; `site`: where machines of one's own stand, for as many
    regions as there are policies.
    """

    provider_id: ProviderId
    name: Name
    storage_mode: StorageMode
    setting: Setting
    admission: Admission
    allow_public_jobs: bool
    cloud_region: CloudRegion | None = None
    site: Site | None = None

    model_config = with_examples(
        {
            "provider_id": "prov_" + "1" * 32,
            "name": "lab-1",
            "storage_mode": "local",
            "setting": "datacenter",
            "admission": "operator",
            "allow_public_jobs": True,
        }
    )


class RegionPolicyRequest(RequestModel):
    """What is left out stays as it is. Edge regions start with `ip_lease` refused and
    `large_storage` ranked down; `security_tier`: what the region promises, 0 is nothing.
    """

    allow_public_jobs: bool
    refused_workloads: Workloads | None = None
    down_ranked_workloads: Workloads | None = None
    security_tier: Tier | None = None

    model_config = with_examples(
        {"allow_public_jobs": False},
        {"allow_public_jobs": True, "refused_workloads": ["ip_lease"], "security_tier": 2},
    )


class HardwareRulesRequest(RequestModel):
    """The rules of hardware that a region insists on; those of them that a node fails are told of
    it in any case. That there is a GPU, and one model of it, is always needed.
    """

    rules: Annotated[list[HardwareRule], Field(max_length=len(WAIVABLE))]

    model_config = with_examples({"rules": ["tpm_2_0", "ram"]}, {"rules": []})


class RegionAnswer(AnswerModel):
    region_id: RegionId
    provider_id: ProviderId
    name: Name
    storage_mode: StorageMode
    setting: Setting
    admission: Admission
    allow_public_jobs: bool
    refused_workloads: list[str] | None = None
    down_ranked_workloads: list[str] | None = None
    security_tier: int | None = None
    hardware_rules: list[str] | None = None
    cloud_region: CloudRegion | None = None
    site: Site | None = None
    opened_at: Told_at | None = None
    position: Position | None = None


class RegionNodeAnswer(AnswerModel):
    node_id: NodeId
    phase: str
    state: StateInWord
    quarantined: bool


def own_provider(call: Call, provider_id: str) -> None:
    """Raises Refused: PROVIDER_UNKNOWN, also for another account's."""
    state = call.service.ledger.market.state_of(provider_stream(provider_id))
    if not state.exists or not call.principal.owns(state.account_id):
        raise Refused(FleetReason.PROVIDER_UNKNOWN, provider_id=provider_id)


def own_region(call: Call, region_id: str) -> str:
    """The region's provider, which must be the caller's. Raises Refused: REGION_UNKNOWN."""
    state = call.service.ledger.market.state_of(region_stream(region_id))
    unknown = Refused(FleetReason.REGION_UNKNOWN, region_id=region_id)
    if state.opened is None:
        raise unknown
    try:
        own_provider(call, state.opened.provider_id)
    except Refused:
        raise unknown from None
    return state.opened.provider_id


def managed_region(call: Call, region_id: str) -> str:
    """The region's provider, if the caller is that or administers the region.

    Raises Refused: REGION_UNKNOWN.
    """
    market = call.service.ledger.market
    state = market.state_of(region_stream(region_id))
    admins = market.state_of(admins_stream(region_id)).account_ids
    if state.opened is not None and any(call.principal.owns(one) for one in admins):
        return state.opened.provider_id
    return own_region(call, region_id)


@resource.post(
    "/v1/providers",
    WRITE,
    ProviderAnswer,
    status=201,
    problems=[
        PartiesReason.NOT_PERMITTED,
        PartiesReason.ACCOUNT_CLOSED,
        FleetReason.PROVIDER_EXISTS,
        FleetReason.PROVIDER_KIND_UNKNOWN,
        FleetReason.PAYMENT_MODE_NEEDED,
        IncomeReason.PAYMENT_MODE,
    ],
)
def register_provider(body: ProviderRequest, call: Caller) -> Response:
    """Registers a provider of the caller's account, together with how the account is paid."""
    provider_id, account_id = call.id("prov"), call.principal.account_id

    def commands() -> list[Any]:
        present = call.service.ledger.market.state_of(earnings_stream(account_id))
        mode = present.mode if present.is_mode_set else body.payment_mode
        if body.payment_mode not in (None, mode):
            raise Refused(FleetReason.PAYMENT_MODE_NEEDED, mode=mode)
        registered = RegisterProvider(
            provider_id=provider_id,
            account_id=account_id,
            kind=body.kind,
            payment_mode=mode,
            at_us=call.now_us,
        )
        if present.is_mode_set or mode is None:
            return [registered]
        chosen = SetPaymentMode(
            account_id=account_id,
            mode=mode,
            billing_account_id=account_id,
            destination=None,
            by=call.principal.member_id,
            at_us=call.now_us,
        )
        return [registered, chosen]

    def told(after: After) -> ProviderAnswer:
        state = after.state(provider_stream(provider_id))
        mode: Any = state.payment_mode
        return ProviderAnswer(
            provider_id=provider_id,
            account_id=account_id,
            kind=body.kind,
            payment_mode=mode,
            registered_at=moment(call.now_us),
        )

    return call.record(commands, told)


@resource.get("/v1/providers", READ, page_of(ProviderAnswer), problems=["cursor_invalid"])
def list_providers(
    call: Caller,
    order: InOrder,
    account_id: AccountQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists providers in order of registration: your own, or all for operators and auditors."""
    place = call.place(cursor, [0], order)
    with call.read(FLEET) as view:
        rows = fleet.read_providers(
            view.connection,
            account_id=call.principal.among(account_id),
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _provider)


@resource.get(
    "/v1/providers/{provider_id}", READ, ProviderAnswer, problems=[FleetReason.PROVIDER_UNKNOWN]
)
def read_provider(provider_id: ProviderInPath, call: Caller) -> Response:
    """Returns a provider."""
    with call.read(FLEET) as view:
        found = fleet.read_provider(view.connection, provider_id)
        if found is None or not call.principal.may_see(found.account_id):
            raise Refused(FleetReason.PROVIDER_UNKNOWN, provider_id=provider_id)
        return call.answer(view, _provider(found))


def _provider(row: fleet.Provider) -> ProviderAnswer:
    mode: Any = row.payment_mode
    return ProviderAnswer(
        provider_id=row.provider_id,
        account_id=row.account_id,
        kind=row.kind,
        payment_mode=mode,
        registered_at=moment(row.at_us),
    )


# --- regions ---------------------------------------------------------------------------------


@resource.post(
    "/v1/regions",
    WRITE,
    RegionAnswer,
    status=201,
    problems=[
        FleetReason.PROVIDER_UNKNOWN,
        FleetReason.REGION_EXISTS,
        FleetReason.PROVIDER_NOT_READY,
        FleetReason.REGION_NOT_SUITED,
        FleetReason.CLOUD_REGION,
    ],
)
def open_region(body: RegionRequest, call: Caller) -> Response:
    """Opens a region of one of the caller's providers."""
    region_id = call.id("region")

    def commands() -> OpenRegion:
        own_provider(call, body.provider_id)
        return OpenRegion(
            region_id=region_id, **body.model_dump(), at_us=call.now_us, hardware_rules=rules
        )

    # Nodes that are made up for development have neither drives nor a TPM.
    rules = None if founding.is_development(call.service.ledger) else WAIVABLE
    told = RegionAnswer(
        region_id=region_id,
        **body.model_dump(),
        hardware_rules=list(rules or ()),
        opened_at=moment(call.now_us),
    )
    return call.record(commands, lambda _after: told)


@resource.get("/v1/regions", READ, page_of(RegionAnswer), problems=["cursor_invalid"])
def list_regions(
    call: Caller,
    order: InOrder,
    provider_id: ProviderQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists regions in order of opening: your own, or all for operators and auditors."""
    place = call.place(cursor, [0], order)
    with call.read(FLEET) as view:
        rows = fleet.read_regions(
            view.connection,
            provider_id=provider_id,
            account_id=call.principal.only,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        policies = supply.read_policies(view.connection, [row.region_id for row in rows])
        return call.page(
            view,
            place,
            rows,
            limit,
            lambda row: [row.position],
            lambda row: _region(row, policies[row.region_id]),
        )


@resource.get("/v1/regions/{region_id}", READ, RegionAnswer, problems=[FleetReason.REGION_UNKNOWN])
def read_region(region_id: RegionInPath, call: Caller) -> Response:
    """Returns a region."""
    with call.read(FLEET) as view:
        found = visible_region(call, view.connection, region_id)
        policy = supply.read_policies(view.connection, [region_id])[region_id]
        return call.answer(view, _region(found, policy))


@resource.post(
    "/v1/regions/{region_id}/policy",
    WRITE,
    RegionAnswer,
    problems=[
        FleetReason.REGION_UNKNOWN,
        PartiesReason.COUNT_OUT_OF_RANGE,
        PartiesReason.UNKNOWN_MODE,
    ],
)
def set_region_policy(region_id: RegionInPath, body: RegionPolicyRequest, call: Caller) -> Response:
    """Sets which jobs may run in a region, what it refuses or ranks down, and how safe it is."""
    stream = region_stream(region_id)

    def commands() -> SetRegionPolicy:
        own_region(call, region_id)
        return SetRegionPolicy(
            region_id=region_id,
            allow_public_jobs=body.allow_public_jobs,
            refused_workloads=_words(body.refused_workloads),
            down_ranked_workloads=_words(body.down_ranked_workloads),
            security_tier=body.security_tier,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda after: _region_of(region_id, after.state(stream)))


@resource.post(
    "/v1/regions/{region_id}/hardware-rules",
    with_scope("operator"),
    RegionAnswer,
    problems=[FleetReason.REGION_UNKNOWN, PartiesReason.UNKNOWN_MODE],
)
def set_region_hardware(
    region_id: RegionInPath, body: HardwareRulesRequest, call: Caller
) -> Response:
    """Sets the hardware rules of a region (C-11 to C-18).
    Present nodes are judged again when they next send their inventory.
    """
    stream = region_stream(region_id)
    command = SetRegionHardware(
        region_id=region_id, rules=tuple(body.rules), by=call.principal.member_id, at_us=call.now_us
    )
    return call.record(lambda: command, lambda after: _region_of(region_id, after.state(stream)))


def _region_of(region_id: str, state: RegionState) -> RegionAnswer:
    opened: Any = state.opened
    return RegionAnswer(
        region_id=region_id,
        provider_id=opened.provider_id,
        name=opened.name,
        storage_mode=opened.storage_mode,
        setting=opened.setting,
        admission=opened.admission,
        allow_public_jobs=state.allow_public_jobs,
        refused_workloads=list(state.refused_workloads),
        down_ranked_workloads=list(state.down_ranked_workloads),
        security_tier=state.security_tier,
        hardware_rules=list(state.hardware_rules),
        cloud_region=opened.cloud_region,
        site=opened.site,
        opened_at=moment(opened.at_us),
    )


def _words(words: list[str] | None) -> tuple[str, ...] | None:
    return None if words is None else tuple(words)


@resource.get(
    "/v1/regions/{region_id}/nodes",
    READ,
    page_of(RegionNodeAnswer),
    problems=[FleetReason.REGION_UNKNOWN, "cursor_invalid"],
)
def list_region_nodes(
    region_id: RegionInPath,
    call: Caller,
    order: InOrder,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the nodes of a region in order of joining."""
    place = call.place(cursor, [0], order)
    with call.read(FLEET, USAGE) as view:
        visible_region(call, view.connection, region_id)
        rows = fleet.read_nodes(
            view.connection,
            region_id=region_id,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        heard = fleet.read_last_heard(view.connection, [row.node_id for row in rows])
        return call.page(
            view,
            place,
            rows,
            limit,
            lambda row: [row.position],
            lambda row: _region_node(row, heard[row.node_id], call.now_us),
        )


def visible_region(call: Call, connection: Any, region_id: str) -> fleet.Region:
    found = fleet.read_regions(
        connection, region_id=region_id, account_id=call.principal.only, limit=1
    )
    if not found:
        raise Refused(FleetReason.REGION_UNKNOWN, region_id=region_id)
    return found[0]


def _region(row: fleet.Region, policy: supply.Policy) -> RegionAnswer:
    told: Any = row
    return RegionAnswer(
        region_id=told.region_id,
        provider_id=told.provider_id,
        name=told.name,
        storage_mode=told.storage_mode,
        setting=told.setting,
        admission=told.admission,
        allow_public_jobs=told.allow_public_jobs,
        refused_workloads=policy.refused_workloads,
        down_ranked_workloads=policy.down_ranked_workloads,
        security_tier=policy.security_tier,
        hardware_rules=policy.hardware_rules,
        cloud_region=told.cloud_region,
        site=told.site,
        opened_at=moment(told.at_us),
    )


def _region_node(row: fleet.Node, heard_us: int, now_us: int) -> RegionNodeAnswer:
    return RegionNodeAnswer(
        node_id=row.node_id,
        phase=row.phase,
        state=node_state_of(row, heard_us, now_us),
        quarantined=row.quarantined,
    )
