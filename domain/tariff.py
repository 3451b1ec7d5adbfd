"""Tariffs: what using an accelerator costs beside its price, as dated versions that never change.

A lease keeps the tariff it was opened under. The charge is peeled, never floored side by side:

    fee = floor(charge x fee_rate / price);  provider = floor((charge - fee) x share / 10^6)
    platform = charge - fee - provider        so the parts always sum to the charge, to the unit
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.money import Amount


@dataclass(frozen=True, slots=True)
class UsageFee:
    """The usage fee of one accelerator class."""

    gpu_class: str
    per_gpu_hour: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class TariffPublished:
    """Stream `tariff:network`; versions count from 1."""

    version: int
    usage_fees: tuple[UsageFee, ...]
    provider_share_ppm: int
    burn_share_ppm: int  # of what the provider does not get; collected in network:burn_due
    effective_from_us: int
    by: str
    at_us: int
