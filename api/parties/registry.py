"""What `parties` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer, TimerOf


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.parties import accounts, api_keys, clients, members, plans, sign_up, webhooks

    return (
        accounts.resource,
        sign_up.resource,
        plans.resource,
        members.resource,
        api_keys.resource,
        webhooks.resource,
        clients.resource,
    )


def timers() -> tuple[Timer | TimerOf, ...]:
    """Its timers, imported when timers begin."""
    from api.parties import webhook_sender
    from api.parties.new_keys import run_secrets
    from api.parties.refusals_timer import run_refusals
    from api.parties.unused_timer import run_unused

    return (
        webhook_sender.webhook_timer,
        Timer("secrets", 600, 7_200, run_secrets, turn=255),
        Timer("refusals", 3_600, 93_600, run_refusals, turn=256),
        Timer("sign_ups", 3_600, 93_600, run_unused, turn=257),
    )
