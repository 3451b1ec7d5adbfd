"""The views of `metering`."""

from __future__ import annotations

from projections.metering.meters import METERS
from projections.metering.resources import RESOURCES
from projections.metering.usage import USAGE
from projections.metering.usage_hours import USAGE_HOURS
from projections.runner import Projection

VIEWS: tuple[Projection, ...] = (USAGE, USAGE_HOURS, RESOURCES, METERS)
