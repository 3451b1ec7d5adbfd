"""Utilisation: every grouping adds up to what was booked, and each hour counts for one pool."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.fleet import pooling as pool_node
from domain.fleet.device import CapacityAccrued
from domain.gpu_time import GPU_HOUR_US
from domain.stream import Stream
from projections.fleet import utilisation
from projections.fleet.utilisation import NAMES, START, Fragmentation, Utilisation
from tests.conftest import Databases
from tests.projections.story import START_US, Size, Told, story
from tests.projections.views import views

SPAN: dict[str, Any] = {"from_us": 0, "to_us": 2**53}
SIZE = Size(nodes=4, leases=6, hours=5)


@pytest.fixture(scope="module")
def connection(postgres: Databases, template: str) -> Any:
    with views(postgres, template, _story_with_a_pool()) as connection:
        yield connection


def _story_with_a_pool() -> list[Told]:
    told = list(story(SIZE))
    first = next(at for at, (_, fact) in enumerate(told) if isinstance(fact, CapacityAccrued))
    return [*told[:first], _pool(SIZE.node(0)), *told[first:]]


def _pool(node_id: str) -> Told:
    return Stream("pool_node", node_id), pool_node.PoolNodeAdded(
        pool_id="pool_1", node_id=node_id, by="x", at_us=START_US
    )


def _sums(rows: list[Utilisation]) -> tuple[int, ...]:
    assert all(
        row.leased + row.idle + row.mined + row.stranded + row.unavailable == row.physical
        for row in rows
    )
    assert all(row.idle >= 0 for row in rows)
    names = ("physical", "leased", "mined", "idle", "stranded", "unavailable")
    return tuple(sum(getattr(row, name) for row in rows) for name in names)


def test_every_grouping_adds_up_to_what_was_booked(connection: psycopg.Connection[Any]) -> None:
    booked = [fact for _, fact in story(SIZE) if isinstance(fact, CapacityAccrued)]
    physical = sum(fact.physical.units for fact in booked)
    leased = sum(fact.leased.units for fact in booked)
    mined = sum(fact.mined.units for fact in booked)
    assert physical
    assert mined
    names = list(chain.from_iterable(combinations(NAMES, n) for n in range(len(NAMES) + 1)))
    for bucket in ((), ("hour",), ("day",)):
        for by in names:
            rows = utilisation.read_utilisation(connection, by=(*bucket, *by), limit=500, **SPAN)
            assert _sums(rows)[:3] == (physical, leased, mined), (bucket, by)
            assert [row.key for row in rows] == sorted(row.key for row in rows)


def test_sums_that_are_kept_without_nodes_are_those_of_the_nodes(
    connection: psycopg.Connection[Any],
) -> None:
    """What is grouped by no node is read from other rows than what is."""
    names = ("pool", "region", "model")
    for bucket in ((), ("hour",), ("day",)):
        for by in chain.from_iterable(combinations(names, n) for n in range(4)):
            kept = utilisation.read_utilisation(connection, by=(*bucket, *by), limit=500, **SPAN)
            each = utilisation.read_utilisation(
                connection, by=(*bucket, *by, "node"), limit=500, **SPAN
            )
            added: dict[tuple[Any, ...], list[Utilisation]] = {}
            for row in each:
                group = (row.bucket_us, *(getattr(row, name) for name in names), row.asset)
                added.setdefault(group, []).append(row)
            assert len(kept) == len(added)
            for row in kept:
                group = (row.bucket_us, *(getattr(row, name) for name in names), row.asset)
                assert _sums([row]) == _sums(added[group]), (bucket, by)


def test_hours_count_for_the_pool_the_node_was_in(connection: psycopg.Connection[Any]) -> None:
    rows = utilisation.read_utilisation(connection, by=("pool", "node"), limit=500, **SPAN)
    assert {row.node for row in rows if row.pool == "pool_1"} == {SIZE.node(0)}
    mine = utilisation.read_utilisation(connection, by=("hour",), pool_id="pool_1", **SPAN)
    of_node = [row for row in rows if row.node == SIZE.node(0)]
    assert _sums(mine) == _sums(of_node)
    assert all((row.bucket_us or 0) % GPU_HOUR_US == 0 for row in mine)


def test_pages_joined_are_the_list(connection: psycopg.Connection[Any]) -> None:
    whole = utilisation.read_utilisation(connection, by=("hour", "node"), limit=500, **SPAN)
    paged: list[Utilisation] = []
    after = START
    while page := utilisation.read_utilisation(
        connection, by=("hour", "node"), after=after, limit=3, **SPAN
    ):
        paged += page
        after = tuple(page[-1].key)
    assert paged == whole


def test_what_is_free_adds_up_however_it_is_grouped(connection: psycopg.Connection[Any]) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute("SET TRANSACTION READ WRITE")
        connection.execute("UPDATE proj_fleet.node SET phase = 'active'")
        connection.execute(
            "UPDATE proj_fleet.device SET retired = false, share_free = 400000, mem_free = 500000,"
            " mode = 'memory'"
            " WHERE device_id = (SELECT min(device_id) FROM proj_fleet.device)"
        )
        (whole,) = utilisation.read_fragmentation(connection, by=())
        for by in (("pool",), ("region",), ("model",), ("pool", "region", "model")):
            rows = utilisation.read_fragmentation(connection, by=by)
            for name in ("devices", "whole_free", "free_ppm", "free_on_parts_ppm", "room_1"):
                assert sum(getattr(row, name) for row in rows) == getattr(whole, name), (by, name)
        assert whole.free_ppm == whole.whole_free * 1_000_000 + whole.free_on_parts_ppm
        assert whole.free_on_parts_ppm >= 400_000
        assert 0 < whole.fragmented_ppm <= 1_000_000


@given(whole=st.integers(0, 64), parts=st.lists(st.integers(1, 999_999), max_size=8))
def test_fragmentation_is_none_without_parts_and_all_without_whole_devices(
    whole: int, parts: list[int]
) -> None:
    free = whole * 1_000_000 + sum(parts)
    row = Fragmentation(
        None,
        None,
        None,
        64,
        whole,
        len(parts),
        free,
        sum(parts),
        0,
        whole,
        whole // 2,
        whole // 4,
        whole // 8,
    )
    assert 0 <= row.fragmented_ppm <= 1_000_000
    assert (row.fragmented_ppm == 0) == (not parts or not free or sum(parts) * 10**6 < free)
    assert (row.fragmented_ppm == 1_000_000) == (bool(parts) and not whole)
