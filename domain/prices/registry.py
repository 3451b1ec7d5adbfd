"""What the room `prices` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.prices import price_feed, tariff

FILES = (price_feed, tariff)
FACTS: dict[str, type[Any]] = {
    "oracle.sources_set.v1": price_feed.PriceSourcesSet,
    "oracle.price_observed.v1": price_feed.PriceObserved,
    "oracle.snapshot_taken.v1": price_feed.PriceSnapshotTaken,
    "tariff.published.v1": tariff.TariffPublished,
}
