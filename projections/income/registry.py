"""The views of `income`."""

from __future__ import annotations

from projections.income.earnings import EARNINGS
from projections.income.invoices import INVOICES
from projections.income.money_out import MONEY_OUT
from projections.income.movements import MOVEMENTS
from projections.income.regions import REGIONS
from projections.income.statements import STATEMENTS
from projections.runner import Projection

VIEWS: tuple[Projection, ...] = (STATEMENTS, MOVEMENTS, EARNINGS, INVOICES, MONEY_OUT, REGIONS)
