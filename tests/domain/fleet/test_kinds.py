"""An open registry of what can be rented; what no row knows is listed and not priced."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.fleet.device import DeviceRegistered, device_of, reserve
from domain.fleet.kinds import (
    NETWORK,
    SEED,
    ClassModel,
    RegisterResourceKind,
    ResourceKindRegistered,
    kind_in_force,
)
from domain.fleet.licence import GrantLicence, LicenceGranted, RevokeLicence, seat_id, seat_of
from domain.fleet.node import AdmitNode, DeviceSpec, NodeAdmitted, NodeSpecReported
from domain.fleet.reasons import FleetReason
from domain.money import PPM, Asset
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.prices.tariff import NETWORK as TARIFF
from domain.refusal import Refused
from domain.stream import Stream
from tests.domain.scenes import supply
from tests.domain.scenes.supply import NODE, NODE_STREAM, NOON_US, PROVIDER

DAY_US = 86_400_000_000
LICENCE = "lic_1"
NPU = RegisterResourceKind(
    kind="npu",
    vendor="Acme",
    dimensions=("compute", "memory"),
    memory="dedicated",
    is_divisible=False,
    capacity_asset=Asset.GPU_MS,
    effective_from_us=NOON_US,
    by="mem_ops",
    at_us=NOON_US,
)
GRANT = GrantLicence(
    licence_id=LICENCE,
    provider_id=PROVIDER,
    vendor="ThirdAI",
    model="ThirdAI Bolt",
    seats=3,
    terms_sha256="0a" * 32,
    from_us=NOON_US,
    until_us=NOON_US + DAY_US,
    by="mem_alice",
    at_us=NOON_US,
)
ADMIT = AdmitNode(node_id=NODE, by="mem_ops", at_us=NOON_US)


def listed(*devices: DeviceSpec) -> Any:
    """A confirmed node with this inventory."""
    specs = replace(supply.specs, devices=devices)
    assert isinstance(specs, NodeSpecReported)
    return supply.with_joined_node.given((NODE_STREAM, specs), (NODE_STREAM, supply.confirmed))


def device(kind: str | None, vendor: str, model: str, name: str = "DEV-0") -> DeviceSpec:
    return DeviceSpec(device_id=name, vendor=vendor, model=model, memory_mib=1_024, kind=kind)


def test_a_gpu_that_shares_the_memory_of_its_host_says_so_whatever_its_vendor_makes() -> None:
    (shared,) = admitted(listed(replace(device(None, "nvidia", "NVIDIA GB10"), memory="unified")))
    (own,) = admitted(listed(device(None, "nvidia", "NVIDIA H100")))
    assert (shared.memory, shared.kind) == ("unified", "gpu")
    assert own.memory == "dedicated"


def seat(number: int) -> DeviceSpec:
    return device("seat", "thirdai", "ThirdAI Bolt", seat_id(LICENCE, number))


def admitted(scene: Any) -> list[DeviceRegistered]:
    changes = scene.when(ADMIT).changes()
    return [one.fact for one in changes if isinstance(one.fact, DeviceRegistered)]


def test_a_seat_counts_in_seat_time_and_nothing_else_does() -> None:
    for row in SEED:
        assert (row.capacity_asset is Asset.SEAT_MS) == (row.kind == "seat")
        assert (row.memory == "none") == (row.kind == "seat")


@pytest.mark.parametrize(
    ("kind", "vendor", "model", "gpu_class", "memory"),
    [
        (None, "nvidia", "NVIDIA H100", "datacenter", "dedicated"),
        ("gpu", "amd", "AMD Instinct MI300X", "datacenter", "dedicated"),
        ("gpu", "Intel", "Intel Data Center GPU Max 1550", "datacenter", "dedicated"),
        ("ipu", "graphcore", "Graphcore Bow IPU", "accelerator", "dedicated"),
        ("hpu", "intel", "Intel Gaudi2", "accelerator", "dedicated"),
        ("gpu", "apple", "Apple M3 Max", "unified", "unified"),
        (None, "apple", "Apple M3 Max", "unified", "unified"),
        ("gpu", "acme", "NVIDIA H100", None, "dedicated"),
        ("gpu", "amd", "AMD Somethingelse", None, "dedicated"),
    ],
)
def test_every_vendors_devices_are_registered_with_what_the_registry_knows_of_them(
    kind: str | None, vendor: str, model: str, gpu_class: str | None, memory: str
) -> None:
    (fact,) = admitted(listed(device(kind, vendor, model)))
    assert (fact.gpu_class, fact.memory, fact.vendor) == (gpu_class, memory, vendor)


def test_a_kind_that_is_registered_later_prices_its_devices_from_its_date_on() -> None:
    scene = listed(device("npu", "acme", "Acme One"))
    assert admitted(scene)[0].gpu_class is None
    known = scene.after(replace(NPU, effective_from_us=NOON_US + DAY_US)).after(
        ClassModel(
            vendor="acme",
            model="Acme One",
            gpu_class="accelerator",
            effective_from_us=NOON_US + DAY_US,
            by="mem_ops",
            at_us=NOON_US,
        )
    )
    assert kind_in_force(known, "npu", "acme", NOON_US + DAY_US - 1) is None
    assert admitted(known)[0].gpu_class is None
    later = known.when(replace(ADMIT, at_us=NOON_US + DAY_US)).changes()
    fact = later[-1].fact
    assert isinstance(fact, DeviceRegistered)
    assert (fact.gpu_class, fact.kind, fact.is_divisible) == ("accelerator", "npu", False)


def test_of_rows_for_the_same_devices_the_newest_in_force_counts() -> None:
    scene = supply.with_region.after(NPU)
    scene = scene.after(replace(NPU, is_divisible=True, effective_from_us=NOON_US + 5))
    before = kind_in_force(scene, "npu", "ACME", NOON_US + 4)
    after = kind_in_force(scene, "npu", "acme", NOON_US + 5)
    assert before is not None
    assert after is not None
    assert (before.is_divisible, after.is_divisible) == (False, True)


def test_registering_the_same_twice_is_once() -> None:
    supply.with_region.after(NPU).when(replace(NPU, at_us=NOON_US + 9)).then_nothing()


def test_a_row_waits_for_the_notice_of_the_tariff() -> None:
    scene = supply.with_region.given((TARIFF, replace(supply.tariff, notice_us=DAY_US)))
    scene.when(NPU).then_refused(PricesReason.TARIFF_NOTICE)
    after_notice = replace(NPU, effective_from_us=NOON_US + DAY_US)
    (change,) = scene.when(after_notice).changes()
    assert change.stream == NETWORK
    assert isinstance(change.fact, ResourceKindRegistered)
    late = replace(NPU, effective_from_us=NOON_US - 1)
    supply.with_region.when(late).then_refused(PricesReason.TARIFF_NOTICE)


@pytest.mark.parametrize(
    "wrong",
    [
        {"dimensions": ("seats",)},
        {"capacity_asset": Asset.SEAT_MS},
        {"capacity_asset": Asset.CREDIT},
        {"memory": "none"},
        {"memory": "cloud"},
        {"dimensions": ()},
        {"kind": "A Kind"},
    ],
)
def test_a_kind_that_cannot_be_counted_is_refused(wrong: dict[str, Any]) -> None:
    supply.with_region.when(replace(NPU, **wrong)).then_refused(PartiesReason.UNKNOWN_MODE)


def test_a_seat_of_a_licence_is_a_device_and_is_leased_whole() -> None:
    scene = listed(seat(1), seat(3)).after(GRANT)
    first, _ = admitted(scene)
    assert (first.kind, first.gpu_class, first.capacity_asset) == (
        "seat",
        "software",
        Asset.SEAT_MS,
    )
    state = device_of(scene.after(ADMIT), first.device_id)
    assert reserve(state, "lease_1", PPM, PPM, NOON_US).share_ppm == PPM
    with pytest.raises(Refused) as refused:
        reserve(state, "lease_1", PPM // 2, PPM // 2, NOON_US)
    assert refused.value.facts["rule"] == "whole_only"


def test_a_node_lists_no_seat_that_is_not_licensed() -> None:
    unlicensed = FleetReason.NODE_NOT_JOINABLE
    listed(seat(1)).when(ADMIT).then_refused(unlicensed)
    listed(seat(4)).after(GRANT).when(ADMIT).then_refused(unlicensed)
    late = replace(ADMIT, at_us=NOON_US + DAY_US)
    listed(seat(1)).after(GRANT).when(late).then_refused(unlicensed)
    revoked = listed(seat(1)).after(GRANT)
    revoked = revoked.after(RevokeLicence(licence_id=LICENCE, by="mem_alice", at_us=NOON_US))
    revoked.when(ADMIT).then_refused(unlicensed)
    unnamed = listed(device(None, "thirdai", "ThirdAI Bolt", seat_id(LICENCE, 1))).after(GRANT)
    unnamed.when(ADMIT).then_refused(unlicensed)


def test_a_seat_lives_on_one_node_at_a_time() -> None:
    elsewhere = supply.device_registered(seat_id(LICENCE, 1), node_id="node_2")
    scene = listed(seat(1)).after(GRANT).given((Stream("device", elsewhere.device_id), elsewhere))
    scene.when(ADMIT).then_refused(FleetReason.DEVICE_ELSEWHERE, device_id="lic_1:1")


def test_seats_beside_accelerators_of_one_model_may_join() -> None:
    scene = listed(supply.gpu("GPU-0"), supply.gpu("GPU-1"), seat(1)).after(GRANT)
    assert isinstance(scene.when(ADMIT).changes()[0].fact, NodeAdmitted)


def test_a_licence_is_granted_once_and_has_an_end_after_its_start() -> None:
    scene = supply.with_region.after(GRANT)
    (change,) = supply.with_region.when(GRANT).changes()
    assert isinstance(change.fact, LicenceGranted)
    assert change.fact.vendor == "thirdai"
    scene.when(replace(GRANT, at_us=NOON_US + 1)).then_nothing()
    scene.when(replace(GRANT, seats=9)).then_refused(FleetReason.LICENCE_EXISTS)
    empty = replace(GRANT, until_us=NOON_US)
    supply.with_region.when(empty).then_refused(FleetReason.BAD_PERIOD)
    none = replace(GRANT, seats=0)
    supply.with_region.when(none).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)
    revoke = RevokeLicence(licence_id=LICENCE, by="mem_alice", at_us=NOON_US)
    supply.with_region.when(revoke).then_refused(FleetReason.LICENCE_UNKNOWN)
    scene.after(revoke).when(revoke).then_nothing()


def test_a_seats_id_names_its_licence_and_number() -> None:
    assert seat_of(seat_id("lic_a", 12)) == ("lic_a", 12)
    assert [seat_of(name) for name in ("lic_a:0", "lic_a", "GPU-0", "lic_a:1:2")] == [None] * 4
