"""One accelerator: who holds which share of it now, and where its time went.

    sum(share_ppm of holders) <= 1_000_000  and  sum(mem_ppm of holders) <= 1_000_000   always
    leased + idle + stranded + unavailable == physical                                  in the books

Every reservation appends here with an expected version, so two leases cannot get one share.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.money import Amount, Big


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRegistered:
    """Stream `device:{device_id}`."""

    device_id: str
    node_id: str
    provider_id: str
    vendor: str
    model: str
    gpu_class: str | None  # absent: the model is in no class, so it is listed but not priced
    memory_mib: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReserved:
    device_id: str
    lease_id: str
    share_ppm: int
    mem_ppm: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReleased:
    device_id: str
    lease_id: str
    share_ppm: int
    mem_ppm: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityAccrued:
    """Where the device's time of [from_us, to_us) went, in GPU-milliseconds booked now."""

    device_id: str
    from_us: int
    to_us: int
    physical: Amount
    leased: Amount
    stranded: Amount
    unavailable: Amount
    leased_ppm_us: Big  # cumulative and unfloored, so that no fraction is ever lost
    at_us: int
