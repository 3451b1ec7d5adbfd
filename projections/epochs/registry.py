"""The views of `epochs`."""

from __future__ import annotations

from projections.epochs.availability import AVAILABILITY
from projections.epochs.epochs import EPOCHS
from projections.epochs.rewards import REWARDS
from projections.epochs.wash_uses import COUNTERPARTIES
from projections.runner import Projection

VIEWS: tuple[Projection, ...] = (EPOCHS, COUNTERPARTIES, AVAILABILITY, REWARDS)
