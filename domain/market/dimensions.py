"""The dimensions of a match: each one question about a node (design marketplace 3.1).

    a node is a candidate  <=>  it meets every dimension that the request asks about

A dimension says what is required, what a node offers, and when the one meets the other. It is
asked only where `required` is not None. This is the reference;
`projections/market/match.py` answers the same for a whole fleet at once, and a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from domain.hardware import mig
from domain.hardware.constraints import (
    CAPACITY_CLASSES,
    COMMITTED,
    ISOLATIONS,
    NOTHING,
    ON_DEMAND,
    Constraints,
)
from domain.hardware.host_kind import NETWORK_CLASSES, kernel_number
from domain.hardware.sharing import MPS_STEP_PPM, SHARING_MODES, Gpu, part_of
from domain.lease.looked import Stated
from domain.market.offer import SETTLEMENTS, OfferTerms
from domain.money import PPM
from domain.record import dataclass
from domain.refusal import Refused

MORE, LESS, ONE = "more", "less", "one of"
"""Better is more, better is less, or it is one of what is allowed."""

PROVISIONAL_PPM = 500_000
"""What a party without a reputation yet counts as, where one is compared."""
NEVER_US = 2**62
PROMISE_NOTHING = OfferTerms()
WHOLE_MODE, MIG_MODE, SLICE_MODE = "whole", "mig", "time_slice"


@dataclass(frozen=True, slots=True)
class Near:
    """Where one thing that a lease uses is, and whose regions these are."""

    regions: frozenset[str]
    providers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Need:
    """What a lease asks of one node.

    `until_us`: the end of a fixed term, or of the least runway. `spec_ttl_us` 0: a node's word is
    never too old. `price_max_budget`, and `price_max_funds` by way to pay: the dearest price that
    the budgets and the balance could carry; None: whatever.
    """

    gpu_count: int
    share_ppm: int
    mem_ppm: int
    models: tuple[str, ...]  # allowed; empty: any
    price_max: int  # micro-credits per GPU-hour
    account_id: str
    settlements: tuple[str, ...] = SETTLEMENTS  # how the renter can pay; own nodes take any
    constraints: Constraints = NOTHING
    at_us: int = 0
    until_us: int = 0
    spec_ttl_us: int = 0
    sla_classes: tuple[str, ...] | None = None  # that promise at least what is asked
    renter_ppm: int | None = None  # the renter's reputation; None: provisional
    allowed: frozenset[str] = frozenset()  # of accounts; not empty: these alone
    denied: frozenset[str] = frozenset()
    client_id: str | None = None  # the compute client it came through: providers list it too
    price_max_budget: int | None = None
    price_max_funds: tuple[tuple[str, int], ...] | None = None
    near: tuple[Near, ...] = ()  # where data are that it uses
    is_fixed_term: bool = False
    base_pool_id: str | None = None  # with `rents_only`: neither one's own nodes nor this pool's
    rents_only: bool = False  # above a quota: what is rented elsewhere
    has_base: bool = False  # the renter has nodes of its own
    own_only: bool = False  # and its project rents nothing where they are full

    @property
    def mode(self) -> str:
        """The mode of sharing: without one, the whole device or a part of its memory."""
        if self.constraints.mode is not None:
            return self.constraints.mode
        return WHOLE_MODE if self.share_ppm == self.mem_ppm == PPM else "memory"

    @property
    def accepts_provisional(self) -> bool:
        """By default, unless a minimum reputation is stated."""
        said = self.constraints.accept_provisional
        return self.constraints.min_reputation_ppm is None if said is None else said


@dataclass(frozen=True, slots=True)
class FreeDevice:
    """What is still free of one device, and how it is shared now."""

    device_id: str
    model: str
    free_share_ppm: int
    free_mem_ppm: int
    mode: str | None = None  # of those who hold it; None: nobody
    slice_ppm: int | None = None  # of its time slices, where it is shared so
    profiles: tuple[str, ...] = ()  # of MIG: an instance can be placed now
    is_divisible: bool = True


@dataclass(frozen=True, slots=True)
class OfferedNode:
    """Equal devices of one node, with its offer if it has one, as the fleet projection sees it."""

    node_id: str
    offer_id: str
    account_id: str  # of the provider
    price: int  # micro-credits per GPU-hour; for the renter's own nodes the usage fee
    pay_with: str
    fractions: bool
    served_gpu_us: int  # this epoch
    devices: tuple[FreeDevice, ...]
    model: str | None = None  # None: that of the devices
    memory_mib: int = 0
    gpu_class: str | None = None
    kind: str = "gpu"
    vendor: str = ""
    is_offered: bool = True
    is_priced: bool = True  # its class has a usage fee, and the price is not below it
    phase: str = "active"
    specs_at_us: int | None = None
    provider_id: str = ""
    region_id: str = ""
    is_public: bool = True  # the region takes jobs of others
    is_sellable: bool = True  # its hardware is what a region asks of nodes that sell (C-14 to C-18)
    setting: str = "datacenter"
    refused_workloads: tuple[str, ...] = ()
    down_ranked_workloads: tuple[str, ...] = ()
    security_tier: int = 0  # of the region
    pool_id: str | None = None
    keeps_queue: bool = False  # the pool: then its nodes are only for who names it
    arch: str = ""
    os: str = ""
    cpu_cores: int | None = None
    ram_mib: int | None = None
    terms: OfferTerms = PROMISE_NOTHING
    held_storage_gib: int = 0  # by leases, of what is promised
    held_network_mbps: int = 0
    reputation_ppm: int | None = None  # None: provisional
    attributes: tuple[Stated, ...] = ()
    maintenance: tuple[tuple[int, int], ...] = ()  # planned: [from, until)
    available_until_us: int | None = None
    allowed: frozenset[str] = frozenset()  # by the provider's account
    denied: frozenset[str] = frozenset()
    kernel: int | None = None  # its version as a number; None: not told
    substrate: tuple[str, ...] = ()  # what the node runs on, as far as it tells
    capacity_class: str = ON_DEMAND
    cloud_jobs: int | None = None  # that the quota of its cloud still lets start; None: no cloud
    peers_free: int = 0  # whole free devices of the other offered rows of its region
    peers_devices: int = 0  # and all of their devices

    @property
    def device_model(self) -> str:
        if self.model is not None:
            return self.model
        return self.devices[0].model if self.devices else ""


@dataclass(frozen=True, slots=True)
class Dimension:
    """`order`: MORE (at least), LESS (at most) or ONE. `field`: what of the request to relax, None
    where the renter can relax nothing. `own_exempt`: the renter's own nodes meet it always.
    `is_lasting`: no fact but another inventory changes what the node offers.
    """

    name: str
    order: str
    required: Callable[[Need], Any]
    offered: Callable[[Need, OfferedNode], Any]
    field: str | None
    own_exempt: bool = False
    is_lasting: bool = False

    def meets(self, need: Need, node: OfferedNode) -> bool:
        wanted = self.required(need)
        if wanted is None or (self.own_exempt and node.account_id == need.account_id):
            return True
        given = self.offered(need, node)
        if self.order == ONE:
            return given in wanted
        if given is None:
            return False
        return bool(given >= wanted if self.order == MORE else given <= wanted)


def device_fits(need: Need, device: FreeDevice) -> bool:
    """Whether the device has room for the part, in its mode and beside those who hold it."""
    if not device.is_divisible and need.share_ppm < PPM:
        return False
    mode = need.mode
    if device.mode not in (None, mode):
        return False
    if mode == MIG_MODE:
        return need.constraints.mig_profile in device.profiles
    if mode == SLICE_MODE and device.slice_ppm not in (None, need.share_ppm):
        return False
    return device.free_share_ppm >= need.share_ppm and device.free_mem_ppm >= need.mem_ppm


def is_base(need: Need, node: OfferedNode) -> bool:
    """Whether a node is what a quota shares out, where the need is above it."""
    if not need.rents_only:
        return False
    in_pool = need.base_pool_id is not None and node.pool_id == need.base_pool_id
    return in_pool or node.account_id == need.account_id


def is_within(need: Need, node: OfferedNode) -> bool:
    """Whether a node is on the side of the base that the need may take."""
    if need.own_only and node.account_id != need.account_id:
        return False
    return not is_base(need, node)


def modes_of(node: OfferedNode) -> tuple[str, ...]:
    """The modes an offer takes: what it says, of those its devices can do."""
    if not node.fractions:
        return (WHOLE_MODE,)
    able = able_modes(node.vendor, node.device_model, node.memory_mib)
    return tuple(mode for mode in able if node.terms.modes is None or mode in node.terms.modes)


@lru_cache(maxsize=4_096)
def able_modes(vendor: str, model: str, memory_mib: int) -> tuple[str, ...]:
    """The modes of sharing that a device can do. Source: `domain.hardware.sharing.part_of`."""
    gpu = Gpu(vendor, model, memory_mib)
    table = mig.table_of(model, memory_mib)
    able = []
    for mode in SHARING_MODES:
        profile = table.profiles[0].name if mode == MIG_MODE and table is not None else None
        if mode == MIG_MODE and profile is None:
            continue
        try:
            part_of(mode, profile, MPS_STEP_PPM, MPS_STEP_PPM, gpu)
        except Refused:
            continue
        able.append(mode)
    return tuple(able)


@lru_cache(maxsize=65_536)
def placeable(model: str, memory_mib: int, instances: frozenset[mig.Instance]) -> tuple[str, ...]:
    """The MIG profiles of which an instance can still be placed beside these; in order."""
    table = mig.table_of(model, memory_mib)
    if table is None:
        return ()
    return tuple(sorted({one.profile for one in mig.placements(table, instances)}))


def lease_memory_mib(memory_mib: int, mem_ppm: int) -> int:
    """What of a device's memory a lease gets: floor(memory x part)."""
    return memory_mib * mem_ppm // PPM


def admits(allowed: frozenset[str], denied: frozenset[str], account_id: str) -> bool:
    """By the lists of one party: whether it deals with another."""
    return account_id not in denied and (not allowed or account_id in allowed)


def is_stated(node: OfferedNode, need: Need) -> bool:
    """Whether each attribute that is required was signed by one of its signers."""
    return all(
        any(
            one.name == wanted.name
            and wanted.value in (None, one.value)
            and (wanted.signers is None or one.signer in wanted.signers)
            and (one.expires_at_us is None or one.expires_at_us > need.at_us)
            for one in node.attributes
        )
        for wanted in need.constraints.attributes or ()
    )


YES = (True,)


def _capable(need: Need, node: OfferedNode) -> bool:
    return set(need.constraints.capabilities or ()) <= set(node.terms.capabilities or ())


def _in_lists(need: Need, node: OfferedNode) -> bool:
    mine = admits(need.allowed, need.denied, node.account_id)
    theirs = (need.account_id,) if need.client_id is None else (need.account_id, need.client_id)
    return mine and all(admits(node.allowed, node.denied, one) for one in theirs)


def _undisturbed(need: Need, node: OfferedNode) -> bool:
    return not any(
        from_us < max(need.until_us, need.at_us + 1) and until_us > need.at_us
        for from_us, until_us in node.maintenance
    )


def _fitting(need: Need, node: OfferedNode) -> int:
    return sum(device_fits(need, device) for device in node.devices)


def _funds(need: Need, node: OfferedNode) -> bool:
    bounds = dict(need.price_max_funds or ())
    is_own = node.account_id == need.account_id  # whose usage fee is paid as "cash" is
    return node.price <= bounds.get("cash" if is_own else node.pay_with, -1)


def tier_of(node: OfferedNode) -> int:
    """The security tier that counts: the lower of the region's, and of the offer's if it says one.
    A provider's word about one machine never lifts it above its region (K-6).
    """
    stated = node.terms.security_tier
    return node.security_tier if stated is None else min(node.security_tier, stated)


def left_of(promised: int | None, held: int) -> int | None:
    """What leases have left of a promise; None: nothing is promised."""
    return None if promised is None else max(0, promised - held)


def _level(name: str | None) -> int:
    """Isolation as a number: what says nothing gives the weakest."""
    return 0 if name is None else ISOLATIONS.index(name)


def _reach(name: str | None) -> int:
    """The class of a network as a number: what says nothing is reached over the internet."""
    return 0 if name is None else NETWORK_CLASSES.index(name)


def capacity_classes_of(need: Need) -> tuple[str, ...]:
    """What a lease may be placed on: what is preemptible only where it may be paused (C-29)."""
    asked = need.constraints.capacity_classes
    if asked is not None:
        return asked
    return CAPACITY_CLASSES if need.constraints.interruptible else (ON_DEMAND, COMMITTED)


def _one(value: Any) -> tuple[Any, ...] | None:
    return None if value is None else (value,)


def _asked(flag: Any) -> tuple[bool, ...] | None:
    return YES if flag else None


DIMENSIONS: tuple[Dimension, ...] = (
    Dimension("offer", ONE, lambda n: YES, lambda n, o: o.is_offered and is_within(n, o), None),
    Dimension("region", ONE, lambda n: YES, lambda n, o: o.is_public, None, own_exempt=True),
    Dimension("sellable", ONE, lambda n: YES, lambda n, o: o.is_sellable, None, own_exempt=True),
    Dimension("place", ONE, lambda n: n.constraints.regions, lambda n, o: o.region_id, "regions"),
    Dimension(
        "pin",
        ONE,
        lambda n: _one(n.constraints.pinned_region),
        lambda n, o: o.region_id,
        None,
        is_lasting=True,
    ),
    Dimension(
        "pool", ONE, lambda n: _one(n.constraints.pool_id), lambda n, o: o.pool_id, "pool_id"
    ),
    Dimension(
        "queue",
        ONE,
        lambda n: YES,
        lambda n, o: not o.keeps_queue or o.pool_id in (_one(n.constraints.pool_id) or ()),
        None,
    ),
    Dimension("node", ONE, lambda n: ("active",), lambda n, o: o.phase, None),
    Dimension(
        "spec_age",
        LESS,
        lambda n: n.spec_ttl_us or None,
        lambda n, o: None if o.specs_at_us is None else n.at_us - o.specs_at_us,
        None,
    ),
    Dimension(
        "kind", ONE, lambda n: n.constraints.kinds, lambda n, o: o.kind, "kinds", is_lasting=True
    ),
    Dimension(
        "vendor",
        ONE,
        lambda n: n.constraints.vendors,
        lambda n, o: o.vendor,
        "vendors",
        is_lasting=True,
    ),
    Dimension(
        "model",
        ONE,
        lambda n: n.models or None,
        lambda n, o: o.device_model,
        "models",
        is_lasting=True,
    ),
    Dimension(
        "gpus",
        MORE,
        lambda n: n.gpu_count,
        lambda n, o: len(o.devices),
        "gpu_count",
        is_lasting=True,
    ),
    Dimension(
        "memory",
        MORE,
        lambda n: n.constraints.memory_mib,
        lambda n, o: lease_memory_mib(o.memory_mib, n.mem_ppm),
        "memory_mib",
        is_lasting=True,
    ),
    Dimension("mode", ONE, lambda n: YES, lambda n, o: n.mode in modes_of(o), "mode"),
    Dimension(
        "isolation",
        MORE,
        lambda n: None if n.constraints.isolation is None else _level(n.constraints.isolation),
        lambda n, o: _level(o.terms.isolation),
        "isolation",
    ),
    Dimension("free", MORE, lambda n: n.gpu_count, _fitting, "share_ppm"),
    Dimension(
        "cloud_quota",
        ONE,
        lambda n: YES,
        lambda n, o: o.cloud_jobs is None or o.cloud_jobs >= n.gpu_count,
        None,
    ),
    Dimension(
        "capacity", ONE, capacity_classes_of, lambda n, o: o.capacity_class, "capacity_classes"
    ),
    Dimension(
        "cpu",
        MORE,
        lambda n: n.constraints.cpu_cores,
        lambda n, o: o.cpu_cores,
        "cpu_cores",
        is_lasting=True,
    ),
    Dimension(
        "ram",
        MORE,
        lambda n: n.constraints.ram_mib,
        lambda n, o: o.ram_mib,
        "ram_mib",
        is_lasting=True,
    ),
    Dimension(
        "storage",
        MORE,
        lambda n: n.constraints.storage_gib,
        lambda n, o: left_of(o.terms.storage_gib, o.held_storage_gib),
        "storage_gib",
    ),
    Dimension(
        "network",
        MORE,
        lambda n: n.constraints.network_mbps,
        lambda n, o: left_of(o.terms.network_mbps, o.held_network_mbps),
        "network_mbps",
    ),
    Dimension(
        "network_class",
        MORE,
        lambda n: (
            None if n.constraints.network_class is None else _reach(n.constraints.network_class)
        ),
        lambda n, o: _reach(o.terms.network_class),
        "network_class",
    ),
    Dimension(
        "arch",
        ONE,
        lambda n: _one(n.constraints.arch),
        lambda n, o: o.arch,
        "arch",
        is_lasting=True,
    ),
    Dimension(
        "os", ONE, lambda n: _one(n.constraints.os), lambda n, o: o.os, "os", is_lasting=True
    ),
    Dimension(
        "kernel",
        MORE,
        lambda n: kernel_number(n.constraints.min_kernel),
        lambda n, o: o.kernel,
        "min_kernel",
        is_lasting=True,
    ),
    Dimension(
        "substrate",
        ONE,
        lambda n: _asked(n.constraints.substrate),
        lambda n, o: n.constraints.substrate in o.substrate,
        "substrate",
        is_lasting=True,
    ),
    Dimension(
        "capabilities", ONE, lambda n: _asked(n.constraints.capabilities), _capable, "capabilities"
    ),
    Dimension(
        "setting", ONE, lambda n: _one(n.constraints.setting), lambda n, o: o.setting, "setting"
    ),
    Dimension(
        "workload",
        ONE,
        lambda n: _asked(n.constraints.workload_class),
        lambda n, o: n.constraints.workload_class not in o.refused_workloads,
        "workload_class",
    ),
    Dimension(
        "security_tier",
        MORE,
        lambda n: n.constraints.security_tier,
        lambda n, o: tier_of(o),
        "security_tier",
    ),
    Dimension(
        "provisional",
        ONE,
        lambda n: None if n.accepts_provisional else YES,
        lambda n, o: o.reputation_ppm is not None,
        "accept_provisional",
        own_exempt=True,
    ),
    Dimension(
        "reputation",
        MORE,
        lambda n: n.constraints.min_reputation_ppm,
        lambda n, o: PPM if o.reputation_ppm is None else o.reputation_ppm,
        "min_reputation_ppm",
        own_exempt=True,
    ),
    Dimension(
        "renter",
        LESS,
        lambda n: PROVISIONAL_PPM if n.renter_ppm is None else n.renter_ppm,
        lambda n, o: o.terms.min_renter_ppm or 0,
        None,
        own_exempt=True,
    ),
    Dimension("lists", ONE, lambda n: YES, _in_lists, None, own_exempt=True),
    Dimension(
        "attributes",
        ONE,
        lambda n: _asked(n.constraints.attributes),
        lambda n, o: is_stated(o, n),
        "attributes",
    ),
    Dimension(
        "sla",
        ONE,
        lambda n: None if n.sla_classes is None else (None, *n.sla_classes),
        lambda n, o: o.terms.sla_class,
        "sla_class",
    ),
    Dimension(
        "reclaim",
        MORE,
        lambda n: n.constraints.reclaim_window_us,
        lambda n, o: o.terms.reclaim_window_us or 0,
        "reclaim_window_seconds",
    ),
    Dimension(
        "interruptible",
        ONE,
        lambda n: _asked(n.constraints.interruptible),
        lambda n, o: bool(o.terms.interruptible),
        "interruptible",
    ),
    Dimension("maintenance", ONE, lambda n: YES, _undisturbed, None),
    Dimension(
        "available",
        MORE,
        lambda n: n.until_us,
        lambda n, o: NEVER_US if o.available_until_us is None else o.available_until_us,
        "term_seconds",
    ),
    Dimension(
        "settlement",
        ONE,
        lambda n: n.settlements,
        lambda n, o: o.pay_with,
        "settlement",
        own_exempt=True,
    ),
    Dimension("usage_fee", ONE, lambda n: YES, lambda n, o: o.is_priced, None),
    Dimension("price", LESS, lambda n: n.price_max, lambda n, o: o.price, "max_price_per_gpu_hour"),
    Dimension("budget", LESS, lambda n: n.price_max_budget, lambda n, o: o.price, None),
    Dimension("funds", ONE, lambda n: _asked(n.price_max_funds is not None), _funds, None),
)
BY_NAME = {dimension.name: dimension for dimension in DIMENSIONS}
LASTING = tuple(dimension.name for dimension in DIMENSIONS if dimension.is_lasting)
"""What only another inventory of a node can change: where these refuse all, waiting is no use."""
