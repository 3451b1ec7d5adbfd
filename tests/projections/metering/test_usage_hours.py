"""Usage by hour, day, client, project, end user and model: every grouping has the same sum."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import psycopg
import pytest

from projections.metering import usage, usage_hours
from projections.metering.usage_hours import NAMES, Used
from tests.conftest import Databases
from tests.projections.story import START_US, Size, story
from tests.projections.views import views

SPAN: dict[str, Any] = {"from_us": 0, "to_us": 2**53}
HOUR_US = 3_600_000_000


@pytest.fixture(scope="module")
def connection(postgres: Databases, template: str) -> Any:
    with views(postgres, template, story(Size(nodes=9, leases=8, hours=26))) as connection:
        yield connection


def _sums(rows: list[Used]) -> tuple[int, int, int]:
    return (
        sum(row.accruals for row in rows),
        sum(row.gpu_us for row in rows),
        sum(row.charge for row in rows),
    )


def test_usage_adds_up_to_the_accruals_by_every_grouping(
    connection: psycopg.Connection[Any],
) -> None:
    total = usage.read_usage_total(connection, renter_id="acct_cash")
    names = list(chain.from_iterable(combinations(NAMES, n) for n in range(len(NAMES) + 1)))
    for bucket in ((), ("hour",), ("day",)):
        for by in names:
            rows = usage_hours.read_usage_hours(
                connection, "acct_cash", by=(*bucket, *by), limit=500, **SPAN
            )
            assert _sums(rows) == (total.accruals, total.gpu_us, total.charge), (bucket, by)
            assert [row.key for row in rows] == sorted(row.key for row in rows)
            assert max(row.gpu_us_max for row in rows) == HOUR_US


def test_groups_are_filtered_bounded_and_paged(connection: psycopg.Connection[Any]) -> None:
    who = "acct_cash"
    models = usage_hours.read_usage_hours(connection, who, by=("model",), **SPAN)
    assert [row.model for row in models] == ["M0", "M2", "M4", "M6"]
    whole = usage_hours.read_usage_hours(connection, who, by=("hour", "model"), limit=500, **SPAN)
    one = usage_hours.read_usage_hours(connection, who, by=("hour",), model="M2", limit=500, **SPAN)
    assert _sums(one) == _sums([row for row in whole if row.model == "M2"])
    paged: list[Used] = []
    after = usage_hours.START
    while page := usage_hours.read_usage_hours(
        connection, who, by=("hour", "model"), after=after, limit=7, **SPAN
    ):
        paged += page
        after = tuple(page[-1].key)
    assert paged == whole
    day: dict[str, Any] = {
        "from_us": START_US - START_US % (24 * HOUR_US),
        "to_us": START_US + 3 * HOUR_US,
    }
    few = usage_hours.read_usage_hours(connection, who, by=("hour",), **day)
    assert {row.bucket_us for row in few} == {START_US + n * HOUR_US for n in range(3)}
    assert usage_hours.read_usage_hours(connection, "acct_provider", **SPAN) == []
