"""Which epochs are to be closed, sealed and credited now?"""

from __future__ import annotations

import logging

from api.epochs.closing import forfeit_rewards, settle_due
from api.process.service import Service
from projections.runner import Connection

logger = logging.getLogger(__name__)


def run_epochs(service: Service, connection: Connection, now_us: int) -> int:
    """Close, seal and credit epochs whose time has come."""
    before = service.head(connection)
    waits = settle_due(
        service.ledger, connection, now_us, "job", data_dir=service.settings.data_dir
    )
    if waits:
        logger.info("the open epoch waits: %s", "; ".join(waits))
    forfeit_rewards(service.ledger, connection, now_us)
    return service.head(connection) - before
