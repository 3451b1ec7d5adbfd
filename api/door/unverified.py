"""What an account that signed itself up may do before anybody knows it: read, and pay in.

    an unverified account without money records nothing but what is in ALLOWED, of itself, and
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
    from api.door.call import Call
    from api.process.service import Service

ALLOWED = frozenset({"close_account", "create_payment", "delete_api_key", "quote_job"})
"""By the name of the operation: prices, paying, and the way out."""
PAYMENTS_MAX = 5
"""As many may be begun before the first one arrives: each is a fact, and asks a processor."""


def is_asked(operation: Operation, principal: Principal) -> bool:
    """Whether it matters for this call that the account is unverified."""
    return (
        principal.is_unverified
        and operation.method != "GET"
        and PUBLIC not in operation.access.audiences
    )


def require(service: Service, operation: Operation, account_id: str, named: str | None) -> None:
    """`named`: the account of the address. Raises Problem: 403 account_unverified, where no money
    has ever arrived; 404 for another's account, here where no refusal is kept.
    """
    if operation.name in ALLOWED:
        if named not in (None, account_id):
            raise errors.of_refusal(Refused(PartiesReason.ACCOUNT_UNKNOWN, account_id=named))
        return
    if not has_books(service, account_id):
        raise errors.of_refusal(_refused(account_id))


def require_few_payments(call: Call, payment_id: str) -> None:
    """Of an unverified account without money, PAYMENTS_MAX with this one; asked of a new one, so
    that one whose answer was lost is answered again. Raises Refused: ACCOUNT_UNVERIFIED.
    """
    account_id = call.principal.account_id
    if not call.principal.is_unverified or has_books(call.service, account_id):
        return
    with call.service.connection() as connection:
        call.service.follow(connection, [PAYMENTS])
        begun = payments.read_payments(connection, account_id=account_id, limit=PAYMENTS_MAX + 1)
    if len({one.payment_id for one in begun} - {payment_id}) >= PAYMENTS_MAX:
        raise _refused(account_id)


def _refused(account_id: str) -> Refused:
    return Refused(PartiesReason.ACCOUNT_UNVERIFIED, account_id=account_id)


def has_books(service: Service, account_id: str) -> bool:
    """Whether anything was ever posted for an account. The books are asked, which never lag."""
    return bool(service.ledger.books.balances(f"party:{account_id}:"))
