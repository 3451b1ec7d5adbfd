"""Nodes: machines of other people, and how they come to be trusted with leases.

    joining --NodeKeyConfirmed--> confirmed --NodeAdmitted--> maintenance <--> active --> retired
    confirmed --NodeAdmitted + NodeProvisioningStarted--> provisioning --> maintenance
    maintenance, active --NodeDrainStarted--> draining --> active, maintenance, retired

Two people let a node in: its owner compares the key's fingerprint, the operator (or a
permissionless region's policy) admits it. In a region that admits by the whole procedure the node
is provisioned before it is in maintenance (`domain/machines/admission.py`); what else happens to it
is in `domain/fleet/condition.py`. Its devices become streams of their own on admission.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from domain.fleet.condition import (
    EPHEMERAL,
    LIFETIMES,
    PERMANENT,
    Condition,
    IdleMiningSet,
    JoinTermsStated,
    NodeErrored,
    NodeFailed,
    NodeProvisioned,
    NodeProvisioningStarted,
    NodeSetupStated,
    NodeStopped,
    NodeTermsStated,
    evolve_condition,
    phase_after,
)
from domain.fleet.device import (
    DeviceRegistered,
    DeviceRetired,
    DeviceState,
    device_of,
    device_stream,
)
from domain.fleet.growth import (
    WORKER,
    Member,
    growth_of,
    leaving_changes,
    member_changes,
    require_company,
    require_joinable,
)
from domain.fleet.keys import NodeBootsAlternated, NodeKeyRevoked, NodeKeyRotated, NodeOldKeyRevoked
from domain.fleet.kinds import GPU, SEAT, class_in_force, kind_in_force
from domain.fleet.licence import licence_of, seat_of
from domain.fleet.pooling import PoolNodeAdded, PoolNodeRemoved
from domain.fleet.provider import APPROVED, existing_provider, existing_region, region_of
from domain.fleet.reasons import FleetReason
from domain.fleet.storage_node import require_storage, serving, serving_no_more
from domain.fleet.verdicts import NodeHardwareJudged, judged, verdict_of
from domain.frozen import replace
from domain.hardware.admission import Verdict
from domain.hardware.constraints import ON_DEMAND
from domain.hardware.facts import HardwareFacts
from domain.money import Asset
from domain.parties.client import require_active
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """One accelerator as its node describes it."""

    device_id: str  # hardware UUID
    vendor: str
    model: str
    memory_mib: int
    connection: str = "pcie"  # or "sxm", or "soc": on one chip with the host
    pcie_gen: int | None = None
    pcie_lanes: int | None = None
    kind: str | None = None  # absent: a GPU
    memory: str | None = None  # "unified": the host's own; absent: as the registry of kinds says


@dataclass(frozen=True, slots=True)
class HostSpec:
    """The machine around the accelerators. Unknown is None, never 0."""

    arch: str
    os: str
    cpu_cores: int | None = None
    ram_mib: int | None = None
    driver: str | None = None
    kernel: str | None = None  # its release, as the machine tells it
    substrate: tuple[str, ...] | None = None  # what it runs on, the lowest layer first


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinCodeIssued:
    """Stream `join:{code_sha256}`: single use, short life."""

    code_sha256: str
    provider_id: str
    region_id: str
    expires_at_us: int
    owner_account_id: str | None  # of the machine; None: the provider's own
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinCodeUsed:
    code_sha256: str
    node_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeJoinRequested:
    """Stream `node:{node_id}`."""

    node_id: str
    provider_id: str
    region_id: str
    client_id: str | None
    owner_account_id: str | None  # of the machine; None: the provider's own
    key_id: str
    public_key: str  # hex, Ed25519
    token_sha256: str  # bearer token bound to this node, for its calls other than usage
    agent: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpecReported:
    node_id: str
    devices: tuple[DeviceSpec, ...]
    host: HostSpec
    at_us: int
    hardware: HardwareFacts | None
    agent: str  # version of its reporter


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKeyConfirmed:
    node_id: str
    key_id: str
    public_key: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAdmitted:
    node_id: str
    by: str
    at_us: int
    waived: tuple[str, ...]  # rules of hardware that do not stop this node


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeActivated:
    node_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMaintenanceStarted:
    node_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpecConfirmed:
    """The same inventory as before, told again: what is known of the node is fresh (R-19)."""

    node_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDrainStarted:
    """No new leases; those with a window are reclaimed in the same append, unless kept."""

    node_id: str
    keep_leases: bool
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRoleSet:
    """What the node is for: the latest counts."""

    node_id: str
    role: str  # ROLES of `domain/fleet/growth.py`
    address: str | None  # host:port of an ingress, for whoever is reached through it
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCapacityClassSet:
    """How its machine is held (domain/cloud/capacity.py); the latest counts."""

    node_id: str
    capacity_class: str  # CAPACITY_CLASSES
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRetired:
    node_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEquivocated:
    """The node signed two bodies under one sequence number; both are kept as evidence."""

    node_id: str
    lane: int
    node_seq: int
    first_leaf: str
    second_leaf: str
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueJoinCode:
    """`minion_id`: of the machine that was installed for this node (`domain/machines`)."""

    code_sha256: str
    provider_id: str
    region_id: str
    by: str
    at_us: int
    lifetime: str = PERMANENT
    minion_id: str | None = None
    owner_account_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinNode:
    code_sha256: str
    node_id: str
    key_id: str
    public_key: str
    token_sha256: str
    agent: str
    client_id: str | None
    devices: tuple[DeviceSpec, ...]
    host: HostSpec
    at_us: int
    hardware: HardwareFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSpecs:
    node_id: str
    devices: tuple[DeviceSpec, ...]
    host: HostSpec
    at_us: int
    hardware: HardwareFacts | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmNodeKey:
    """The owner has compared the key's fingerprint with the one the machine shows."""

    node_id: str
    key_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitNode:
    """`waived`: rules of hardware that this node need not meet; None: as it was. `by_owner`: in a
    region that is open to everybody, where nobody else looks at it.
    """

    node_id: str
    by: str
    at_us: int
    waived: tuple[str, ...] | None = None
    by_owner: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivateNode:
    node_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartMaintenance:
    node_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireNode:
    node_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEquivocation:
    node_id: str
    lane: int
    node_seq: int
    first_leaf: str
    second_leaf: str
    at_us: int


JOIN_CODE_LIFE_US = 600_000_000
"""Ten minutes."""
SPEC_CONFIRM_US = 240_000_000
"""An inventory that is the same is recorded again after this, and not for every call."""

NO_RULE_FAILS = Verdict()
AT_WORK = ("maintenance", "active", "draining")
OUT_OF_ORDER = ("stopped", "errored", "failed")

# State.


@dataclass(frozen=True, slots=True)
class JoinCodeState:
    issued: JoinCodeIssued | None = None
    node_id: str | None = None  # who used it
    terms: JoinTermsStated | None = None


@dataclass(frozen=True, slots=True)
class NodeState:
    joined: NodeJoinRequested | None = None
    phase: str = ""  # "" or PHASES
    is_quarantined: bool = False
    specs: NodeSpecReported | None = None  # the latest
    device_ids: tuple[str, ...] = ()  # every device that was ever admitted here
    specs_at_us: int = 0  # when they were last told, the same or others
    pool_id: str | None = None  # the one pool it is in
    waived: tuple[str, ...] = ()  # rules of hardware
    verdict: Verdict = NO_RULE_FAILS  # as last judged
    key_ids: tuple[str, ...] = ()  # of every key it ever signed with, the present one last
    public_key: str = ""  # the present one, hex
    rotated: NodeKeyRotated | None = None  # the latest
    is_revoked: bool = False  # then it is in quarantine too
    old_revoked: tuple[str, ...] = ()  # keys taken back after another had replaced them
    agent: str = ""  # version of its reporter, as last told
    capacity_class: str = ON_DEMAND
    condition: Condition = field(default_factory=Condition)
    role_told: NodeRoleSet | None = None  # the latest

    @property
    def role(self) -> str:
        """What it is for; a node of which nobody said anything is a worker."""
        return WORKER if self.role_told is None else self.role_told.role

    @property
    def key_id(self) -> str:
        """Of the key it signs with now."""
        return self.key_ids[-1] if self.key_ids else ""

    @property
    def exists(self) -> bool:
        return self.joined is not None

    @property
    def is_admitted(self) -> bool:
        return self.phase in (*AT_WORK, "provisioning", *OUT_OF_ORDER)

    @property
    def is_at_work(self) -> bool:
        """Whether it may take leases now, or once its provider activates it."""
        return self.phase in AT_WORK

    @property
    def is_matchable(self) -> bool:
        """Whether new leases may go there: none to nodes that control or are an ingress."""
        return self.phase == "active" and not self.is_quarantined and self.role == WORKER

    @property
    def accepts_usage(self) -> bool:
        """Whether its signed reports are taken. A retired node still empties its spool."""
        return self.phase not in ("", "joining") and not self.is_quarantined


NodeFact: TypeAlias = (
    NodeJoinRequested
    | NodeSpecReported
    | NodeKeyConfirmed
    | NodeAdmitted
    | NodeActivated
    | NodeMaintenanceStarted
    | NodeSpecConfirmed
    | NodeDrainStarted
    | NodeRoleSet
    | NodeRetired
    | NodeCapacityClassSet
    | NodeEquivocated
    | NodeHardwareJudged
    | NodeKeyRotated
    | NodeKeyRevoked
    | NodeOldKeyRevoked
    | NodeBootsAlternated
    | PoolNodeAdded
    | PoolNodeRemoved
    | NodeTermsStated
    | NodeProvisioningStarted
    | NodeProvisioned
    | NodeStopped
    | NodeErrored
    | NodeFailed
    | NodeSetupStated
    | IdleMiningSet
)


JoinCodeFact: TypeAlias = JoinCodeIssued | JoinTermsStated | JoinCodeUsed


def evolve_join_code(state: JoinCodeState, fact: JoinCodeFact) -> JoinCodeState:
    match fact:
        case JoinCodeIssued():
            return JoinCodeState(fact)
        case JoinTermsStated():
            return replace(state, terms=fact)
        case JoinCodeUsed():
            return replace(state, node_id=fact.node_id)
        case _:
            assert_never(fact)


def evolve(state: NodeState, fact: NodeFact) -> NodeState:
    match fact:
        case NodeJoinRequested():
            return replace(
                state,
                joined=fact,
                phase="joining",
                key_ids=(fact.key_id,),
                public_key=fact.public_key,
                agent=fact.agent,
            )
        case NodeSpecReported():
            return replace(state, specs=fact, specs_at_us=fact.at_us, agent=fact.agent)
        case NodeSpecConfirmed():
            return replace(state, specs_at_us=fact.at_us)
        case NodeKeyConfirmed():
            return replace(state, phase="confirmed")
        case NodeAdmitted():
            assert state.specs is not None
            ids = (*state.device_ids, *(device.device_id for device in state.specs.devices))
            phase = state.phase if state.is_admitted else "maintenance"
            return replace(
                state, phase=phase, device_ids=tuple(dict.fromkeys(ids)), waived=fact.waived
            )
        case NodeActivated():
            return replace(state, phase="active")
        case NodeMaintenanceStarted():
            return replace(state, phase="maintenance")
        case NodeDrainStarted():
            return replace(state, phase="draining")
        case NodeRoleSet():
            return replace(state, role_told=fact)
        case NodeRetired():
            return replace(state, phase="retired")
        case NodeCapacityClassSet():
            return replace(state, capacity_class=fact.capacity_class)
        case NodeEquivocated() | NodeBootsAlternated():
            return replace(state, is_quarantined=True)
        case NodeHardwareJudged():
            return replace(state, verdict=Verdict(fact.failing, fact.waived))
        case NodeKeyRotated() | NodeKeyRevoked() | NodeOldKeyRevoked():
            return _key_changed(state, fact)
        case PoolNodeAdded():
            return replace(state, pool_id=fact.pool_id)
        case PoolNodeRemoved():
            return replace(state, pool_id=None)
        case (
            NodeTermsStated()
            | NodeProvisioningStarted()
            | NodeProvisioned()
            | NodeStopped()
            | NodeErrored()
            | NodeFailed()
            | NodeSetupStated()
            | IdleMiningSet()
        ):
            condition = evolve_condition(state.condition, fact)
            return replace(state, phase=phase_after(state.phase, fact), condition=condition)
        case _:
            assert_never(fact)


def _key_changed(
    state: NodeState, fact: NodeKeyRotated | NodeKeyRevoked | NodeOldKeyRevoked
) -> NodeState:
    match fact:
        case NodeKeyRotated():
            key_ids = (*state.key_ids, fact.key_id)
            return replace(state, rotated=fact, key_ids=key_ids, public_key=fact.public_key)
        case NodeKeyRevoked():
            return replace(state, is_quarantined=True, is_revoked=True)
        case NodeOldKeyRevoked():
            return replace(state, old_revoked=(*state.old_revoked, fact.key_id))
        case _:
            assert_never(fact)


# Decisions.


def node_stream(node_id: str) -> Stream[NodeState]:
    return Stream("node", node_id)


def node_of(world: World, node_id: str) -> NodeState:
    return world.state(node_stream(node_id))


def existing_node(world: World, node_id: str) -> NodeState:
    """Raises Refused: NODE_UNKNOWN."""
    state = node_of(world, node_id)
    if not state.exists:
        raise Refused(FleetReason.NODE_UNKNOWN, node_id=node_id)
    return state


def join_stream(code_sha256: str) -> Stream[JoinCodeState]:
    return Stream("join", code_sha256)


def join_code_of(world: World, code_sha256: str) -> JoinCodeState:
    return world.state(join_stream(code_sha256))


def is_listed_once(devices: tuple[DeviceSpec, ...]) -> bool:
    """Whether the inventory names every device once."""
    return len({device.device_id for device in devices}) == len(devices)


def decide_issue_code(command: IssueJoinCode, world: World) -> list[Change]:
    """A code for one machine. A region that admits by the whole procedure asks for its steps first,
    and a lifetime is permanent or ephemeral.

    Raises Refused: PROVIDER_UNKNOWN, REGION_UNKNOWN, ADMISSION_STATE, UNKNOWN_MODE, JOIN_CODE_USED,
    STORAGE_NODE_STATE.
    """
    existing_provider(world, command.provider_id)
    region = existing_region(world, command.region_id)
    if region.provider_id != command.provider_id:
        raise Refused(FleetReason.REGION_UNKNOWN, region_id=command.region_id)
    if region.admission == APPROVED and command.minion_id is None:
        raise Refused(FleetReason.ADMISSION_STATE, region_id=command.region_id)
    if command.lifetime not in LIFETIMES:
        raise Refused(PartiesReason.UNKNOWN_MODE, lifetime=command.lifetime)
    if join_code_of(world, command.code_sha256).issued is not None:
        raise Refused(FleetReason.JOIN_CODE_USED)
    require_storage(world, command.region_id)
    require_joinable(world, command.region_id)
    issued = JoinCodeIssued(
        code_sha256=command.code_sha256,
        provider_id=command.provider_id,
        region_id=command.region_id,
        expires_at_us=command.at_us + JOIN_CODE_LIFE_US,
        owner_account_id=command.owner_account_id,
        by=command.by,
        at_us=command.at_us,
    )
    stream = join_stream(command.code_sha256)
    if command.lifetime == PERMANENT and command.minion_id is None:
        return [Change(stream, issued)]
    terms = JoinTermsStated(
        code_sha256=command.code_sha256,
        lifetime=command.lifetime,
        minion_id=command.minion_id,
        at_us=command.at_us,
    )
    return [Change(stream, issued), Change(stream, terms)]


def decide_join(command: JoinNode, world: World) -> list[Change]:
    """The code names provider and region; the node brings its key and its inventory. A node that
    lost the answer may ask again with the same code, key and token. The client that it names as the
    one that it came through is registered, and not suspended (R-18).

    Raises Refused: JOIN_CODE_UNKNOWN, JOIN_CODE_USED, JOIN_CODE_EXPIRED, NODE_EXISTS,
    CLIENT_UNKNOWN, CLIENT_NOT_AUTHORISED, and those of an inventory.
    """
    code = join_code_of(world, command.code_sha256)
    if code.issued is None:
        raise Refused(FleetReason.JOIN_CODE_UNKNOWN)
    present = node_of(world, command.node_id).joined
    joined = NodeJoinRequested(
        node_id=command.node_id,
        provider_id=code.issued.provider_id,
        region_id=code.issued.region_id,
        client_id=command.client_id,
        owner_account_id=code.issued.owner_account_id,
        key_id=command.key_id,
        public_key=command.public_key,
        token_sha256=command.token_sha256,
        agent=command.agent,
        at_us=command.at_us,
    )
    if code.node_id is not None:
        if present is not None and replace(joined, at_us=present.at_us) == present:
            return []
        raise Refused(FleetReason.JOIN_CODE_USED)
    if command.at_us >= code.issued.expires_at_us:
        raise Refused(FleetReason.JOIN_CODE_EXPIRED, expires_at_us=code.issued.expires_at_us)
    if present is not None:
        raise Refused(FleetReason.NODE_EXISTS, node_id=command.node_id)
    if command.client_id is not None:
        require_active(world, command.client_id)
    region_id = code.issued.region_id
    require_joinable(world, region_id)
    models, has_seats = _sort_of(command.devices)
    require_company(
        world, region_id, Member(command.node_id, WORKER, None, models, has_seats=has_seats)
    )
    used = JoinCodeUsed(
        code_sha256=command.code_sha256, node_id=command.node_id, at_us=command.at_us
    )
    return [
        Change(join_stream(command.code_sha256), used),
        _on(command.node_id, joined),
        *_terms(command, code),
        *_described(
            command, code.issued.region_id, NodeState(), world, _specs(command, command.agent)
        ),
    ]


def _terms(command: JoinNode, code: JoinCodeState) -> list[Change]:
    """What the code said of the node that uses it."""
    if code.terms is None:
        return []
    stated = NodeTermsStated(
        node_id=command.node_id,
        lifetime=code.terms.lifetime,
        minion_id=code.terms.minion_id,
        at_us=command.at_us,
    )
    return [_on(command.node_id, stated)]


def decide_specs(command: ReportSpecs, world: World) -> list[Change]:
    """A new inventory. Devices it adds can be leased after the node is admitted again. The first
    one after the admission shows that the node is provisioned.
    """
    state = existing_node(world, command.node_id)
    assert state.joined is not None
    if state.phase == "retired" or state.is_revoked:
        raise Refused(FleetReason.NODE_STATE, node_id=command.node_id, phase=_told(state))
    reported = _specs(command, command.agent or state.agent)
    if state.phase == "provisioning":
        ready = NodeProvisioned(node_id=command.node_id, at_us=command.at_us)
        region_id = state.joined.region_id
        described = _described(command, region_id, state, world, reported)
        return [*described, _on(command.node_id, ready)]
    is_same_agent = reported.agent == state.agent
    if is_same_agent and state.specs is not None and _is_same(reported, state.specs):
        if command.at_us < state.specs_at_us + SPEC_CONFIRM_US:
            return []
        again = NodeSpecConfirmed(node_id=command.node_id, at_us=command.at_us)
        region_id = state.joined.region_id
        return [_on(command.node_id, again), *_judged(command, state, region_id, reported, world)]
    return _described(command, state.joined.region_id, state, world, reported)


def decide_confirm_key(command: ConfirmNodeKey, world: World) -> list[Change]:
    state = existing_node(world, command.node_id)
    assert state.joined is not None
    if state.phase == "retired":
        raise Refused(FleetReason.NODE_STATE, node_id=command.node_id, phase=state.phase)
    if command.key_id != state.joined.key_id:
        raise Refused(FleetReason.NODE_KEY_MISMATCH, key_id=command.key_id)
    if state.phase != "joining":
        return []
    confirmed = NodeKeyConfirmed(
        node_id=command.node_id,
        key_id=command.key_id,
        public_key=state.joined.public_key,
        by=command.by,
        at_us=command.at_us,
    )
    return [_on(command.node_id, confirmed)]


def decide_admit(command: AdmitNode, world: World) -> list[Change]:
    """Let a confirmed node in and give each of its devices a stream. Admitting again follows a
    changed inventory: added devices come in, missing ones that nobody holds go, and a model that
    the registry of classes has learned to price since gets its class.
    """
    state = existing_node(world, command.node_id)
    if not (state.phase == "confirmed" or state.is_admitted) or state.is_quarantined:
        raise Refused(FleetReason.NODE_STATE, node_id=command.node_id, phase=_told(state))
    if state.specs is None:
        raise Refused(FleetReason.NODE_SPECS_MISSING, node_id=command.node_id)
    assert state.joined is not None
    waived = state.waived if command.waived is None else command.waived
    verdict = verdict_of(state.specs, region_of(world, state.joined.region_id), waived)
    failing = () if verdict.joinable else verdict.stopping
    if not is_listed_once(state.specs.devices):
        failing = (*failing, "unique_device")
    failing = (*failing, *_unlicensed(command, state, world))
    if failing:
        raise Refused(FleetReason.NODE_NOT_JOINABLE, node_id=command.node_id, failing=failing)
    registered = [
        Change(device_stream(fact.device_id), fact)
        for fact in _registrations(command, state, state.specs, world)
    ]
    listed = {spec.device_id for spec in state.specs.devices}
    gone = [
        _retiring(command, device_id)
        for device_id, device in _own_devices(command.node_id, state, world).items()
        if device_id not in listed and not device.holders
    ]
    told = judged(command.node_id, state.verdict, verdict, command.at_us)
    is_same = waived == state.waived and not told
    joining = _joining(command, state, world)
    if state.is_admitted and not registered and not gone and is_same and not joining:
        return []
    admitted = NodeAdmitted(
        node_id=command.node_id, by=command.by, at_us=command.at_us, waived=waived
    )
    judgements = [_on(command.node_id, fact) for fact in told]
    region_id = state.joined.region_id
    served = serving(world, region_id, command.node_id, command.at_us)
    provisioning: list[Change] = []
    if not state.is_admitted and existing_region(world, region_id).admission == APPROVED:
        started = NodeProvisioningStarted(node_id=command.node_id, at_us=command.at_us)
        provisioning = [_on(command.node_id, started)]
    changes = [_on(command.node_id, admitted), *provisioning, *judgements]
    return [*changes, *joining, *registered, *gone, *served]


def _joining(command: AdmitNode, state: NodeState, world: World) -> list[Change]:
    """The node as a member of its region, at its first admission and with another inventory."""
    assert state.joined is not None
    region_id = state.joined.region_id
    known = growth_of(world, region_id).member(command.node_id)
    ingress = None if known is None else known.ingress_node_id
    return member_changes(
        world,
        region_id,
        member_of(state, state.role, ingress),
        is_new=not state.is_admitted,
        by=command.by,
        at_us=command.at_us,
    )


def member_of(state: NodeState, role: str, ingress_node_id: str | None) -> Member:
    """The node as a member of its region, by its latest inventory."""
    assert state.joined is not None
    models, has_seats = _sort_of(() if state.specs is None else state.specs.devices)
    return Member(state.joined.node_id, role, ingress_node_id, models, has_seats=has_seats)


def _sort_of(devices: tuple[DeviceSpec, ...]) -> tuple[tuple[str, ...], bool]:
    """The models of the accelerators, each once, and whether there are seats of software."""
    models = {device.model for device in devices if device.kind != SEAT}
    return tuple(sorted(models)), any(device.kind == SEAT for device in devices)


def decide_activate(command: ActivateNode, world: World) -> list[Change]:
    state = existing_node(world, command.node_id)
    if not state.is_at_work or state.is_quarantined:
        raise Refused(FleetReason.NODE_STATE, node_id=command.node_id, phase=_told(state))
    if state.phase == "active":
        return []
    activated = NodeActivated(node_id=command.node_id, by=command.by, at_us=command.at_us)
    return [_on(command.node_id, activated)]


def decide_maintenance(command: StartMaintenance, world: World) -> list[Change]:
    """No new leases from now on. Running ones go on: maintenance never breaks a lease. It is also
    the way back of a node that was stopped or in error.
    """
    state = existing_node(world, command.node_id)
    if not state.is_admitted or state.phase == "provisioning":
        raise Refused(FleetReason.NODE_STATE, node_id=command.node_id, phase=_told(state))
    if state.phase == "maintenance":
        return []
    started = NodeMaintenanceStarted(node_id=command.node_id, by=command.by, at_us=command.at_us)
    return [_on(command.node_id, started)]


def decide_retire(command: RetireNode, world: World) -> list[Change]:
    """The node leaves for good, with its devices, which may then join on another node."""
    state = existing_node(world, command.node_id)
    if state.phase == "retired":
        return []
    return _leaving(command, require_idle(command.node_id, state, world), state, world)


def require_idle(node_id: str, state: NodeState, world: World) -> dict[str, DeviceState]:
    """The node's devices, of which nobody holds any. Raises Refused: NODE_BUSY."""
    devices = _own_devices(node_id, state, world)
    for device_id, device in devices.items():
        if device.holders:
            raise Refused(
                FleetReason.NODE_BUSY, device_id=device_id, leases=tuple(sorted(device.holders))
            )
    return devices


def ended_with_its_job(world: World, node_id: str, lease_id: str, at_us: int) -> list[Change]:
    """An ephemeral node is there for its job: it is retired with the last lease on it (C-31). The
    lease itself gives its devices back in the same append, before this.
    """
    state = node_of(world, node_id)
    if state.condition.lifetime != EPHEMERAL or state.phase == "retired":
        return []
    devices = _own_devices(node_id, state, world)
    if any(set(device.holders) - {lease_id} for device in devices.values()):
        return []
    return _leaving(RetireNode(node_id=node_id, by=EPHEMERAL, at_us=at_us), devices, state, world)


def _leaving(
    command: RetireNode, devices: Iterable[str], state: NodeState, world: World
) -> list[Change]:
    """The node and its devices leave, and its region counts it no more."""
    assert state.joined is not None
    region_id, at_us = state.joined.region_id, command.at_us
    retired = NodeRetired(node_id=command.node_id, by=command.by, at_us=at_us)
    gone = [_retiring(command, device_id) for device_id in devices]
    left = leaving_changes(world, region_id, command.node_id, at_us)
    free = serving_no_more(world, region_id, command.node_id, at_us)
    return [_on(command.node_id, retired), *gone, *left, *free]


def decide_equivocation(command: RecordEquivocation, world: World) -> list[Change]:
    """One proof is enough: the node is quarantined, and its reports are refused from now on."""
    if existing_node(world, command.node_id).is_quarantined:
        return []
    equivocated = NodeEquivocated(
        node_id=command.node_id,
        lane=command.lane,
        node_seq=command.node_seq,
        first_leaf=command.first_leaf,
        second_leaf=command.second_leaf,
        at_us=command.at_us,
    )
    return [_on(command.node_id, equivocated)]


def _on(node_id: str, fact: NodeFact) -> Change:
    return Change(node_stream(node_id), fact)


def _specs(command: JoinNode | ReportSpecs, agent: str) -> NodeSpecReported:
    return NodeSpecReported(
        node_id=command.node_id,
        devices=command.devices,
        host=command.host,
        at_us=command.at_us,
        hardware=command.hardware,
        agent=agent,
    )


def _is_same(reported: NodeSpecReported, known: NodeSpecReported) -> bool:
    """Whether both describe one machine, whenever they did and by which reporter."""
    return replace(reported, at_us=known.at_us, agent=known.agent) == known


def _described(
    command: JoinNode | ReportSpecs,
    region_id: str,
    state: NodeState,
    world: World,
    reported: NodeSpecReported,
) -> list[Change]:
    """A new inventory, and its verdicts where they are others than before."""
    changes = [_on(command.node_id, reported)]
    return [*changes, *_judged(command, state, region_id, reported, world)]


def _judged(
    command: JoinNode | ReportSpecs,
    state: NodeState,
    region_id: str,
    specs: NodeSpecReported,
    world: World,
) -> list[Change]:
    verdict = verdict_of(specs, region_of(world, region_id), state.waived)
    told = judged(command.node_id, state.verdict, verdict, command.at_us)
    return [_on(command.node_id, fact) for fact in told]


def _told(state: NodeState) -> str:
    return "quarantined" if state.is_quarantined else state.phase


def _own_devices(node_id: str, state: NodeState, world: World) -> dict[str, DeviceState]:
    """The devices that are registered on this node now, whatever its latest inventory says."""
    devices = {device_id: device_of(world, device_id) for device_id in state.device_ids}
    return {
        device_id: device
        for device_id, device in devices.items()
        if device.is_live and device.node_id == node_id
    }


def _retiring(command: AdmitNode | RetireNode, device_id: str) -> Change:
    fact = DeviceRetired(device_id=device_id, node_id=command.node_id, at_us=command.at_us)
    return Change(device_stream(device_id), fact)


def _registrations(
    command: AdmitNode, state: NodeState, specs: NodeSpecReported, world: World
) -> list[DeviceRegistered]:
    """What is new about the node's devices. A device lives on one node (T1: one UUID, one node).

    An owner lets in no device that another provider had: ids are public once their usage is, and a
    rival could take them in the moment in which a machine leaves to join anew.

    Raises Refused: DEVICE_ELSEWHERE.
    """
    assert state.joined is not None
    facts: list[DeviceRegistered] = []
    for spec in specs.devices:
        present = device_of(world, spec.device_id)
        if present.is_live and present.node_id != command.node_id:
            raise Refused(FleetReason.DEVICE_ELSEWHERE, device_id=spec.device_id)
        before = present.registered
        if command.by_owner and before and before.provider_id != state.joined.provider_id:
            rule = "of another provider before: the operator lets it in"
            raise Refused(FleetReason.DEVICE_ELSEWHERE, device_id=spec.device_id, rule=rule)
        fact = DeviceRegistered(
            device_id=spec.device_id,
            node_id=command.node_id,
            provider_id=state.joined.provider_id,
            vendor=spec.vendor,
            model=spec.model,
            memory_mib=spec.memory_mib,
            at_us=command.at_us,
            **_kind_terms(spec, command.at_us, world),
        )
        known = present.registered if present.is_live else None
        if known is None or replace(fact, at_us=known.at_us) != known:
            facts.append(fact)
    return facts


def _kind_terms(spec: DeviceSpec, at_us: int, world: World) -> dict[str, Any]:
    """What the registry of kinds adds to a device that names its kind, or that shares its memory
    with the host, by itself or as all of its vendor's do. A kind that no row knows has no class,
    and is counted like a GPU.
    """
    known = kind_in_force(world, spec.kind, spec.vendor, at_us)
    has_class = known is not None or spec.kind is None
    terms: dict[str, Any] = {
        "gpu_class": class_in_force(world, spec.vendor, spec.model, at_us) if has_class else None,
        "kind": spec.kind or GPU,
        "memory": "dedicated",
        "is_divisible": True,
        "capacity_asset": Asset.GPU_MS,
    }
    memory = "dedicated" if known is None else spec.memory or known.memory
    if known is None or (spec.kind is None and memory == "dedicated"):
        return terms
    of_kind = {"is_divisible": known.is_divisible, "capacity_asset": known.capacity_asset}
    return {**terms, "memory": memory, **of_kind}


def _unlicensed(command: AdmitNode, state: NodeState, world: World) -> tuple[str, ...]:
    """Whether a seat is listed that no licence in force grants: the name of that rule."""
    assert state.specs is not None
    assert state.joined is not None
    provider_id = state.joined.provider_id
    for spec in state.specs.devices:
        seat = seat_of(spec.device_id)
        if (spec.kind == SEAT) != (seat is not None):
            return ("licensed_seats",)
        if seat is not None and not licence_of(world, seat[0]).covers(
            seat[1], provider_id, spec.vendor, spec.model, command.at_us
        ):
            return ("licensed_seats",)
    return ()


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "join": (JoinCodeState(), evolve_join_code),
    "node": (NodeState(), evolve),
}

DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    IssueJoinCode: decide_issue_code,
    JoinNode: decide_join,
    ReportSpecs: decide_specs,
    ConfirmNodeKey: decide_confirm_key,
    AdmitNode: decide_admit,
    ActivateNode: decide_activate,
    StartMaintenance: decide_maintenance,
    RetireNode: decide_retire,
    RecordEquivocation: decide_equivocation,
}
