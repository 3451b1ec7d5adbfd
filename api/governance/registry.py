"""What `governance` adds to the server: its resources."""

from __future__ import annotations

from api.door.operation import Resource


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.governance import breakers, grants, policies, policy_rehearsal

    return (policy_rehearsal.resource, policies.resource, grants.resource, breakers.resource)
