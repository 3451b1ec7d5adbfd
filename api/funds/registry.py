"""What `funds` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.funds import forecasts, funding, payments, promotions

    return (funding.resource, promotions.resource, forecasts.resource, payments.resource)


def timers() -> tuple[Timer, ...]:
    """Its timers, imported when timers begin."""
    from api.funds.payment_timer import run_payments
    from api.funds.promotion_timer import run_promotions

    return (
        Timer("payments", 60, 7_200, run_payments, turn=70),
        Timer("promotions", 60, 7_200, run_promotions, turn=130),
    )
