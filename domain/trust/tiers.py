"""How far a device's reports are believed: a tier per device and epoch, from what can be checked.

    T1  signed, in one chain, within the server's time, one device on one node
    T2  T1, and what the device says of itself fits together: board, energy, jitter, driver library
    T3  T2, and it passed a challenge in this epoch
    T4  T3, and its maker attested it in this epoch, bound to the head of the node's chain

    tier == the highest whose findings, and those of all below it, are none

Metering on a machine of somebody else proves consistency, not truth: root can answer every question
here. A finding names its rule and where its evidence lies, and everything is recomputed from the
logs, so nobody has to believe it. Source: design metering 9.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from domain.hardware.known_gpus import AMD_VENDOR, INTEL_VENDOR, board_of, vendor_of

FAKE_DRIVER_MARKS = ("simulated", "fake")
"""A driver that says so of itself is none; servers outside development refuse it."""
ENOUGH_US = 600_000_000
"""Ten minutes of available time: less shows neither energy nor jitter."""
JITTER_ROWS_MIN = 10
STEADY_PPM = 100
"""Values that stay within this part of themselves for ten rows are no measurement."""
ENERGY_HEADROOM_PPM = 1_200_000
"""Design metering 7: energy <= power limit x time x 1.2."""
POWER_RATIO_PPM = (500_000, 2_000_000)
"""The energy counter over integrated power: half to twice. NVML samples a quarter of the time."""
_BARE_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_UUID, _BARE = re.compile(rf"(GPU|MIG)-{_BARE_UUID}"), re.compile(_BARE_UUID)
_BARE_VENDORS = (AMD_VENDOR, INTEL_VENDOR)
"""Their drivers tell ids without a word in front."""
_DRIVER_TRACES = {AMD_VENDOR: "/sys/module/amdgpu", INTEL_VENDOR: "/sys/module/i915 or xe"}
PROC_FINE = "ok"
CHALLENGED = 3
"""The tier of a device that passed a challenge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What the node said of the device in `device.inventory`; None is not told."""

    name: str | None = None
    pci_id: str | None = None
    mem_bytes: int | None = None
    compute_capability: str | None = None
    driver: str | None = None
    library_sha256: str | None = None
    proc_nvidia: str | None = None  # the kernel driver's folder: "ok", "absent" or "mounted"
    power_limit_mw: int | None = None
    counter_mj: int | None = None  # what the energy counter moved while power was integrated
    integrated_mj: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered:
    """What a device's rows of an epoch add up to, and between which values they moved."""

    rows: int = 0
    available_us: int = 0
    energy_us: int = 0  # available time of rows that told energy
    energy_mj: int = 0
    power_rows: int = 0  # rows long enough to tell a mean power, and so below
    power_mw_min: int = 0
    power_mw_max: int = 0
    busy_rows: int = 0
    busy_ppm_min: int = 0
    busy_ppm_max: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where the evidence lies: a report of a lane, or a fact of the market log (lane None)."""

    lane: int | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that is known of one device on one node in one epoch."""

    device_id: str
    identity: Identity | None = None
    told_at: Place = Place()  # the report with the identity
    metered: Metered = Metered()
    metered_at: Place = Place()  # the last report with rows
    quarantined: bool = False
    cloned: bool = False
    elsewhere: tuple[str, ...] = ()  # nodes that metered it at the same time
    faster_at: Place | None = None  # time that was claimed faster than the server's clock
    challenge: str | None = None  # "passed", "passed_reference", "failed" or none
    challenged_at: Place = Place()
    attestation: str | None = None
    attested_at: Place = Place()


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that does not hold; the device stays below `denies`."""

    rule: str
    denies: int
    detail: str
    place: Place


@dataclass(frozen=True, slots=True)
class Standing:
    """A device's tier in an epoch, and everything that keeps it from the next one."""

    tier: int
    findings: tuple[Finding, ...]
    is_simulated: bool


Rule = Callable[[Evidence], str | None]
"""What does not hold, in words; None when it does."""


def is_fake_driver(driver: str | None) -> bool:
    """Whether a driver's own name says that it is simulated."""
    return driver is not None and any(mark in driver.lower() for mark in FAKE_DRIVER_MARKS)


def standing(
    evidence: Evidence, libraries: Collection[tuple[str, str]], *, development: bool = False
) -> Standing:
    """Judge a device. `libraries`: the driver versions and digests of the library that the operator
    knows; one that is not among them fails (fail closed). In development a simulated device is
    judged by what it can have: energy within its limit, and challenges.
    """
    driver = None if evidence.identity is None else evidence.identity.driver
    is_simulated = is_fake_driver(driver)
    rules = _RULES_SIMULATED if is_simulated and development else _RULES
    findings = [
        Finding(name, denies, said, place(evidence))
        for name, denies, rule, place in rules
        if (said := rule(evidence)) is not None
    ]
    if not (is_simulated and development):
        said = _library(evidence, libraries)
        if said is not None:
            findings.append(Finding("library_digest", 2, said, evidence.told_at))
    # The reference program runs on a processor: of a real GPU it proves nothing.
    passing = ("passed", "passed_reference") if is_simulated else ("passed",)
    for name, denies, verdict, where in (
        ("challenge", CHALLENGED, evidence.challenge, evidence.challenged_at),
        ("attestation", 4, evidence.attestation, evidence.attested_at),
    ):
        if verdict not in passing:
            findings.append(Finding(name, denies, verdict or "none in this epoch", where))
    tier = min((finding.denies for finding in findings), default=5) - 1
    return Standing(tier, tuple(findings), is_simulated)


# --- T1 --------------------------------------------------------------------------------------


def _is_quarantined(evidence: Evidence) -> str | None:
    return "the node signed two reports under one number" if evidence.quarantined else None


def _is_cloned(evidence: Evidence) -> str | None:
    return "two machines sign with the node's key by turns" if evidence.cloned else None


def _is_elsewhere(evidence: Evidence) -> str | None:
    return f"metered by {', '.join(evidence.elsewhere)} too" if evidence.elsewhere else None


def _is_faster(evidence: Evidence) -> str | None:
    return None if evidence.faster_at is None else "more time was claimed than passed"


# --- T2 --------------------------------------------------------------------------------------


def _is_untold(evidence: Evidence) -> str | None:
    return "no device.inventory was reported" if evidence.identity is None else None


def _vendor(evidence: Evidence) -> int | None:
    return None if evidence.identity is None else vendor_of(evidence.identity.pci_id)


def _uuid(evidence: Evidence) -> str | None:
    form = _BARE if _vendor(evidence) in _BARE_VENDORS else _UUID
    return None if form.fullmatch(evidence.device_id) else "not of the form that drivers give"


def _board(evidence: Evidence) -> str | None:
    told = evidence.identity or Identity()
    board = board_of(told.pci_id)
    if board is None:
        return f"no board is known by PCI id {told.pci_id}"
    if not board.is_named(told.name or ""):
        return f"PCI id {told.pci_id} is {board.name}, it is called {told.name}"
    is_part = evidence.device_id.startswith("MIG-")
    if not is_part and not board.has_memory(told.mem_bytes or 0):
        return f"{board.name} has {board.memory_gb} GB, told {told.mem_bytes} bytes"
    if told.compute_capability != board.compute_capability:
        return f"{board.name} computes {board.compute_capability}, told {told.compute_capability}"
    return None


def _library(evidence: Evidence, libraries: Collection[tuple[str, str]]) -> str | None:
    told = evidence.identity or Identity()
    if (told.driver, told.library_sha256) in libraries:
        return None
    return f"driver {told.driver} with library {told.library_sha256} is not known"


def _proc(evidence: Evidence) -> str | None:
    told = None if evidence.identity is None else evidence.identity.proc_nvidia
    folder = _DRIVER_TRACES.get(_vendor(evidence) or 0, "/proc/driver/nvidia")
    return None if told == PROC_FINE else f"{folder}: {told or 'not told'}"


def _is_little(evidence: Evidence) -> str | None:
    available_us = evidence.metered.available_us
    return None if available_us >= ENOUGH_US else f"{available_us} us of available time"


def _energy_moves(evidence: Evidence) -> str | None:
    metered = evidence.metered
    if metered.energy_us == 0:
        return "no energy was reported" if metered.available_us >= ENOUGH_US else None
    return "the counter does not move" if metered.energy_mj == 0 else None


def _energy_fits(evidence: Evidence) -> str | None:
    """energy_mj <= limit_mw x energy_us / 10^6 x 1.2: a milliwatt for a second is a millijoule."""
    if evidence.identity is None or evidence.metered.energy_us == 0:
        return None
    limit_mw = evidence.identity.power_limit_mw
    if limit_mw is None:
        return "energy was told, and no limit of power to hold it against"
    most = limit_mw * evidence.metered.energy_us * ENERGY_HEADROOM_PPM
    if evidence.metered.energy_mj * 10**12 > most:
        return f"{evidence.metered.energy_mj} mJ are more than {limit_mw} mW can use"
    return None


def _is_unchecked(evidence: Evidence) -> str | None:
    """Who never tells the comparison must not be better off than who fails it. Intel's library has
    no gauge of power to compare with.
    """
    if _vendor(evidence) == INTEL_VENDOR:
        return None
    told = evidence.identity or Identity()
    if told.counter_mj is None or told.integrated_mj is None:
        return "the counter of energy was not held against power: not told"
    return None


def _energy_is_power(evidence: Evidence) -> str | None:
    told = evidence.identity or Identity()
    if told.counter_mj is None or told.integrated_mj is None:
        return None
    if told.integrated_mj == 0:
        return "no power was read beside the counter"
    ratio_ppm = told.counter_mj * 1_000_000 // told.integrated_mj
    if POWER_RATIO_PPM[0] <= ratio_ppm <= POWER_RATIO_PPM[1]:
        return None
    return f"the counter tells {ratio_ppm} ppm of the power over time"


def _power_jitters(evidence: Evidence) -> str | None:
    metered = evidence.metered
    if metered.power_rows < JITTER_ROWS_MIN or metered.power_mw_max == 0:
        return None
    return _steady(metered.power_mw_min, metered.power_mw_max, metered.power_rows, "mW")


def _busy_jitters(evidence: Evidence) -> str | None:
    """Idle and fully used devices do stand still; one that is half busy does not."""
    metered = evidence.metered
    if metered.busy_rows < JITTER_ROWS_MIN or metered.busy_ppm_max in (0, 1_000_000):
        return None
    return _steady(metered.busy_ppm_min, metered.busy_ppm_max, metered.busy_rows, "ppm")


def _steady(least: int, most: int, rows: int, unit: str) -> str | None:
    if (most - least) * 1_000_000 > most * STEADY_PPM:
        return None
    return f"{least} to {most} {unit} over {rows} rows"


Where = Callable[[Evidence], Place]
_Rules = tuple[tuple[str, int, Rule, Where], ...]


def _told(evidence: Evidence) -> Place:
    return evidence.told_at


def _rows(evidence: Evidence) -> Place:
    return evidence.metered_at


_T1: _Rules = (
    ("equivocation", 1, _is_quarantined, _rows),
    ("cloned_key", 1, _is_cloned, _rows),
    ("device_twice", 1, _is_elsewhere, _rows),
    ("faster_than_time", 1, _is_faster, lambda evidence: evidence.faster_at or Place()),
)
_T2_SIMULATED: _Rules = (
    ("inventory", 2, _is_untold, _told),
    ("uuid_form", 2, _uuid, _told),
    ("little_evidence", 2, _is_little, _rows),
    ("energy_stands_still", 2, _energy_moves, _rows),
    ("energy_above_limit", 2, _energy_fits, _rows),
)
_T2: _Rules = (
    *_T2_SIMULATED,
    ("board", 2, _board, _told),
    ("proc_driver", 2, _proc, _told),
    ("energy_not_compared", 2, _is_unchecked, _told),
    ("energy_is_not_power", 2, _energy_is_power, _told),
    ("power_never_jitters", 2, _power_jitters, _rows),
    ("busy_never_jitters", 2, _busy_jitters, _rows),
)
_RULES_SIMULATED, _RULES = (*_T1, *_T2_SIMULATED), (*_T1, *_T2)
