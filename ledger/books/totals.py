"""All accounts added up, for the watch over a market: by asset, and credits by whose they are.

    debits - credits == 0                                        for every asset
    outside_bank + outside_card + outside_burned + owed_by_parties == all other kinds together

It looks at every account, and at no posting: `books.faults` is what proves the books.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import psycopg
from psycopg.rows import class_row

from ledger.books.books import BY_ASSET

Connection = psycopg.Connection[Any]

_CREDITS = r"""
    SELECT kind, sum(units)::bigint FROM (
        SELECT units, CASE
            WHEN starts_with(name, 'escrow:') THEN 'escrow'
            WHEN starts_with(name, 'party:') THEN CASE
                WHEN name ~ '^party:[^:]+:(burned|grant.*)$' THEN 'credits_not_to_pay_out'
                WHEN name ~ '^party:[^:]+:owed$' THEN 'owed_by_parties'
                WHEN name ~ '^party:[^:]+:(payable|holdback|earned)$' THEN 'earned_by_parties'
                ELSE 'paid_in_by_parties' END
            WHEN name ~ '^world:(bank|card|burned)$' THEN replace(name, 'world:', 'outside_')
            WHEN starts_with(name, 'payout:') THEN 'payouts_on_their_way'
            ELSE 'network' END COLLATE "C" AS kind
        FROM public.account WHERE asset = 'CREDIT') a
    GROUP BY kind ORDER BY kind
"""
"""Most accounts are escrows, one or more a lease for ever: what they are is asked first."""

SHOWN: tuple[Literal["CREDIT"], Literal["TOKEN"]] = ("CREDIT", "TOKEN")
_KINDS = r"""
    SELECT asset, side = 1 AS is_held, kind, sum(units)::bigint AS units FROM (
        SELECT asset, side, units, CASE
            WHEN starts_with(name, 'escrow:') THEN 'escrow'
            WHEN starts_with(name, 'party:') THEN CASE
                WHEN name ~ '^party:[^:]+:owed$' THEN 'owed_by_parties'
                WHEN name ~ '^party:[^:]+:(burned|grant.*)$' THEN 'credits_not_to_pay_out'
                WHEN name ~ '^party:[^:]+:(payable|holdback|earned)$' THEN 'earned_by_parties'
                WHEN name ~ '^party:[^:]+:bond$' THEN 'bonds_of_parties'
                WHEN name ~ '^party:[^:]+:(unmatured|matured)$' THEN 'rewards_of_parties'
                ELSE 'paid_in_by_parties' END
            WHEN name ~ '^world:(bank|card|burned)$' THEN replace(name, 'world:', 'outside_')
            WHEN starts_with(name, 'payout:') THEN 'payouts_on_their_way'
            WHEN starts_with(name, 'dispute:') THEN 'disputes'
            WHEN starts_with(name, 'region:') THEN 'regions'
            WHEN name ~ '^(grant|pool):' THEN split_part(name, ':', 1) || 's'
            WHEN starts_with(name, 'epoch:') THEN 'rewards_not_credited_yet'
            ELSE replace(replace(name, ':', '_'), '.', '_') END AS kind
        FROM public.account WHERE asset IN ('CREDIT', 'TOKEN')) a
    GROUP BY asset, side, kind ORDER BY asset, side DESC, kind
"""


@dataclass(frozen=True, slots=True)
class KindTotal:
    """All accounts of a kind; `is_held`: debits raise them, else credits do."""

    asset: Literal["CREDIT", "TOKEN"]
    is_held: bool
    kind: str
    units: int


def by_kind(connection: Connection) -> list[KindTotal]:
    """Credits and tokens by kind of account, on the side that is theirs: no party is named."""
    with connection.cursor(row_factory=class_row(KindTotal)) as cursor:
        return cursor.execute(_KINDS).fetchall()


def unbalanced(connection: Connection) -> dict[str, int]:
    """Debits less credits by asset, in its units; anything but 0 is a bug."""
    return {asset: int(units) for asset, units in connection.execute(BY_ASSET)}


def credits_by_kind(connection: Connection) -> dict[str, int]:
    """Micro-credits by kind of account: what came from outside, and whose it is."""
    return dict(connection.execute(_CREDITS).fetchall())
