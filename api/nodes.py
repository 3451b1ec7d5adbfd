"""Nodes: join, confirm, admit, put to work, and what they report and run.

First contact needs only the join code. From then on a node calls with the key it was given, and
signs its usage reports, which need no other credential.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

from fastapi import Header, Path, Response
from pydantic import Field, model_validator
from starlette.concurrency import run_in_threadpool

from api import auth, node_signatures, refused_rows, secret_files
from api.amounts import INTEGER_MAX, Units
from api.auth import everybody, machines_or_scope, nodes_only, nodes_or_scope, with_scope
from api.call import After, Call, Caller, View
from api.compute_jobs import ReferenceAsked
from api.constraints import MigStart, Mode
from api.models import (
    AccountId,
    AccountQuery,
    Asked,
    Count,
    DeviceId,
    FromQuery,
    Hex32,
    KeyId,
    LeaseId,
    LeaseInPath,
    LeaseState,
    MomentQuery,
    NodeId,
    NodeInPath,
    Nothing,
    PlainQuery,
    Position,
    Ppm,
    ProviderId,
    ProviderQuery,
    RegionId,
    RegionQuery,
    Short,
    Told,
    Told_at,
    moment,
    moment_or_none,
    page_of,
    with_examples,
)
from api.operation import Resource
from api.paging import LIST_LIMIT, Cursor, Limit
from api.providers import HardwareRule, own_region
from api.usage import MEDIA_TYPE
from domain import node_key
from domain.accrual import RefusedRow
from domain.hardware_admission import WAIVABLE
from domain.hardware_facts import DRIVES_MAX, HardwareFacts, SataDrive
from domain.host_kind import SUBSTRATES_MAX
from domain.job import workload_hash
from domain.job_plan import Reference
from domain.lease import RUNNING, Lease, ReadyLease
from domain.money import PPM
from domain.node import (
    JOIN_CODE_LIFE_US,
    ActivateNode,
    AdmitNode,
    ConfirmNodeKey,
    DeviceSpec,
    HostSpec,
    IssueJoinCode,
    JoinNode,
    NodeState,
    ReportSpecs,
    RetireNode,
    StartMaintenance,
)
from domain.node_hardware import verdict_of
from domain.provider import ProviderState, RegionState
from domain.refusal import Reason, Refused
from domain.report import lane_of
from domain.revenue_share import OWNERS_MAX, OwnerShare, SetRevenueShares
from domain.stream import Stream
from domain.trust import is_fake_driver
from ledger import codec
from projections import access, fleet, leases, usage, work
from projections.access import ACCESS
from projections.fleet import FLEET
from projections.leases import LEASES
from projections.usage import USAGE
from projections.work import WORK

resource = Resource("nodes")

JOIN_CODE_LETTERS = 8
_CODE_ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"  # no letters that are read as others
ASSIGNMENTS_MAX = 500

WRITE = with_scope("provider")
READ = with_scope("provider", "operator", "audit:read")
READ_OR_NODE = nodes_or_scope("provider", "operator", "audit:read")
Phase = Literal["joining", "confirmed", "maintenance", "active", "draining", "retired"]
Mib = Annotated[int, Field(ge=0, le=2**40)]
Small = Annotated[int, Field(ge=0, le=1_000_000)]
Substrate = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,31}$")]


# --- forms -----------------------------------------------------------------------------------


class DeviceForm(Asked):
    """One accelerator as its node describes it; null: not known."""

    device_id: DeviceId
    vendor: Short
    model: Short
    memory_mib: Mib
    connection: Literal["pcie", "sxm"] = "pcie"
    pcie_gen: Small | None = None
    pcie_lanes: Small | None = None
    kind: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,31}$")] | None = None
    memory: Literal["unified"] | None = None

    def spec(self) -> DeviceSpec:
        return DeviceSpec(**self.model_dump())


class HostForm(Asked):
    """The machine around the accelerators; null: not known."""

    arch: Short
    os: Short
    cpu_cores: Small | None = None
    ram_mib: Mib | None = None
    driver: Short | None = None
    kernel: Short | None = None
    substrate: Annotated[list[Substrate], Field(max_length=SUBSTRATES_MAX)] | None = None

    def spec(self) -> HostSpec:
        told = self.model_dump(exclude={"substrate"})
        return HostSpec(**told, substrate=None if self.substrate is None else tuple(self.substrate))


class SataDriveForm(Asked):
    """Decimal gigabytes; a drive without platters turns 0 times a minute; null: not known."""

    size_gb: Small
    kind: Literal["ssd", "hdd"]
    rpm: Small | None = None


class HardwareForm(Asked):
    """What the rules of joining and selling need; null: not known, an empty list: none. Drives in
    decimal gigabytes; `ram_gb` is what is built in, `cpu_cores` counts no threads,
    `ethernet_mbps` is the fastest port that has a link.
    """

    nvme_drives_gb: Annotated[list[Small], Field(max_length=DRIVES_MAX)] | None = None
    sata_drives: Annotated[list[SataDriveForm], Field(max_length=DRIVES_MAX)] | None = None
    tpm_2_0: bool | None = None
    ram_gb: Small | None = None
    cpu_cores: Small | None = None
    ethernet_mbps: Annotated[int, Field(ge=0, le=10_000_000)] | None = None

    def facts(self) -> HardwareFacts:
        drives, sata = self.nvme_drives_gb, self.sata_drives
        return HardwareFacts(
            nvme_drives_gb=None if drives is None else tuple(drives),
            sata_drives=None if sata is None else tuple(_sata_drive(drive) for drive in sata),
            tpm_2_0=self.tpm_2_0,
            ram_gb=self.ram_gb,
            cpu_cores=self.cpu_cores,
            ethernet_mbps=self.ethernet_mbps,
        )


def _sata_drive(form: SataDriveForm) -> SataDrive:
    return SataDrive(**form.model_dump())


def _facts(form: HardwareForm | None) -> HardwareFacts | None:
    return None if form is None else form.facts()


_DEVICE = {"device_id": "GPU-5c1d8f3e", "vendor": "nvidia", "model": "NVIDIA H100 80GB HBM3",
           "memory_mib": 81559, "connection": "sxm"}  # fmt: skip
_SPECS = {"devices": [_DEVICE], "host": {"arch": "x86_64", "os": "linux"}}
DEVICES_MAX = 256
"""Of one node, seats of licences among them."""
Devices = Annotated[list[DeviceForm], Field(max_length=DEVICES_MAX)]


class Specs(Asked):
    """`agent`: version of the reporter that tells this; left out, as it was."""

    devices: Devices
    host: HostForm
    hardware: HardwareForm | None = None
    agent: Annotated[str, Field(min_length=1, max_length=32)] | None = None

    model_config = with_examples({"agent": "0.1.0", **_SPECS})


class JoinCodeAsked(Asked):
    region_id: RegionId

    model_config = with_examples({"region_id": "region_" + "1" * 32})


class JoinCodeTold(Told):
    """Type `code` at the machine within ten minutes; it works once."""

    region_id: RegionId
    expires_at: Told_at
    code: Annotated[str, Field(pattern=r"^[0-9A-Z]{8}$")] | None = None
    position: Position | None = None


class Join(Asked):
    """What the machine says about itself; `public_key` is Ed25519, `key_id` its short name: the
    first 16 hex digits of its SHA-256, so that confirming the name confirms the key.
    """

    code: Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{8,16}$")]
    public_key: Hex32
    key_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    agent: Annotated[str, Field(min_length=1, max_length=32)]
    client_id: AccountId | None = None
    devices: Devices
    host: HostForm
    hardware: HardwareForm | None = None

    model_config = with_examples(
        {"code": "7KQ2M9XD", "public_key": "3b" * 32, "key_id": "e97347e22a6967c6",
         "agent": "0.1.0", **_SPECS}
    )  # fmt: skip

    @model_validator(mode="after")
    def _names_its_key(self) -> Join:
        if self.key_id != hashlib.sha256(bytes.fromhex(self.public_key)).hexdigest()[:16]:
            raise ValueError("key_id is the first 16 hex digits of the public key's SHA-256")
        return self


NodeSignature = Annotated[str, Header(max_length=128)]


class JoinedTold(Told):
    """`node_key` is shown to the node that holds the code and the key, and kept nowhere."""

    node_id: NodeId
    provider_id: ProviderId
    region_id: RegionId
    fingerprint: Annotated[str, Field(description="The owner compares this with the machine's")]
    node_key: str | None = None
    position: Position | None = None


class KeyConfirmation(Asked):
    """The key id that the machine shows."""

    key_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]

    model_config = with_examples({"key_id": "0" * 16})


class VerdictTold(Told):
    """What the rules of hardware say of the node in its region (C-11 to C-18): every rule that does
    not hold, in their order, those among them that are `waived`, and the two verdicts that follow
    from the others. Only nodes that are sellable run jobs of other accounts.
    """

    joinable: bool
    sellable: bool
    failing: list[str]
    waived: list[str]


class NodeStateTold(Told):
    node_id: NodeId
    phase: Phase
    quarantined: bool
    verdict: VerdictTold | None = None
    position: Position | None = None


class Admission(Asked):
    """`waive`: rules of hardware that this node need not meet; the operator says so. Left out:
    what was waived stays waived.
    """

    waive: Annotated[list[HardwareRule], Field(max_length=len(WAIVABLE))] | None = None

    model_config = with_examples({}, {"waive": ["tpm_2_0"]})


class InventoryTold(Told):
    devices: list[DeviceForm]
    host: HostForm
    hardware: HardwareForm | None = None
    reported_at: Told_at | None = None


class NodeKeyTold(Told):
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


class NodeKeysTold(Told):
    """Every key of a node."""

    node_id: NodeId
    data: list[NodeKeyTold]
    position: Position | None = None


class NodeTold(NodeStateTold):
    """`agent`: version of its reporter, as it last told. `revoked`: its owner took its key back,
    and it is heard no more.
    """

    revoked: bool = False
    provider_id: ProviderId
    account_id: AccountId
    region_id: RegionId
    agent: Short
    key_id: KeyId
    fingerprint: str
    joined_at: Told_at
    phase_at: Told_at
    specs: InventoryTold | None = None


# --- joining ---------------------------------------------------------------------------------


@resource.post(
    "/v1/nodes/join-codes", WRITE, JoinCodeTold, status=201,
    problems=[Reason.REGION_UNKNOWN, Reason.PROVIDER_UNKNOWN, Reason.JOIN_CODE_USED,
              Reason.STORAGE_NODE_STATE],
)  # fmt: skip
def create_join_code(body: JoinCodeAsked, call: Caller) -> Response:
    """A code that lets one machine join a region, good for ten minutes."""
    assert call.key is not None
    code = _code_from(
        secret_files.derive(call.service.server_key, "join-code/v1", call.account, call.key)
    )

    def commands() -> IssueJoinCode:
        return IssueJoinCode(
            code_sha256=_code_digest(code), provider_id=own_region(call, body.region_id),
            region_id=body.region_id, by=call.principal.member_id, at_us=call.now_us,
        )  # fmt: skip

    told = JoinCodeTold(
        region_id=body.region_id, expires_at=moment(call.now_us + JOIN_CODE_LIFE_US)
    )
    return call.record(commands, lambda _after: told, reveal=lambda: {"code": code})


def _code_from(random: bytes) -> str:
    number = int.from_bytes(random[:16], "big")
    letters = []
    for _ in range(JOIN_CODE_LETTERS):
        number, letter = divmod(number, len(_CODE_ALPHABET))
        letters.append(_CODE_ALPHABET[letter])
    return "".join(letters)


def _code_digest(code: str) -> str:
    return hashlib.sha256(code.replace("-", "").upper().encode()).hexdigest()


@resource.post(
    "/v1/nodes/join", everybody(), JoinedTold, status=201,
    problems=[Reason.JOIN_CODE_UNKNOWN, Reason.JOIN_CODE_USED, Reason.JOIN_CODE_EXPIRED,
              Reason.NODE_EXISTS, "bad_signature"],
)  # fmt: skip
def join_node(body: Join, call: Caller, node_signature: NodeSignature = "") -> Response:
    """First contact of a machine: its code, its public key, its inventory, signed by that key.

    `Node-Signature`: base64 of the key's Ed25519 signature over the DSSE encoding of the body's
    exact bytes, with the payload type `org.tallystick.node.join.v1`.
    """
    node_signatures.require(
        body.public_key, node_key.envelope(node_key.JOIN_TYPE, call.body),
        node_signatures.from_base64(node_signature),
    )  # fmt: skip
    code_sha256 = _code_digest(body.code)
    call.account = f"join:{code_sha256}"
    node_id = call.id("node")
    bearer = auth.node_key(
        secret_files.derive(
            call.service.server_key, "node-key/v1", code_sha256, body.public_key, node_id
        )
    )

    def commands() -> JoinNode:
        _require_driver(call, body.host.driver)
        return JoinNode(
            code_sha256=code_sha256, node_id=node_id, key_id=body.key_id,
            public_key=body.public_key, token_sha256=hashlib.sha256(bearer.encode()).hexdigest(),
            agent=body.agent, client_id=body.client_id,
            devices=tuple(device.spec() for device in body.devices), host=body.host.spec(),
            hardware=_facts(body.hardware), at_us=call.now_us,
        )  # fmt: skip

    def told(after: After) -> Told:
        joined = after.state(Stream("node", node_id)).joined
        return JoinedTold(
            node_id=node_id, provider_id=joined.provider_id, region_id=joined.region_id,
            fingerprint=_fingerprint(body.public_key),
        )  # fmt: skip

    return call.record(commands, told, reveal=lambda: {"node_key": bearer})


def _require_driver(call: Call, driver: str | None) -> None:
    """A driver that calls itself simulated or fake has no place where money is real.

    Raises Refused: NODE_NOT_JOINABLE.
    """
    if call.service.settings.environment != "development" and is_fake_driver(driver):
        raise Refused(Reason.NODE_NOT_JOINABLE, failing=("real_driver",), driver=driver)


def _fingerprint(public_key: str) -> str:
    """What the owner compares by eye: the digest of the public key in groups of four."""
    digest = hashlib.sha256(bytes.fromhex(public_key)).hexdigest()[:32]
    return " ".join(digest[place : place + 4] for place in range(0, len(digest), 4))


# --- what happens to a node ------------------------------------------------------------------


def own_node(call: Call, node_id: str) -> NodeState:
    """The node, if its provider is the caller's. Raises Refused: NODE_UNKNOWN."""
    market = call.service.ledger.market
    state = market.load(Stream("node", node_id)).state
    assert isinstance(state, NodeState)
    if state.joined is not None:
        provider = market.load(Stream("provider", state.joined.provider_id)).state
        assert isinstance(provider, ProviderState)
        if call.principal.owns(provider.account_id):
            return state
    raise Refused(Reason.NODE_UNKNOWN, node_id=node_id)


def node_state(node_id: str) -> Any:
    def told(after: After) -> Told:
        state: NodeState = after.state(Stream("node", node_id))
        phase: Any = state.phase
        assert state.joined is not None
        return NodeStateTold(
            node_id=node_id, phase=phase, quarantined=state.is_quarantined,
            verdict=_verdict(state, after.state(Stream("region", state.joined.region_id))),
        )  # fmt: skip

    return told


def _verdict(node: NodeState, region: RegionState) -> VerdictTold | None:
    if node.specs is None:
        return None
    verdict = verdict_of(node.specs, region, node.waived)
    return VerdictTold(
        joinable=verdict.joinable, sellable=verdict.sellable, failing=list(verdict.failing),
        waived=list(verdict.waived),
    )  # fmt: skip


@resource.post(
    "/v1/nodes/{node_id}/confirm", WRITE, NodeStateTold,
    problems=[Reason.NODE_UNKNOWN, Reason.NODE_STATE, Reason.NODE_KEY_MISMATCH],
)  # fmt: skip
def confirm_node(node_id: NodeInPath, body: KeyConfirmation, call: Caller) -> Response:
    """The owner has compared the key with what the machine shows."""

    def commands() -> ConfirmNodeKey:
        own_node(call, node_id)
        return ConfirmNodeKey(
            node_id=node_id, key_id=body.key_id, by=call.principal.member_id, at_us=call.now_us
        )

    return call.record(commands, node_state(node_id))


class OwnerShareRow(Asked):
    account_id: AccountId
    share_ppm: Ppm


class NewRevenueShares(Asked):
    """Who shares what the node's provider earns; the provider's own account owns the rest."""

    shares: Annotated[list[OwnerShareRow], Field(max_length=OWNERS_MAX)]

    model_config = with_examples({"shares": []})


class RevenueSharesTold(Told):
    """`provider_ppm`: what is left for the provider's own account."""

    node_id: NodeId
    shares: list[OwnerShareRow]
    provider_ppm: Count
    position: Position | None = None


@resource.post(
    "/v1/nodes/{node_id}/revenue-shares", WRITE, RevenueSharesTold,
    problems=[Reason.NODE_UNKNOWN, Reason.ACCOUNT_UNKNOWN, Reason.ACCOUNT_CLOSED,
              Reason.DUPLICATE_ID, Reason.SHARE_OUT_OF_RANGE],
)  # fmt: skip
def set_revenue_shares(node_id: NodeInPath, body: NewRevenueShares, call: Caller) -> Response:
    """Split what a node earns among its owners, for leases reserved from now on."""

    def commands() -> SetRevenueShares:
        shares = tuple(OwnerShare(row.account_id, row.share_ppm) for row in body.shares)
        return SetRevenueShares(
            node_id=node_id, account_id=call.principal.account_id, shares=shares,
            by=call.principal.member_id, at_us=call.now_us,
        )  # fmt: skip

    return call.record(
        commands, lambda after: _shares(node_id, after.state(Stream("revenue", node_id)).shares)
    )


@resource.get(
    "/v1/nodes/{node_id}/revenue-shares", READ_OR_NODE, RevenueSharesTold,
    problems=[Reason.NODE_UNKNOWN],
)  # fmt: skip
def read_revenue_shares(node_id: NodeInPath, call: Caller) -> Response:
    """Who shares what the node's provider earns."""
    with call.read(FLEET) as view:
        visible_node(call, view, node_id)
        shares = call.service.ledger.market.load(Stream("revenue", node_id)).state.shares
        return call.answer(view, _shares(node_id, shares))


def _shares(node_id: str, shares: tuple[OwnerShare, ...]) -> RevenueSharesTold:
    rows = [OwnerShareRow(account_id=one.account_id, share_ppm=one.share_ppm) for one in shares]
    rest_ppm = 1_000_000 - sum(one.share_ppm for one in shares)
    return RevenueSharesTold(node_id=node_id, shares=rows, provider_ppm=rest_ppm)


@resource.post(
    "/v1/nodes/{node_id}/admit", with_scope("operator", "provider"), NodeStateTold,
    problems=[Reason.NODE_UNKNOWN, Reason.NODE_STATE, Reason.NODE_SPECS_MISSING,
              Reason.NODE_NOT_JOINABLE, Reason.DEVICE_ELSEWHERE, Reason.NOT_PERMITTED],
)  # fmt: skip
def admit_node(node_id: NodeInPath, body: Admission, call: Caller) -> Response:
    """Let a confirmed node in: the operator does, or its owner in a permissionless region. A node
    that its region's rules of hardware refuse is refused with every rule it fails.
    """

    def commands() -> AdmitNode:
        if not call.principal.is_operator:
            if body.waive is not None:
                raise Refused(Reason.NOT_PERMITTED, rule="the operator waives rules of hardware")
            joined = own_node(call, node_id).joined
            assert joined is not None
            region = call.service.ledger.market.load(Stream("region", joined.region_id)).state
            assert isinstance(region, RegionState)
            if region.opened is None or region.opened.admission != "permissionless":
                raise Refused(Reason.NOT_PERMITTED, region_id=joined.region_id)
        return AdmitNode(
            node_id=node_id, by=call.principal.member_id, at_us=call.now_us,
            waived=None if body.waive is None else tuple(body.waive),
            by_owner=not call.principal.is_operator,
        )  # fmt: skip

    return call.record(commands, node_state(node_id))


def may_run(call: Call, node_id: str) -> None:
    if not call.principal.is_operator:
        own_node(call, node_id)


@resource.post(
    "/v1/nodes/{node_id}/activate", with_scope("operator", "provider"), NodeStateTold,
    problems=[Reason.NODE_UNKNOWN, Reason.NODE_STATE],
)  # fmt: skip
def activate_node(node_id: NodeInPath, body: Nothing, call: Caller) -> Response:
    """Take new leases from now on."""
    del body

    def commands() -> ActivateNode:
        may_run(call, node_id)
        return ActivateNode(node_id=node_id, by=call.principal.member_id, at_us=call.now_us)

    return call.record(commands, node_state(node_id))


@resource.post(
    "/v1/nodes/{node_id}/maintenance", with_scope("operator", "provider"), NodeStateTold,
    problems=[Reason.NODE_UNKNOWN, Reason.NODE_STATE],
)  # fmt: skip
def start_maintenance(node_id: NodeInPath, body: Nothing, call: Caller) -> Response:
    """Take no new leases from now on; running ones go on."""
    del body

    def commands() -> StartMaintenance:
        may_run(call, node_id)
        return StartMaintenance(node_id=node_id, by=call.principal.member_id, at_us=call.now_us)

    return call.record(commands, node_state(node_id))


@resource.post(
    "/v1/nodes/{node_id}/retire", WRITE, NodeStateTold,
    problems=[Reason.NODE_UNKNOWN, Reason.NODE_BUSY],
)  # fmt: skip
def retire_node(node_id: NodeInPath, body: Nothing, call: Caller) -> Response:
    """The node leaves for good, with its devices."""
    del body

    def commands() -> RetireNode:
        own_node(call, node_id)
        return RetireNode(node_id=node_id, by=call.principal.member_id, at_us=call.now_us)

    return call.record(commands, node_state(node_id))


@resource.post(
    "/v1/nodes/{node_id}/specs", nodes_only(), NodeStateTold,
    problems=[Reason.NODE_UNKNOWN, Reason.NODE_STATE, Reason.NODE_NOT_JOINABLE],
)  # fmt: skip
def report_specs(node_id: NodeInPath, body: Specs, call: Caller) -> Response:
    """A new inventory, by the node itself; added devices come in when it is admitted again."""

    def commands() -> ReportSpecs:
        if not call.node_of_caller(node_id):
            raise Refused(Reason.NODE_UNKNOWN, node_id=node_id)
        _require_driver(call, body.host.driver)
        return ReportSpecs(
            node_id=node_id, devices=tuple(device.spec() for device in body.devices),
            host=body.host.spec(), hardware=_facts(body.hardware), agent=body.agent,
            at_us=call.now_us,
        )  # fmt: skip

    return call.record(commands, node_state(node_id))


# --- reading ---------------------------------------------------------------------------------


@resource.get("/v1/nodes", READ, page_of(NodeTold), problems=["cursor_invalid"])
def list_nodes(
    call: Caller,
    provider_id: ProviderQuery = None,
    region_id: RegionQuery = None,
    account_id: AccountQuery = None,
    phase: Phase | None = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Nodes in order of joining: your own, or all for operators and auditors."""
    place = call.place(cursor, [0])
    with call.read(FLEET) as view:
        rows = fleet.read_nodes(
            view.connection, provider_id=provider_id, region_id=region_id,
            account_id=call.principal.among(account_id), phase=phase, after=place.after[0],
            limit=limit + 1,
        )  # fmt: skip
        return call.page(view, place, rows, limit, lambda row: [row.position], _node)


@resource.get("/v1/nodes/{node_id}", READ_OR_NODE, NodeTold, problems=[Reason.NODE_UNKNOWN])
def read_node(node_id: NodeInPath, call: Caller) -> Response:
    """Read a node."""
    with call.read(FLEET) as view:
        told = _node(visible_node(call, view, node_id))
        market = call.service.ledger.market
        node, region = (
            market.load(Stream(*name)).state
            for name in (("node", node_id), ("region", told.region_id))
        )
        return call.answer(view, told.model_copy(update={"verdict": _verdict(node, region)}))


@resource.get("/v1/nodes/{node_id}/keys", everybody(), NodeKeysTold, problems=[Reason.NODE_UNKNOWN])
def list_node_keys(node_id: NodeInPath, call: Caller) -> Response:
    """The public keys a node signs its reports with: anybody may check them."""
    with call.read(ACCESS) as view:
        keys = access.read_node_keys(view.connection, node_id)
        if not keys:
            raise Refused(Reason.NODE_UNKNOWN, node_id=node_id)
        told = [
            NodeKeyTold(
                key_id=key.key_id, public_key=key.public_key,
                confirmed_at=moment_or_none(key.confirmed_at_us),
                retired_at=moment_or_none(key.retired_at_us),
                equivocated_at=moment_or_none(key.equivocated_at_us),
                revoked_at=moment_or_none(key.revoked_at_us), from_seq=key.from_seq,
            )
            for key in keys
        ]  # fmt: skip
        return call.answer(view, NodeKeysTold(node_id=node_id, data=told))


def visible_node(call: Call, view: View, node_id: str, *, to_renters: bool = False) -> fleet.Node:
    """The node, for its owner, itself and whoever sees all; `to_renters`: for everybody with a key.

    Raises Refused: NODE_UNKNOWN.
    """
    found = fleet.read_node(view.connection, node_id)
    allowed = to_renters or call.node_of_caller(node_id) or call.executor_of_caller(node_id)
    if found is None or not (allowed or call.principal.may_see(found.account_id)):
        raise Refused(Reason.NODE_UNKNOWN, node_id=node_id)
    return found


def _node(row: fleet.Node) -> NodeTold:
    phase: Any = row.phase
    return NodeTold(
        node_id=row.node_id, phase=phase, quarantined=row.quarantined, revoked=row.revoked,
        provider_id=row.provider_id, account_id=row.account_id, region_id=row.region_id,
        agent=row.agent, key_id=row.key_id, fingerprint=_fingerprint(row.public_key),
        joined_at=moment(row.at_us), phase_at=moment(row.phase_at_us), specs=_specs(row),
    )  # fmt: skip


def _specs(row: fleet.Node) -> InventoryTold | None:
    if row.specs is None:
        return None
    return InventoryTold(
        devices=[DeviceForm(**device) for device in row.specs["devices"]],
        host=HostForm(**row.specs["host"]), hardware=_hardware(row.specs.get("hardware")),
        reported_at=moment_or_none(row.specs_at_us),
    )  # fmt: skip


def _hardware(told: dict[str, Any] | None) -> HardwareForm | None:
    return None if told is None else HardwareForm(**told)


# --- assignments -----------------------------------------------------------------------------


class WorkTold(Told):
    """What the executor runs; `workload_sha256` covers all of it but the kind. `references` name
    keys, checkpoints and datasets, and hold no secret.
    """

    kind: str
    image: str | None = None
    command: list[str]
    env_refs: list[str]
    references: list[ReferenceAsked] | None = None
    workload_sha256: Hex32


class AssignmentTold(Told):
    """One lease on one device, in server time; without `until_us` its end is not known. `mode`
    says how the lease shares the device; a MIG instance begins at memory slice `mig_start`.
    `executor` has taken up its work, which runs until it ended or was stopped.
    """

    lease_id: LeaseId
    device_id: DeviceId
    from_us: Annotated[int, Field(ge=0, le=INTEGER_MAX)]
    until_us: Annotated[int, Field(ge=0, le=INTEGER_MAX)] | None = None
    share_ppm: Ppm
    mem_ppm: Ppm
    mode: Mode
    mig_profile: str | None = None
    mig_start: MigStart | None = None
    state: Literal["active", "paused", "degraded", "reclaiming", "closing"]
    job_id: str
    executor: str | None = None
    work_ended: bool = False


class PendingTold(Told):
    """A lease that waits for the node to say that its work runs. `executor` has acknowledged it.
    `memory_mib`: its part of the memory of the smallest of its devices. Credentials are sealed to
    `encryption_key`.
    """

    lease_id: LeaseId
    job_id: str
    account_id: AccountId
    device_ids: list[DeviceId]
    share_ppm: Ppm
    mem_ppm: Ppm
    mode: Mode
    mig_profile: str | None = None
    mig_starts: list[MigStart] | None = None
    reserved_at: Told_at
    work: WorkTold
    memory_mib: Count | None = None
    encryption_key: Hex32 | None = None
    executor: str | None = None


class StopTold(Told):
    """A lease that is over while its work may still run: stop it, then acknowledge the stop."""

    lease_id: LeaseId
    workload_sha256: Hex32
    closed_at: Told_at
    close_code: Count


class AssignmentsTold(Told):
    """`data`: leases that are running or have not been reported to their end. `pending` is to be
    started, `stopping` to be stopped.
    """

    data: list[AssignmentTold]
    pending: list[PendingTold]
    stopping: list[StopTold]
    position: Position


class Readiness(Asked):
    """Where the renter reaches the work, if anywhere. `credentials`: base64 of a libsodium sealed
    box for the key that the renter named; only the renter can open it.
    """

    endpoint: Annotated[str, Field(min_length=1, max_length=2_000)] | None = None
    credentials: (
        Annotated[str, Field(pattern=r"^[0-9A-Za-z+/]+={0,2}$", min_length=64, max_length=8_192)]
        | None
    ) = None

    model_config = with_examples({"endpoint": "https://10.0.0.7:8888"})


class ReadyTold(Told):
    """Billing starts at `opened_at`; it ends at `funds_end_at` or at the term's end. In a gang that
    is the moment the last member is ready: before it, neither is there.
    """

    lease_id: LeaseId
    state: LeaseState
    opened_at: Told_at | None = None
    funds_end_at: Told_at | None = None
    term_end_at: Told_at | None = None
    position: Position | None = None


@resource.get(
    "/v1/nodes/{node_id}/assignments", machines_or_scope("provider", "operator", "audit:read"),
    AssignmentsTold,
    problems=[Reason.NODE_UNKNOWN],
)  # fmt: skip
def list_assignments(node_id: NodeInPath, call: Caller) -> Response:
    """The leases of a node: which lease works on which device from when to when.

    With the `ETag` of an earlier answer in `If-None-Match`, 304 while they are the same.
    """
    with call.read(FLEET, LEASES, WORK) as view:
        node = visible_node(call, view, node_id)
        taken = {
            row.lease_id: row
            for row in work.read_on_node(view.connection, node_id, ASSIGNMENTS_MAX)
        }
        rows = [
            row
            for state in ("reserved", *RUNNING, "closing")
            for row in leases.read_leases(
                view.connection, node_id=node_id, state=state, limit=ASSIGNMENTS_MAX
            )
        ]
        told = AssignmentsTold(
            data=[one for row in rows for one in _assignments(row, taken.get(row.lease_id))],
            pending=[_pending(call, view, row, node) for row in rows if row.state == "reserved"],
            stopping=[_stop(row) for row in taken.values() if row.closed_at_us is not None],
            position=view.position,
        )
        return call.answer_if_new(view, told)


def _stop(row: work.WorkRow) -> StopTold:
    assert row.workload_sha256 is not None
    return StopTold(
        lease_id=row.lease_id, workload_sha256=row.workload_sha256,
        closed_at=moment(row.closed_at_us or 0), close_code=row.close_code or 0,
    )  # fmt: skip


def _assignments(row: leases.LeaseRow, taken: work.WorkRow | None) -> list[AssignmentTold]:
    if row.opened_at_us is None:
        return []
    ends = [row.closed_at_us or row.funds_end_us, row.term_end_us]
    if row.state == "paused":
        ends.append(row.moment_us)  # the device may be somebody else's since then
    until_us = min((end for end in ends if end is not None), default=None)
    told: Any = row
    starts: list[int | None] = [None] * len(row.device_ids or ())
    starts = [*row.mig_starts] if row.mig_starts else starts
    return [
        AssignmentTold(
            lease_id=row.lease_id, device_id=device_id, from_us=row.opened_at_us,
            until_us=None if until_us is None else min(until_us, INTEGER_MAX),
            share_ppm=row.share_ppm, mem_ppm=row.mem_ppm, mode=told.mode,
            mig_profile=row.mig_profile, mig_start=start, state=told.state, job_id=row.job_id,
            executor=None if taken is None else taken.executor,
            work_ended=taken is not None and taken.ended_at_us is not None,
        )
        for device_id, start in zip(row.device_ids or (), starts, strict=True)
    ]  # fmt: skip


def _pending(call: Call, view: View, row: leases.LeaseRow, node: fleet.Node) -> PendingTold:
    job = leases.read_job(view.connection, row.job_id)
    assert job is not None, row.job_id
    assert row.reserved_at_us is not None
    told: Any = row
    lease = call.service.ledger.market.load(Stream("lease", row.lease_id)).state
    assert isinstance(lease, Lease)
    assert lease.requested is not None
    return PendingTold(
        lease_id=row.lease_id, job_id=row.job_id, account_id=row.account_id,
        device_ids=row.device_ids or [],
        share_ppm=row.share_ppm, mem_ppm=row.mem_ppm, mode=told.mode,
        mig_profile=row.mig_profile, mig_starts=row.mig_starts,
        reserved_at=moment(row.reserved_at_us),
        work=WorkTold(
            kind=job.kind, image=job.image, command=job.command, env_refs=job.env_refs,
            references=_references(job), workload_sha256=job.workload_sha256,
        ),
        memory_mib=_memory_of(row, node), encryption_key=lease.requested.encryption_key,
        executor=None if lease.work.started is None else lease.work.started.executor,
    )  # fmt: skip


def _references(job: leases.Job) -> list[ReferenceAsked] | None:
    """Those that the hash covers: of jobs submitted before it did, the node is told none."""
    told: Any = job
    found = tuple(Reference(**one) for one in told.refs or ())
    covering = workload_hash(job.image, tuple(job.command), tuple(job.env_refs), found)
    if not found or covering != job.workload_sha256:
        return None
    return [ReferenceAsked(**one) for one in told.refs]


def _memory_of(row: leases.LeaseRow, node: fleet.Node) -> int | None:
    """The lease's part of a device's memory, in MiB, rounded down."""
    specs = [] if node.specs is None else node.specs["devices"]
    whole = [one["memory_mib"] for one in specs if one["device_id"] in (row.device_ids or ())]
    return min(whole) * row.mem_ppm // PPM if whole else None


@resource.post(
    "/v1/nodes/{node_id}/assignments/{lease_id}/ready", machines_or_scope("provider"), ReadyTold,
    problems=[Reason.NODE_UNKNOWN, Reason.LEASE_UNKNOWN, Reason.LEASE_STATE,
              Reason.ENCRYPTION_KEY_UNKNOWN],
)  # fmt: skip
def start_lease(
    node_id: NodeInPath, lease_id: LeaseInPath, body: Readiness, call: Caller
) -> Response:
    """The work runs: billing starts now, at the price that is locked here."""

    def commands() -> ReadyLease:
        if not (call.node_of_caller(node_id) or call.executor_of_caller(node_id)):
            own_node(call, node_id)
        lease = call.service.ledger.market.load(Stream("lease", lease_id)).state
        assert isinstance(lease, Lease)
        if lease.reserved is None or lease.reserved.node_id != node_id:
            raise Refused(Reason.LEASE_UNKNOWN, lease_id=lease_id)
        return ReadyLease(
            lease_id=lease_id,
            node_id=node_id,
            endpoint=body.endpoint,
            at_us=call.now_us,
            credentials=body.credentials,
        )

    def told(after: After) -> Told:
        lease: Any = after.state(Stream("lease", lease_id))
        opened = lease.opened
        return ReadyTold(
            lease_id=lease_id, state=lease.status,
            opened_at=None if opened is None else moment(opened.opened_at_us),
            funds_end_at=None if opened is None else moment(opened.funds_end_us),
            term_end_at=None if opened is None else moment_or_none(opened.term_end_us),
        )  # fmt: skip

    return call.record(commands, told)


# --- usage -----------------------------------------------------------------------------------

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ReceiptTold(Told):
    """The node's half of the stick. `flags` other than 0: stored, and earns nothing."""

    seq: Count
    hash: Hash
    lane: Annotated[int, Field(ge=0, le=63)]
    position: Count
    lane_hash: Hash
    recorded_at: Told_at
    flags: Count


class StoredTold(Told):
    status: Literal["stored", "duplicate"]
    receipt: ReceiptTold


class ProgressTold(Told):
    """How far the log holds the node's chain."""

    acked_seq: Count
    head: Hash
    server_time_us: Count


class IngestedTold(ProgressTold):
    results: list[StoredTold]


class FlaggedTold(Told):
    """A stored report that earns nothing, and the rule it broke."""

    seq: Count
    lane: Annotated[int, Field(ge=0, le=63)]
    usage_position: Count
    flags: Count
    rule: Annotated[str, Field(description="The rule of the report's form that it breaks")]
    detail: str
    claimed_us: Annotated[
        Count | None, Field(description="Available time of its rows; absent: cannot be read")
    ] = None
    recorded_at: Told_at


class RefusedRowTold(Told):
    """A row of a stored report: the stretch of server time it tells of, and what of it was
    refused.
    """

    device_id: DeviceId
    usage_position: Count
    rule: str
    start: Told_at
    end: Told_at
    microseconds: Units


class RefusedTimeTold(Told):
    """Reported time of a lease hour that earned nothing, the rule it broke, and the rows it is of
    (the first 200 of an accrual).
    """

    lease_id: LeaseId
    hour_index: Count
    until: Told_at
    rule: str
    microseconds: Units
    rows: list[RefusedRowTold]
    position: Position


class NodeUsageTold(Told):
    """Counts of what was stored; flagged reports after the report `after_seq`, at most 100, and
    refused time after `after_position`, of at most 50 accruals.
    """

    node_id: NodeId
    lane: Annotated[int, Field(ge=0, le=63)]
    reports: Count
    reports_flagged: Count
    last_seq: Count
    last_recorded_at: Told_at | None = None
    flagged: list[FlaggedTold]
    refused: list[RefusedTimeTold]
    position: Position


class NodeHourTold(Told):
    """What a node reported for one UTC hour. Busy time and energy count where measurable;
    `throttled_us`, when power or heat held a clock down, is out of `throttle_known_us`.
    """

    hour: Told_at
    rows: Count
    leased_gpu_us: Units
    idle_gpu_us: Units
    unavailable_us: Units
    unknown_us: Units
    busy_us: Units
    energy_mj: Units
    throttled_us: Units
    throttle_known_us: Units


@resource.get(
    "/v1/nodes/{node_id}/usage/head", READ_OR_NODE, ProgressTold,
    problems=[Reason.NODE_UNKNOWN, "unavailable"],
)  # fmt: skip
async def read_usage_head(node_id: NodeInPath, call: Caller) -> Response:
    """How far the log holds this node's chain: what a reporter asks at every start."""
    if not call.node_of_caller(node_id):
        await _must_see(call, node_id)
    if call.service.node_keys.lookup(node_id) is None:
        raise Refused(Reason.NODE_UNKNOWN, node_id=node_id)
    return _raw(await call.service.ingest.head(node_id))


class UsageEnvelope(Asked):
    """One signed report as a CloudEvent. Only `data_base64` is signed (DSSE, Ed25519); the other
    fields must agree with it. `id` and `sequence` are its number, `prevhash` the hash before it.
    """

    specversion: Literal["1.0"]
    id: Short
    source: Short
    type: Literal["usage.reported.v1"]
    time: Told_at
    dataschema: Short
    sequence: Short
    prevhash: Hash
    signature: Annotated[str, Field(description="64 bytes, base64")]
    keyid: Short
    data_base64: Annotated[str, Field(description="The signed bytes, at most 256 KiB")]
    datacontenttype: Literal["application/json"] | None = None

    model_config = with_examples(
        {
            "specversion": "1.0",
            "id": "1842",
            "source": "/nodes/node_" + "1" * 32,
            "type": "usage.reported.v1",
            "time": "2026-11-20T08:00:00Z",
            "dataschema": "https://tallystick.org/schema/usage-report/1",
            "sequence": "1842",
            "prevhash": "0" * 64,
            "signature": "A" * 86 + "==",
            "keyid": "0" * 16,
            "data_base64": "e30=",
        }
    )


@resource.post(
    "/v1/nodes/{node_id}/usage", everybody(), IngestedTold, records=False, media_type=MEDIA_TYPE,
    raw_items=UsageEnvelope,
    problems=["malformed", "bad_signature", "revoked", "quarantined", "gap", "fork", "too_large",
              "unsupported_media_type", "equivocation", "one_request_at_a_time",
              "too_many_reports", "internal", "unavailable"],
)  # fmt: skip
async def ingest_usage(
    node_id: Annotated[str, Path(pattern=r"^[^/]{1,100}$")], call: Caller
) -> Response:
    """Signed usage reports in, receipts out after the commit.

    A CloudEvents 1.0 batch of at most 64 reports. The reports prove themselves: no other
    credential is needed, and sending one again gives its first receipt again.
    """
    headers = call.request.headers
    raw = await call.service.ingest.ingest(node_id, call.body, headers.get("content-encoding"))
    return _raw(raw)


def _raw(answer: tuple[int, list[tuple[bytes, bytes]], bytes]) -> Response:
    status, headers, body = answer
    named = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
    return Response(body, status, named)


@resource.get(
    "/v1/nodes/{node_id}/usage", READ_OR_NODE, NodeUsageTold, problems=[Reason.NODE_UNKNOWN]
)  # fmt: skip
def read_node_usage(
    node_id: NodeInPath,
    call: Caller,
    after_seq: PlainQuery = 0,
    after_position: PlainQuery = 0,
) -> Response:
    """What of a node's usage was stored, and what of it earns nothing, by which rule."""
    with call.read(FLEET, USAGE) as view:
        visible_node(call, view, node_id)
        connection = view.connection
        counted = usage.read_node_reports(connection, node_id)
        first = usage.read_flagged(connection, node_id, after=after_seq, limit=1)
        flagged = [
            one
            for row in first
            for one in refused_rows.broken_reports(
                connection, node_id, row.position - 1, FLAGGED_MAX
            )
        ]
        told = NodeUsageTold(
            node_id=node_id, lane=lane_of(node_id),
            reports=counted.reports if counted else 0,
            reports_flagged=counted.flagged if counted else 0,
            last_seq=counted.last_seq if counted else 0,
            last_recorded_at=moment(counted.last_recorded_us) if counted else None,
            flagged=[
                FlaggedTold(
                    seq=one.stored.node_seq, lane=one.stored.lane,
                    usage_position=one.stored.position, flags=one.stored.flags, rule=one.rule,
                    detail=one.detail[:300], claimed_us=one.claimed_us,
                    recorded_at=moment(one.stored.recorded_us),
                )
                for one in flagged
            ],
            refused=_refused_time(call, connection, node_id, after_position),
            position=view.position,
        )  # fmt: skip
        return call.answer(view, told)


_REFUSED = """
    SELECT a.position, e.state FROM proj_usage.accrual a
    JOIN public.market_events e ON e.notification_id = a.position
    WHERE a.node_id = %s AND a.refused_us > 0 AND a.position > %s ORDER BY a.position LIMIT 50
"""
FLAGGED_MAX = 100


def _refused_time(call: Call, connection: Any, node_id: str, after: int) -> list[RefusedTimeTold]:
    told: list[RefusedTimeTold] = []
    for position, state in connection.execute(_REFUSED, (node_id, after)).fetchall():
        fact = codec.decode("lease.usage_accrued.v1", bytes(state))
        rows = refused_rows.rows_of_accrual(call.service.ledger.market, connection, fact, position)[
            : refused_rows.ROWS_MAX
        ]
        told.extend(
            RefusedTimeTold(
                lease_id=fact.lease_id, hour_index=fact.hour_index, until=moment(fact.until_us),
                rule=refused.rule, microseconds=str(refused.us), position=position,
                rows=[_refused_row(one) for one in rows if one.rule == refused.rule],
            )
            for refused in fact.refused
        )  # fmt: skip
    return told


def _refused_row(one: RefusedRow) -> RefusedRowTold:
    return RefusedRowTold(
        device_id=one.row.device_id, usage_position=one.row.position, rule=one.rule,
        start=moment(max(0, one.row.wall_start_us)), end=moment(max(0, one.row.wall_end_us)),
        microseconds=str(one.us),
    )  # fmt: skip


@resource.get(
    "/v1/nodes/{node_id}/usage/hours", READ_OR_NODE, page_of(NodeHourTold),
    problems=[Reason.NODE_UNKNOWN, "cursor_invalid"],
)  # fmt: skip
def list_node_hours(
    node_id: NodeInPath,
    call: Caller,
    from_: FromQuery = None,
    to: MomentQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """What a node reported, by UTC hour; hours that begin in [from, to)."""
    place = call.place(cursor, [-1])
    with call.read(FLEET, USAGE) as view:
        visible_node(call, view, node_id)
        rows = usage.read_node_hours(
            view.connection, node_id, from_us=from_ or 0, to_us=to or 2**53,
            after=place.after[0], limit=limit + 1,
        )  # fmt: skip
        return call.page(view, place, rows, limit, lambda row: [row.hour_us], _hour)


def _hour(row: usage.NodeHour) -> NodeHourTold:
    return NodeHourTold(
        hour=moment(row.hour_us), rows=row.rows, leased_gpu_us=str(row.leased_gpu_us),
        idle_gpu_us=str(row.idle_gpu_us), unavailable_us=str(row.unavailable_us),
        unknown_us=str(row.unknown_us), busy_us=str(row.busy_us), energy_mj=str(row.energy_mj),
        throttled_us=str(row.throttled_us), throttle_known_us=str(row.throttle_known_us),
    )  # fmt: skip


async def _must_see(call: Call, node_id: str) -> None:
    """Raises Refused: NODE_UNKNOWN."""

    def look() -> None:
        with call.read(FLEET) as view:
            visible_node(call, view, node_id)

    await run_in_threadpool(look)
