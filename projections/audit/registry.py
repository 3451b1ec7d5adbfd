"""The views of `audit`."""

from __future__ import annotations

from projections.audit.audit_index import AUDIT_INDEX
from projections.runner import Projection

VIEWS: tuple[Projection, ...] = (AUDIT_INDEX,)
