"""The views of `funds`."""

from __future__ import annotations

from projections.funds.funding import FUNDING
from projections.funds.payments import PAYMENTS
from projections.runner import Projection

VIEWS: tuple[Projection, ...] = (FUNDING, PAYMENTS)
