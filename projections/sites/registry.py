"""The views of `sites`."""

from __future__ import annotations

from projections.runner import Projection
from projections.sites.edge_devices import EDGE_DEVICES
from projections.sites.sites import SITES

VIEWS: tuple[Projection, ...] = (EDGE_DEVICES, SITES)
