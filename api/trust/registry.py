"""What `trust` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.trust import attestation, attributes, reputation, tiers

    return (attestation.resource, attributes.resource, reputation.resource, tiers.resource)


def timers() -> tuple[Timer, ...]:
    """Its timers, imported when timers begin."""
    from api.trust.trust_timer import run_trust

    return (Timer("trust", 30, 7_200, run_trust, turn=220),)
