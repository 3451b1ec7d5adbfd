"""The timer of accounts that signed themselves up and were never used: they are closed."""

from __future__ import annotations

from api.door.unverified import has_books
from api.process.service import Service
from domain.account_closing import CloseAccount
from domain.duration import DAY_US
from domain.parties.account import SIGN_UP
from projections.funds import payments
from projections.funds.payments import PAYMENTS
from projections.parties import access
from projections.parties.access import ACCESS
from projections.runner import Connection

UNUSED_US = 14 * DAY_US
"""An account that signed itself up and got neither money nor the operator's word is closed then."""
BATCH = 100
BATCHES_MAX = 100


def run_unused(service: Service, connection: Connection, now_us: int) -> int:
    """Close accounts that signed themselves up 14 days ago and never got money; how many."""
    service.follow(connection, [ACCESS, PAYMENTS])
    closed, after = 0, ""
    for _ in range(BATCHES_MAX):
        found = access.read_unverified(connection, now_us - UNUSED_US, after, BATCH)
        for account_id in found:
            # A transfer may be on its way for weeks: what was asked for is waited for.
            if has_books(service, account_id) or payments.read_payments(
                connection, account_id=account_id, limit=1
            ):
                continue
            command = CloseAccount(
                account_id=account_id, lease_ids=(), node_ids=(), by=SIGN_UP, at_us=now_us
            )
            service.ledger.handle(command, key=None, now_us=now_us)
            closed += 1
        if len(found) < BATCH:
            break
        after = found[-1]
    return closed
