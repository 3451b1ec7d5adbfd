"""Which granted credits have expired? What is left of them is booked as breakage."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from api.process.service import Service
from domain.funds.promotion import ExpirePromotion
from ledger.log.handle import LOG_AWAY
from projections import tables
from projections.funds import funding
from projections.runner import Connection

logger = logging.getLogger(__name__)

EXPIRED_MAX = 500
"""Grants whose breakage is booked in one append."""


def run_promotions(service: Service, connection: Connection, now_us: int) -> int:
    """Grants that have expired: what is unspent, or came back from an escrow, is breakage."""
    tables.step_all(connection, only=("funding",))
    done = 0
    stopped: list[str] = []
    while expired := funding.read_expired(connection, now_us, EXPIRED_MAX):
        booked, failed = _expire(service, expired, now_us)
        done, stopped = done + booked, stopped + failed
        if not booked or len(expired) < EXPIRED_MAX:
            break
    if stopped:
        raise PromotionsStopped(f"{len(stopped)} grants stop, the first is {stopped[0]}")
    return done


class PromotionsStopped(Exception):
    """Some expired grants could not be booked; the others were."""


def _expire(
    service: Service, expired: Sequence[tuple[str, str]], now_us: int
) -> tuple[int, list[str]]:
    """Book grants together, or one by one where that fails; how many, and those that stop."""
    commands = [
        ExpirePromotion(program=program, account_id=account_id, at_us=now_us)
        for account_id, program in expired
    ]
    try:
        return len(service.ledger.handle(commands, key=None, now_us=now_us).changes), []
    except LOG_AWAY:
        raise  # it is no grant's fault, and the next one would wait as long
    except Exception as error:
        if len(expired) == 1:
            logger.exception("expiry of %s stops", expired[0])
            return 0, ["/".join(expired[0])]
        logger.warning("%d grants expire one by one: %s", len(expired), error)
        found = [_expire(service, [one], now_us) for one in expired]
        return sum(done for done, _ in found), [name for _, names in found for name in names]
