"""A page of leases costs what its rows cost, however many leases there were before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from projections import read
from projections.lease import leases
from projections.read import NEWEST, OLDEST, Way
from tests.conftest import Databases
from tests.projections.story import Size, story
from tests.projections.views import views

SIZE = Size(nodes=3, devices=2, leases=6, hours=3)
OLDER, LIMIT = 2_000, 20
_MORE = """
    INSERT INTO proj_leases.lease
    SELECT (jsonb_populate_record(l, jsonb_build_object(
        'lease_id', l.lease_id || n, 'position', 1000000 + 1000 * n + l.position))).*
    FROM proj_leases.lease l, generate_series(1, %s) n
"""


@pytest.fixture(scope="module")
def connection(postgres: Databases, template: str) -> Iterator[psycopg.Connection[Any]]:
    with views(postgres, template, story(SIZE)) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(_MORE, (OLDER // SIZE.leases,))
        connection.execute("ANALYZE proj_leases.lease")
        yield connection


@pytest.mark.parametrize("way", [OLDEST, NEWEST])
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"state": "settled"},
        {"is_open": False},
        {"account_id": "acct_cash"},
        {"account_id": "acct_provider"},
        {"node_id": SIZE.node(1)},
        {"account_id": "acct_provider", "node_id": SIZE.node(1)},
        {"renter_id": "acct_cash"},
    ],
    ids=str,
)
def test_a_page_reads_its_own_rows_alone(
    connection: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
    asked: dict[str, Any],
    way: Way,
) -> None:
    looked_at: list[int] = []
    many = read.many

    def explained(connection: Any, row: Any, sql: str, **values: Any) -> Any:
        told = connection.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + sql, values).fetchone()
        looked_at.append(_rows_read(told[0][0]["Plan"]))
        return many(connection, row, sql, **values)

    monkeypatch.setattr(read, "many", explained)
    after = 2**62 if way.newest else 0
    found = leases.read_leases(connection, **asked, after=after, way=way, limit=LIMIT)
    assert len(found) == LIMIT
    # as renter and as provider there is a list each, and leases of others lie between
    assert looked_at[0] <= 8 * LIMIT < OLDER


def test_a_renter_that_is_its_own_provider_sees_each_lease_once(
    connection: psycopg.Connection[Any],
) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute(
            "UPDATE proj_leases.lease SET provider_account_id = account_id"
            " WHERE account_id = 'acct_cash'"
        )
        found = leases.read_leases(connection, account_id="acct_cash", limit=5_000)
    positions = [one.position for one in found]
    assert positions == sorted(set(positions))
    assert len(found) > OLDER // 4


def _rows_read(plan: dict[str, Any]) -> int:
    """Rows that the scans of a plan looked at."""
    below = sum(_rows_read(one) for one in plan.get("Plans", ()))
    if "Scan" not in plan["Node Type"] or plan["Node Type"] == "Subquery Scan":
        return below
    removed = plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
    looked: int = below + plan["Actual Rows"] + removed
    return looked
