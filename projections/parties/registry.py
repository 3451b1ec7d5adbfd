"""The views of `parties`."""

from __future__ import annotations

from projections.parties.access import ACCESS
from projections.parties.demand import DEMAND
from projections.parties.webhooks import WEBHOOKS
from projections.runner import Projection

VIEWS: tuple[Projection, ...] = (ACCESS, WEBHOOKS, DEMAND)
