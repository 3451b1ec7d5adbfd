"""Random fleets and requests with few different values, so that ties and near misses are common."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from hypothesis import strategies as st

from domain.hardware.constraints import ISOLATIONS, Constraints, RequiredAttribute, Weights
from domain.hardware.host_kind import NETWORK_CLASSES
from domain.lease.looked import Stated
from domain.market.dimensions import FreeDevice, Need, OfferedNode
from domain.market.offer import SETTLEMENTS, OfferTerms
from domain.money import PPM

T = TypeVar("T")

RENTER, OWNER, OTHER = "acct_renter", "acct_owner", "acct_other"
NOW_US, HOUR_US, TTL_US = 10**15, 3_600_000_000, 900_000_000
FEES = {"datacenter": 2, "professional": 1}
PROFILES = ("1g.10gb", "3g.40gb")


def maybe(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Mostly absent: a request with every demand has no match ever."""
    return st.integers(0, 11).flatmap(lambda one: st.none() if one else values)


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
)


@st.composite
def needs(draw: st.DrawFn) -> Need:
    share = draw(parts)
    asked = draw(st.one_of(st.builds(Constraints, weights=weights), constraints))
    if draw(st.integers(0, 9)) == 0:
        asked = replace(asked, mode="mig", mig_profile=draw(st.sampled_from(PROFILES)))
        share = PPM // 4
    term_us = draw(st.sampled_from((HOUR_US, 3 * HOUR_US)))
    return Need(
        gpu_count=draw(often(1, 2, 3, 9)),
        share_ppm=share,
        mem_ppm=draw(st.sampled_from((share, share, PPM // 4))),
        models=draw(often((), ("A100",), ("A100", "T4"), ("H900",))),
        price_max=draw(often(6, 0, 2, 4)),
        account_id=RENTER,
        settlements=draw(often(SETTLEMENTS, ("cash",))),
        constraints=asked,
        at_us=NOW_US,
        until_us=NOW_US + term_us,
        spec_ttl_us=draw(st.sampled_from((0, TTL_US))),
        sla_classes=draw(often(None, ("assured",), ("standard", "assured"))),
        renter_ppm=draw(st.sampled_from((None, 0, PPM))),
        allowed=draw(often(frozenset[str](), frozenset({OWNER}))),
        denied=draw(often(frozenset[str](), frozenset({OTHER}))),
        price_max_budget=draw(often(None, 3)),
        price_max_funds=draw(often(None, (("cash", 4), ("burn", 2)))),
        data_provider_id=draw(st.sampled_from((None, "prov_a"))),
        is_fixed_term=draw(st.booleans()),
    )


@st.composite
def devices(draw: st.DrawFn, node: int) -> tuple[FreeDevice, ...]:
    found = []
    for slot in range(draw(st.integers(1, 10))):
        is_free = draw(st.integers(0, 2)) > 0
        mode = None if is_free else draw(st.sampled_from(("whole", "memory", "mig", "time_slice")))
        found.append(
            FreeDevice(
                device_id=f"GPU-{node}-{slot}",
                model="",
                free_share_ppm=PPM if is_free else draw(st.sampled_from((0, PPM // 4, PPM // 2))),
                free_mem_ppm=PPM if is_free else draw(st.sampled_from((0, PPM // 4, PPM // 2))),
                mode=mode,
                slice_ppm=PPM // 4 if mode == "time_slice" else None,
                profiles=tuple(sorted(draw(st.sets(st.sampled_from(PROFILES))))),
                is_divisible=draw(st.integers(0, 9)) > 0,
            )
        )
    return tuple(found)


@st.composite
def node_rows(draw: st.DrawFn, number: int) -> OfferedNode:
    """As the columns keep it: the price is the offer's."""
    model = draw(st.sampled_from(("A100", "T4")))
    return OfferedNode(
        node_id=f"node_{draw(st.integers(number // 2, number))}",
        offer_id=f"offer_{number}",
        account_id=draw(st.sampled_from((RENTER, OWNER, OTHER))),
        price=draw(st.integers(0, 5)),
        pay_with=draw(st.sampled_from(SETTLEMENTS)),
        fractions=draw(often(True, False)),
        served_gpu_us=draw(st.integers(0, 2)),
        devices=tuple(replace(one, model=model) for one in draw(devices(number))),
        model=model,
        memory_mib=draw(st.sampled_from((0, 40_960, 81_920))),
        gpu_class=draw(often("datacenter", "professional", None)),
        vendor=draw(st.sampled_from(("nvidia", "amd"))),
        is_offered=draw(often(True, False)),
        phase=draw(often("active", "maintenance", "quarantined")),
        specs_at_us=draw(often(NOW_US, NOW_US - TTL_US, NOW_US - TTL_US - 1, None)),
        provider_id=draw(st.sampled_from(("prov_a", "prov_b"))),
        region_id=draw(st.sampled_from(("region_a", "region_b"))),
        is_public=draw(often(True, False)),
        setting=draw(st.sampled_from(("edge", "datacenter"))),
        refused_workloads=draw(often((), ("ip_lease",))),
        down_ranked_workloads=draw(often((), ("large_storage",))),
        pool_id=draw(st.sampled_from((None, "pool_a"))),
        keeps_queue=draw(often(False, True)),
        arch=draw(st.sampled_from(("x86_64", "aarch64"))),
        os="linux",
        cpu_cores=draw(st.sampled_from((None, 1, 2, 4))),
        ram_mib=draw(st.sampled_from((None, 1, 2, 4))),
        terms=draw(st.one_of(st.just(OfferTerms()), terms)),
        reputation_ppm=draw(st.sampled_from((None, PPM // 2, PPM))),
        attributes=draw(st.sampled_from(_STATED)),
        maintenance=draw(often(*_WINDOWS)),
        available_until_us=draw(often(None, NOW_US + HOUR_US, NOW_US + 2)),
        kernel=draw(st.sampled_from((None, 5_010_000, 6_001_002))),
        substrate=draw(often(("bare_metal",), (), ("esxi", "kubernetes"))),
    )


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


@st.composite
def fleets(draw: st.DrawFn) -> list[OfferedNode]:
    return [draw(node_rows(number)) for number in range(draw(st.integers(0, 7)))]


def as_seen_by(renter: str, row: OfferedNode) -> OfferedNode:
    """With what it costs this renter: for own nodes the usage fee."""
    fee = FEES.get(row.gpu_class or "", -1)
    price = fee if row.account_id == renter else row.price
    return replace(row, price=price, is_priced=fee >= 0 and price >= fee)
