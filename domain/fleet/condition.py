"""What happens to a node beside its phases of work: provisioned, stopped, in error, set up, mining.

Facts of the node's stream, which `domain/fleet/node.py` remembers; who says so, and when it is
refused, is decided in the room `machines`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from domain.frozen import replace


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinTermsStated:
    """Stream `join:{code_sha256}`: what the node that uses the code is."""

    code_sha256: str
    lifetime: str  # LIFETIMES
    minion_id: str | None  # of the machine that was installed for it
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTermsStated:
    """What its join code said of the node. Without this fact it is permanent."""

    node_id: str
    lifetime: str
    minion_id: str | None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProvisioningStarted:
    """Admitted in a region that admits by the whole procedure: what runs there is installed."""

    node_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProvisioned:
    """What runs there is installed, as its first inventory after the admission shows."""

    node_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStopped:
    """Its provider turned the machine off."""

    node_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeErrored:
    """The machine itself tells an error that keeps it from working."""

    node_id: str
    error: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailed:
    """Its provider or the operator gives it up until it is repaired."""

    node_id: str
    error: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSetupStated:
    """How its owner set it up, in the owner's words: nobody checks them."""

    node_id: str
    uplink: str | None  # UPLINKS
    upnp: bool | None
    exclusive_access: bool  # nobody uses the machine but through this market
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleMiningSet:
    """Whether the machine mines while nobody leases it; never usage of a lease."""

    node_id: str
    is_on: bool
    wallet: str | None  # of the provider's account when it was turned on
    by: str
    at_us: int


ConditionFact: TypeAlias = (
    NodeTermsStated
    | NodeProvisioningStarted
    | NodeProvisioned
    | NodeStopped
    | NodeErrored
    | NodeFailed
    | NodeSetupStated
    | IdleMiningSet
)

Phase = Literal[
    "joining",
    "confirmed",
    "provisioning",
    "maintenance",
    "active",
    "draining",
    "stopped",
    "errored",
    "failed",
    "retired",
]
"""Of a node, in the order of its life; out of order it may be from any of them."""
UPLINKS = ("corporate_firewall", "internet_provider")
PERMANENT, EPHEMERAL = "permanent", "ephemeral"
LIFETIMES = (PERMANENT, EPHEMERAL)
OFFLINE_AFTER_US = 300_000_000
"""A node at work that is not heard for so long is offline: it tells its inventory more often."""


@dataclass(frozen=True, slots=True)
class Condition:
    """`error` is that of the phase errored or failed, and is kept after it for who asks."""

    lifetime: str = PERMANENT
    minion_id: str | None = None
    error: str | None = None
    setup: NodeSetupStated | None = None
    mining: IdleMiningSet | None = None

    @property
    def is_mining(self) -> bool:
        return self.mining is not None and self.mining.is_on


def evolve_condition(state: Condition, fact: ConditionFact) -> Condition:
    match fact:
        case NodeTermsStated():
            return replace(state, lifetime=fact.lifetime, minion_id=fact.minion_id)
        case NodeErrored() | NodeFailed():
            return replace(state, error=fact.error)
        case NodeSetupStated():
            return replace(state, setup=fact)
        case IdleMiningSet():
            return replace(state, mining=fact)
        case NodeProvisioningStarted() | NodeProvisioned() | NodeStopped():
            return state
        case _:
            assert_never(fact)


def phase_after(phase: str, fact: ConditionFact) -> str:
    """The phase of the node once this has happened."""
    match fact:
        case NodeProvisioningStarted():
            return "provisioning"
        case NodeProvisioned():
            return "maintenance"
        case NodeStopped():
            return "stopped"
        case NodeErrored():
            return "errored"
        case NodeFailed():
            return "failed"
        case NodeTermsStated() | NodeSetupStated() | IdleMiningSet():
            return phase
        case _:
            assert_never(fact)


def state_of(phase: str, *, is_quarantined: bool, is_silent: bool) -> str:
    """What a node is, in one word, for whoever looks at it (row C-7): from its phase and, while it
    should be at work, from when it was last heard.
    """
    if phase == "retired":
        return "archived"
    if is_quarantined:
        return "failed"
    if phase == "draining":
        return "maintenance"
    return "offline" if phase == "active" and is_silent else phase
