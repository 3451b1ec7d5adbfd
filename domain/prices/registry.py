"""What the room `prices` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.prices import price_feed, provider_kinds, tariff

FILES = (price_feed, provider_kinds, tariff)
FACTS: dict[str, type[Any]] = {
    "oracle.sources_set.v1": price_feed.PriceSourcesSet,
    "oracle.price_observed.v1": price_feed.PriceObserved,
    "oracle.snapshot_taken.v1": price_feed.PriceSnapshotTaken,
    "provider_kind.registered.v1": provider_kinds.ProviderKindRegistered,
    "tariff.published.v1": tariff.TariffPublished,
}
