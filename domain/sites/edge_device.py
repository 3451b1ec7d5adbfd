"""Edge devices and their fee: one stream per account, charged once for every UTC day, in order.

    added --(first_day .. last_day)--> charged every day of it --> forgotten;   last_day: removed on

    sum of the charges of a month == floor(sum over its days of fee x U / D)    (prices/device_fee)
    drawn + owed == charge                                                      every day

Jetsons and their like, which run one always-on model (row C-34; `domain/sites/inference.py`) and
pay by the month (row C-22). Not the accelerators of nodes: those are rented out and pay the usage
fee (`domain/fleet/device.py`). The stream's version is the natural key: two jobs that charge the
same day meet it, and one charges.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from domain.calendar import day_named, day_of, day_start_us, day_text, days_in, month_of_day
from domain.fleet.provider import CENTRAL, existing_provider, existing_region
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.funds.draw import Drawn, draw
from domain.funds.funding import require_balance
from domain.money import Amount, Big, credit
from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.prices.device_fee import due_units
from domain.prices.provider_kinds import PHYSICAL
from domain.prices.tariff import tariff_of
from domain.refusal import Refused
from domain.sites.names import NAME, NAME_RULE
from domain.sites.reasons import SitesReason
from domain.stream import Change, Stream, World

# Facts. Stream `edge-devices:{account_id}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeDeviceAdded:
    """Configured from now on; each add is a new device, also of the same machine."""

    device_id: str
    account_id: str
    region_id: str
    name: str  # unique in the region, among the devices that are there
    minion_id: str  # what the machine shows; in the region one device has it
    model: str  # EDGE_MODELS
    first_day: str  # the first UTC day it is charged for, YYYY-MM-DD
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeDeviceActivated:
    """It told that it runs, for the first time: it is active by itself (row C-6)."""

    device_id: str
    account_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeDeviceRemoved:
    """Not configured any more; the day of the removal is still charged."""

    device_id: str
    account_id: str
    last_day: str  # the last UTC day it is charged for
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFeeCharged:
    """The fee of one UTC day. Days on which no device was configured have none."""

    account_id: str
    day: str
    unique: int  # distinct devices configured at any time of the day
    fee_per_month: Amount  # of one device, by the tariff in force when the day began
    tariff_version: int | None  # absent: no tariff was in force, and the day is free
    days_in_month: int
    fee_days: Big  # sum of fee x unique since the month began, unfloored
    due: Amount  # floor(fee_days / days_in_month): cumulative since the month began
    charge: Amount  # new: due - due of the day before
    drawn: tuple[Drawn, ...]
    owed: Amount  # the part of the charge that nothing was there for
    at_us: int


Fact: TypeAlias = EdgeDeviceAdded | EdgeDeviceActivated | EdgeDeviceRemoved | DeviceFeeCharged

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class AddEdgeDevice:
    device_id: str
    account_id: str
    region_id: str
    name: str
    minion_id: str
    model: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveEdgeDevice:
    device_id: str
    account_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportEdgeDevice:
    device_id: str
    account_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeDeviceFee:
    """Charge the next day that is due and over; there may be none."""

    account_id: str
    at_us: int


EDGE_MODELS = (
    "jetson-agx-xavier",
    "jetson-xavier-nx",
    "jetson-agx-orin",
    "jetson-orin-nx",
    "jetson-orin-nano",
)
"""What an edge device can be (row C-34)."""

MINION_ID = r"^[0-9A-Za-z][0-9A-Za-z._:-]{0,99}$"
DEVICES_MAX = 10_000
"""Devices of one account that are not charged to their end yet."""

# What is remembered.


@dataclass(frozen=True, slots=True)
class Configured:
    """One device, until its last day has been charged. Days count from 1970."""

    region_id: str
    name: str
    minion_id: str
    model: str
    first_day: int
    last_day: int | None = None  # None: not removed
    is_active: bool = False  # it told that it runs


@dataclass(frozen=True, slots=True)
class EdgeDevices:
    """The devices of one account. `month` is that of `charged_day`."""

    devices: dict[str, Configured] = field(default_factory=dict)
    charged_day: int = -1  # every day up to here is done
    month: int = 0
    fee_days: Big = 0
    due_units: Big = 0

    @property
    def next_day(self) -> int | None:
        """The next day with a device on it that is not charged yet."""
        first = min((one.first_day for one in self.devices.values()), default=None)
        return None if first is None else max(first, self.charged_day + 1)

    def unique_on(self, day: int) -> int:
        """U of a day that is not charged yet: distinct devices configured at any time of it."""
        return sum(
            one.first_day <= day and (one.last_day is None or day <= one.last_day)
            for one in self.devices.values()
        )


def evolve(state: EdgeDevices, fact: Fact) -> EdgeDevices:
    """The devices after one more fact."""
    match fact:
        case EdgeDeviceAdded():
            day = day_named(fact.first_day)
            new = Configured(fact.region_id, fact.name, fact.minion_id, fact.model, day)
            return replace(state, devices={**state.devices, fact.device_id: new})
        case EdgeDeviceActivated():
            running = replace(state.devices[fact.device_id], is_active=True)
            return replace(state, devices={**state.devices, fact.device_id: running})
        case EdgeDeviceRemoved():
            device = state.devices[fact.device_id]
            gone = replace(device, last_day=day_named(fact.last_day))
            return replace(state, devices=_open({**state.devices, fact.device_id: gone}, state))
        case DeviceFeeCharged():
            day = day_named(fact.day)
            after = EdgeDevices(
                state.devices, day, month_of_day(day), fact.fee_days, fact.due.units
            )
            return replace(after, devices=_open(state.devices, after))
        case _:
            assert_never(fact)


def _open(devices: dict[str, Configured], state: EdgeDevices) -> dict[str, Configured]:
    """Those that are not charged to their end."""
    return {
        name: one
        for name, one in devices.items()
        if one.last_day is None or one.last_day > state.charged_day
    }


def stream_of(account_id: str) -> Stream[EdgeDevices]:
    return Stream("edge-devices", account_id)


def edge_devices_of(world: World, account_id: str) -> EdgeDevices:
    return world.state(stream_of(account_id))


# How we decide.


def decide_add(command: AddEdgeDevice, world: World) -> list[Change]:
    """A device in a region of one's own, which is physical and central (row C-8), for an account
    with credits (row C-25). The same device again changes nothing.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, REGION_UNKNOWN, REGION_NOT_SUITED,
    UNKNOWN_MODE, DEVICE_INVALID, SITE_NAME_TAKEN, COUNT_OUT_OF_RANGE, UNPAID_DEBT, CREDIT_TOO_LOW.
    """
    open_account(world, command.account_id)
    region = existing_region(world, command.region_id)
    provider = existing_provider(world, region.provider_id)
    if provider.account_id != command.account_id:
        raise Refused(FleetReason.REGION_UNKNOWN, region_id=command.region_id)
    state = edge_devices_of(world, command.account_id)
    if command.device_id in state.devices:
        return []
    if region.storage_mode != CENTRAL or provider.kind != PHYSICAL:
        raise Refused(
            FleetReason.REGION_NOT_SUITED, region_id=command.region_id, what="edge_device"
        )
    if command.model not in EDGE_MODELS:
        raise Refused(PartiesReason.UNKNOWN_MODE, model=command.model, allowed=EDGE_MODELS)
    _require_own_name(command, state)
    if len(state.devices) >= DEVICES_MAX:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE, devices=len(state.devices), at_most=DEVICES_MAX
        )
    require_balance(world, command.account_id, command.at_us)
    # A clock that is behind the job's adds to the first day that is still open.
    first_day = max(day_of(command.at_us), state.charged_day + 1)
    added = EdgeDeviceAdded(
        device_id=command.device_id,
        account_id=command.account_id,
        region_id=command.region_id,
        name=command.name,
        minion_id=command.minion_id,
        model=command.model,
        first_day=day_text(first_day),
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.account_id), added)]


def _require_own_name(command: AddEdgeDevice, state: EdgeDevices) -> None:
    """A region's devices are all of one account, so its stream knows every name that is taken.

    Raises Refused: DEVICE_INVALID, SITE_NAME_TAKEN.
    """
    if NAME.fullmatch(command.name) is None:
        raise Refused(SitesReason.DEVICE_INVALID, field="name", rule=NAME_RULE)
    if re.fullmatch(MINION_ID, command.minion_id, re.ASCII) is None:
        rule = "what the machine shows: 1 to 100 letters, digits and . _ : -"
        raise Refused(SitesReason.DEVICE_INVALID, field="minion_id", rule=rule)
    for one in state.devices.values():
        if one.region_id != command.region_id or one.last_day is not None:
            continue
        for sort, taken, asked in (
            ("device", one.name, command.name),
            ("minion", one.minion_id, command.minion_id),
        ):
            if taken == asked:
                raise Refused(
                    SitesReason.SITE_NAME_TAKEN, sort=sort, name=asked, region_id=one.region_id
                )


def decide_report(command: ReportEdgeDevice, world: World) -> list[Change]:
    """A device that tells that it runs is active; nobody else makes it so. Told again, nothing
    changes.

    Raises Refused: DEVICE_UNKNOWN.
    """
    device = edge_devices_of(world, command.account_id).devices.get(command.device_id)
    if device is None or device.last_day is not None:
        raise Refused(FleetReason.DEVICE_UNKNOWN, device_id=command.device_id)
    if device.is_active:
        return []
    fact = EdgeDeviceActivated(
        device_id=command.device_id,
        account_id=command.account_id,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.account_id), fact)]


def decide_remove(command: RemoveEdgeDevice, world: World) -> list[Change]:
    """The removal takes effect with the next day. Removing twice is removing once.

    Raises Refused: DEVICE_UNKNOWN.
    """
    state = edge_devices_of(world, command.account_id)
    device = state.devices.get(command.device_id)
    if device is None:
        raise Refused(FleetReason.DEVICE_UNKNOWN, device_id=command.device_id)
    if device.last_day is not None:
        return []
    # A day that is charged already was charged with this device on it.
    last_day = max(day_of(command.at_us), device.first_day, state.charged_day)
    removed = EdgeDeviceRemoved(
        device_id=command.device_id,
        account_id=command.account_id,
        last_day=day_text(last_day),
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream_of(command.account_id), removed)]


def decide_charge(command: ChargeDeviceFee, world: World) -> list[Change]:
    """The next day that is due: the devices of that day, at the fee in force when it began.

    A late run charges day after day in order; a day that is not over is not charged.
    """
    state = edge_devices_of(world, command.account_id)
    day = state.next_day
    if day is None or day_start_us(day + 1) > command.at_us:
        return []
    fee, version = _fee_of(world, day)
    unique = state.unique_on(day)
    assert unique > 0, (command.account_id, day)
    month = month_of_day(day)
    is_same = month == state.month
    fee_days = (state.fee_days if is_same else 0) + fee * unique
    due = due_units(fee_days, days_in(month))
    charge = due - (state.due_units if is_same else 0)
    assert charge >= 0, (due, state)
    taken = draw(world, command.account_id, charge, command.at_us)
    charged = DeviceFeeCharged(
        account_id=command.account_id,
        day=day_text(day),
        unique=unique,
        fee_per_month=credit(fee),
        tariff_version=version,
        days_in_month=days_in(month),
        fee_days=fee_days,
        due=credit(due),
        charge=credit(charge),
        drawn=taken.drawn,
        owed=taken.owed,
        at_us=command.at_us,
    )
    counted = taken.counted(world, f"device_fee/{day_text(day)}", command.at_us)
    return [Change(stream_of(command.account_id), charged), *counted]


def _fee_of(world: World, day: int) -> tuple[int, int | None]:
    """Fee per month and tariff version in force when the day began; without one the day is free."""
    for tariff in reversed(tariff_of(world).published):
        if tariff.effective_from_us <= day_start_us(day):
            fee = tariff.device_fee_per_month
            return 0 if fee is None else fee.units, tariff.version
    return 0, None


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "edge-devices": (EdgeDevices(), evolve)
}
DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    AddEdgeDevice: decide_add,
    ReportEdgeDevice: decide_report,
    RemoveEdgeDevice: decide_remove,
    ChargeDeviceFee: decide_charge,
}
