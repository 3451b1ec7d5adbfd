"""The views of `sites`."""

from __future__ import annotations

from projections.runner import Projection
from projections.sites.sites import SITES

VIEWS: tuple[Projection, ...] = (SITES,)
