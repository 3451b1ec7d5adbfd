"""Who is related: the views ask as `domain/trust/related.py` says, for weights and for signs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import psycopg
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from domain.fleet.revenue_share import OwnerPart
from domain.funds.funding import PayerSet
from domain.income.maturity import PaymentModeSet
from domain.lease.funds import EscrowPart
from domain.money import credit
from domain.parties.account import WalletLinked
from domain.stream import Stream
from domain.trust.related import account_key, any_related, wallet_key
from projections import tables
from projections.epochs.epochs import EPOCHS
from projections.epochs.wash_uses import COUNTERPARTIES
from projections.runner import step
from tests.examples import examples
from tests.projections.epochs.test_burned_tokens import AT_US, used
from tests.projections.story import Told, Writer

ACCOUNTS = tuple(f"acct_{letter}" for letter in "abcde")
accounts = st.sampled_from(ACCOUNTS)


def linked(account: str, number: int) -> Told:
    fact = WalletLinked(
        account_id=account,
        address=f"0xA{number}",
        message="m",
        signature="s",
        effective_at_us=AT_US,
        at_us=AT_US,
    )
    return Stream("account", account), fact


def billed(account: str, to: str) -> Told:
    fact = PaymentModeSet(
        account_id=account,
        mode="credits",
        billing_account_id=to,
        destination=None,
        by="m",
        at_us=AT_US,
        destination_from_us=None,
    )
    return Stream("earnings", account), fact


def funded(account: str, by: str) -> Told:
    fact = PayerSet(account_id=account, payer_account_id=by, by="m", at_us=AT_US)
    return Stream("funding", account), fact


def usage(renter: str, payer: str, owner: str, other: str, client: str | None) -> Told:
    stream, fact = used(0, "cash", 100)
    return stream, replace(
        fact,
        account_id=renter,
        provider_account_id=owner,
        client_account_id=client,
        owners=(OwnerPart(other, 0, 0),),
        drawn=(EscrowPart("cash", credit(100), None, payer),),
    )


TIE = st.one_of(
    st.tuples(st.just("wallet"), accounts, st.integers(0, 2)),
    st.tuples(st.just("billed"), accounts, accounts),
    st.tuples(st.just("funded"), accounts, accounts),
)
USE = st.tuples(accounts, accounts, accounts, accounts, st.none() | accounts)
A, B, C, D, E = ACCOUNTS
ONE_WALLET = [("wallet", A, 0), ("wallet", B, 0)]


# Chance seldom draws a tie and a use of just the two whom it ties: so each tie stands here once.
@example([*ONE_WALLET, (A, A, B, B, None)], 1)
@example([*ONE_WALLET, (C, A, D, B, None)], 1)
@example([*ONE_WALLET, (A, A, D, E, B)], 1)
@example([("billed", B, A), (A, A, B, B, None)], 1)
@example([("funded", A, B), (A, A, B, B, None)], 1)
@example([("billed", B, C), ("funded", A, C), (A, A, B, B, None)], 1)
@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(TIE, USE, USE), max_size=8), st.integers(1, 5))
def test_weights_and_signs_say_related_as_the_domain_does(
    connection: psycopg.Connection[Any], words: list[Any], facts_max: int
) -> None:
    """E-H4: own and related use has no weight, and the signs showed it as a stranger's."""
    keys: dict[str, set[str]] = defaultdict(set)
    facts: list[Told] = []
    expected: list[tuple[int, bool]] = []
    for word in words:
        match word:
            case ("wallet", account, number):
                facts.append(linked(account, number))
                keys[account].add(wallet_key(f"0xA{number}"))
            case ("billed", account, to):
                facts.append(billed(account, to))
                keys[account].add(account_key(to))
            case ("funded", account, by):
                facts.append(funded(account, by))
                keys[account].add(account_key(by))
            case (renter, payer, owner, other, client):
                facts.append(usage(*word))
                payees = [one for one in (owner, other, client) if one is not None]
                expected.append((len(facts), any_related({renter, payer}, payees, keys)))
    tables.ensure(connection, [EPOCHS, COUNTERPARTIES])
    connection.execute("BEGIN")
    try:
        Writer(connection).write(facts)
        for view in (EPOCHS, COUNTERPARTIES):
            while step(connection, view, facts_max=facts_max):
                pass
        rows = connection.execute("SELECT position FROM proj_epochs.counted").fetchall()
        weighed = {int(position) for (position,) in rows}
        assert weighed == {position for position, is_related in expected if not is_related}
        row = connection.execute(
            "SELECT coalesce(sum(gpu_us) FILTER (WHERE is_related), 0), coalesce(sum(gpu_us), 0)"
            " FROM proj_counterparties.used"
        ).fetchone()
        assert row is not None
        shown = sum(is_related for _, is_related in expected)
        assert row[0] * len(expected) == row[1] * shown
    finally:
        connection.execute("ROLLBACK")
