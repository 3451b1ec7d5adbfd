"""What `income` adds to the server: its resources and its timers."""

from __future__ import annotations

from api.door.operation import Resource
from api.process.timer import Timer


def resources() -> tuple[Resource, ...]:
    """Its resources, imported with the first request to one of them."""
    from api.income import (
        billing,
        cash_outs,
        earnings,
        exports,
        invoices,
        owner_part,
        region_shares,
        statement_lines,
        statements,
    )

    return (
        exports.resource,
        invoices.resource,
        region_shares.resource,
        billing.resource,
        statements.resource,
        statement_lines.resource,
        earnings.resource,
        owner_part.resource,
        cash_outs.resource,
    )


def timers() -> tuple[Timer, ...]:
    """Its timers, imported when timers begin."""
    from api.income.cash_out_timer import run_cash_outs, run_payout_match
    from api.income.invoicing import run_invoices
    from api.income.maturing_timer import run_maturity, run_sweep
    from api.income.region_timer import run_regions

    return (
        Timer("maturity", 60, 7_200, run_maturity, turn=80),
        Timer("regions", 300, 93_600, run_regions, turn=90),
        Timer("sweep", 300, 7_200, run_sweep, turn=100),
        Timer("cash_out", 60, 7_200, run_cash_outs, turn=140),
        Timer("payout_match", 3_600, 14_400, run_payout_match, turn=150),
        Timer("invoices", 600, 93_600, run_invoices, turn=230),
    )
