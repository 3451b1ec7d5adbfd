"""What `governance` adds to the server: its resources."""

from __future__ import annotations

from api.door.operation import Resource
from api.governance import breakers, grants, policies, policy_rehearsal

RESOURCES: tuple[Resource, ...] = (
    policy_rehearsal.resource,
    policies.resource,
    grants.resource,
    breakers.resource,
)
