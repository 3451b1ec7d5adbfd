"""The views of `pools`."""

from __future__ import annotations

from projections.pools.controllers import CONTROLLERS
from projections.pools.pools import POOLS
from projections.runner import Projection

VIEWS: tuple[Projection, ...] = (POOLS, CONTROLLERS)
