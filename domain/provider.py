"""Providers and their regions: who offers nodes, where, and who may use them.

provider -> region -> node -> device. A region's storage mode never changes: another mode needs a
new region (C-4).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRegistered:
    """Stream `provider:{provider_id}`."""

    provider_id: str
    account_id: str
    kind: str  # PROVIDER_KINDS: "physical", "gcp"
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionOpened:
    """Stream `region:{region_id}`."""

    region_id: str
    provider_id: str
    name: str  # DNS characters, unique per provider
    storage_mode: str  # "local" or "central"
    setting: str  # "edge" or "datacenter"
    admission: str  # "operator" or "permissionless"
    allow_public_jobs: bool
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionPolicySet:
    region_id: str
    allow_public_jobs: bool
    by: str
    at_us: int
