"""The views of `lease`."""

from __future__ import annotations

from projections.lease.countersigned import COUNTERSIGNED
from projections.lease.leases import LEASES
from projections.lease.work import WORK
from projections.runner import Projection

VIEWS: tuple[Projection, ...] = (LEASES, COUNTERSIGNED, WORK)
