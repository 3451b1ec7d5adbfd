"""What `cloud` adds to the server: its resources."""

from __future__ import annotations

from api.cloud import capacity, onboarding, quotas
from api.door.operation import Resource

RESOURCES: tuple[Resource, ...] = (onboarding.resource, quotas.resource, capacity.resource)
