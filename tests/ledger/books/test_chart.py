"""Which accounts an append looks at first: who owes opens no lease, and pays for none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.funds.reasons import FundsReason
from domain.lease.funds import EscrowPart
from domain.lease.lease import LeaseReserved, LeaseToppedUp
from domain.lease.shared_escrow import EscrowFunded
from domain.money import credit
from domain.parties.account import AccountClosed
from domain.parties.reasons import PartiesReason
from ledger.books.chart import guards_for, refusal_of_guards
from tests.scenes.samples import sample

OWN = EscrowPart("cash", credit(1))
OTHERS = EscrowPart("cash", credit(1), deposit=2, account_id="acct_friend")
CLOSED = replace(sample(AccountClosed), account_id="acct_renter")


@pytest.mark.parametrize(
    ("parts", "owing"),
    [
        ((OWN,), ("party:acct_renter:owed",)),
        ((OTHERS,), ("party:acct_friend:owed",)),
        ((OTHERS, OWN, OTHERS), ("party:acct_friend:owed", "party:acct_renter:owed")),
    ],
)
@pytest.mark.parametrize("kind", [LeaseToppedUp, EscrowFunded])
def test_whoever_pays_in_must_owe_nothing(
    kind: type[Any], parts: tuple[EscrowPart, ...], owing: tuple[str, ...]
) -> None:
    """Somebody else's debt is not the lease's, and its own is not the depositor's."""
    paid = replace(sample(kind), account_id="acct_renter", parts=parts)
    assert guards_for(paid) == owing
    assert refusal_of_guards([paid]) is FundsReason.UNPAID_DEBT


def test_whoever_opens_a_lease_must_owe_nothing_and_so_must_all_who_pay() -> None:
    reserved = replace(sample(LeaseReserved), account_id="acct_renter", escrow=(OTHERS,))
    assert guards_for(reserved) == ("party:acct_renter:owed", "party:acct_friend:owed")
    alone = replace(reserved, escrow=(OWN,))
    assert guards_for(alone) == ("party:acct_renter:owed",)


def test_an_account_closes_with_nothing_in_any_of_its_books() -> None:
    guarded = guards_for(CLOSED)
    assert "party:acct_renter:cash" in guarded
    assert all(name.startswith("party:acct_renter:") for name in guarded)
    assert refusal_of_guards([CLOSED]) is PartiesReason.ACCOUNT_NOT_EMPTY
