"""What `machines` adds to the server: its resources."""

from __future__ import annotations

from api.door.operation import Resource
from api.machines import admission, condition

RESOURCES: tuple[Resource, ...] = (admission.resource, condition.resource)
