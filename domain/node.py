"""Nodes: machines of other people, and how they come to be trusted with leases.

    joining --NodeKeyConfirmed--> confirmed --NodeAdmitted--> maintenance <--> active --> retired

Two people let a node in: its owner compares the key's fingerprint, the operator (or a
permissionless region's policy) admits it. Its devices become streams of their own on admission.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """One accelerator as its node describes it."""

    device_id: str  # hardware UUID
    vendor: str
    model: str
    memory_mib: int
    connection: str = "pcie"  # or "sxm"
    pcie_gen: int | None = None
    pcie_lanes: int | None = None


@dataclass(frozen=True, slots=True)
class HostSpec:
    """The machine around the accelerators. Unknown is None, never 0."""

    arch: str
    os: str
    cpu_cores: int | None = None
    ram_mib: int | None = None
    driver: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinCodeIssued:
    """Stream `join:{code_sha256}`: single use, short life."""

    code_sha256: str
    provider_id: str
    region_id: str
    expires_at_us: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinCodeUsed:
    code_sha256: str
    node_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeJoinRequested:
    """Stream `node:{node_id}`."""

    node_id: str
    provider_id: str
    region_id: str
    client_id: str | None
    key_id: str
    public_key: str  # hex, Ed25519
    token_sha256: str  # bearer token bound to this node, for its calls other than usage
    agent: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpecReported:
    node_id: str
    devices: tuple[DeviceSpec, ...]
    host: HostSpec
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKeyConfirmed:
    node_id: str
    key_id: str
    public_key: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAdmitted:
    node_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeActivated:
    node_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMaintenanceStarted:
    node_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRetired:
    node_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEquivocated:
    """The node signed two bodies under one sequence number; both are kept as evidence."""

    node_id: str
    lane: int
    node_seq: int
    first_leaf: str
    second_leaf: str
    at_us: int
