"""Providers and their regions: who offers nodes, where, and who may use them.

provider -> region -> node -> device. A region's storage mode never changes: another mode needs a
new region (C-4). A region of a cloud provider is one region of that cloud, which the provider uses
once; a region of machines of one's own names its site, which may hold several (C-3). A provider is
registered together with the way in which it is paid (C-2).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from domain.calendar import day_of, day_text
from domain.fleet.cloud_regions import names_on
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.hardware.admission import WAIVABLE
from domain.hardware.constraints import SETTINGS
from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.prices.provider_kinds import is_cloud, provider_kind_in_force
from domain.refusal import Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRegistered:
    """Stream `provider:{provider_id}`."""

    provider_id: str
    account_id: str
    kind: str  # of the registry of kinds: "physical", "gcp"
    payment_mode: str  # PAYMENT_MODES: how its account was to be paid then
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudAccountChecked:
    """Stream `provider:{provider_id}`: how far the account of a cloud provider is set up."""

    provider_id: str
    project_id: str  # the cloud's own
    project_made_on: str  # UTC day, YYYY-MM-DD
    done: tuple[str, ...]  # of the checklist (domain/cloud/onboarding.py)
    missing: tuple[str, ...]  # required and not done; none: the provider is ready
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionOpened:
    """Stream `region:{region_id}`."""

    region_id: str
    provider_id: str
    name: str  # DNS characters, unique per provider
    storage_mode: str  # "local" or "central"
    setting: str  # "edge" or "datacenter"
    admission: str  # ADMISSIONS
    allow_public_jobs: bool
    at_us: int
    hardware_rules: tuple[str, ...]  # of hardware_admission: those it insists on
    cloud_region: str | None  # as its cloud names it; None: machines of one's own
    site: str | None  # the place of the machines, in the provider's words


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionHardwareSet:
    """Which of the rules of joining and selling the region insists on; the operator says so."""

    region_id: str
    rules: tuple[str, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionPolicySet:
    region_id: str
    allow_public_jobs: bool
    by: str
    at_us: int
    refused_workloads: tuple[str, ...]
    down_ranked_workloads: tuple[str, ...]  # matched after every other node
    security_tier: int  # SECURITY_TIERS


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionNameTaken:
    """Stream `region-name:{provider_id}|{name}`: two regions of a provider never share a name."""

    provider_id: str
    name: str
    region_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudRegionTaken:
    """Stream `cloud-region:{provider_id}|{cloud_region}`: a provider uses each one once."""

    provider_id: str
    cloud_region: str
    region_id: str
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterProvider:
    """`payment_mode`: the one that is set for the account, or set in the same append."""

    provider_id: str
    account_id: str
    kind: str
    payment_mode: str | None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRegion:
    region_id: str
    provider_id: str
    name: str
    storage_mode: str
    setting: str
    admission: str
    allow_public_jobs: bool
    at_us: int
    hardware_rules: tuple[str, ...] | None = None
    cloud_region: str | None = None
    site: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRegionHardware:
    """Insist on these rules of `domain/hardware/admission.py`, and on no other that can be waived.
    Nodes that are there are judged anew when they next tell their inventory.
    """

    region_id: str
    rules: tuple[str, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRegionPolicy:
    """What is None stays as it is."""

    region_id: str
    allow_public_jobs: bool
    by: str
    at_us: int
    refused_workloads: tuple[str, ...] | None = None
    down_ranked_workloads: tuple[str, ...] | None = None
    security_tier: int | None = None


PAYMENT_MODES = ("credits", "cash")
CENTRAL = "central"
STORAGE_MODES = ("local", CENTRAL)
APPROVED = "approved"
ADMISSIONS = ("operator", "permissionless", APPROVED)
"""Who lets nodes in: the operator, their owner, or the operator at the end of the whole procedure
(`domain/machines/admission.py`).
"""
IP_LEASE, LARGE_STORAGE = "ip_lease", "large_storage"
"""Workload classes that machines at home do badly (K-8); any other word is a class too."""
REFUSED_AT_EDGE, DOWN_RANKED_AT_EDGE = (IP_LEASE,), (LARGE_STORAGE,)
"""What an edge region does with them until its policy says otherwise."""
SECURITY_TIERS = range(10)
"""What a region promises of who gets at its machines: 0 nothing, the higher the more."""
WORKLOADS_MAX = 32
WORKLOAD = re.compile(r"[a-z][a-z0-9_]{0,31}")

REGION_NAME_PATTERN = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
"""The DNS label a region's name should be (C-4); the door checks it."""

CLOUD_REGION = re.compile(r"[a-z][a-z0-9-]{0,39}")
SITE_LENGTH_MAX = 100

# State.


@dataclass(frozen=True, slots=True)
class ProviderState:
    account_id: str = ""
    kind: str = ""
    payment_mode: str = ""
    cloud_account: CloudAccountChecked | None = None  # the last checklist

    @property
    def exists(self) -> bool:
        return self.account_id != ""


@dataclass(frozen=True, slots=True)
class RegionState:
    opened: RegionOpened | None = None
    allow_public_jobs: bool = False
    refused_workloads: tuple[str, ...] = ()
    down_ranked_workloads: tuple[str, ...] = ()
    security_tier: int = 0
    hardware_rules: tuple[str, ...] = ()

    @property
    def exists(self) -> bool:
        return self.opened is not None


@dataclass(frozen=True, slots=True)
class RegionNameState:
    region_id: str | None = None


@dataclass(frozen=True, slots=True)
class CloudRegionState:
    region_id: str | None = None


def evolve_cloud_region(_state: CloudRegionState, fact: CloudRegionTaken) -> CloudRegionState:
    return CloudRegionState(fact.region_id)


ProviderFact: TypeAlias = ProviderRegistered | CloudAccountChecked


def evolve(state: ProviderState, fact: ProviderFact) -> ProviderState:
    match fact:
        case ProviderRegistered():
            return ProviderState(fact.account_id, fact.kind, fact.payment_mode)
        case CloudAccountChecked():
            return replace(state, cloud_account=fact)
        case _:
            assert_never(fact)


RegionFact: TypeAlias = RegionOpened | RegionPolicySet | RegionHardwareSet


def evolve_region(state: RegionState, fact: RegionFact) -> RegionState:
    match fact:
        case RegionOpened():
            is_edge = fact.setting == "edge"
            return RegionState(
                fact,
                fact.allow_public_jobs,
                REFUSED_AT_EDGE if is_edge else (),
                DOWN_RANKED_AT_EDGE if is_edge else (),
                hardware_rules=fact.hardware_rules,
            )
        case RegionPolicySet():
            return replace(
                state,
                allow_public_jobs=fact.allow_public_jobs,
                refused_workloads=fact.refused_workloads,
                down_ranked_workloads=fact.down_ranked_workloads,
                security_tier=fact.security_tier,
            )
        case RegionHardwareSet():
            return replace(state, hardware_rules=fact.rules)
        case _:
            assert_never(fact)


def _under(state: RegionState, policy: SetRegionPolicy) -> RegionState:
    """The region with this policy: what it does not name stays as it is."""
    refused, down_ranked = policy.refused_workloads, policy.down_ranked_workloads
    tier = policy.security_tier
    return replace(
        state,
        allow_public_jobs=policy.allow_public_jobs,
        refused_workloads=state.refused_workloads if refused is None else refused,
        down_ranked_workloads=state.down_ranked_workloads if down_ranked is None else down_ranked,
        security_tier=state.security_tier if tier is None else tier,
    )


def evolve_region_name(_state: RegionNameState, fact: RegionNameTaken) -> RegionNameState:
    return RegionNameState(fact.region_id)


# Decisions.


def provider_stream(provider_id: str) -> Stream[ProviderState]:
    return Stream("provider", provider_id)


def provider_of(world: World, provider_id: str) -> ProviderState:
    return world.state(provider_stream(provider_id))


def existing_provider(world: World, provider_id: str) -> ProviderState:
    """Raises Refused: PROVIDER_UNKNOWN."""
    state = provider_of(world, provider_id)
    if not state.exists:
        raise Refused(FleetReason.PROVIDER_UNKNOWN, provider_id=provider_id)
    return state


def region_stream(region_id: str) -> Stream[RegionState]:
    return Stream("region", region_id)


def region_of(world: World, region_id: str) -> RegionState:
    return world.state(region_stream(region_id))


def existing_region(world: World, region_id: str) -> RegionOpened:
    """How the region was opened. Raises Refused: REGION_UNKNOWN."""
    opened = region_of(world, region_id).opened
    if opened is None:
        raise Refused(FleetReason.REGION_UNKNOWN, region_id=region_id)
    return opened


def region_name_stream(provider_id: str, name: str) -> Stream[RegionNameState]:
    return Stream("region-name", f"{provider_id}|{name}")


def decide_register(command: RegisterProvider, world: World) -> list[Change]:
    """An account may run several providers; clients and auditors run none.

    Raises Refused: NOT_PERMITTED, ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, PROVIDER_EXISTS,
    PROVIDER_KIND_UNKNOWN, PAYMENT_MODE_NEEDED.
    """
    owner = open_account(world, command.account_id)
    if owner.kind not in ("party", "operator"):
        raise Refused(PartiesReason.NOT_PERMITTED, kind=owner.kind)
    present = provider_of(world, command.provider_id)
    told = (command.account_id, command.kind, command.payment_mode)
    if (present.account_id, present.kind, present.payment_mode) == told:
        return []
    if present.exists:
        raise Refused(FleetReason.PROVIDER_EXISTS, provider_id=command.provider_id)
    if provider_kind_in_force(world, command.kind, command.at_us) is None:
        raise Refused(FleetReason.PROVIDER_KIND_UNKNOWN, kind=command.kind)
    if command.payment_mode not in PAYMENT_MODES:
        raise Refused(FleetReason.PAYMENT_MODE_NEEDED, account_id=command.account_id)
    registered = ProviderRegistered(
        provider_id=command.provider_id,
        account_id=command.account_id,
        kind=command.kind,
        payment_mode=command.payment_mode,
        at_us=command.at_us,
    )
    return [Change(provider_stream(command.provider_id), registered)]


def decide_open_region(command: OpenRegion, world: World) -> list[Change]:
    """Raises Refused: PROVIDER_UNKNOWN, REGION_EXISTS, PROVIDER_NOT_READY, STORAGE_MODE_UNKNOWN,
    UNKNOWN_MODE, REGION_NOT_SUITED, CLOUD_REGION.
    """
    provider = existing_provider(world, command.provider_id)
    opened = RegionOpened(
        region_id=command.region_id,
        provider_id=command.provider_id,
        name=command.name,
        storage_mode=command.storage_mode,
        setting=command.setting,
        admission=command.admission,
        allow_public_jobs=command.allow_public_jobs,
        at_us=command.at_us,
        hardware_rules=command.hardware_rules or (),
        cloud_region=command.cloud_region,
        site=command.site,
    )
    present = region_of(world, command.region_id).opened
    if present is not None and replace(opened, at_us=present.at_us) == present:
        return []
    named = region_name_stream(command.provider_id, command.name)
    holder = world.state(named)
    if present is not None or holder.region_id is not None:
        raise Refused(FleetReason.REGION_EXISTS, region_id=command.region_id, name=command.name)
    _require_ready(command, provider, world)
    _require_modes(command)
    _require_rules(command.hardware_rules or ())
    placed = _placed(command, provider, world)
    taken = RegionNameTaken(
        provider_id=command.provider_id,
        name=command.name,
        region_id=command.region_id,
        at_us=command.at_us,
    )
    return [Change(named, taken), *placed, Change(region_stream(command.region_id), opened)]


def _placed(command: OpenRegion, provider: ProviderState, world: World) -> list[Change]:
    """A region of a cloud names its cloud region, which is on the list of that cloud (C-28) and in
    which no other region of the provider is, and keeps its data on a storage node (C-30). Machines
    of one's own stand at a site.

    Raises Refused: CLOUD_REGION, REGION_NOT_SUITED, COUNT_OUT_OF_RANGE.
    """
    name = command.cloud_region
    if not is_cloud(world, provider.kind, command.at_us):
        if name is not None:
            raise Refused(FleetReason.CLOUD_REGION, kind=provider.kind, rule="physical")
        if command.site is not None and not 1 <= len(command.site) <= SITE_LENGTH_MAX:
            raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, field="site", at_most=SITE_LENGTH_MAX)
        return []
    if name is None or command.site is not None or not CLOUD_REGION.fullmatch(name):
        raise Refused(FleetReason.CLOUD_REGION, kind=provider.kind, rule="named")
    listed = names_on(provider.kind, day_text(day_of(command.at_us)))
    if listed is not None and name not in listed:
        raise Refused(FleetReason.CLOUD_REGION, cloud_region=name, rule="listed")
    if command.storage_mode != CENTRAL:
        raise Refused(FleetReason.REGION_NOT_SUITED, what="cloud_region")
    stream = cloud_region_stream(command.provider_id, name)
    holder = world.state(stream).region_id
    if holder is not None:
        raise Refused(FleetReason.CLOUD_REGION, cloud_region=name, region_id=holder)
    fact = CloudRegionTaken(
        provider_id=command.provider_id,
        cloud_region=name,
        region_id=command.region_id,
        at_us=command.at_us,
    )
    return [Change(stream, fact)]


def cloud_region_stream(provider_id: str, cloud_region: str) -> Stream[CloudRegionState]:
    return Stream("cloud-region", f"{provider_id}|{cloud_region}")


def _require_ready(command: OpenRegion, provider: ProviderState, world: World) -> None:
    """The account of a cloud provider is set up before its first region (C-27).

    Raises Refused: PROVIDER_NOT_READY.
    """
    checked = provider.cloud_account
    if is_cloud(world, provider.kind, command.at_us) and (checked is None or checked.missing):
        missing = "the whole checklist" if checked is None else ", ".join(checked.missing)
        raise Refused(
            FleetReason.PROVIDER_NOT_READY, provider_id=command.provider_id, missing=missing
        )


def decide_region_policy(command: SetRegionPolicy, world: World) -> list[Change]:
    """Raises Refused: REGION_UNKNOWN, COUNT_OUT_OF_RANGE, UNKNOWN_MODE."""
    existing_region(world, command.region_id)
    state = region_of(world, command.region_id)
    _require_policy(command)
    told = _under(state, command)
    if told == state:
        return []
    policy = RegionPolicySet(
        region_id=command.region_id,
        allow_public_jobs=told.allow_public_jobs,
        by=command.by,
        at_us=command.at_us,
        refused_workloads=told.refused_workloads,
        down_ranked_workloads=told.down_ranked_workloads,
        security_tier=told.security_tier,
    )
    return [Change(region_stream(command.region_id), policy)]


def decide_region_hardware(command: SetRegionHardware, world: World) -> list[Change]:
    """Raises Refused: REGION_UNKNOWN, UNKNOWN_MODE."""
    existing_region(world, command.region_id)
    _require_rules(command.rules)
    rules = tuple(name for name in WAIVABLE if name in command.rules)
    if rules == region_of(world, command.region_id).hardware_rules:
        return []
    told = RegionHardwareSet(
        region_id=command.region_id, rules=rules, by=command.by, at_us=command.at_us
    )
    return [Change(region_stream(command.region_id), told)]


def _require_rules(rules: tuple[str, ...]) -> None:
    unknown = [name for name in rules if name not in WAIVABLE]
    if unknown:
        raise Refused(PartiesReason.UNKNOWN_MODE, rules=",".join(unknown)[:200], allowed=WAIVABLE)


def _require_policy(command: SetRegionPolicy) -> None:
    """A class of workloads is a word, refused or ranked down and not both."""
    words = (*(command.refused_workloads or ()), *(command.down_ranked_workloads or ()))
    if len(words) > WORKLOADS_MAX or (command.security_tier or 0) not in SECURITY_TIERS:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, workloads=len(words), at_most=WORKLOADS_MAX)
    if len(set(words)) < len(words) or not all(map(WORKLOAD.fullmatch, words)):
        raise Refused(PartiesReason.UNKNOWN_MODE, workloads=",".join(words)[:200])


def _require_modes(command: OpenRegion) -> None:
    if command.storage_mode not in STORAGE_MODES:
        raise Refused(
            FleetReason.STORAGE_MODE_UNKNOWN,
            storage_mode=command.storage_mode,
            allowed=STORAGE_MODES,
        )
    if command.setting not in SETTINGS:
        raise Refused(PartiesReason.UNKNOWN_MODE, setting=command.setting)
    if command.admission not in ADMISSIONS:
        raise Refused(PartiesReason.UNKNOWN_MODE, admission=command.admission)


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "provider": (ProviderState(), evolve),
    "region": (RegionState(), evolve_region),
    "region-name": (RegionNameState(), evolve_region_name),
    "cloud-region": (CloudRegionState(), evolve_cloud_region),
}

DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    RegisterProvider: decide_register,
    OpenRegion: decide_open_region,
    SetRegionPolicy: decide_region_policy,
    SetRegionHardware: decide_region_hardware,
}
