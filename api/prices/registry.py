"""What `prices` adds to the server: its resources."""

from __future__ import annotations

from api.door.operation import Resource
from api.prices import oracle, provider_kinds, tariffs

RESOURCES: tuple[Resource, ...] = (oracle.resource, tariffs.resource, provider_kinds.resource)
