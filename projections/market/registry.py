"""The views of `market`."""

from __future__ import annotations

from projections.market.bids import BIDS
from projections.market.contests import CONTESTS
from projections.market.unmatched import UNMATCHED
from projections.runner import Projection

VIEWS: tuple[Projection, ...] = (BIDS, UNMATCHED, CONTESTS)
