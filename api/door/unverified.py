"""What an account that signed itself up may do before anybody knows it: read, and pay in.

    an unverified account without money records nothing but what is in ALLOWED, and
    PAYMENTS_MAX payments that it begins

So a stranger with a hundred accounts takes no GPU, no name, no sender of webhooks and no code from
anybody. It ends when money has arrived on the account, which costs the stranger something, or when
the operator verifies it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.door import errors
from api.door.auth import PUBLIC, Principal
from api.door.operation import Operation
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from projections.funds import payments
from projections.funds.payments import PAYMENTS

if TYPE_CHECKING:
    from api.process.service import Service
    from projections.runner import Connection

PAYING = "create_payment"
ALLOWED = frozenset({"close_account", "delete_api_key", "quote_job"})
"""By the name of the operation: prices, and the way out."""
PAYMENTS_MAX = 5
"""As many may be begun before the first one arrives: each is a fact, and asks a processor."""


def is_asked(operation: Operation, principal: Principal) -> bool:
    """Whether it matters for this call that the account is unverified."""
    return (
        principal.is_unverified
        and operation.method != "GET"
        and PUBLIC not in operation.access.audiences
        and operation.name not in ALLOWED
    )


def require_money(service: Service, operation: Operation, account_id: str) -> None:
    """Raises Problem: 403 account_unverified, where no money has ever arrived."""
    with service.connection() as connection:
        if has_books(connection, account_id):
            return
        if operation.name == PAYING:
            service.follow(connection, [PAYMENTS])
            begun = payments.read_payments(connection, account_id=account_id, limit=PAYMENTS_MAX)
            if len(begun) < PAYMENTS_MAX:
                return
    refused = Refused(PartiesReason.ACCOUNT_UNVERIFIED, account_id=account_id)
    raise errors.of_refusal(refused)


def has_books(connection: Connection, account_id: str) -> bool:
    """Whether anything was ever posted for an account. The books are asked, which never lag."""
    row = connection.execute(
        "SELECT EXISTS (SELECT FROM public.account WHERE name >= %s AND name < %s)",
        (f"party:{account_id}:", f"party:{account_id};"),
    ).fetchone()
    assert row is not None
    return bool(row[0])
