"""What `trust` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer
from api.trust import attestation, attributes, reputation, tiers
from api.trust.trust_timer import run_trust

RESOURCES: tuple[Resource, ...] = (
    attestation.resource,
    attributes.resource,
    reputation.resource,
    tiers.resource,
)
TIMERS: tuple[Timer, ...] = (Timer("trust", 30, 7_200, run_trust, turn=220),)
