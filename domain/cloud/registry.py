"""What the room `cloud` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.cloud import capacity, onboarding, quotas

FILES = (capacity, onboarding, quotas)
FACTS: dict[str, type[Any]] = {
    "region.cloud_quota_reported.v1": quotas.CloudQuotaReported,
    "region.cloud_quota_taken.v1": quotas.CloudQuotaTaken,
    "region.cloud_quota_returned.v1": quotas.CloudQuotaReturned,
}
