"""The one need of a lease: everything that it demands of a node, however it is bought.

    a lease is placed or awarded on a node  =>  the node meets every demand of `need_of`

Plain, queued, gang, whole month, standing bid, auction, plug-in price, displacement and restart
ask the same. A match asks before, from views, and with the money that is there (`with_money`); the
reservation asks again, from the streams (`domain/leasing/demands.py`). Prices follow from

    floor(gpu_us x price / 3_600_000_000) <= units
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.fleet.provider import region_of
from domain.frozen import replace
from domain.funds.funding import sources_of
from domain.gpu_time import GPU_HOUR_US
from domain.hardware.constraints import NOTHING, Constraints, Weights
from domain.lease.budgets import LeaseParty, left_of
from domain.lease.funds import total
from domain.lease.lease import MIN_RUNWAY_US, LeaseRequested
from domain.lease.looked import Looked
from domain.lease.shared_escrow import escrow_of
from domain.market.dimensions import Near, Need
from domain.market.offer import PRICE_UNITS_MAX, SETTLEMENTS
from domain.money import PPM
from domain.parties.client import floor_of
from domain.parties.counterparty import counterparties_of
from domain.prices.tariff import SlaClass, tariff_in_force
from domain.storage.dataset import placed_of
from domain.storage.pins import pinned_to
from domain.stream import World

DIRECT = "direct"
"""The client of a job that its renter submits without one."""
BUDGET_PROBE = 2**62
NEAREST = Weights(locality=PPM)
"""The score where nothing but the place of data counts: among equal prices the nearest wins."""


def need_of(
    world: World,
    asked: LeaseRequested,
    at_us: int,
    looked: Looked,
    *,
    base_pool_id: str | None = None,
) -> Need:
    """What a lease demands of one node at a moment. `base_pool_id`: the pool that its job names,
    whose nodes a lease above its quota may not take.
    """
    client_id = _client_of(asked)
    allowed, denied = counterparties(world, asked.account_id, client_id)
    near = near_of(world, asked)
    demands = _with_floor(world, client_id, asked.constraints or NOTHING)
    return Need(
        gpu_count=asked.gpu_count,
        share_ppm=asked.share_ppm,
        mem_ppm=asked.mem_ppm,
        models=asked.models,
        price_max=asked.max_price_per_gpu_hour.units,
        account_id=asked.account_id,
        settlements=SETTLEMENTS if asked.pay_with is None else (asked.pay_with,),
        constraints=_by_place(world, asked, demands, near),
        at_us=at_us,
        until_us=at_us + (asked.term_us or MIN_RUNWAY_US),
        spec_ttl_us=looked.spec_ttl_us,
        sla_classes=sla_classes(world, asked.sla_class, at_us),
        renter_ppm=looked.renter_ppm,
        allowed=allowed,
        denied=denied,
        client_id=client_id,
        near=near,
        is_fixed_term=asked.term_us is not None,
        base_pool_id=base_pool_id,
        rents_only=bool(asked.overflow),
        has_base=looked.has_base,
    )


def _client_of(asked: LeaseRequested) -> str | None:
    return None if asked.client_id == DIRECT else asked.client_id


def _with_floor(world: World, client_id: str | None, asked: Constraints) -> Constraints:
    """The demands with the least reputation that the client asks for, where that is higher."""
    if client_id is None:
        return asked
    floor = floor_of(world, client_id, asked.min_reputation_ppm)
    if floor == asked.min_reputation_ppm:
        return asked
    return replace(asked, min_reputation_ppm=floor)


def near_of(world: World, asked: LeaseRequested) -> tuple[Near, ...]:
    """Where the data are that a lease uses: each dataset that has a place, and the region that the
    renter names.
    """
    places = [one.region_ids for one in placed_of(world, asked.account_id, asked.datasets)]
    named = None if asked.constraints is None else asked.constraints.near_region
    places += [] if named is None else [(named,)]
    return tuple(_near(world, place) for place in places)


def _near(world: World, region_ids: Sequence[str]) -> Near:
    opened = (region_of(world, region_id).opened for region_id in region_ids)
    providers = frozenset(one.provider_id for one in opened if one is not None)
    return Near(frozenset(region_ids), providers)


def _by_place(
    world: World, asked: LeaseRequested, demands: Constraints, near: tuple[Near, ...]
) -> Constraints:
    """The demands with the regions that volumes and pinned data leave, and with the place of
    datasets as the score where the renter has not said what counts.
    """
    pinned = pinned_to(world, asked.account_id, asked.volumes, asked.datasets)
    if pinned is not None:
        named = pinned if demands.regions is None else pinned & set(demands.regions)
        demands = replace(demands, regions=tuple(sorted(named)))
    has_datasets = len(near) > (demands.near_region is not None)
    if has_datasets and demands.weights is None:
        demands = replace(demands, weights=NEAREST)
    return demands


def counterparties(
    world: World, account_id: str, client_id: str | None
) -> tuple[frozenset[str], frozenset[str]]:
    """Whom a renter and its client deal with, and whom not: denied by one is denied, allowed is
    by both.
    """
    mine = counterparties_of(world, account_id)
    if client_id is None or client_id == account_id:
        return mine.allowed, mine.denied
    theirs = counterparties_of(world, client_id)
    denied = mine.denied | theirs.denied
    if not (mine.allowed and theirs.allowed):
        return mine.allowed | theirs.allowed, denied
    both = mine.allowed & theirs.allowed
    return both or frozenset({""}), denied  # both allow some accounts, and none is the same


def sla_classes(world: World, name: str | None, at_us: int) -> tuple[str, ...] | None:
    """Classes of the tariff in force that promise at least what this one does; None: any."""
    if name is None:
        return None
    classes = tariff_in_force(world, at_us).sla or ()
    asked = next((_promise(one) for one in classes if one.name == name), None)
    if asked is None:
        return (name,)
    return tuple(one.name for one in classes if _promise(one) >= asked)


def _promise(one: SlaClass) -> int:
    """Availability in ppm below which its mildest breach begins."""
    return max((tier.below_ppm for tier in one.tiers), default=0)


# What it can pay.


def with_money(need: Need, world: World, asked: LeaseRequested) -> Need:
    """The need with the ways in which its renter can pay, and the dearest prices that the balance
    and the budgets carry, for the least that is held.
    """
    gpu_us = asked.gpu_count * asked.share_ppm * (asked.term_us or MIN_RUNWAY_US) // PPM
    shares = asked.escrow_id is not None
    ways = _held_for(asked.escrow_id, world) if shares else payable(world, asked, need.at_us)
    named = None if asked.pay_with is None else (asked.pay_with,)
    return replace(
        need,
        settlements=named or tuple(ways) or SETTLEMENTS,
        price_max_funds=_dearest_by_way(asked, ways, gpu_us),
        # What the job's escrow holds was counted against the budgets when it was put there.
        price_max_budget=None if shares else _dearest_in_budgets(world, asked, need.at_us, gpu_us),
    )


def without_money(need: Need) -> Need:
    """The need of a renter who could pay whatever is asked."""
    return replace(need, price_max_funds=None, price_max_budget=None)


def payable(world: World, asked: LeaseRequested, at_us: int) -> dict[str, int]:
    """What the account and its payer have, by the ways they can pay with it; empty: nothing."""
    units = {
        way: sum(one.units for one in sources_of(world, asked.account_id, way, at_us))
        for way in SETTLEMENTS
    }
    return {way: held for way, held in units.items() if held}


def _held_for(job_id: str | None, world: World) -> dict[str, int]:
    """What the escrow that a lease will draw on holds, whatever the balance does."""
    assert job_id is not None
    return {"cash": total(escrow_of(world, job_id).held)}


def _dearest_by_way(
    asked: LeaseRequested, ways: dict[str, int], gpu_us: int
) -> tuple[tuple[str, int], ...]:
    """The dearest price by way to pay; an open-ended lease with `funds` needs all of them."""
    funds = None if asked.term_us is not None or asked.funds is None else asked.funds.units
    found = []
    for way in SETTLEMENTS:
        held = ways.get(way, 0)
        if funds is not None:
            held = funds if funds <= held else -1
        found.append((way, dearest(held, gpu_us)))
    return tuple(found)


def _dearest_in_budgets(world: World, asked: LeaseRequested, at_us: int, gpu_us: int) -> int | None:
    """The dearest price that the caps of its account leave; None: there is no cap."""
    party = LeaseParty("", asked.account_id, asked.project_id, asked.key_id)
    left = left_of(world, party, BUDGET_PROBE, at_us)
    return None if left == BUDGET_PROBE else dearest(left, gpu_us)


def dearest(units: int, gpu_us: int) -> int:
    """The highest price at which so much GPU time is charged at most `units`: from
    floor(gpu_us x price / 3_600_000_000) <= units. -1 where there is none.
    """
    if units < 0:
        return -1
    return min(PRICE_UNITS_MAX, ((units + 1) * GPU_HOUR_US - 1) // max(1, gpu_us))
