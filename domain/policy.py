"""Network policy: the numbers that decide rewards, as dated versions.

Pool shares sum to exactly 1,000,000 ppm, with one declared pool that takes the remainder.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.money import Amount, Big


@dataclass(frozen=True, slots=True)
class EmissionSegment:
    """`total` units emitted over `n_epochs` epochs from `start_epoch` (epochs count from 1)."""

    start_epoch: int
    n_epochs: int
    total: Big


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyPublished:
    """Stream `policy:network`; versions count from 1."""

    version: int
    epoch_length_us: int
    segments: tuple[EmissionSegment, ...]
    hard_cap: Amount  # TOKEN; opens emission:authority and emission:unissued (version 1 only)
    compute_ppm: int
    availability_ppm: int
    treasury_ppm: int  # declared residual: takes the remainder
    compute_base: str  # "burned_value" or "gpu_time"
    holdback_epochs: int
    effective_from_epoch: int
    by: str
    at_us: int
