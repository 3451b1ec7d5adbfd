"""The views of `storage`."""

from __future__ import annotations

from projections.runner import Projection
from projections.storage.volumes import VOLUMES

VIEWS: tuple[Projection, ...] = (VOLUMES,)
