"""One accelerator: who holds which share of it now, and where its time went.

    sum(share_ppm of holders) <= 1_000_000  and  sum(mem_ppm of holders) <= 1_000_000   always
    all holders hold it in one mode, by the rule of that mode                           always
    leased + idle + mined + stranded + unavailable == physical                          in the books

Every reservation appends here with an expected version, so two leases cannot get one share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.hardware.capacity import NO_TIME, Level, Span, Totals, counted
from domain.hardware.reasons import HardwareReason
from domain.hardware.sharing import (
    WHOLE,
    Gpu,
    Held,
    admit,
    blocked_ppm,
    free_of,
    part_of,
    require_mode,
)
from domain.money import PPM, Amount, Asset, Big
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRegistered:
    """Stream `device:{device_id}`."""

    device_id: str
    node_id: str
    provider_id: str
    vendor: str
    model: str
    gpu_class: str | None  # absent: the model is in no class, so it is listed but not priced
    memory_mib: int
    at_us: int
    kind: str  # of `domain/fleet/kinds.py`: "gpu", "seat", ...
    memory: str  # "dedicated", "unified" (the host's own) or "none"
    is_divisible: bool  # or never less than a whole one is leased
    capacity_asset: Asset  # what its time is counted in


@dataclass(frozen=True, slots=True)
class MigPart:
    """A MIG instance: its profile, and the memory slice at which it begins."""

    profile: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReserved:
    device_id: str
    lease_id: str
    share_ppm: int
    mem_ppm: int
    at_us: int
    mode: str  # SHARING_MODES
    mig: MigPart | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReleased:
    device_id: str
    lease_id: str
    share_ppm: int
    mem_ppm: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityAccrued:
    """Where the device's time of [from_us, to_us) went, in GPU- or seat-milliseconds booked now."""

    device_id: str
    from_us: int
    to_us: int
    physical: Amount
    leased: Amount
    stranded: Amount
    unavailable: Amount
    mined: Amount
    physical_us: Big  # from here on cumulative and unfloored, so that no fraction is ever lost
    leased_ppm_us: Big
    stranded_ppm_us: Big
    unavailable_ppm_us: Big
    mined_ppm_us: Big
    at_us: int
    node_id: str  # whose time it is: nobody else owns what is idle or stranded
    lane: int | None  # of the usage log, whose reports up to `usage_position` were read:
    usage_position: int | None  # what they did not prove is unavailable; None: none were read


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRetired:
    """Its node left. Appended here too, so that nobody reserves a device of a retired node."""

    device_id: str
    node_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReshaped:
    """The partition is not there any more that these leases held: they end with the same append.

    The device is theirs until then; what comes free is sold by whatever mode is asked for next.
    """

    device_id: str
    node_id: str
    lease_ids: tuple[str, ...]
    by: str  # the node, or a member of its provider
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeDevice:
    """Say that a device was partitioned anew under the leases that held these parts of it."""

    device_id: str
    node_id: str
    lease_ids: tuple[str, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccrueCapacity:
    """Book the device's time up to `to_us`. Once an hour, and at the seal."""

    device_id: str
    to_us: int
    unavailable: tuple[Span, ...]  # offline, in maintenance or unproven; may overlap
    at_us: int
    mining: tuple[Span, ...] = ()  # its node mines then while nobody leases it
    min_share_ppm: int = 1  # the smallest share that can be sold
    lane: int | None = None
    usage_position: int | None = None  # how far the node's signed reports were read


# State.


@dataclass(frozen=True, slots=True)
class DeviceState:
    registered: DeviceRegistered | None = None  # the latest
    is_retired: bool = False
    holders: dict[str, Held] = field(default_factory=dict)  # lease id -> what it holds
    counted_to_us: int = 0  # booked up to here
    levels: tuple[Level, ...] = ()  # since `counted_to_us`, the first one at or before it
    totals: Totals = NO_TIME

    @property
    def is_live(self) -> bool:
        """Registered on a node that has not retired."""
        return self.registered is not None and not self.is_retired

    def is_due(self, to_us: int) -> bool:
        """Whether there is time to book up to a moment; a retired device's last part is."""
        return self.counted_to_us < to_us and any(level.is_present for level in self.levels)

    @property
    def mode(self) -> str | None:
        """How it is shared now; None while nobody holds it, so the next lease decides."""
        return next((held.mode for held in self.holders.values()), None)

    @property
    def node_id(self) -> str | None:
        return self.registered.node_id if self.registered is not None else None

    @property
    def asset(self) -> Asset:
        """What its time is counted in."""
        return Asset.GPU_MS if self.registered is None else self.registered.capacity_asset

    @property
    def gpu_class(self) -> str | None:
        return self.registered.gpu_class if self.registered is not None else None


DeviceFact: TypeAlias = (
    DeviceRegistered
    | DeviceReserved
    | DeviceReleased
    | CapacityAccrued
    | DeviceRetired
    | DeviceReshaped
)


def evolve(state: DeviceState, fact: DeviceFact) -> DeviceState:
    match fact:
        case DeviceRegistered():
            started = fact.at_us if state.registered is None else state.counted_to_us
            here = replace(state, registered=fact, is_retired=False, counted_to_us=started)
            return _levelled(here, fact.at_us)
        case DeviceReserved():
            held = Held(fact.share_ppm, fact.mem_ppm, fact.mode)
            if fact.mig is not None:
                held = replace(held, profile=fact.mig.profile, start=fact.mig.start)
            return _levelled(
                replace(state, holders={**state.holders, fact.lease_id: held}), fact.at_us
            )
        case DeviceReleased():
            left = {who: held for who, held in state.holders.items() if who != fact.lease_id}
            return _levelled(replace(state, holders=left), fact.at_us)
        case DeviceReshaped():
            return state
        case DeviceRetired():
            return _levelled(replace(state, is_retired=True), fact.at_us)
        case CapacityAccrued():
            totals = Totals(
                physical_us=fact.physical_us,
                leased_ppm_us=fact.leased_ppm_us,
                stranded_ppm_us=fact.stranded_ppm_us,
                unavailable_ppm_us=fact.unavailable_ppm_us,
                mined_ppm_us=fact.mined_ppm_us,
            )
            levels = _levels_from(state.levels, fact.to_us)
            return replace(state, counted_to_us=fact.to_us, levels=levels, totals=totals)
        case _:
            assert_never(fact)


def _levelled(state: DeviceState, at_us: int) -> DeviceState:
    """A new level from `at_us` on. What is booked stays booked: a change that is dated earlier
    than the last booking or the last change, as by a late timer, counts from there.
    """
    last_us = state.levels[-1].from_us if state.levels else at_us
    level = Level(
        from_us=max(at_us, last_us, state.counted_to_us),
        share_ppm=PPM - free_of(state.holders.values())[0],
        blocked_ppm=_blocked(state),
        is_present=state.is_live,
    )
    before = state.levels
    if before and before[-1].from_us == level.from_us:
        before = before[:-1]
    return replace(state, levels=(*before, level))


def _levels_from(levels: tuple[Level, ...], from_us: int) -> tuple[Level, ...]:
    """The levels that still matter after `from_us`: later ones, and the one in force there."""
    in_force = sum(level.from_us <= from_us for level in levels)
    return levels[max(0, in_force - 1) :]


# Holding a share.


def device_stream(device_id: str) -> Stream[DeviceState]:
    return Stream("device", device_id)


def device_of(world: World, device_id: str) -> DeviceState:
    return world.state(device_stream(device_id))


def gpu_of(device: DeviceRegistered) -> Gpu:
    """What decides how it can be shared."""
    return Gpu(device.vendor, device.model, device.memory_mib)


def free_share(state: DeviceState) -> int:
    """Compute share, in ppm, that nobody holds; 0 if the device is not in service."""
    return free_of(state.holders.values())[0] if state.is_live else 0


def free_mem(state: DeviceState) -> int:
    """Memory share, in ppm, that nobody holds; 0 if the device is not in service."""
    return free_of(state.holders.values())[1] if state.is_live else 0


def reserve(
    state: DeviceState,
    lease_id: str,
    share_ppm: int,
    mem_ppm: int,
    at_us: int,
    *,
    mode: str | None = None,
    profile: str | None = None,
) -> DeviceReserved:
    """The fact that gives a lease its part, for the device's stream, by the rule of the mode.

    A MIG instance gets the shares that its profile has on this GPU, and its start is chosen here.
    Raises Refused: DEVICE_UNKNOWN, DEVICE_TAKEN, UNKNOWN_MODE, UNKNOWN_PROFILE,
    SHARE_OUT_OF_RANGE, MODE_NOT_SUPPORTED.
    """
    device = state.registered
    if device is None or state.is_retired:
        raise Refused(FleetReason.DEVICE_UNKNOWN)
    if lease_id in state.holders:
        raise Refused(HardwareReason.DEVICE_TAKEN, device_id=device.device_id, lease_id=lease_id)
    asked = require_mode(mode, profile, share_ppm, mem_ppm)
    if not device.is_divisible and asked != WHOLE:
        raise Refused(PartiesReason.SHARE_OUT_OF_RANGE, rule="whole_only", share_ppm=share_ppm)
    part = part_of(asked, profile, share_ppm, mem_ppm, gpu_of(device))
    try:
        held = admit(part, state.holders.values(), gpu_of(device))
    except Refused as refused:
        raise Refused(refused.reason, device_id=device.device_id, **refused.facts) from None
    return DeviceReserved(
        device_id=device.device_id,
        lease_id=lease_id,
        share_ppm=held.share_ppm,
        mem_ppm=held.mem_ppm,
        at_us=at_us,
        mode=held.mode,
        mig=_mig_part(held),
    )


def _mig_part(held: Held) -> MigPart | None:
    if held.profile is None:
        return None
    assert held.start is not None, held
    return MigPart(held.profile, held.start)


def release(state: DeviceState, lease_id: str, at_us: int) -> DeviceReleased:
    """The fact that takes a lease's share back. Only a holder can be released."""
    assert state.registered is not None
    held = state.holders[lease_id]
    return DeviceReleased(
        device_id=state.registered.device_id,
        lease_id=lease_id,
        share_ppm=held.share_ppm,
        mem_ppm=held.mem_ppm,
        at_us=at_us,
    )


def _blocked(state: DeviceState) -> int:
    device = state.registered
    return 0 if device is None else blocked_ppm(state.holders.values(), gpu_of(device))


def decide_reshape(command: ReshapeDevice, world: World) -> list[Change]:
    """The leases are closed by commands of their own, in the same append.

    Raises Refused: DEVICE_UNKNOWN, also of another node; LEASE_STATE for one that holds no part.
    """
    state = device_of(world, command.device_id)
    if not state.is_live or state.node_id != command.node_id:
        raise Refused(FleetReason.DEVICE_UNKNOWN, device_id=command.device_id)
    for lease_id in command.lease_ids:
        if lease_id not in state.holders:
            raise Refused(
                FleetReason.LEASE_STATE,
                lease_id=lease_id,
                device_id=command.device_id,
                rule="holds_a_part",
            )
    reshaped = DeviceReshaped(
        device_id=command.device_id,
        node_id=command.node_id,
        lease_ids=command.lease_ids,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(device_stream(command.device_id), reshaped)]


# Where the time went.


def decide_accrue(command: AccrueCapacity, world: World) -> list[Change]:
    """Book [last booking, `to_us`): every moment is whole and counts once, as
    `domain/hardware/capacity.py` says. What no lease holds is the node's own. Seats of software do
    not mine.

    Rule: conformance suite `conservation`. Raises Refused: DEVICE_UNKNOWN, DEVICE_INTERVAL.
    """
    state = device_of(world, command.device_id)
    if state.registered is None:
        raise Refused(FleetReason.DEVICE_UNKNOWN, device_id=command.device_id)
    if command.to_us == state.counted_to_us:
        return []
    if not state.counted_to_us < command.to_us <= command.at_us:
        raise Refused(
            FleetReason.DEVICE_INTERVAL, counted_to_us=state.counted_to_us, to_us=command.to_us
        )
    if any(span.from_us >= span.to_us for span in (*command.unavailable, *command.mining)):
        raise Refused(FleetReason.DEVICE_INTERVAL, device_id=command.device_id)
    window = Span(state.counted_to_us, command.to_us)
    totals = counted(
        state.totals,
        state.levels,
        window,
        command.unavailable,
        command.min_share_ppm,
        command.mining if state.asset is Asset.GPU_MS else (),
    )
    if totals == state.totals:  # retired all along: there is no time to book
        return []
    before, after, asset = state.totals.booked_ms(), totals.booked_ms(), state.asset
    assert after.idle >= 0, (state, command)
    accrued = CapacityAccrued(
        device_id=command.device_id,
        from_us=state.counted_to_us,
        to_us=command.to_us,
        physical=Amount(asset, after.physical - before.physical),
        leased=Amount(asset, after.leased - before.leased),
        stranded=Amount(asset, after.stranded - before.stranded),
        unavailable=Amount(asset, after.unavailable - before.unavailable),
        mined=Amount(asset, after.mined - before.mined),
        physical_us=totals.physical_us,
        leased_ppm_us=totals.leased_ppm_us,
        stranded_ppm_us=totals.stranded_ppm_us,
        unavailable_ppm_us=totals.unavailable_ppm_us,
        mined_ppm_us=totals.mined_ppm_us,
        at_us=command.at_us,
        node_id=state.registered.node_id,
        lane=command.lane,
        usage_position=command.usage_position,
    )
    return [Change(device_stream(command.device_id), accrued)]


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {"device": (DeviceState(), evolve)}

DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    AccrueCapacity: decide_accrue,
    ReshapeDevice: decide_reshape,
}
