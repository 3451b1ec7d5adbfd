"""The timers of what waits for its time: changes of governors, and keys of the operator."""

from __future__ import annotations

import logging

from api.process.service import Service
from domain.authority.governors import ApplyGovernorChange, is_due
from domain.authority.key_recovery import KEY_RECOVERIES, EndKeyRecovery
from domain.authority.register import SCHEDULED, register_of
from domain.refusal import Refused
from projections.runner import Connection

logger = logging.getLogger(__name__)


def run_governors(service: Service, _connection: Connection, now_us: int) -> int:
    """Put every scheduled change into force whose epoch was opened; one that cannot be waits."""
    done = 0
    world = service.ledger.world()
    for change in register_of(world).changes:
        if change.status != SCHEDULED or not is_due(world, change):
            continue
        command = ApplyGovernorChange(number=change.proposed.number, at_us=now_us)
        try:
            service.ledger.handle(command, key=None, now_us=now_us)
        except Refused:
            continue  # too few of its voters are left, or another change came first
        done += 1
    return done


def run_key_recovery(service: Service, _connection: Connection, now_us: int) -> int:
    """Issue the key of a recovery whose time has come."""
    waiting = service.ledger.world().state(KEY_RECOVERIES).waiting
    if waiting is None or waiting.announced.effective_at_us > now_us:
        return 0
    number = waiting.announced.number
    service.ledger.handle(EndKeyRecovery(number=number, at_us=now_us), key=None, now_us=now_us)
    logger.warning("the recovery %d of the operator's key has ended", number)
    return 1
