"""The tier of a device: each rule by name, and what it takes to be believed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.hardware.known_gpus import BOARDS, NVIDIA_VENDOR, board_of
from domain.trust.lifting import lifted_us
from domain.trust.tiers import Evidence, Identity, Metered, Place, is_fake_driver, standing

LIBRARY = ("580.95.05", "5e" * 32)
UUID = "GPU-5c1d8f3e-0f6b-4c6e-9a3b-2f1d0c9e8a71"
HOUR_US = 3_600_000_000
A5000 = Identity(
    name="NVIDIA RTX A5000",
    pci_id="0x223110DE",
    mem_bytes=24_564 * 2**20,
    compute_capability="8.6",
    driver=LIBRARY[0],
    library_sha256=LIBRARY[1],
    proc_nvidia="ok",
    power_limit_mw=230_000,
    counter_mj=6_000_000,
    integrated_mj=6_100_000,
)
MI300X = Identity(
    name="AMD Instinct MI300X",
    pci_id="0x74a11002",
    mem_bytes=205_822_885_888,
    driver="6.12.12",
    library_sha256="a3" * 32,
    proc_nvidia="ok",
    power_limit_mw=750_000,
    counter_mj=6_000_000,
    integrated_mj=6_100_000,
)
A770 = Identity(
    name="Intel(R) Arc(TM) A770 Graphics",
    pci_id="0x56a08086",
    mem_bytes=15_473 * 2**20,
    driver="1.6.33578",
    library_sha256="17" * 32,
    proc_nvidia="ok",
    power_limit_mw=225_000,
)
"""Level Zero has no gauge of power to hold the counter against."""
HONEST = Metered(
    rows=60,
    available_us=HOUR_US,
    energy_us=HOUR_US,
    energy_mj=360_000_000,
    power_rows=60,
    power_mw_min=95_000,
    power_mw_max=104_000,
    busy_rows=60,
    busy_ppm_min=310_000,
    busy_ppm_max=480_000,
)
GOOD = Evidence(
    device_id=UUID, identity=A5000, told_at=Place(3, 1), metered=HONEST, metered_at=Place(3, 9)
)


def broken(evidence: Evidence, **how: Any) -> set[str]:
    """The rules of tiers 1 and 2 that do not hold."""
    found = standing(evidence, {LIBRARY}, **how).findings
    return {finding.rule for finding in found if finding.denies <= 2}


def told(**changes: Any) -> Evidence:
    return replace(GOOD, identity=replace(A5000, **changes))


def metered(**changes: Any) -> Evidence:
    return replace(GOOD, metered=replace(HONEST, **changes))


def test_an_honest_device_is_at_tier_2_until_it_is_challenged_and_attested() -> None:
    assert broken(GOOD) == set()
    assert standing(GOOD, {LIBRARY}).tier == 2
    challenged = replace(GOOD, challenge="passed", challenged_at=Place(None, 7))
    assert standing(challenged, {LIBRARY}).tier == 3
    attested = replace(challenged, attestation="passed")
    assert (standing(attested, {LIBRARY}).tier, standing(attested, {LIBRARY}).findings) == (4, ())


@pytest.mark.parametrize(
    ("evidence", "rule"),
    [
        (replace(GOOD, identity=None), "inventory"),
        (replace(GOOD, device_id="GPU-fake-1"), "uuid_form"),
        (told(power_limit_mw=None), "energy_above_limit"),
        (told(pci_id="0x268410DE"), "board"),
        (told(pci_id="0xFFFF10DE"), "board"),
        (told(pci_id=None), "board"),
        (told(mem_bytes=81_559 * 2**20), "board"),
        (told(compute_capability="8.9"), "board"),
        (told(library_sha256="00" * 32), "library_digest"),
        (told(library_sha256=None), "library_digest"),
        (told(proc_nvidia="mounted"), "proc_driver"),
        (told(proc_nvidia=None), "proc_driver"),
        (told(counter_mj=10, integrated_mj=1_000), "energy_is_not_power"),
        (told(counter_mj=0, integrated_mj=0), "energy_is_not_power"),
        (told(counter_mj=None), "energy_not_compared"),
        (told(integrated_mj=None), "energy_not_compared"),
        (metered(available_us=599_999_999), "little_evidence"),
        (metered(energy_us=0, energy_mj=0, power_rows=0), "energy_stands_still"),
        (metered(energy_mj=0, power_mw_min=0, power_mw_max=0), "energy_stands_still"),
        (metered(energy_mj=1_000_000_000), "energy_above_limit"),
        (metered(power_mw_min=100_000, power_mw_max=100_000), "power_never_jitters"),
        (metered(busy_ppm_min=420_000, busy_ppm_max=420_000), "busy_never_jitters"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_rule_of_tier_2_is_found_by_its_name(evidence: Evidence, rule: str) -> None:
    assert rule in broken(evidence)
    assert standing(replace(evidence, challenge="passed"), {LIBRARY}).tier == 1


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"quarantined": True}, "equivocation"),
        ({"cloned": True}, "cloned_key"),
        ({"elsewhere": ("node_b",)}, "device_twice"),
        ({"faster_at": Place(None, 9)}, "faster_than_time"),
    ],
)
def test_without_tier_1_nothing_else_is_believed(changed: dict[str, Any], rule: str) -> None:
    evidence = replace(GOOD, challenge="passed", attestation="passed", **changed)
    assert broken(evidence) == {rule}
    assert standing(evidence, {LIBRARY}).tier == 0


@pytest.mark.parametrize("busy_ppm", [0, 1_000_000])
def test_an_idle_or_a_fully_used_device_may_stand_still(busy_ppm: int) -> None:
    assert broken(metered(busy_ppm_min=busy_ppm, busy_ppm_max=busy_ppm)) == set()


BARE = "fcff74a1-0000-1000-8044-e11a1e0e3b5d"


@pytest.mark.parametrize("identity", [MI300X, A770], ids=["amd", "intel"])
def test_a_gpu_of_amd_or_intel_reaches_tier_2_and_signed_time_lifts_it(identity: Identity) -> None:
    own = replace(GOOD, device_id=BARE, identity=identity)
    libraries = {(str(identity.driver), str(identity.library_sha256))}
    judged = standing(own, libraries)
    assert (judged.tier, {one.rule for one in judged.findings}) == (2, {"challenge", "attestation"})
    assert lifted_us([(judged.tier, HOUR_US)], signed_us=HOUR_US // 2) == [HOUR_US // 2]
    asked = replace(own, challenge="passed_reference")
    assert standing(asked, libraries).tier == 2, "there is no challenge for it"


@pytest.mark.parametrize("identity", [MI300X, A770], ids=["amd", "intel"])
@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"name": "NVIDIA H200"}, "board"),
        ({"pci_id": "0x74ff1002"}, "board"),
        ({"mem_bytes": 8 * 2**30}, "board"),
        ({"compute_capability": "9.0"}, "board"),
        ({"proc_nvidia": "absent"}, "proc_driver"),
        ({"proc_nvidia": "mounted"}, "proc_driver"),
        ({"library_sha256": "00" * 32}, "library_digest"),
        ({"counter_mj": 10, "integrated_mj": 1_000}, "energy_is_not_power"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_together_is_found_of_amd_and_intel_too(
    identity: Identity, changes: dict[str, Any], rule: str
) -> None:
    lies = replace(GOOD, device_id=BARE, identity=replace(identity, **changes))
    libraries = {(str(identity.driver), str(identity.library_sha256))}
    found = {one.rule for one in standing(lies, libraries).findings}
    assert rule in found


def test_each_vendor_has_its_own_form_of_ids_and_its_own_driver() -> None:
    assert "uuid_form" in broken(replace(GOOD, device_id=BARE)), "NVIDIA's are GPU-..."
    assert "uuid_form" in broken(replace(GOOD, identity=MI300X)), "AMD's are bare"
    absent = replace(GOOD, identity=replace(A770, proc_nvidia="absent"))
    details = {one.rule: one.detail for one in standing(absent, set()).findings}
    assert details["proc_driver"] == "/sys/module/i915 or xe: absent"
    untold = replace(GOOD, device_id=BARE, identity=replace(MI300X, counter_mj=None))
    assert "energy_not_compared" in broken(untold), "AMD's library has a gauge"


def test_too_few_rows_show_no_jitter() -> None:
    still = metered(power_rows=9, power_mw_min=1, power_mw_max=1)
    assert broken(still) == set()


def test_a_simulated_device_is_believed_in_development_only_and_never_past_what_it_is() -> None:
    simulated = told(driver="simulated", pci_id=None, library_sha256=None, proc_nvidia="absent")
    steady = replace(simulated, metered=replace(HONEST, power_mw_min=7, power_mw_max=7))
    assert broken(steady, development=True) == set()
    passed = replace(steady, challenge="passed_reference")
    assert standing(passed, set(), development=True).tier == 3
    assert standing(passed, set(), development=True).is_simulated
    assert standing(passed, set()).tier == 1


def test_the_reference_challenge_proves_nothing_of_a_real_gpu() -> None:
    assert standing(replace(GOOD, challenge="passed_reference"), {LIBRARY}).tier == 2
    assert standing(replace(GOOD, challenge="failed"), {LIBRARY}).tier == 2


def test_every_finding_says_where_its_evidence_lies() -> None:
    findings = standing(metered(energy_mj=0), {LIBRARY}).findings
    (still,) = [one for one in findings if one.rule == "energy_stands_still"]
    assert (still.place, still.denies) == (Place(3, 9), 2)


@pytest.mark.parametrize(
    ("driver", "is_fake"),
    [("simulated", True), ("580.95.05-fake", True), ("580.95.05", False), (None, False)],
)
def test_a_driver_that_says_so_is_a_fake(driver: str | None, is_fake: bool) -> None:
    assert is_fake_driver(driver) is is_fake


@pytest.mark.parametrize(
    ("pci_id", "name", "mib"),
    [
        ("0x233510DE", "NVIDIA H200", 143_771),
        ("0x233010DE", "NVIDIA H100 80GB HBM3", 81_559),
        ("0x20B510DE", "NVIDIA A100 80GB PCIe", 81_920),
        ("0x20B010DE", "NVIDIA A100-SXM4-40GB", 40_960),
        ("0x268410DE", "NVIDIA GeForce RTX 4090", 24_564),
        ("0x1EB810DE", "Tesla T4", 15_360),
        ("0x74a11002", "AMD Instinct MI300X", 196_592),
        ("0x740f1002", "AMD Instinct MI210", 65_520),
        ("0x744c1002", "AMD Radeon RX 7900 XTX", 24_560),
        ("0x74481002", "AMD Radeon PRO W7900", 49_136),
        ("0x0bd58086", "Intel(R) Data Center GPU Max 1550", 131_072),
        ("0x56a08086", "Intel(R) Arc(TM) A770 Graphics", 15_473),
        ("0xe20b8086", "Intel(R) Arc(TM) B580 Graphics", 11_605),
    ],
)
def test_boards_are_known_by_what_their_drivers_tell(pci_id: str, name: str, mib: int) -> None:
    board = board_of(pci_id)
    assert board is not None
    assert board.is_named(name)
    assert board.has_memory(mib * 2**20)


def test_no_board_passes_for_another() -> None:
    for vendor, boards in BOARDS.items():
        for device, board in boards.items():
            others = [one for one in boards.values() if one.is_named(board.name)]
            alike = {(one.compute_capability) for one in others}
            assert alike == {board.compute_capability}, (hex(vendor), hex(device))


def test_every_board_of_nvidia_has_a_rate_and_no_other_has() -> None:
    for vendor, boards in BOARDS.items():
        for board in boards.values():
            assert (board.multiply_adds_per_s > 0) is (vendor == NVIDIA_VENDOR), board.name


@given(
    st.sampled_from(["elsewhere", "identity", "challenge", "attestation"]),
    st.sampled_from([None, "passed", "failed"]),
    st.sampled_from([None, "passed", "failed"]),
)
def test_the_tier_is_just_below_the_lowest_rule_that_fails(
    lost: str, challenge: str | None, attestation: str | None
) -> None:
    """Formula: tier == min(denies over all findings, 5) - 1."""
    evidence = replace(GOOD, challenge=challenge, attestation=attestation)
    gone: dict[str, Any] = {lost: ("node_b",) if lost == "elsewhere" else None}
    judged = standing(replace(evidence, **gone), {LIBRARY})
    assert judged.tier == min((one.denies for one in judged.findings), default=5) - 1
