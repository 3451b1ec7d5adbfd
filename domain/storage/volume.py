"""Volumes: disk of a region that outlives the jobs that use it.

    none --VolumeProvisioned--> kept --VolumeDeleted--> deleted --VolumeErased*--> erased
    kept --VolumeAttached--> attached by a lease --VolumeDetached--> kept    many leases at once
    kept --VolumeGraceStarted--> in grace --VolumeGraceEnded--> kept         funds ended, are back
    in grace --VolumeDeleted--> deleted                                      `GRACE_US` later

    GB-seconds = size in GiB x 2^30 / 10^9 x seconds           from provisioning to deletion, of the
    charge     = floor(GB-seconds x price / per)               volume: however many leases attach it
    charge_new == drawn + drawn from the reserve               to the unit, in every charge
    provider + platform + burn == charge                       as the tariff splits other resources
    reserve put in == drawn from it + refunded + held          nothing is owed for a volume, ever
    deleted  =>  no lease has it attached
    erased  <=>  deleted, and every node that ever attached it has said that nothing is left

A volume is provisioned with a positive balance: the price of its grace is held as its reserve, and
the first hour must be there too. Its price is that of the tariff in force then, for as long as it
stands; in a region of one's own it costs nothing. Hours are charged when they are over, and the
last part of one at the deletion. When the balance does not cover an hour, the grace starts with
that hour: nothing new attaches it, the reserve pays, and 72 hours later it is deleted, whoever has
it attached. When the balance covers an hour and the reserve again before that, the grace is over.

The region's provider provides the disk and has the provider's share of each charge. Nodes of a
region may keep volumes in folders of their own, so what one of them has erased says nothing of the
others. Row R-20, design marketplace 8; decision 0060.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from domain.duration import HOUR_US
from domain.fleet.growth import growth_of
from domain.fleet.provider import existing_provider, existing_region, region_of
from domain.fleet.reasons import FleetReason
from domain.fleet.storage_node import require_storage
from domain.frozen import replace
from domain.funds.draw import Drawn, draw
from domain.funds.funding import Source, require_no_debt, sources_of
from domain.funds.reasons import FundsReason
from domain.lease.accrual_steps import Step
from domain.lease.funds import EscrowPart, Held, collect, deposits_of, take, total, without
from domain.lease.mounts import VolumeMount, mounts_rule
from domain.money import Amount, Big, credit
from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.prices.charge_split import NOTHING, Parts, peel
from domain.prices.tariff import VOLUME, MeterRate, meter_rate, tariff_in_force, tariff_version
from domain.refusal import Refused
from domain.storage.reasons import StorageReason
from domain.stream import Change, Stream, World

# Facts. Stream `volume:{volume_id}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeProvisioned:
    volume_id: str
    name: str
    account_id: str
    project_id: str | None  # only jobs of this project attach it; None: all of the account
    region_id: str
    provider_account_id: str  # of the region's provider: whose disk it is
    size_gib: int
    rate: MeterRate | None  # locked; None: it costs nothing
    tariff_version: int
    grace_us: int
    reserve: tuple[EscrowPart, ...]  # pays for the grace
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeAttached:
    """A lease has it from its reservation on; its program finds it at `path`."""

    volume_id: str
    lease_id: str
    job_id: str
    node_id: str
    path: str
    read_only: bool
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeDetached:
    volume_id: str
    lease_id: str
    cause: str  # "lease_over" or "funds_ended"
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeCharged:
    """What it costs up to a moment: whole hours, or the last part of one at the deletion."""

    volume_id: str
    account_id: str
    provider_account_id: str
    project_id: str | None
    size_gib: int
    until_us: int
    elapsed_us: Big  # since it was provisioned
    elapsed_us_new: Big
    rate: MeterRate | None
    tariff_version: int
    charge: Amount  # cumulative
    charge_new: Amount
    parts: Parts  # cumulative
    parts_new: Parts
    drawn: tuple[Drawn, ...]  # new: of the balance, in spend order
    reserve_drawn: tuple[EscrowPart, ...]  # new: of the reserve
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeGraceStarted:
    """The balance does not cover the hour from `since_us` on."""

    volume_id: str
    account_id: str
    since_us: int
    deletes_at_us: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeGraceEnded:
    volume_id: str
    account_id: str
    refilled: tuple[EscrowPart, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeDeleted:
    volume_id: str
    account_id: str
    region_id: str
    cause: str  # "owner" or "funds_ended"
    refund: tuple[EscrowPart, ...]
    by: str | None  # None: the timer
    deleted_at_us: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeErased:
    """A node that had it attached says that nothing of its data is left where it keeps volumes."""

    volume_id: str
    node_id: str
    at_us: int


Fact: TypeAlias = (
    VolumeProvisioned
    | VolumeAttached
    | VolumeDetached
    | VolumeCharged
    | VolumeGraceStarted
    | VolumeGraceEnded
    | VolumeDeleted
    | VolumeErased
)

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionVolume:
    volume_id: str
    name: str
    account_id: str
    project_id: str | None
    region_id: str
    size_gib: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeVolume:
    """The timer: charge the hours that are over, and start, end or close the grace."""

    volume_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteVolume:
    volume_id: str
    account_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmErased:
    """A node says that nothing is left of a deleted volume."""

    volume_id: str
    node_id: str
    at_us: int


GRACE_US = 72 * HOUR_US
SIZE_GIB_MAX = 2**20
"""A pebibyte."""
ATTACHMENTS_MAX = 1_000
"""Leases that have one volume at a time."""
BYTES_PER_GIB = 2**30
BYTE_US_PER_GB_SECOND = 10**9 * 10**6

# What is remembered.


@dataclass(frozen=True, slots=True)
class Volume:
    """One volume; `provisioned` is None when there is none."""

    provisioned: VolumeProvisioned | None = None
    attached: dict[str, VolumeAttached] = field(default_factory=dict)  # by lease
    charged_until_us: int = 0
    charge_units: Big = 0
    parts: Parts = NOTHING
    held: Held = ()  # of the reserve
    deposits: int = 0
    grace: VolumeGraceStarted | None = None
    deleted: VolumeDeleted | None = None
    nodes: frozenset[str] = frozenset()  # that ever had it attached
    erased_on: frozenset[str] = frozenset()

    @property
    def state(self) -> str:
        if self.provisioned is None:
            return "none"
        if self.deleted is not None:
            return "erased" if self.is_erased else "deleted"
        if self.grace is not None:
            return "grace"
        return "attached" if self.attached else "detached"

    @property
    def is_erased(self) -> bool:
        return self.deleted is not None and self.nodes <= self.erased_on

    @property
    def is_kept(self) -> bool:
        return self.provisioned is not None and self.deleted is None


def evolve(state: Volume, fact: Fact) -> Volume:
    """The volume after one more fact."""
    match fact:
        case VolumeProvisioned():
            return Volume(
                fact,
                charged_until_us=fact.at_us,
                held=fact.reserve,
                deposits=deposits_of(fact.reserve),
            )
        case VolumeAttached():
            attached = {**state.attached, fact.lease_id: fact}
            return replace(state, attached=attached, nodes=state.nodes | {fact.node_id})
        case VolumeDetached():
            left = {who: one for who, one in state.attached.items() if who != fact.lease_id}
            return replace(state, attached=left)
        case VolumeCharged():
            return replace(
                state,
                charged_until_us=fact.until_us,
                charge_units=fact.charge.units,
                parts=fact.parts,
                held=without(state.held, fact.reserve_drawn),
            )
        case VolumeGraceStarted():
            return replace(state, grace=fact)
        case VolumeGraceEnded():
            deposits = max(state.deposits, deposits_of(fact.refilled))
            held = (*state.held, *fact.refilled)
            return replace(state, grace=None, held=held, deposits=deposits)
        case VolumeDeleted():
            return replace(state, deleted=fact, held=without(state.held, fact.refund))
        case VolumeErased():
            return replace(state, erased_on=state.erased_on | {fact.node_id})
        case _:
            assert_never(fact)


def volume_stream(volume_id: str) -> Stream[Volume]:
    return Stream("volume", volume_id)


def volume_of(world: World, volume_id: str) -> Volume:
    return world.state(volume_stream(volume_id))


def own_volume(world: World, volume_id: str, account_id: str) -> Volume:
    """Raises Refused: VOLUME_UNKNOWN, also for a volume of another account."""
    state = volume_of(world, volume_id)
    if state.provisioned is None or state.provisioned.account_id != account_id:
        raise Refused(StorageReason.VOLUME_UNKNOWN, volume_id=volume_id)
    return state


# What it costs.


def cost_units(size_gib: int, elapsed_us: int, rate: MeterRate | None) -> int:
    """Micro-credits for so much disk for so long, rounded down."""
    if rate is None:
        return 0
    byte_us = size_gib * BYTES_PER_GIB * elapsed_us
    return byte_us * rate.price.units // (rate.per * BYTE_US_PER_GB_SECOND)


def gb_seconds(size_gib: int, elapsed_us: int) -> int:
    """What a volume's meter shows, rounded down."""
    return size_gib * BYTES_PER_GIB * elapsed_us // BYTE_US_PER_GB_SECOND


def reserve_units(size_gib: int, rate: MeterRate | None) -> int:
    """The price of the grace; one unit more, because charges are rounded as they add up."""
    units = cost_units(size_gib, GRACE_US, rate)
    return units + 1 if units else 0


def _hours_paid(made: VolumeProvisioned, units: int, most: int) -> int:
    """How many hours since it was provisioned cost at most `units` together; at most `most`."""
    assert made.rate is not None
    scale = made.rate.per * BYTE_US_PER_GB_SECOND
    each = made.size_gib * BYTES_PER_GIB * HOUR_US * made.rate.price.units
    return most if not each else min(most, ((units + 1) * scale - 1) // each)


def volume_steps(fact: VolumeCharged) -> list[Step]:
    """How a charge came about: time to GB-seconds to credits. A volume without a price has none."""
    if fact.rate is None:
        return []
    rate, before_us = fact.rate, fact.elapsed_us - fact.elapsed_us_new
    seconds = [gb_seconds(fact.size_gib, us) for us in (before_us, fact.elapsed_us)]
    charges = [cost_units(fact.size_gib, us, rate) for us in (before_us, fact.elapsed_us)]
    assert charges[1] == fact.charge.units, fact
    assert charges[1] - charges[0] == fact.charge_new.units, fact
    size = {"size_gib": fact.size_gib, "elapsed_us": fact.elapsed_us}
    formula = f"floor(size_gib x {BYTES_PER_GIB} x elapsed_us / {BYTE_US_PER_GB_SECOND})"
    price = f"floor(size_gib x {BYTES_PER_GIB} x elapsed_us x price / (per x"
    return [
        Step("gb_seconds", formula, size, *seconds),
        Step(
            "charge",
            f"{price} {BYTE_US_PER_GB_SECOND}))",
            {**size, "price": rate.price.units, "per": rate.per},
            *charges,
        ),
    ]


# How we decide.


def decide_provision(command: ProvisionVolume, world: World) -> list[Change]:
    """At the price in force now, with its grace held. The same again changes nothing.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, VOLUME_EXISTS, REGION_UNKNOWN (also of one that
    is closed to others), STORAGE_NODE_STATE, VOLUME_REGION, COUNT_OUT_OF_RANGE, TARIFF_UNKNOWN,
    UNPAID_DEBT, CREDIT_TOO_LOW.
    """
    open_account(world, command.account_id)
    present = volume_of(world, command.volume_id).provisioned
    if present is not None:
        if _asked(present) == command:
            return []
        raise Refused(StorageReason.VOLUME_EXISTS, volume_id=command.volume_id)
    owner = existing_provider(world, existing_region(world, command.region_id).provider_id)
    is_own = owner.account_id == command.account_id
    if not is_own and not region_of(world, command.region_id).allow_public_jobs:
        raise Refused(FleetReason.REGION_UNKNOWN, region_id=command.region_id)
    require_storage(world, command.region_id)
    if not growth_of(world, command.region_id).workers:  # nothing could ever mount it
        raise Refused(StorageReason.VOLUME_REGION, region_id=command.region_id, rule="no_node")
    if not 1 <= command.size_gib <= SIZE_GIB_MAX:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE,
            field="size_gib",
            value=command.size_gib,
            at_least=1,
            at_most=SIZE_GIB_MAX,
        )
    tariff = tariff_in_force(world, command.at_us)
    rate = None if is_own else meter_rate(tariff, VOLUME)
    reserve = _reserve(command, rate, world)
    provisioned = VolumeProvisioned(
        volume_id=command.volume_id,
        name=command.name,
        account_id=command.account_id,
        project_id=command.project_id,
        region_id=command.region_id,
        provider_account_id=owner.account_id,
        size_gib=command.size_gib,
        rate=rate,
        tariff_version=tariff.version,
        grace_us=GRACE_US,
        reserve=reserve,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(volume_stream(command.volume_id), provisioned)]


def _asked(made: VolumeProvisioned) -> ProvisionVolume:
    return ProvisionVolume(
        volume_id=made.volume_id,
        name=made.name,
        account_id=made.account_id,
        project_id=made.project_id,
        region_id=made.region_id,
        size_gib=made.size_gib,
        by=made.by,
        at_us=made.at_us,
    )


def _reserve(command: ProvisionVolume, rate: MeterRate | None, world: World) -> Held:
    """The price of the grace, where the balance has that and the first hour, and is positive.

    Raises Refused: UNPAID_DEBT, CREDIT_TOO_LOW.
    """
    require_no_debt(world, command.account_id)
    sources = _own_sources(world, command.account_id, command.at_us)
    units = reserve_units(command.size_gib, rate)
    needed = max(1, units + cost_units(command.size_gib, HOUR_US, rate))
    available = sum(one.units for one in sources)
    if available < needed:
        raise Refused(FundsReason.CREDIT_TOO_LOW, needed=needed, available=available)
    return collect(sources, units, lease_account_id=command.account_id, deposits=0)


def _own_sources(world: World, account_id: str, at_us: int) -> tuple[Source, ...]:
    """A reserve is the account's own money: what a payer pays goes by the hour."""
    found = sources_of(world, account_id, "cash", at_us)
    return tuple(one for one in found if one.account_id == account_id)


def decide_charge(command: ChargeVolume, world: World) -> list[Change]:
    """What is over and not charged yet, once; there may be nothing. A late call charges no moment
    after the end of the grace.
    """
    state = volume_of(world, command.volume_id)
    made = state.provisioned
    if made is None or not state.is_kept:
        return []
    grace = state.grace
    end_us = command.at_us if grace is None else min(command.at_us, grace.deletes_at_us)
    hours = (end_us - made.at_us) // HOUR_US
    due_us = made.at_us + hours * HOUR_US
    if grace is None:
        return _charged_or_graced(state, made, hours, command.at_us, world)
    back = _grace_ended(state, made, grace, due_us, command.at_us, world)
    if back:
        return back
    if command.at_us >= grace.deletes_at_us:
        return _deleted(
            state, made, world, command.at_us, cause="funds_ended", at_end_us=grace.deletes_at_us
        )
    return _charge(state, made, due_us, command.at_us, world, of_reserve=True)


def _charged_or_graced(
    state: Volume, made: VolumeProvisioned, hours: int, at_us: int, world: World
) -> list[Change]:
    """The hours that the balance covers; where one is not covered, the grace starts with it."""
    paid = hours
    if made.rate is not None:
        balance = sum(one.units for one in sources_of(world, made.account_id, "cash", at_us))
        paid = _hours_paid(made, state.charge_units + balance, hours)
    paid_us = max(state.charged_until_us, made.at_us + paid * HOUR_US)
    changes = _charge(state, made, paid_us, at_us, world)
    if paid_us < made.at_us + hours * HOUR_US:
        started = VolumeGraceStarted(
            volume_id=made.volume_id,
            account_id=made.account_id,
            since_us=paid_us,
            deletes_at_us=paid_us + made.grace_us,
            at_us=at_us,
        )
        changes.append(Change(volume_stream(made.volume_id), started))
    return changes


def _grace_ended(
    state: Volume,
    made: VolumeProvisioned,
    grace: VolumeGraceStarted,
    due_us: int,
    at_us: int,
    world: World,
) -> list[Change]:
    """Back in order: the balance pays what is due, one hour more and what the reserve lacks."""
    if at_us >= grace.deletes_at_us:
        return []
    lacks = reserve_units(made.size_gib, made.rate) - total(state.held)
    hour = cost_units(made.size_gib, HOUR_US, made.rate)
    due = cost_units(made.size_gib, due_us - made.at_us, made.rate) - state.charge_units
    sources = _own_sources(world, made.account_id, at_us)
    if sum(one.units for one in sources) < max(1, lacks + hour + max(0, due)):
        return []
    refilled = collect(sources, lacks, lease_account_id=made.account_id, deposits=state.deposits)
    ended = VolumeGraceEnded(
        volume_id=made.volume_id, account_id=made.account_id, refilled=refilled, at_us=at_us
    )
    return [Change(volume_stream(made.volume_id), ended)]


def _charge(
    state: Volume,
    made: VolumeProvisioned,
    until_us: int,
    at_us: int,
    world: World,
    *,
    of_reserve: bool = False,
) -> list[Change]:
    """One fact for all that is new up to a moment. What the balance lacks, the reserve has."""
    if until_us <= state.charged_until_us:
        return []
    charge = cost_units(made.size_gib, until_us - made.at_us, made.rate)
    new = charge - state.charge_units
    assert new >= 0, (charge, state)
    from_reserve: Held = ()
    taken = draw(world, made.account_id, 0 if of_reserve else new, at_us)
    short = new if of_reserve else taken.owed.units
    if short:
        from_reserve = take(state.held, min(short, total(state.held)))
    assert total(from_reserve) == short, (short, state.held)
    parts = _parts(made, charge, world)
    assert parts.total == charge, (parts, charge)
    charged = VolumeCharged(
        volume_id=made.volume_id,
        account_id=made.account_id,
        provider_account_id=made.provider_account_id,
        project_id=made.project_id,
        size_gib=made.size_gib,
        until_us=until_us,
        elapsed_us=until_us - made.at_us,
        elapsed_us_new=until_us - state.charged_until_us,
        rate=made.rate,
        tariff_version=made.tariff_version,
        charge=credit(charge),
        charge_new=credit(new),
        parts=parts,
        parts_new=parts - state.parts,
        drawn=taken.drawn,
        reserve_drawn=from_reserve,
        at_us=at_us,
    )
    counted = taken.counted(world, f"volume/{made.volume_id}", at_us)
    return [Change(volume_stream(made.volume_id), charged), *counted]


def _parts(made: VolumeProvisioned, charge: int, world: World) -> Parts:
    """As other resources are shared: no usage fee, and no client brought it."""
    tariff = tariff_version(world, made.tariff_version)
    return peel(
        charge,
        price=1,
        fee_rate=0,
        provider_share_ppm=tariff.provider_share_ppm,
        burn_share_ppm=tariff.burn_share_ppm,
        split=tariff.split,
    )


def decide_delete(command: DeleteVolume, world: World) -> list[Change]:
    """Its owner gives it up: the time until now is charged, and its data are erased. Twice is once.

    Raises Refused: VOLUME_UNKNOWN, VOLUME_ATTACHED.
    """
    state = own_volume(world, command.volume_id, command.account_id)
    assert state.provisioned is not None
    if not state.is_kept:
        return []
    if state.attached:
        raise Refused(
            StorageReason.VOLUME_ATTACHED,
            volume_id=command.volume_id,
            leases=len(state.attached),
            lease_id=min(state.attached),
        )
    return _deleted(
        state,
        state.provisioned,
        world,
        command.at_us,
        cause="owner",
        at_end_us=command.at_us,
        by=command.by,
    )


def _deleted(
    state: Volume,
    made: VolumeProvisioned,
    world: World,
    at_us: int,
    *,
    cause: str,
    at_end_us: int,
    by: str | None = None,
) -> list[Change]:
    """The last part of an hour, whoever has it attached detached, and gone, in one append."""
    stream = volume_stream(made.volume_id)
    if state.grace is not None:
        end_us = min(at_end_us, state.grace.deletes_at_us)
    else:
        end_us = _paid_until_us(state, made, at_end_us, at_us, world)
    last = _charge(state, made, end_us, at_us, world, of_reserve=state.grace is not None)
    reserve_drawn = last[0].fact.reserve_drawn if last else ()
    detached = [
        Change(stream, _detached(made.volume_id, lease_id, "funds_ended", at_us))
        for lease_id in sorted(state.attached)
    ]
    deleted = VolumeDeleted(
        volume_id=made.volume_id,
        account_id=made.account_id,
        region_id=made.region_id,
        cause=cause,
        refund=without(state.held, reserve_drawn),
        by=by,
        deleted_at_us=end_us,
        at_us=at_us,
    )
    return [*last, *detached, Change(stream, deleted)]


def _paid_until_us(
    state: Volume, made: VolumeProvisioned, end_us: int, at_us: int, world: World
) -> int:
    """The end of a volume, or the last hour that balance and reserve cover together: a timer that
    is late has not started its grace yet, and nothing is owed for that.
    """
    due = cost_units(made.size_gib, end_us - made.at_us, made.rate) - state.charge_units
    balance = sum(one.units for one in sources_of(world, made.account_id, "cash", at_us))
    there = balance + total(state.held)
    if due <= there:
        return end_us
    hours = (end_us - made.at_us) // HOUR_US
    paid = _hours_paid(made, state.charge_units + there, hours)
    return max(state.charged_until_us, made.at_us + paid * HOUR_US)


def decide_erased(command: ConfirmErased, world: World) -> list[Change]:
    """Each node says it for itself, and twice is once.

    Raises Refused: VOLUME_UNKNOWN (also on a node that never had it attached), VOLUME_STATE.
    """
    state = volume_of(world, command.volume_id)
    if command.node_id not in state.nodes:
        raise Refused(StorageReason.VOLUME_UNKNOWN, volume_id=command.volume_id)
    if state.deleted is None:
        raise Refused(StorageReason.VOLUME_STATE, volume_id=command.volume_id, status=state.state)
    if command.node_id in state.erased_on:
        return []
    erased = VolumeErased(volume_id=command.volume_id, node_id=command.node_id, at_us=command.at_us)
    return [Change(volume_stream(command.volume_id), erased)]


# What jobs and leases ask of it.


def require_mounts(
    mounts: tuple[VolumeMount, ...], account_id: str, project_id: str, world: World
) -> None:
    """That an account's job of this project can mount all of these, in one region.

    Raises Refused: MOUNT_INVALID, VOLUME_UNKNOWN, VOLUME_STATE, VOLUME_REGION.
    """
    broken = mounts_rule(mounts)
    if broken is not None:
        raise Refused(StorageReason.MOUNT_INVALID, rule=broken)
    found = [usable(world, one.volume_id, account_id, project_id) for one in mounts]
    regions = {made.region_id for made in found}
    if len(regions) > 1:
        raise Refused(
            StorageReason.VOLUME_REGION, regions=", ".join(sorted(regions)), rule="one_region"
        )


def usable(world: World, volume_id: str, account_id: str, project_id: str) -> VolumeProvisioned:
    """Raises Refused: VOLUME_UNKNOWN; VOLUME_STATE, where it is deleted, its funds have ended or it
    is for another project.
    """
    state = own_volume(world, volume_id, account_id)
    made = state.provisioned
    assert made is not None
    if state.deleted is not None or state.grace is not None:
        raise Refused(StorageReason.VOLUME_STATE, volume_id=volume_id, status=state.state)
    if made.project_id not in (None, project_id):
        raise Refused(
            StorageReason.VOLUME_STATE,
            volume_id=volume_id,
            project_id=made.project_id,
            rule="project",
        )
    return made


def regions_of(world: World, mounts: tuple[VolumeMount, ...]) -> frozenset[str]:
    """Where these volumes are: a lease that mounts them runs there."""
    found = (volume_of(world, one.volume_id).provisioned for one in mounts)
    return frozenset(made.region_id for made in found if made is not None)


def attach(
    world: World,
    mounts: tuple[VolumeMount, ...],
    *,
    lease_id: str,
    job_id: str,
    account_id: str,
    project_id: str,
    node_id: str,
    region_id: str,
    at_us: int,
) -> list[Change]:
    """What a lease that is reserved attaches.

    Raises Refused: VOLUME_UNKNOWN, VOLUME_STATE, VOLUME_REGION.
    """
    changes: list[Change] = []
    for mount in mounts:
        made = usable(world, mount.volume_id, account_id, project_id)
        if made.region_id != region_id:
            raise Refused(
                StorageReason.VOLUME_REGION, volume_id=mount.volume_id, region_id=made.region_id
            )
        leases = len(volume_of(world, mount.volume_id).attached)
        if leases >= ATTACHMENTS_MAX:
            raise Refused(
                StorageReason.VOLUME_STATE,
                volume_id=mount.volume_id,
                leases=leases,
                at_most=ATTACHMENTS_MAX,
                rule="attachments",
            )
        fact = VolumeAttached(
            volume_id=mount.volume_id,
            lease_id=lease_id,
            job_id=job_id,
            node_id=node_id,
            path=mount.path,
            read_only=mount.read_only,
            at_us=at_us,
        )
        changes.append(Change(volume_stream(mount.volume_id), fact))
    return changes


def detach(
    world: World, mounts: tuple[VolumeMount, ...], lease_id: str, at_us: int
) -> list[Change]:
    """What a lease that is over lets go of; nothing twice."""
    return [
        Change(
            volume_stream(one.volume_id), _detached(one.volume_id, lease_id, "lease_over", at_us)
        )
        for one in mounts
        if lease_id in volume_of(world, one.volume_id).attached
    ]


def _detached(volume_id: str, lease_id: str, cause: str, at_us: int) -> VolumeDetached:
    return VolumeDetached(volume_id=volume_id, lease_id=lease_id, cause=cause, at_us=at_us)


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {"volume": (Volume(), evolve)}
DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    ProvisionVolume: decide_provision,
    ChargeVolume: decide_charge,
    DeleteVolume: decide_delete,
    ConfirmErased: decide_erased,
}
