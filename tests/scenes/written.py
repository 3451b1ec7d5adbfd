"""Everything an append writes, for comparing two databases byte for byte."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.scenes.running_market import Market


@dataclass(frozen=True)
class Written:
    """Everything an append writes; accounts by name, as their numbers are local."""

    facts: list[tuple[Any, ...]]
    postings: list[tuple[Any, ...]]
    balances: list[tuple[Any, ...]]


def written(market: Market) -> Written:
    def rows(query: str) -> list[tuple[Any, ...]]:
        return market.connection.execute(query.encode()).fetchall()

    assert market.ledger.books.faults() == []
    return Written(
        rows(
            "SELECT notification_id, originator_id, originator_version, topic, state, leaf, chain,"
            " recorded_us FROM market_events ORDER BY notification_id"
        ),
        rows(
            "SELECT p.position, p.asset, l.place, a.name, l.units, l.after FROM posting p,"
            " unnest(p.accounts, p.units, p.balances_after) WITH ORDINALITY"
            " l(account, units, after, place) JOIN account a ON a.id = l.account ORDER BY 1, 2, 3"
        ),
        rows("SELECT name, asset, side, units FROM account ORDER BY name"),
    )
