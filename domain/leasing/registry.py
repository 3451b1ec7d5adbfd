"""What the room `leasing` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.leasing import (
    accrual,
    bidding,
    drain,
    escrow_sharing,
    gangs,
    life,
    other_resources,
    request,
    reservation,
    top_up,
    work,
)

FILES = (
    accrual,
    bidding,
    drain,
    escrow_sharing,
    gangs,
    life,
    other_resources,
    request,
    reservation,
    top_up,
    work,
)
FACTS: dict[str, type[Any]] = {
    "resource.held.v1": other_resources.ResourceHeld,
    "resource.returned.v1": other_resources.ResourceReturned,
    "resource.accrued.v1": other_resources.ResourceAccrued,
}
