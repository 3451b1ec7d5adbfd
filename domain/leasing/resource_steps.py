"""How the charge of a resource came about, one formula after the other (`accrual_steps.py`).

step.after == its formula over the totals after the accrual;   new == after - before
"""

from __future__ import annotations

from domain.lease.accrual_steps import Step
from domain.leasing.other_resources import ResourceAccrued
from domain.metering.resources import SCALE_OF


def resource_steps(fact: ResourceAccrued) -> list[Step]:
    """From what was measured to whole units to the charge, cumulative."""
    scale, quantity = SCALE_OF[fact.meter], (fact.quantity - fact.quantity_new, fact.quantity)
    charge = (fact.charge.units - fact.charge_new.units, fact.charge.units)
    given = {"price": fact.rate.price.units, "per": fact.rate.per}
    found = [
        Step("quantity", f"floor(measured / {scale})", {"measured": fact.measured}, *quantity),
        Step("charge", "floor(quantity x price / per)", given, *charge),
    ]
    assert fact.quantity == fact.measured // scale, fact
    assert fact.charge.units == fact.quantity * fact.rate.price.units // fact.rate.per, fact
    return found
