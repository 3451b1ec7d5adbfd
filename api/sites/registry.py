"""What `sites` adds to the server: its resources."""

from __future__ import annotations

from api.door.operation import Resource
from api.sites import datastores, reservations

RESOURCES: tuple[Resource, ...] = (datastores.resource, reservations.resource)
