"""Who may let a region share its earnings, and how each of its days is shared out, once.

    day d is shared after it is over, after day d - 1, and never twice
    effective_from_day > day of setting + max(NOTICE_DAYS, the dispute window)

The region's provider sets the terms; everybody else whose nodes are there has the notice to leave.
The notice outlasts the dispute window, so what is shared under new terms was earned after they had
been announced; what was not, though it matures late, stays its owner's
(`domain/income/region_terms.py`).

The operator is paid what control and ingress nodes cost by the terms, as far as the region earns
it; nodes are paid through their owners' shares (`domain/fleet/revenue_share.py`): usage to the
accounts that it was gathered from, participation by the shares when the day ended. Source: design
economics 9; rows K-2, K-12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from domain.brought import apportioned, as_parts
from domain.calendar import day_of, day_start_us
from domain.duration import DAY_US
from domain.fleet.node import node_of
from domain.fleet.provider import existing_provider, existing_region
from domain.fleet.reasons import FleetReason
from domain.fleet.revenue_share import shares_before, split_among
from domain.frozen import replace
from domain.income.adjustment import open_book
from domain.income.maturity import DEFAULT_WINDOW_US, PAYABLE, brought_to, windows_of
from domain.income.region_pool import (
    NodeShare,
    RegionDay,
    RegionDayShared,
    RegionSharesPaid,
    SharePart,
    day_state,
    stream_of,
)
from domain.income.region_terms import InfraCost, RegionTermsSet, terms_of, terms_on
from domain.income.region_terms import stream_of as terms_stream
from domain.income.region_waterfall import Fallen, Infra, fall
from domain.money import PPM, Asset, credit
from domain.parties.account import account_of
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.regions.reachability import reach_of
from domain.stream import Change, World

NOTICE_DAYS = 7
"""Whole UTC days between the setting of terms and their beginning."""
COST_MAX = 10**12
"""A million credits a day, in micro-credits."""
TIERS = range(5)
CHUNK_NODES = 200
NODES_MAX = 50_000
"""Nodes with a share in one region and day: 250 chunks in one append."""
ROLE_NODES_MAX = 1_000
GIB = 2**30

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRegionTerms:
    region_id: str
    account_id: str  # who asks: the provider's account
    version: int
    effective_from_day: int
    is_shared: bool
    participation_ppm: int
    availability_min_tier: int
    infra: InfraCost
    by: str
    at_us: int


@dataclass(frozen=True, slots=True)
class NodeTime:
    """Attested GPU-microseconds of one node and day: at the tier that terms ask for, and below."""

    node_id: str
    available_us: int
    below_tier_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareRegionDay:
    """`control` and `ingress`: nodes that may have had the role; the rules count those that did."""

    region_id: str
    day: int
    times: tuple[NodeTime, ...]
    control: tuple[str, ...]
    ingress: tuple[str, ...]
    at_us: int


# Terms.


def decide_terms(command: SetRegionTerms, world: World) -> list[Change]:
    """The next version, a notice ahead. The same version with the same content changes nothing.

    Raises Refused: REGION_UNKNOWN, REGION_TERMS, SHARE_OUT_OF_RANGE, COUNT_OUT_OF_RANGE,
    AMOUNT_OUT_OF_RANGE.
    """
    region = existing_region(world, command.region_id)
    if existing_provider(world, region.provider_id).account_id != command.account_id:
        raise Refused(FleetReason.REGION_UNKNOWN, region_id=command.region_id)
    fact = _terms_fact(command)
    known = terms_of(world, command.region_id)
    if 1 <= fact.version <= len(known):
        present = known[fact.version - 1]
        if replace(fact, by=present.by, at_us=present.at_us) == present:
            return []
    if fact.version != len(known) + 1:
        raise Refused(FleetReason.REGION_TERMS, version=fact.version, expected=len(known) + 1)
    earliest = earliest_day(world, fact.at_us)
    if known:
        earliest = max(earliest, known[-1].effective_from_day + 1)
    if fact.effective_from_day < earliest:
        raise Refused(FleetReason.REGION_TERMS, rule="notice", earliest_day=earliest)
    _require_bounds(fact)
    return [Change(terms_stream(command.region_id), fact)]


def earliest_day(world: World, at_us: int) -> int:
    """The first day on which terms may begin that are set at this moment."""
    windows = [DEFAULT_WINDOW_US, *(one.window_us for one in windows_of(world))]
    notice_days = max(NOTICE_DAYS, -(-max(windows) // DAY_US))
    return day_of(at_us) + notice_days + 1


def _terms_fact(command: SetRegionTerms) -> RegionTermsSet:
    return RegionTermsSet(
        region_id=command.region_id,
        version=command.version,
        effective_from_day=command.effective_from_day,
        is_shared=command.is_shared,
        participation_ppm=command.participation_ppm,
        availability_min_tier=command.availability_min_tier,
        infra=command.infra,
        by=command.by,
        at_us=command.at_us,
    )


def _require_bounds(fact: RegionTermsSet) -> None:
    if not 0 <= fact.participation_ppm <= PPM:
        raise Refused(PartiesReason.SHARE_OUT_OF_RANGE, participation_ppm=fact.participation_ppm)
    if fact.availability_min_tier not in TIERS:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE, availability_min_tier=fact.availability_min_tier
        )
    infra = fact.infra
    costs = (infra.base, infra.control, infra.ingress, infra.most, infra.arrears_max, infra.per_gib)
    for cost in costs:
        if cost.asset is not Asset.CREDIT or not 0 <= cost.units <= COST_MAX:
            raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, units=cost.units, most=COST_MAX)


# A day.


def decide_share(command: ShareRegionDay, world: World) -> list[Change]:
    """Totals first, then every node's share and whose work it was, all in one append. A shared day
    changes nothing.

    Raises Refused: REGION_UNKNOWN, REGION_DAY when there are no terms, the day is not over or the
    one before it is not shared, COUNT_OUT_OF_RANGE.
    """
    region = existing_region(world, command.region_id)
    state = day_state(world, command.region_id, command.day)
    if state.shared is not None:
        return []
    terms = _require_due(command, world)
    if max(len(command.control), len(command.ingress)) > ROLE_NODES_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, at_most=ROLE_NODES_MAX)
    due = _due(command, state, terms, world)
    operator = existing_provider(world, region.provider_id).account_id
    shares = list(_shares(command, state, due.fallen, operator, world))
    if len(shares) > NODES_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, nodes=len(shares), at_most=NODES_MAX)
    chunks = [shares[at : at + CHUNK_NODES] for at in range(0, len(shares), CHUNK_NODES)]
    told = RegionDayShared(
        region_id=command.region_id,
        day=command.day,
        terms_version=terms.version,
        infra_account_id=operator,
        infra_book=_waits_in(world, operator),
        nodes=len(shares),
        chunks=len(chunks),
        at_us=command.at_us,
        **due.totals,
    )
    stream = stream_of(command.region_id, command.day)
    return [
        Change(stream, told),
        *(Change(stream, _paid(command, place, chunk)) for place, chunk in enumerate(chunks)),
        *_brought(world, state, told, shares),
    ]


@dataclass(frozen=True, slots=True)
class _Due:
    """What a day comes to, before it is known who gets it; `totals` as the fact tells them."""

    fallen: Fallen
    totals: dict[str, Any]


def _due(command: ShareRegionDay, state: RegionDay, terms: RegionTermsSet, world: World) -> _Due:
    before = day_state(world, command.region_id, command.day - 1).shared
    control = _count_role(command, command.control, "control", world)
    ingress = _count_role(command, command.ingress, "ingress", world)
    ingress_bytes = _bytes_through(command, world)
    infra = Infra(
        due=infra_due(terms, control, ingress, ingress_bytes),
        arrears=0 if before is None else before.arrears.units,
        arrears_max=terms.infra.arrears_max.units,
    )
    carry = 0 if before is None else before.carry.units
    gathered = sum(state.gathered.values())
    fallen = fall(
        gathered + carry,
        infra,
        terms.participation_ppm,
        [(one.node_id, one.available_us) for one in command.times],
        [
            (f"{node_id}|{account_id}", units)
            for (node_id, account_id), units in state.gathered.items()
        ],
    )
    amounts = {
        "gathered": gathered,
        "carry_before": carry,
        "infra_due": infra.due,
        "arrears_before": infra.arrears,
        "infra": fallen.infra,
        "arrears": fallen.arrears,
        "forgone": fallen.forgone,
        "participation": sum(fallen.participation.values()),
        "usage": sum(fallen.usage.values()),
        "carry": fallen.carry,
    }
    counts = {"control_nodes": control, "ingress_nodes": ingress, "ingress_bytes": ingress_bytes}
    return _Due(fallen, {**counts, **{name: credit(units) for name, units in amounts.items()}})


def _brought(
    world: World, state: RegionDay, told: RegionDayShared, shares: list[NodeShare]
) -> Iterator[Change]:
    """For each account that the day pays: which clients brought it, as they did of all that was
    gathered. What was carried from days before has no client.
    """
    got: dict[str, int] = {}
    if told.infra_book is None:
        got[told.infra_account_id] = told.infra.units
    for part in (part for share in shares for part in share.parts if part.book is None):
        got[part.account_id] = got.get(part.account_id, 0) + part.units
    source = f"region-day:{told.region_id}/{told.day}"
    for account_id, units in sorted(got.items()):
        if units:
            clients = as_parts(apportioned(units, state.clients))
            yield brought_to(world, account_id, source, PAYABLE, clients, told.at_us)


def _require_due(command: ShareRegionDay, world: World) -> RegionTermsSet:
    """The terms of the day. Raises Refused: REGION_DAY."""
    versions = terms_of(world, command.region_id)
    terms = terms_on(versions, command.day)
    if terms is None:
        raise Refused(FleetReason.REGION_DAY, day=command.day, rule="no terms on that day")
    if command.at_us < day_start_us(command.day + 1):
        raise Refused(FleetReason.REGION_DAY, day=command.day, rule="the day is not over")
    is_first = command.day == versions[0].effective_from_day
    before = day_state(world, command.region_id, command.day - 1)
    if not is_first and before.shared is None:
        raise Refused(FleetReason.REGION_DAY, day=command.day, rule="the day before is not shared")
    return terms


def infra_due(terms: RegionTermsSet, control: int, ingress: int, ingress_bytes: int = 0) -> int:
    """What a day of control and ingress costs by the terms, in micro-credits; 0 once they ended.
    Of a GiB that was not full its part counts, rounded down over the whole day.
    """
    if not terms.is_shared:
        return 0
    infra = terms.infra
    due = infra.base.units + control * infra.control.units + ingress * infra.ingress.units
    due += ingress_bytes * infra.per_gib.units // GIB
    return min(due, infra.most.units)


def _bytes_through(command: ShareRegionDay, world: World) -> int:
    """What the region's nodes reported of that day as ingress, each node once (K-12)."""
    total = 0
    for node_id in set(command.ingress):
        joined = node_of(world, node_id).joined
        if joined is not None and joined.region_id == command.region_id:
            total += reach_of(world, node_id).bytes_on(command.day)
    return total


def _count_role(command: ShareRegionDay, node_ids: tuple[str, ...], role: str, world: World) -> int:
    """Nodes of the region that had the role when the day ended; each counts once."""
    ends_us = day_start_us(command.day + 1)
    counted = 0
    for node_id in set(node_ids):
        node = node_of(world, node_id)
        told = node.role_told
        if node.joined is None or node.joined.region_id != command.region_id or told is None:
            continue
        counted += node.phase != "retired" and told.role == role and told.at_us < ends_us
    return counted


def _shares(
    command: ShareRegionDay, state: RegionDay, fallen: Fallen, operator: str, world: World
) -> Iterator[NodeShare]:
    """Every node that was there or earned, by its id."""
    times = {one.node_id: one for one in command.times}
    earners: dict[str, list[str]] = {node_id: [] for node_id in times}
    for node_id, account_id in state.gathered:
        earners.setdefault(node_id, []).append(account_id)
    for node_id in sorted(earners):
        time = times.get(node_id, NodeTime(node_id, 0, 0))
        there = fallen.participation.get(node_id, 0)
        owners = shares_before(world, node_id, day_start_us(command.day + 1))
        got = dict(split_among(there, owners, operator)) if there else {}
        usage = 0
        for account_id in earners[node_id]:
            units = fallen.usage[f"{node_id}|{account_id}"]
            got[account_id] = got.get(account_id, 0) + units
            usage += units
        share = NodeShare(
            node_id=node_id,
            available_us=time.available_us,
            below_tier_us=time.below_tier_us,
            revenue=sum(state.gathered[node_id, account] for account in earners[node_id]),
            participation=there,
            usage=usage,
            parts=tuple(
                SharePart(account_id, units, _waits_in(world, account_id))
                for account_id, units in sorted(got.items())
                if units
            ),
        )
        assert sum(part.units for part in share.parts) == there + usage, share
        yield share


def _waits_in(world: World, account_id: str) -> str | None:
    """Where what a closed account should get waits for somebody to ask; None while it is open."""
    if account_of(world, account_id).is_open:
        return None
    return open_book(world, f"party:{account_id}:payable")


def _paid(command: ShareRegionDay, chunk: int, shares: list[NodeShare]) -> RegionSharesPaid:
    return RegionSharesPaid(
        region_id=command.region_id,
        day=command.day,
        chunk=chunk,
        shares=tuple(shares),
        amount=credit(sum(part.units for share in shares for part in share.parts)),
        at_us=command.at_us,
    )


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {}
DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    SetRegionTerms: decide_terms,
    ShareRegionDay: decide_share,
}
