"""Nodes: confirm, admit, put to work, retire, and what each one is."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import Field

from api.door.auth import everybody, nodes_only, nodes_or_scope, with_scope
from api.door.call import After, Call, Caller, View
from api.door.models import (
    AccountId,
    AccountQuery,
    AnswerModel,
    Count,
    EmptyRequest,
    Hex32,
    KeyId,
    NodeId,
    NodeInPath,
    Position,
    ProviderId,
    ProviderQuery,
    RegionId,
    RegionQuery,
    RequestModel,
    Short,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.fleet.constraints import CapacityClass
from api.fleet.node_signatures import fingerprint
from api.fleet.node_specs import (
    DeviceForm,
    HardwareForm,
    HostForm,
    NodeSpecsRequest,
    facts_of,
    require_driver,
)
from api.fleet.node_state import StateInWord, node_state_of
from api.fleet.providers import HardwareRule
from domain.fleet.condition import Phase
from domain.fleet.growth import growth_stream
from domain.fleet.node import (
    ActivateNode,
    AdmitNode,
    ConfirmNodeKey,
    NodeState,
    ReportSpecs,
    RetireNode,
    StartMaintenance,
    node_stream,
)
from domain.fleet.provider import RegionState, provider_stream, region_stream
from domain.fleet.reasons import FleetReason
from domain.fleet.revenue_share import OwnerShare, SetRevenueShares, revenue_stream
from domain.fleet.verdicts import verdict_of
from domain.hardware.admission import WAIVABLE
from domain.money import PPM
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.regions.administrators import admins_stream
from domain.sites.datastore import advice_of
from projections.fleet import fleet, regions
from projections.fleet.fleet import FLEET
from projections.metering.usage import USAGE
from projections.parties import access
from projections.parties.access import ACCESS
from projections.sites import sites
from projections.sites.sites import SITES

resource = Resource("nodes")

WRITE = with_scope("provider")
READ = with_scope("provider", "operator", "audit:read")
READ_OR_NODE = nodes_or_scope("provider", "operator", "audit:read")


class NodeKeyConfirmationRequest(RequestModel):
    """The key id that the machine shows."""

    key_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]

    model_config = with_examples({"key_id": "0" * 16})


class HardwareVerdictAnswer(AnswerModel):
    """What the rules of hardware say of the node in its region (C-11 to C-18): every rule that does
    not hold, in their order, those among them that are `waived`, and the two verdicts that follow
    from the others. Only nodes that are sellable run jobs of other accounts.
    """

    joinable: bool
    sellable: bool
    failing: list[str]
    waived: list[str]


class NodeStateAnswer(AnswerModel):
    node_id: NodeId
    phase: Phase
    quarantined: bool
    verdict: HardwareVerdictAnswer | None = None
    position: Position | None = None


class NodeAdmissionRequest(RequestModel):
    """`waive`: hardware rules that this node need not meet, set by the operator. Absent: earlier
    waivers stay.
    """

    waive: Annotated[list[HardwareRule], Field(max_length=len(WAIVABLE))] | None = None

    model_config = with_examples({}, {"waive": ["tpm_2_0"]})


class NodeInventoryAnswer(AnswerModel):
    devices: list[DeviceForm]
    host: HostForm
    hardware: HardwareForm | None = None
    reported_at: Told_at | None = None


class NodeKeyAnswer(AnswerModel):
    """An Ed25519 public key, of the reports from `from_seq` on, up to that of the next key. Before
    it is confirmed, once it is revoked and once it equivocated, nothing it signs is taken; a
    retired node still sends what it had kept.
    """

    key_id: str
    public_key: Hex32
    confirmed_at: Told_at | None = None
    retired_at: Told_at | None = None
    equivocated_at: Told_at | None = None
    revoked_at: Told_at | None = None
    from_seq: Count = 1


class NodeKeysAnswer(AnswerModel):
    """Every key of a node."""

    node_id: NodeId
    data: list[NodeKeyAnswer]
    position: Position | None = None


class NodeAnswer(NodeStateAnswer):
    """`state`: the phase and the last heartbeat in one word; a node at work that was not heard for
    five minutes is offline. `error`: the last one told. `agent`: version of its reporter, as last
    reported. `advice`: for the file servers of its region; it stops nothing. `revoked`: its owner
    revoked its key, and the server rejects its reports. `client_id`: the compute client that it
    joined through.
    """

    state: StateInWord
    lifetime: Literal["permanent", "ephemeral"]
    minion_id: str | None = None
    error: str | None = None
    heard_at: Told_at
    revoked: bool = False
    capacity_class: CapacityClass
    advice: list[str] | None = None
    provider_id: ProviderId
    account_id: AccountId
    region_id: RegionId
    client_id: AccountId | None = None
    agent: Short
    key_id: KeyId
    fingerprint: str
    joined_at: Told_at
    phase_at: Told_at
    specs: NodeInventoryAnswer | None = None


def own_node(call: Call, node_id: str) -> NodeState:
    """The node, if its provider is the caller's. Raises Refused: NODE_UNKNOWN."""
    market = call.service.ledger.market
    state = market.state_of(node_stream(node_id))
    if state.joined is not None:
        provider = market.state_of(provider_stream(state.joined.provider_id))
        if call.principal.owns(provider.account_id):
            return state
    raise Refused(FleetReason.NODE_UNKNOWN, node_id=node_id)


def managed_node(call: Call, node_id: str) -> NodeState:
    """The node, if its provider is the caller's or the caller administers its region.

    Raises Refused: NODE_UNKNOWN.
    """
    market = call.service.ledger.market
    state = market.state_of(node_stream(node_id))
    if state.joined is not None:
        admins = market.state_of(admins_stream(state.joined.region_id)).account_ids
        if any(call.principal.owns(one) for one in admins):
            return state
    return own_node(call, node_id)


def owned_machine(call: Call, node_id: str) -> NodeState:
    """The node, if the machine is the caller's: it earns most of what the node earns, or joined it
    and nobody shares yet; or if the caller manages the node.

    Raises Refused: NODE_UNKNOWN.
    """
    market = call.service.ledger.market
    state = market.state_of(node_stream(node_id))
    if state.joined is not None:
        revenue = market.state_of(revenue_stream(node_id))
        most = [one.account_id for one in revenue.shares if one.share_ppm * 2 > PPM]
        joined = () if revenue.versions else (state.joined.owner_account_id or "",)
        if any(call.principal.owns(one) for one in (*most, *joined)):
            return state
    return managed_node(call, node_id)


def node_state(node_id: str) -> Any:
    def told(after: After) -> AnswerModel:
        state = after.state(node_stream(node_id))
        phase: Any = state.phase
        assert state.joined is not None
        return NodeStateAnswer(
            node_id=node_id,
            phase=phase,
            quarantined=state.is_quarantined,
            verdict=_verdict(state, after.state(region_stream(state.joined.region_id))),
        )

    return told


def _verdict(node: NodeState, region: RegionState) -> HardwareVerdictAnswer | None:
    if node.specs is None:
        return None
    verdict = verdict_of(node.specs, region, node.waived)
    return HardwareVerdictAnswer(
        joinable=verdict.joinable,
        sellable=verdict.sellable,
        failing=list(verdict.failing),
        waived=list(verdict.waived),
    )


@resource.post(
    "/v1/nodes/{node_id}/confirm",
    WRITE,
    NodeStateAnswer,
    problems=[FleetReason.NODE_UNKNOWN, FleetReason.NODE_STATE, FleetReason.NODE_KEY_MISMATCH],
)
def confirm_node(node_id: NodeInPath, body: NodeKeyConfirmationRequest, call: Caller) -> Response:
    """Confirms a node: the owner has compared the key with the one the machine shows."""

    def commands() -> ConfirmNodeKey:
        owned_machine(call, node_id)
        return ConfirmNodeKey(
            node_id=node_id, key_id=body.key_id, by=call.principal.member_id, at_us=call.now_us
        )

    return call.record(commands, node_state(node_id))


@resource.post(
    "/v1/nodes/{node_id}/admit",
    with_scope("operator", "provider"),
    NodeStateAnswer,
    problems=[
        FleetReason.NODE_UNKNOWN,
        FleetReason.NODE_STATE,
        FleetReason.NODE_SPECS_MISSING,
        FleetReason.NODE_NOT_JOINABLE,
        FleetReason.DEVICE_ELSEWHERE,
        FleetReason.REGION_PHASE,
        FleetReason.REGION_FULL,
        FleetReason.REGION_MIX,
        PartiesReason.NOT_PERMITTED,
    ],
)
def admit_node(node_id: NodeInPath, body: NodeAdmissionRequest, call: Caller) -> Response:
    """Admits a confirmed node, by the operator or, in a permissionless region, by its owner.
    A node that fails hardware rules of its region is refused with every rule it fails.
    """

    def commands() -> list[Any]:
        if not call.principal.is_operator:
            if body.waive is not None:
                raise Refused(
                    PartiesReason.NOT_PERMITTED, rule="the operator waives rules of hardware"
                )
            _require_admits(call, node_id)
        admission = AdmitNode(
            node_id=node_id,
            by=call.principal.member_id,
            at_us=call.now_us,
            waived=None if body.waive is None else tuple(body.waive),
            by_owner=not call.principal.is_operator,
        )
        return [admission, *_owner_of(call, node_id)]

    return call.record(commands, node_state(node_id))


def _require_admits(call: Call, node_id: str) -> None:
    """Administrators of a region let nodes in; the owner does where everybody may join.

    Raises Refused: NODE_UNKNOWN, NOT_PERMITTED.
    """
    joined = owned_machine(call, node_id).joined
    assert joined is not None
    market = call.service.ledger.market
    region = market.state_of(region_stream(joined.region_id))
    admins = market.state_of(admins_stream(joined.region_id)).account_ids
    is_open = region.opened is not None and region.opened.admission == "permissionless"
    if not is_open and not any(call.principal.owns(one) for one in admins):
        raise Refused(PartiesReason.NOT_PERMITTED, region_id=joined.region_id)


def _owner_of(call: Call, node_id: str) -> list[SetRevenueShares]:
    """A machine that somebody else joined by a check-in is its owner's: by the part that the terms
    of its region promise, from its first admission on.
    """
    market = call.service.ledger.market
    joined = market.state_of(node_stream(node_id)).joined
    if joined is None or joined.owner_account_id is None:
        return []
    provider = market.state_of(provider_stream(joined.provider_id))
    part = market.state_of(growth_stream(joined.region_id)).asked.owner_share_ppm
    is_shared = bool(market.state_of(revenue_stream(node_id)).versions)
    if is_shared or not part or provider.account_id == joined.owner_account_id:
        return []
    return [
        SetRevenueShares(
            node_id=node_id,
            account_id=provider.account_id,
            shares=(OwnerShare(joined.owner_account_id, part),),
            by=call.principal.member_id,
            at_us=call.now_us,
        )
    ]


def may_run(call: Call, node_id: str) -> None:
    """The operator, the node's provider and administrators, and whose machine it is."""
    if not call.principal.is_operator:
        owned_machine(call, node_id)


def may_manage(call: Call, node_id: str) -> None:
    """As `may_run`, without the owner of the machine: what its place in the region is."""
    if not call.principal.is_operator:
        managed_node(call, node_id)


@resource.post(
    "/v1/nodes/{node_id}/activate",
    with_scope("operator", "provider"),
    NodeStateAnswer,
    problems=[FleetReason.NODE_UNKNOWN, FleetReason.NODE_STATE],
)
def activate_node(node_id: NodeInPath, body: EmptyRequest, call: Caller) -> Response:
    """Activates a node. It takes new leases from now on."""
    del body

    def commands() -> ActivateNode:
        may_run(call, node_id)
        return ActivateNode(node_id=node_id, by=call.principal.member_id, at_us=call.now_us)

    return call.record(commands, node_state(node_id))


@resource.post(
    "/v1/nodes/{node_id}/maintenance",
    with_scope("operator", "provider"),
    NodeStateAnswer,
    problems=[FleetReason.NODE_UNKNOWN, FleetReason.NODE_STATE],
)
def start_maintenance(node_id: NodeInPath, body: EmptyRequest, call: Caller) -> Response:
    """Starts maintenance. The node takes no new leases; running ones go on."""
    del body

    def commands() -> StartMaintenance:
        may_run(call, node_id)
        return StartMaintenance(node_id=node_id, by=call.principal.member_id, at_us=call.now_us)

    return call.record(commands, node_state(node_id))


@resource.post(
    "/v1/nodes/{node_id}/retire",
    WRITE,
    NodeStateAnswer,
    problems=[FleetReason.NODE_UNKNOWN, FleetReason.NODE_BUSY],
)
def retire_node(node_id: NodeInPath, body: EmptyRequest, call: Caller) -> Response:
    """Retires a node for good, with its devices."""
    del body

    def commands() -> RetireNode:
        owned_machine(call, node_id)
        return RetireNode(node_id=node_id, by=call.principal.member_id, at_us=call.now_us)

    return call.record(commands, node_state(node_id))


@resource.post(
    "/v1/nodes/{node_id}/specs",
    nodes_only(),
    NodeStateAnswer,
    problems=[FleetReason.NODE_UNKNOWN, FleetReason.NODE_STATE, FleetReason.NODE_NOT_JOINABLE],
)
def report_specs(node_id: NodeInPath, body: NodeSpecsRequest, call: Caller) -> Response:
    """Records a new inventory, sent by the node. New devices count after the next admission."""

    def commands() -> ReportSpecs:
        if not call.node_of_caller(node_id):
            raise Refused(FleetReason.NODE_UNKNOWN, node_id=node_id)
        require_driver(call, body.host.driver)
        return ReportSpecs(
            node_id=node_id,
            devices=tuple(device.spec() for device in body.devices),
            host=body.host.spec(),
            hardware=facts_of(body.hardware),
            agent=body.agent,
            at_us=call.now_us,
        )

    return call.record(commands, node_state(node_id))


# --- reading ---------------------------------------------------------------------------------


@resource.get("/v1/nodes", READ, page_of(NodeAnswer), problems=["cursor_invalid"])
def list_nodes(
    call: Caller,
    order: InOrder,
    provider_id: ProviderQuery = None,
    region_id: RegionQuery = None,
    account_id: AccountQuery = None,
    phase: Phase | None = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists nodes in order of joining: your own, or all for operators and auditors."""
    place = call.place(cursor, [0], order)
    with call.read(FLEET, USAGE) as view:
        rows = fleet.read_nodes(
            view.connection,
            provider_id=provider_id,
            region_id=region_id,
            account_id=call.principal.among(account_id),
            phase=phase,
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
            lambda row: _node(row, heard[row.node_id], call.now_us),
        )


@resource.get("/v1/nodes/{node_id}", READ_OR_NODE, NodeAnswer, problems=[FleetReason.NODE_UNKNOWN])
def read_node(node_id: NodeInPath, call: Caller) -> Response:
    """Returns a node."""
    with call.read(FLEET, USAGE, SITES) as view:
        found = visible_node(call, view, node_id)
        heard = fleet.read_last_heard(view.connection, [node_id])
        told = _node(found, heard[node_id], call.now_us)
        stores = sites.read_datastores(view.connection, region_id=told.region_id)
        advice = dict.fromkeys(one for store in stores for one in advice_of(store.kind))
        market = call.service.ledger.market
        node = market.state_of(node_stream(node_id))
        region = market.state_of(region_stream(told.region_id))
        more = {"verdict": _verdict(node, region), "advice": list(advice) or None}
        return call.answer(view, told.model_copy(update=more))


@resource.get(
    "/v1/nodes/{node_id}/keys", everybody(), NodeKeysAnswer, problems=[FleetReason.NODE_UNKNOWN]
)
def list_node_keys(node_id: NodeInPath, call: Caller) -> Response:
    """Lists the public keys that a node signs its reports with. Anyone may check them."""
    with call.read(ACCESS) as view:
        keys = access.read_node_keys(view.connection, node_id)
        if not keys:
            raise Refused(FleetReason.NODE_UNKNOWN, node_id=node_id)
        told = [
            NodeKeyAnswer(
                key_id=key.key_id,
                public_key=key.public_key,
                confirmed_at=moment_or_none(key.confirmed_at_us),
                retired_at=moment_or_none(key.retired_at_us),
                equivocated_at=moment_or_none(key.equivocated_at_us),
                revoked_at=moment_or_none(key.revoked_at_us),
                from_seq=key.from_seq,
            )
            for key in keys
        ]
        return call.answer(view, NodeKeysAnswer(node_id=node_id, data=told))


def visible_node(
    call: Call, view: View, node_id: str, *, to_renters: bool = False, to_owners: bool = True
) -> fleet.Node:
    """The node, for its provider, its owners, the administrators of its region, itself and whoever
    sees all; `to_renters`: for everybody with a key; without `to_owners` not for
    owners and administrators, who need not know whose work runs there.

    Raises Refused: NODE_UNKNOWN.
    """
    found = fleet.read_node(view.connection, node_id)
    allowed = to_renters or call.node_of_caller(node_id) or call.executor_of_caller(node_id)
    allowed = allowed or (found is not None and call.principal.may_see(found.account_id))
    if not allowed and to_owners and found is not None:
        allowed = regions.sees_node(view.connection, node_id, call.principal.account_id)
    if found is None or not allowed:
        raise Refused(FleetReason.NODE_UNKNOWN, node_id=node_id)
    return found


def _node(row: fleet.Node, heard_us: int, now_us: int) -> NodeAnswer:
    phase: Any = row.phase
    capacity: Any = row.capacity_class
    lifetime: Any = row.lifetime
    return NodeAnswer(
        state=node_state_of(row, heard_us, now_us),
        lifetime=lifetime,
        minion_id=row.minion_id,
        error=row.error,
        heard_at=moment(heard_us),
        node_id=row.node_id,
        phase=phase,
        quarantined=row.quarantined,
        revoked=row.revoked,
        capacity_class=capacity,
        provider_id=row.provider_id,
        account_id=row.account_id,
        region_id=row.region_id,
        client_id=row.client_id,
        agent=row.agent,
        key_id=row.key_id,
        fingerprint=fingerprint(row.public_key),
        joined_at=moment(row.at_us),
        phase_at=moment(row.phase_at_us),
        specs=_specs(row),
    )


def _specs(row: fleet.Node) -> NodeInventoryAnswer | None:
    if row.specs is None:
        return None
    return NodeInventoryAnswer(
        devices=[DeviceForm(**device) for device in row.specs["devices"]],
        host=HostForm(**row.specs["host"]),
        hardware=_hardware(row.specs.get("hardware")),
        reported_at=moment_or_none(row.specs_at_us),
    )


def _hardware(told: dict[str, Any] | None) -> HardwareForm | None:
    return None if told is None else HardwareForm(**told)


# --- assignments -----------------------------------------------------------------------------
