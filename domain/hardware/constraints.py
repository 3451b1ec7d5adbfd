"""What a renter demands of a node beside count, share, model and price; all of it optional.

    sum(weights) == 1_000_000          of a ranking by score
    1 h <= reclaim window <= 720 h     asked for or offered

A constraint that is absent refuses nothing. Whether a node meets one is decided in
`domain/market/matching.py`; here is what can be asked and what cannot mean anything. Source: design
marketplace 3.1, rows R-3, R-5, J-9, J-11, K-4, V-15 to V-17.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

from domain.duration import HOUR_US
from domain.hardware.host_kind import NETWORK_CLASSES, version_rule
from domain.hardware.reasons import HardwareReason
from domain.hardware.sharing import SHARING_MODES
from domain.money import PPM
from domain.record import dataclass
from domain.refusal import Refused


@dataclass(frozen=True, slots=True)
class RequiredAttribute:
    """Something a third party has stated about the node and signed. `value` absent: any value.
    `signers`: one of these has signed it; absent: whoever.
    """

    name: str
    value: str | None = None
    signers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts how much in a ranking by score, in ppm; together exactly 1,000,000."""

    spec_fit: int = 0
    reputation: int = 0
    locality: int = 0
    free_peers: int = 0
    storage: int = 0
    price: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """Every field is one dimension of the match; absent: anything will do."""

    kinds: tuple[str, ...] | None = None  # of accelerator, as registered: "gpu", "ipu", ...
    vendors: tuple[str, ...] | None = None
    mode: str | None = None  # of sharing
    mig_profile: str | None = None
    memory_mib: int | None = None  # on each device, of the part that the lease gets
    isolation: str | None = None  # this level or a stronger one
    cpu_cores: int | None = None
    ram_mib: int | None = None
    storage_gib: int | None = None
    network_mbps: int | None = None
    arch: str | None = None
    os: str | None = None
    capabilities: tuple[str, ...] | None = None  # all of them
    setting: str | None = None  # "edge" or "datacenter"
    workload_class: str | None = None  # regions may refuse some on edge nodes
    security_tier: int | None = None  # at least
    min_reputation_ppm: int | None = None  # of foreign nodes
    accept_provisional: bool | None = None  # nodes without a reputation yet; absent: see matching
    regions: tuple[str, ...] | None = None  # only there: data, a reservation or a volume pins
    near_region: str | None = None  # where the data is: ranks, refuses nothing
    attributes: tuple[RequiredAttribute, ...] | None = None
    pool_id: str | None = None
    reclaim_window_us: int | None = None  # at least so much notice
    interruptible: bool | None = None  # it may be paused when somebody bids more
    rank: str | None = None  # RANKS; absent: lowest_cost
    weights: Weights | None = None  # of the score; with best_score it decides before the price
    min_kernel: str | None = None  # of the node's operating system, at least: "5.10"
    network_class: str | None = None  # this one of NETWORK_CLASSES, or a better one
    substrate: str | None = None  # what the node runs on: "bare_metal", "esxi", "kubernetes", ...
    capacity_classes: tuple[str, ...] | None = None  # absent: any that is there to stay
    pinned_region: str | None = None  # of what the job is attached to (`domain/sites/attached.py`)


NOTHING: Final = Constraints()

ISOLATIONS = ("process", "container", "vm", "machine")
"""Each level gives what the ones before it give."""
SETTINGS = ("edge", "datacenter")
ON_DEMAND, PREEMPTIBLE, COMMITTED = "on_demand", "preemptible", "committed"
CAPACITY_CLASSES = (ON_DEMAND, PREEMPTIBLE, COMMITTED)
"""How a node's machine is held (`domain/cloud/capacity.py`)."""
RANKS = ("lowest_cost", "best_score")
SECURITY_TIER_MAX = 9
QUANTITY_MAX = 2**40
WORDS_MAX = 32
ATTRIBUTES_MAX = 16
SIGNERS_MAX = 8
RECLAIM_WINDOW_US = (HOUR_US, 720 * HOUR_US)
"""The shortest and the longest notice of a reclaim that can be agreed."""

_WORD = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.+:@/ -]{0,99}", re.ASCII)

Rule = Callable[[Any], str | None]
"""What is wrong with a value, or None."""


def require_constraints(asked: Constraints) -> None:
    """Raises Refused: CONSTRAINT_INVALID with the field and the rule that it breaks."""
    for field in fields(asked):
        value = getattr(asked, field.name)
        if value is not None:
            require_field(field.name, value, _RULES[field.name])
    if asked.mig_profile is not None and asked.mode != "mig":
        raise _invalid("mig_profile", "a MIG profile needs mode mig")
    if PREEMPTIBLE in (asked.capacity_classes or ()) and not asked.interruptible:
        raise _invalid(
            "capacity_classes", "preemptible capacity is taken back: ask for interruptible too"
        )
    if asked.rank == "best_score" and asked.weights is None:
        raise _invalid("weights", "a ranking by score says what counts how much")


def require_field(name: str, value: Any, rule: Rule) -> None:
    """Raises Refused: CONSTRAINT_INVALID, where the rule finds something wrong."""
    broken = rule(value)
    if broken is not None:
        raise _invalid(name, broken)


def one_of(known: tuple[str, ...]) -> Rule:
    return lambda value: None if value in known else f"one of {', '.join(known)}"


def between(least: int, most: int) -> Rule:
    return lambda value: None if least <= value <= most else f"from {least} to {most}"


def words(count_max: int = WORDS_MAX) -> Rule:
    """Up to so many different words, at least one."""

    def rule(value: tuple[str, ...]) -> str | None:
        if not 1 <= len(value) <= count_max:
            return f"from 1 to {count_max} of them"
        if len(set(value)) != len(value):
            return "each of them once"
        return next((broken for one in value if (broken := word(one)) is not None), None)

    return rule


def each_of(known: tuple[str, ...]) -> Rule:
    """At least one of the known words, each once."""

    def rule(value: tuple[str, ...]) -> str | None:
        return next((b for one in value if (b := one_of(known)(one))), None) or words()(value)

    return rule


def word(value: str) -> str | None:
    return None if _WORD.fullmatch(value) else "up to 100 letters, digits and _ . + : @ / - signs"


def anything(_value: bool) -> str | None:
    return None


def _attributes(value: tuple[RequiredAttribute, ...]) -> str | None:
    if not 1 <= len(value) <= ATTRIBUTES_MAX:
        return f"from 1 to {ATTRIBUTES_MAX} of them"
    if len({one.name for one in value}) != len(value):
        return "each name once"
    for one in value:
        texts = (one.name,) if one.value is None else (one.name, one.value)
        broken = next((found for text in texts if (found := word(text)) is not None), None)
        if broken is None and one.signers is not None:
            broken = words(SIGNERS_MAX)(one.signers)
        if broken is not None:
            return f"{one.name}: {broken}"
    return None


def weights_of(weights: Weights) -> dict[str, int]:
    """By factor, in the order of the ranking."""
    return {field.name: getattr(weights, field.name) for field in fields(weights)}


def _weights(value: Weights) -> str | None:
    found = weights_of(value)
    if min(found.values()) < 0 or sum(found.values()) != PPM:
        return f"no negative weight, and together {PPM}, not {sum(found.values())}"
    return None


def _invalid(field: str, rule: str) -> Refused:
    return Refused(HardwareReason.CONSTRAINT_INVALID, field=field, rule=rule)


_RULES: dict[str, Rule] = {
    "kinds": words(),
    "vendors": words(),
    "mode": one_of(SHARING_MODES),
    "mig_profile": word,
    "memory_mib": between(1, QUANTITY_MAX),
    "isolation": one_of(ISOLATIONS),
    "cpu_cores": between(1, QUANTITY_MAX),
    "ram_mib": between(1, QUANTITY_MAX),
    "storage_gib": between(1, QUANTITY_MAX),
    "network_mbps": between(1, QUANTITY_MAX),
    "arch": word,
    "os": word,
    "capabilities": words(),
    "setting": one_of(SETTINGS),
    "workload_class": word,
    "security_tier": between(0, SECURITY_TIER_MAX),
    "min_reputation_ppm": between(0, PPM),
    "accept_provisional": anything,
    "regions": words(),
    "near_region": word,
    "attributes": _attributes,
    "pool_id": word,
    "reclaim_window_us": between(*RECLAIM_WINDOW_US),
    "interruptible": anything,
    "rank": one_of(RANKS),
    "weights": _weights,
    "min_kernel": version_rule,
    "network_class": one_of(NETWORK_CLASSES),
    "substrate": word,
    "capacity_classes": each_of(CAPACITY_CLASSES),
    "pinned_region": word,
}
assert set(_RULES) == {field.name for field in fields(Constraints)}
