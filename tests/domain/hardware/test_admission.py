"""Which machines may join and which may sell, by every rule and its name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.hardware.admission import ALWAYS, JOINING, RULES, SELLING, Gpu, System, Verdict, judge
from domain.hardware.facts import SataDrive

A100 = Gpu(model="A100", vram_mib=40_960, connection="pcie", pcie_gen=4, pcie_lanes=16)
SSD = SataDrive(2_000, "ssd", 0)
GOOD = System(
    gpus=(A100,) * 4,
    storage_mode="local",
    nvme_drives_gb=(1_000, 1_000),
    tpm_2_0=True,
    ram_mib=320 * 1_024,
    cpu_cores=16,
    sata_drives=(SSD,) * 3,
    ethernet_mbps=1_000,
)

gpus = st.builds(
    Gpu,
    model=st.sampled_from(["A100", "a100"]),
    vram_mib=st.integers(0, 200_000),
    connection=st.sampled_from(["pcie", "sxm"]),
    pcie_gen=st.none() | st.integers(1, 6),
    pcie_lanes=st.none() | st.integers(0, 16),
)
drives = st.builds(
    SataDrive,
    st.integers(0, 8_000),
    st.sampled_from(["ssd", "hdd"]),
    st.none() | st.sampled_from([0, 5_400, 7_200]),
)
systems = st.builds(
    System,
    gpus=st.lists(gpus, max_size=8).map(tuple),
    storage_mode=st.sampled_from(["local", "central"]),
    nvme_drives_gb=st.none() | st.lists(st.integers(0, 8_000), max_size=4).map(tuple),
    tpm_2_0=st.none() | st.booleans(),
    ram_mib=st.none() | st.integers(0, 4_000_000),
    cpu_cores=st.none() | st.integers(0, 256),
    sata_drives=st.none() | st.lists(drives, max_size=5).map(tuple),
    ethernet_mbps=st.none() | st.integers(0, 100_000),
)


def test_a_machine_that_meets_every_rule_joins_and_sells() -> None:
    verdict = judge(GOOD)
    assert (verdict.joinable, verdict.sellable, verdict.failing) == (True, True, ())


@pytest.mark.parametrize(
    ("changed", "failing"),
    [
        ({"gpus": (A100, replace(A100, model="RTX 3090"))}, ("same_gpu_model",)),
        ({"nvme_drives_gb": (4_000,)}, ("nvme_count",)),
        ({"nvme_drives_gb": (1_000, 999)}, ("nvme_size",)),
        ({"tpm_2_0": False}, ("tpm_2_0",)),
        ({"sata_drives": (SSD, SSD)}, ("sata_drives",)),
        ({"sata_drives": (SSD, SSD, SataDrive(8_000, "hdd", 5_400))}, ("sata_drives",)),
        ({"storage_mode": "central", "ethernet_mbps": 9_900}, ("ethernet",)),
        ({"ram_mib": 319 * 1_024}, ("ram",)),
        ({"gpus": (replace(A100, pcie_lanes=4),)}, ("pcie_lanes",)),
        ({"gpus": (replace(A100, pcie_lanes=4, connection="sxm"),)}, ()),
        ({"cpu_cores": 15}, ("cpu_cores",)),
        ({"tpm_2_0": False, "ram_mib": 319 * 1_024}, ("tpm_2_0", "ram")),
    ],
    ids=str,
)
def test_each_rule_fails_by_its_name(changed: Any, failing: tuple[str, ...]) -> None:
    verdict = judge(replace(GOOD, **changed))
    assert verdict.failing == failing
    assert verdict.joinable == (not set(failing) & set(JOINING))
    assert verdict.sellable == (not failing)


def test_a_machine_nobody_looked_at_fails_every_rule_that_needs_looking() -> None:
    unknown = System(gpus=(replace(A100, pcie_gen=None, pcie_lanes=None),), storage_mode="local")
    assert judge(unknown).failing == (
        "nvme_count",
        "nvme_size",
        "tpm_2_0",
        "sata_drives",
        "ram",
        "pcie_lanes",
        "cpu_cores",
    )
    assert "ethernet" in judge(replace(unknown, storage_mode="central")).failing


UNKNOWN: dict[str, tuple[str, ...]] = {
    "nvme_drives_gb": ("nvme_count", "nvme_size"),
    "tpm_2_0": ("tpm_2_0",),
    "ram_mib": ("ram",),
    "cpu_cores": ("cpu_cores",),
    "sata_drives": ("sata_drives",),
    "ethernet_mbps": ("ethernet",),
}


@given(systems, st.sampled_from(sorted(UNKNOWN)))
def test_forgetting_a_fact_never_makes_a_rule_hold(system: System, field: str) -> None:
    """Formula: failing(known) is a subset of failing(unknown), but for what is not asked at all."""
    forgotten: dict[str, Any] = {field: None}
    blind = replace(system, **forgotten)
    assert set(judge(system).failing) <= set(judge(blind).failing)
    asked = {
        "sata_drives": system.storage_mode == "local",
        "nvme_drives_gb": bool(system.gpus),
        "ethernet_mbps": system.storage_mode == "central",
    }
    if asked.get(field, True):
        assert set(UNKNOWN[field]) <= set(judge(blind).failing)


@given(systems, st.sets(st.sampled_from(RULES)))
def test_a_waived_rule_is_still_told_and_stops_nothing(system: System, waived: set[str]) -> None:
    verdict, plain = judge(system, waived), judge(system)
    assert verdict.failing == plain.failing
    assert set(verdict.stopping) == set(plain.failing) - waived
    assert verdict.sellable == (set(plain.failing) <= waived)
    assert verdict.joinable == (not (set(plain.failing) - waived) & set(JOINING))


@given(systems)
def test_who_sells_may_join_and_rules_are_told_in_their_order(system: System) -> None:
    verdict = judge(system)
    assert verdict.joinable or not verdict.sellable
    assert list(verdict.failing) == [name for name in RULES if name in verdict.failing]


def test_a_machine_of_seats_has_something_to_rent() -> None:
    seats = replace(GOOD, gpus=(), seats=3)
    assert judge(seats).failing == ()
    assert judge(replace(seats, seats=0)).failing == ("has_gpu",)


def test_joining_and_selling_are_all_the_rules() -> None:
    assert {*JOINING, *SELLING} == set(RULES)
    assert not {*JOINING} & {*SELLING}
    assert set(ALWAYS) <= set(JOINING)
    assert Verdict().sellable
