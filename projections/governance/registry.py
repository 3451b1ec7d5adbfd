"""The views of `governance`."""

from __future__ import annotations

from projections.governance.policies import POLICIES
from projections.runner import Projection

VIEWS: tuple[Projection, ...] = (POLICIES,)
