"""Which parties are not strangers to each other: one rule for reward weights, for the signs of wash
trade and for reputation.

    related(a, b)  <=>  a == b,  or one is a key of the other,  or they share a key
    a lease is of related parties  <=>  related(payer, payee) for one that pays and one that is paid

    who pays:     the renter, and whose credits were drawn for it
    who is paid:  the owner of the node, its co-owners, and the client that has a share

Keys of an account: its wallets, the account its earnings are sent to, and the account that pays for
it. What was once known of an account stays known:
a tie that is undone proves nothing about what the two are to each other. What a payer gets back as
payee is no outside money, so it has no weight, says nothing good and is shown as related.

The views look this up in SQL (`projections/trust/ties.py`); a property test holds them against this
function. Source: design economics 8, 13 and 16.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

Keys = Mapping[str, Set[str]]
"""By account id: its keys, as `wallet_key` and `account_key` name them."""


def wallet_key(address: str) -> str:
    """The key of who holds this wallet, however its address is written."""
    return f"wallet:{address.lower()}"


def account_key(account_id: str) -> str:
    """The key of who bills or pays through this account."""
    return f"account:{account_id}"


def related(first: str, second: str, keys: Keys) -> bool:
    """Whether two accounts are tied to each other; the order does not matter."""
    ours, theirs = keys.get(first, frozenset()), keys.get(second, frozenset())
    return (
        first == second
        or not ours.isdisjoint(theirs)
        or account_key(second) in ours
        or account_key(first) in theirs
    )


def any_related(payers: Iterable[str], payees: Iterable[str], keys: Keys) -> bool:
    """Whether one of those who pay is related to one of those who are paid."""
    paid = tuple(payees)
    return any(related(payer, payee, keys) for payer in payers for payee in paid)
