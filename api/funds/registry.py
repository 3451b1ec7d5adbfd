"""What `funds` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.funds import forecasts, funding, payments, promotions
from api.funds.payment_timer import run_payments
from api.funds.promotion_timer import run_promotions
from api.process.timer import Timer

RESOURCES: tuple[Resource, ...] = (
    funding.resource,
    promotions.resource,
    forecasts.resource,
    payments.resource,
)
TIMERS: tuple[Timer, ...] = (
    Timer("payments", 60, 7_200, run_payments, turn=70),
    Timer("promotions", 60, 7_200, run_promotions, turn=130),
)
