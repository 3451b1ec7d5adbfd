"""The views of `fleet`."""

from __future__ import annotations

from projections.fleet.fleet import FLEET
from projections.fleet.utilisation import UTILISATION
from projections.runner import Projection

VIEWS: tuple[Projection, ...] = (FLEET, UTILISATION)
