"""A small world to test in: an account, its provider, one region, and a node with two devices.

Facts and the scenes made of them, in the order a stranger's machine goes through.
"""

from __future__ import annotations

from domain.fleet.device import DeviceRegistered
from domain.fleet.growth import RegionMemberSet, growth_stream
from domain.fleet.node import (
    DeviceSpec,
    HostSpec,
    JoinCodeIssued,
    JoinCodeUsed,
    NodeActivated,
    NodeAdmitted,
    NodeJoinRequested,
    NodeKeyConfirmed,
    NodeSpecReported,
)
from domain.fleet.provider import (
    ProviderRegistered,
    RegionNameTaken,
    RegionOpened,
    region_name_stream,
)
from domain.money import Asset, credit
from domain.parties.account import AccountOpened, MemberAdded
from domain.prices.tariff import NETWORK, TariffPublished, UsageFee
from domain.stream import Stream
from tests.given import Scene

NOON_US = 1_767_268_800_000_000
HOUR_US = 3_600_000_000

ALICE = "acct_alice"
ALICE_STREAM = Stream("account", ALICE)
PROVIDER, REGION, NODE = "prov_alice", "region_home", "node_1"
NODE_STREAM = Stream("node", NODE)
CODE = "c0" * 32
CODE_STREAM = Stream("join", CODE)
GPU_0, GPU_1 = "GPU-0", "GPU-1"

opened = AccountOpened(account_id=ALICE, kind="party", opened_by="key_ops", at_us=NOON_US)
owned = MemberAdded(
    account_id=ALICE, member_id="mem_alice", role="owner", by="key_ops", at_us=NOON_US
)
registered = ProviderRegistered(
    provider_id=PROVIDER, account_id=ALICE, kind="physical", payment_mode="credits", at_us=NOON_US
)
region_named = RegionNameTaken(provider_id=PROVIDER, name="home", region_id=REGION, at_us=NOON_US)
region_opened = RegionOpened(
    region_id=REGION,
    provider_id=PROVIDER,
    name="home",
    storage_mode="local",
    setting="edge",
    admission="operator",
    allow_public_jobs=True,
    at_us=NOON_US,
    hardware_rules=(),
    cloud_region=None,
    site=None,
)
code_issued = JoinCodeIssued(
    code_sha256=CODE,
    provider_id=PROVIDER,
    region_id=REGION,
    expires_at_us=NOON_US + 600_000_000,
    owner_account_id=None,
    by="mem_alice",
    at_us=NOON_US,
)
code_used = JoinCodeUsed(code_sha256=CODE, node_id=NODE, at_us=NOON_US)
joined = NodeJoinRequested(
    node_id=NODE,
    provider_id=PROVIDER,
    region_id=REGION,
    client_id=None,
    owner_account_id=None,
    key_id="nk_1",
    public_key="ab" * 32,
    token_sha256="cd" * 32,
    agent="tallystick-node/0.1.0",
    at_us=NOON_US,
)


def gpu(device_id: str, model: str = "NVIDIA A100-SXM4-80GB") -> DeviceSpec:
    return DeviceSpec(device_id=device_id, vendor="nvidia", model=model, memory_mib=81_920)


HOST = HostSpec(arch="x86_64", os="linux")
specs = NodeSpecReported(
    node_id=NODE,
    devices=(gpu(GPU_0), gpu(GPU_1)),
    host=HOST,
    at_us=NOON_US,
    hardware=None,
    agent="tallystick-node/0.1.0",
)
confirmed = NodeKeyConfirmed(
    node_id=NODE, key_id="nk_1", public_key="ab" * 32, by="mem_alice", at_us=NOON_US
)
GROWTH_STREAM = growth_stream(REGION)
A100 = "NVIDIA A100-SXM4-80GB"
member = RegionMemberSet(
    region_id=REGION,
    node_id=NODE,
    role="worker",
    ingress_node_id=None,
    models=(A100,),
    has_seats=False,
    at_us=NOON_US,
)
admitted = NodeAdmitted(node_id=NODE, by="mem_ops", at_us=NOON_US, waived=())
activated = NodeActivated(node_id=NODE, by="mem_alice", at_us=NOON_US)


def device_registered(
    device_id: str,
    *,
    node_id: str = NODE,
    model: str = "NVIDIA A100-SXM4-80GB",
    gpu_class: str | None = "datacenter",
    at_us: int = NOON_US,
) -> DeviceRegistered:
    return DeviceRegistered(
        device_id=device_id,
        node_id=node_id,
        provider_id=PROVIDER,
        vendor="nvidia",
        model=model,
        gpu_class=gpu_class,
        memory_mib=81_920,
        at_us=at_us,
        kind="gpu",
        memory="dedicated",
        is_divisible=True,
        capacity_asset=Asset.GPU_MS,
    )


tariff = TariffPublished(
    version=1,
    usage_fees=(
        UsageFee("development", credit(50_000)),
        UsageFee("professional", credit(100_000)),
        UsageFee("datacenter", credit(250_000)),
    ),
    provider_share_ppm=500_000,
    burn_share_ppm=0,
    effective_from_us=NOON_US,
    by="mem_ops",
    at_us=NOON_US,
    split=None,
    federated=None,
    device_fee_per_month=None,
    storage_node_per_hour=None,
    meters=(),
    sla=(),
    notice_us=0,
    free_start=None,
)

with_account = Scene().given((ALICE_STREAM, opened), (ALICE_STREAM, owned))
with_provider = with_account.given((Stream("provider", PROVIDER), registered))
with_region = with_provider.given(
    (region_name_stream(PROVIDER, "home"), region_named), (Stream("region", REGION), region_opened)
)
with_code = with_region.given((CODE_STREAM, code_issued))
with_joined_node = with_code.given(
    (CODE_STREAM, code_used), (NODE_STREAM, joined), (NODE_STREAM, specs)
)
with_confirmed_node = with_joined_node.given((NODE_STREAM, confirmed))
with_admitted_node = with_confirmed_node.given(
    (NODE_STREAM, admitted),
    (GROWTH_STREAM, member),
    (Stream("device", GPU_0), device_registered(GPU_0)),
    (Stream("device", GPU_1), device_registered(GPU_1)),
)
with_active_node = with_admitted_node.given((NODE_STREAM, activated))
with_tariff = with_active_node.given((NETWORK, tariff))
