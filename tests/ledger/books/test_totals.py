"""Accounts added up by whose they are: each account counts once, for one kind."""

from __future__ import annotations

import psycopg

from ledger.books import totals

KINDS = {
    "world:bank": "outside_bank",
    "world:card": "outside_card",
    "world:burned": "outside_burned",
    "party:a:burned": "credits_not_to_pay_out",
    "party:a:grant": "credits_not_to_pay_out",
    "party:a:grant:spring": "credits_not_to_pay_out",
    "party:a:owed": "owed_by_parties",
    "party:a:payable": "earned_by_parties",
    "party:a:holdback": "earned_by_parties",
    "party:a:earned": "earned_by_parties",
    "party:a:cash": "paid_in_by_parties",
    "party:a:owed:not": "paid_in_by_parties",
    "escrow:lease_a:1:cash": "escrow",
    "payout:a": "payouts_on_their_way",
}
NETWORK = {
    "party:a:bond": ("paid_in_by_parties", "bonds_of_parties"),
    "party:a:matured": ("paid_in_by_parties", "rewards_of_parties"),
    "dispute:a": ("network", "disputes"),
    "region:a:fees": ("network", "regions"),
    "grant:a:fund": ("network", "grants"),
    "pool:a": ("network", "pools"),
    "epoch:1": ("network", "rewards_not_credited_yet"),
    "escrows": ("network", "escrows"),
    "network:fees.card": ("network", "network_fees_card"),
    "world:bank:other": ("network", "world_bank_other"),
}
"""What only the sums that name more kinds tell apart."""


def _added(place: int) -> dict[str, int]:
    """By kind, with another power of two for each account: a sum tells which are in it."""
    named = {name: (kind, kind) for name, kind in KINDS.items()} | NETWORK
    found: dict[str, int] = {}
    for power, kinds in enumerate(named.values()):
        found[kinds[place]] = found.get(kinds[place], 0) + 2**power
    return found


def test_each_account_counts_once_for_its_kind(database: str) -> None:
    with psycopg.connect(database) as connection:
        assert totals.credits_by_kind(connection) == {}
        for power, name in enumerate((*KINDS, *NETWORK)):
            connection.execute(
                "INSERT INTO account (name, asset, side, units) VALUES (%s, 'CREDIT', -1, %s)",
                (name, 2**power),
            )
        assert totals.credits_by_kind(connection) == _added(0)
        found = {one.kind: one.units for one in totals.by_kind(connection)}
        assert found == _added(1)
        connection.rollback()
