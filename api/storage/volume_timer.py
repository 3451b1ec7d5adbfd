"""The job of volumes: every hour that is over is charged, and graces start, end and run out.

What is due is found in the views and decided from the streams, so a repeated run adds nothing and
a late one catches up. A volume that fails stops by itself; the others go on.
"""

from __future__ import annotations

import logging

from api.process.one_by_one import OneByOne
from api.process.service import Service
from domain.storage.volume import ChargeVolume
from projections import tables
from projections.runner import Connection
from projections.storage import volumes

logger = logging.getLogger(__name__)


class VolumesStopped(Exception):
    """Some volumes could not be charged; the others were."""


def run_volumes(service: Service, connection: Connection, now_us: int) -> int:
    """Every volume that is kept, until nothing of it is due. Raises VolumesStopped."""
    tables.step_all(connection, only=("volumes",))

    def charge(volume_id: str) -> int:
        command, facts = ChargeVolume(volume_id=volume_id, at_us=now_us), 0
        while done := len(service.ledger.handle(command, key=None, now_us=now_us).changes):
            facts += done
        return facts

    charges = OneByOne(logger, "charging %s stops")
    for volume_id in volumes.read_kept(connection):
        charges.take(volume_id, charge, volume_id)
    return charges.end(VolumesStopped)
