"""Random fleets and requests with few different values, so that ties and near misses are common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from hypothesis import strategies as st

from domain.hardware.constraints import ISOLATIONS, Constraints, RequiredAttribute, Weights
from domain.hardware.host_kind import NETWORK_CLASSES
from domain.lease.looked import Stated
from domain.market.dimensions import FreeDevice, Near, Need, OfferedNode
from domain.market.matching import peers_of
from domain.market.offer import SETTLEMENTS, OfferTerms
from domain.money import PPM

T = TypeVar("T")

RENTER, OWNER, OTHER = "acct_renter", "acct_owner", "acct_other"
NOW_US, HOUR_US, TTL_US = 10**15, 3_600_000_000, 900_000_000
FEES = {"datacenter": 2, "professional": 1}
PROFILES = ("1g.10gb", "3g.40gb")


nothing = st.none()


def maybe(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Mostly absent: a request with every demand has no match ever."""
    return st.integers(0, 11).flatmap(lambda one: nothing if one else values)


def often(usual: T, *others: T) -> st.SearchStrategy[T]:
    """Now and then another value: one node in ten is odd in this one way."""
    return st.integers(0, 10 * len(others)).map(
        lambda one: others[one - 1] if 1 <= one <= len(others) else usual
    )


parts = st.sampled_from((PPM, PPM // 2, PPM // 4, PPM // 10))
few_words = st.sets(st.sampled_from(("docker", "cuda", "cudnn")), min_size=1, max_size=2)
few = st.sampled_from((1, 2, 4))

weights = st.lists(st.integers(0, 3), min_size=6, max_size=6).map(
    lambda given: _scaled(given) if sum(given) else Weights(price=PPM)
)


def _scaled(given: list[int]) -> Weights:
    scaled = [one * PPM // sum(given) for one in given]
    scaled[-1] += PPM - sum(scaled)
    spec_fit, reputation, locality, free_peers, storage, price = scaled
    return Weights(spec_fit, reputation, locality, free_peers, storage, price)


terms = st.builds(
    OfferTerms,
    modes=maybe(st.sets(st.sampled_from(("memory", "mps", "mig")), min_size=1).map(tuple)),
    isolation=maybe(st.sampled_from(ISOLATIONS)),
    capabilities=maybe(few_words.map(lambda words: tuple(sorted(words)))),
    reclaim_window_us=maybe(few.map(lambda hours: hours * HOUR_US)),
    sla_class=maybe(st.sampled_from(("standard", "assured"))),
    interruptible=maybe(st.booleans()),
    security_tier=maybe(st.integers(0, 2)),
    storage_gib=maybe(few),
    network_mbps=maybe(few),
    min_renter_ppm=maybe(st.sampled_from((1, PPM // 2, PPM))),
    network_class=maybe(st.sampled_from(NETWORK_CLASSES)),
)

constraints = st.builds(
    Constraints,
    kinds=maybe(st.just(("gpu",))),
    vendors=maybe(st.sampled_from((("nvidia",), ("amd", "nvidia")))),
    mode=maybe(st.sampled_from(("memory", "mps", "time_slice"))),
    memory_mib=maybe(st.sampled_from((20_000, 40_960))),
    isolation=maybe(st.sampled_from(ISOLATIONS)),
    cpu_cores=maybe(few),
    ram_mib=maybe(few),
    storage_gib=maybe(few),
    network_mbps=maybe(few),
    arch=maybe(st.sampled_from(("x86_64", "aarch64"))),
    os=maybe(st.just("linux")),
    capabilities=maybe(few_words.map(tuple)),
    setting=maybe(st.sampled_from(("edge", "datacenter"))),
    workload_class=maybe(st.sampled_from(("ip_lease", "large_storage"))),
    security_tier=maybe(st.integers(0, 2)),
    min_reputation_ppm=maybe(st.sampled_from((0, PPM // 2, PPM))),
    accept_provisional=maybe(st.booleans()),
    regions=maybe(st.sampled_from((("region_a",), ("region_a", "region_b")))),
    near_region=maybe(st.just("region_a")),
    attributes=maybe(
        st.builds(
            RequiredAttribute,
            st.just("iso27001"),
            maybe(st.sampled_from(("yes", "no"))),
            maybe(st.sampled_from((("tuev",), ("tuev", "bsi")))),
        ).map(lambda one: (one,))
    ),
    pool_id=maybe(st.sampled_from(("pool_a", "pool_b"))),
    reclaim_window_us=maybe(few.map(lambda hours: hours * HOUR_US)),
    interruptible=maybe(st.booleans()),
    rank=st.sampled_from((None, "lowest_cost", "best_score")),
    weights=weights,
    min_kernel=maybe(st.sampled_from(("5.10", "6.1.2"))),
    network_class=maybe(st.sampled_from(NETWORK_CLASSES)),
    substrate=maybe(st.sampled_from(("bare_metal", "kubernetes"))),
    capacity_classes=maybe(st.sampled_from((("committed",), ("preemptible", "on_demand")))),
)


# What is drawn together is one strategy, made once: made anew at every draw, strategies cost more
# than what they draw.
_NEAR: tuple[tuple[Near, ...], ...] = (
    (),
    (Near(frozenset({"region_a"}), frozenset({"prov_a"})),),
    (
        Near(frozenset({"region_a"}), frozenset({"prov_a"})),
        Near(frozenset({"region_b", "region_c"}), frozenset({"prov_b"})),
        Near(frozenset({"region_gone"}), frozenset()),
    ),
)
_asked: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "gpu_count": often(1, 2, 3, 9),
        "models": often((), ("A100",), ("A100", "T4"), ("H900",)),
        "price_max": often(6, 0, 2, 4),
        "settlements": often(SETTLEMENTS, ("cash",)),
        "spec_ttl_us": st.sampled_from((0, TTL_US)),
        "sla_classes": often(None, ("assured",), ("standard", "assured")),
        "renter_ppm": st.sampled_from((None, 0, PPM)),
        "allowed": often(frozenset[str](), frozenset({OWNER})),
        "denied": often(frozenset[str](), frozenset({OTHER})),
        "price_max_budget": often(None, 3),
        "price_max_funds": often(None, (("cash", 4), ("burn", 2))),
        "near": st.sampled_from(_NEAR),
        "is_fixed_term": st.booleans(),
    }
)
_demands = st.one_of(st.builds(Constraints, weights=weights), constraints)
_in_ten = st.integers(0, 9)
_profiles = st.sampled_from(PROFILES)
_terms_us = st.sampled_from((HOUR_US, 3 * HOUR_US))
_memory = st.sampled_from((None, None, PPM // 4))


@st.composite
def _needs(draw: st.DrawFn) -> Need:
    share, asked = draw(parts), draw(_demands)
    if draw(_in_ten) == 0:
        asked = replace(asked, mode="mig", mig_profile=draw(_profiles))
        share = PPM // 4
    mem_ppm = draw(_memory)
    return Need(
        share_ppm=share,
        mem_ppm=share if mem_ppm is None else mem_ppm,
        account_id=RENTER,
        constraints=asked,
        at_us=NOW_US,
        until_us=NOW_US + draw(_terms_us),
        **draw(_asked),
    )


_each_need = _needs()


def needs() -> st.SearchStrategy[Need]:
    """What a renter asks for."""
    return _each_need


_slot_counts = st.integers(1, 10)
_in_three = st.integers(0, 2)
_modes = st.sampled_from(("whole", "memory", "mig", "time_slice"))
_left = st.sampled_from((0, PPM // 4, PPM // 2))
_placeable = st.sets(_profiles).map(lambda drawn: tuple(sorted(drawn)))


def _devices(draw: st.DrawFn, node: int, model: str) -> tuple[FreeDevice, ...]:
    found = []
    for slot in range(draw(_slot_counts)):
        is_free = draw(_in_three) > 0
        mode = None if is_free else draw(_modes)
        found.append(
            FreeDevice(
                device_id=f"GPU-{node}-{slot}",
                model=model,
                free_share_ppm=PPM if is_free else draw(_left),
                free_mem_ppm=PPM if is_free else draw(_left),
                mode=mode,
                slice_ppm=PPM // 4 if mode == "time_slice" else None,
                profiles=draw(_placeable),
                is_divisible=draw(_in_ten) > 0,
            )
        )
    return tuple(found)


_STATED: tuple[tuple[Stated, ...], ...] = (
    (),
    (Stated("iso27001", "yes", "tuev"),),
    (Stated("iso27001", "no", "bsi"), Stated("iso27001", "yes", "tuev", NOW_US)),
)
_WINDOWS: tuple[tuple[tuple[int, int], ...], ...] = (
    (),
    ((NOW_US + HOUR_US, NOW_US + 2 * HOUR_US),),
    ((NOW_US - 9, NOW_US),),
)
_models = st.sampled_from(("A100", "T4"))
_row: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "account_id": st.sampled_from((RENTER, OWNER, OTHER)),
        "price": st.integers(0, 5),
        "pay_with": st.sampled_from(SETTLEMENTS),
        "fractions": often(True, False),
        "served_gpu_us": st.integers(0, 2),
        "memory_mib": st.sampled_from((0, 40_960, 81_920)),
        "gpu_class": often("datacenter", "professional", None),
        "vendor": st.sampled_from(("nvidia", "amd")),
        "is_offered": often(True, False),
        "phase": often("active", "maintenance", "quarantined"),
        "specs_at_us": often(NOW_US, NOW_US - TTL_US, NOW_US - TTL_US - 1, None),
        "provider_id": st.sampled_from(("prov_a", "prov_b")),
        "region_id": st.sampled_from(("region_a", "region_b")),
        "is_public": often(True, False),
        "setting": st.sampled_from(("edge", "datacenter")),
        "refused_workloads": often((), ("ip_lease",)),
        "down_ranked_workloads": often((), ("large_storage",)),
        "pool_id": st.sampled_from((None, "pool_a")),
        "keeps_queue": often(False, True),
        "arch": st.sampled_from(("x86_64", "aarch64")),
        "os": st.just("linux"),
        "cpu_cores": st.sampled_from((None, 1, 2, 4)),
        "ram_mib": st.sampled_from((None, 1, 2, 4)),
        "terms": st.one_of(st.just(OfferTerms()), terms),
        "reputation_ppm": st.sampled_from((None, PPM // 2, PPM)),
        "attributes": st.sampled_from(_STATED),
        "maintenance": often(*_WINDOWS),
        "available_until_us": often(None, NOW_US + HOUR_US, NOW_US + 2),
        "held_storage_gib": st.integers(0, 3),
        "held_network_mbps": st.integers(0, 3),
        "kernel": st.sampled_from((None, 5_010_000, 6_001_002)),
        "substrate": often(("bare_metal",), (), ("esxi", "kubernetes")),
        "capacity_class": often("on_demand", "preemptible", "committed"),
        "cloud_jobs": often(None, 0, 1, 2),
    }
)


@st.composite
def _node_rows(draw: st.DrawFn, number: int) -> OfferedNode:
    model = draw(_models)
    return OfferedNode(
        node_id=f"node_{draw(st.integers(number // 2, number))}",
        offer_id=f"offer_{number}",
        devices=_devices(draw, number, model),
        model=model,
        **draw(_row),
    )


@cache
def node_rows(number: int) -> st.SearchStrategy[OfferedNode]:
    """As the columns keep it: the price is the offer's."""
    return _node_rows(number)


_counts = st.integers(0, 7)


@st.composite
def _fleets(draw: st.DrawFn) -> list[OfferedNode]:
    return [draw(node_rows(number)) for number in range(draw(_counts))]


_each_fleet = _fleets()


def fleets() -> st.SearchStrategy[list[OfferedNode]]:
    """Up to seven nodes with what they have, free or not."""
    return _each_fleet


def as_seen_by(renter: str, row: OfferedNode) -> OfferedNode:
    """With what it costs this renter: for own nodes the usage fee."""
    fee = FEES.get(row.gpu_class or "", -1)
    price = fee if row.account_id == renter else row.price
    return replace(row, price=price, is_priced=fee >= 0 and price >= fee)


def with_peers(nodes: Iterable[OfferedNode]) -> list[OfferedNode]:
    """The nodes of a fleet, each with what the others of its region are: the reference for
    `projections/market/columns.py`.
    """
    fleet = list(nodes)
    free: dict[str, int] = {}
    devices: dict[str, int] = {}
    for node in fleet:
        whole, count = peers_of(node)
        free[node.region_id] = free.get(node.region_id, 0) + whole
        devices[node.region_id] = devices.get(node.region_id, 0) + count
    return [
        replace(
            node,
            peers_free=free[node.region_id] - peers_of(node)[0],
            peers_devices=devices[node.region_id] - peers_of(node)[1],
        )
        for node in fleet
    ]
