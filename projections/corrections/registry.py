"""The views of `corrections`."""

from __future__ import annotations

from projections.corrections.disputes import DISPUTES
from projections.runner import Projection

VIEWS: tuple[Projection, ...] = (DISPUTES,)
