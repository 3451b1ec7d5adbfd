"""The views of `trust`."""

from __future__ import annotations

from projections.runner import Projection
from projections.trust.evidence import TRUST
from projections.trust.reputation import REPUTATION

VIEWS: tuple[Projection, ...] = (REPUTATION, TRUST)
