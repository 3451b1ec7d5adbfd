"""Lists from their other end: the newest first, and only what came after a moment.

pages of order=desc joined == the list of order=asc, reversed
"""

from __future__ import annotations

import inspect
import json
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

import projections
from api.openapi.write import DOCUMENT
from projections.read import OLDEST, Way, newest_first
from tests.scenes.server import Scene

GIVEN: dict[str, Any] = {"str": "x", "int": 1, "Sequence[str]": ["x"], "list[str]": ["x"]}


def _lists() -> Iterator[Callable[..., Any]]:
    """Every read of a view that takes a way."""
    for found in pkgutil.walk_packages(projections.__path__, "projections."):
        module = import_module(found.name)
        for name, read in vars(module).items():
            is_own = name.startswith("read_") and read.__module__ == found.name
            if is_own and "way" in inspect.signature(read).parameters:
                yield read


LISTS = [*_lists()]


def test_every_list_reads_in_both_directions(shared: Scene) -> None:
    assert len(LISTS) > 45
    with shared.service.connection() as connection, connection.transaction():
        # Views go on between two reads: both see the same rows.
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for read in LISTS:
            needed = {
                name: GIVEN[str(one.annotation)]
                for name, one in [*inspect.signature(read).parameters.items()][1:]
                if one.default is one.empty
                and one.kind is not one.VAR_KEYWORD
                and name not in ("after", "way", "limit")
            }
            upwards = read(connection, **needed, after=-1, way=OLDEST, limit=500)
            downwards = read(connection, **needed, after=2**62, way=Way(True, -1), limit=500)
            assert upwards == downwards[::-1], read


def test_a_query_that_is_no_list_by_one_key_is_not_turned_round() -> None:
    with pytest.raises(AssertionError):
        newest_first("SELECT * FROM t WHERE a > %(after)s ORDER BY b, a LIMIT %(limit)s")
    with pytest.raises(AssertionError):
        newest_first("SELECT * FROM t WHERE a >= %(after)s ORDER BY a LIMIT %(limit)s")


def _pages(scene: Scene, path: str, limit: int, rows: str = "data", **asked: Any) -> list[Any]:
    found: list[Any] = []
    more: dict[str, Any] = {}
    while True:
        page = scene.renter.read(path, limit=limit, **asked, **more)
        found += page[rows]
        assert page.get("has_more") == ("next_cursor" in page)
        if not page.get("has_more"):
            return found
        more = {"cursor": page["next_cursor"]}


def test_pages_of_the_newest_first_are_the_list_reversed(shared: Scene) -> None:
    for units in (1_000_000, 2_000_000, 3_000_000):
        shared.deposit(shared.renter, units)
        shared.renter.made("/v1/jobs", shared.job())
    who = f"/v1/accounts/{shared.renter.account_id}"
    lists = (("/v1/jobs", "data"), (f"{who}/journal", "data"), (f"{who}/statements", "lines"))
    for path, rows in (*lists, ("/v1/audit/events", "data")):
        upwards = _pages(shared, path, 500, rows)
        assert len(upwards) > 1, path
        assert _pages(shared, path, 2, rows, order="desc") == upwards[::-1], path


def test_the_list_of_who_sees_one_account_has_it_in_both_directions(shared: Scene) -> None:
    (own,) = shared.renter.read("/v1/accounts")["data"]
    assert own["account_id"] == shared.renter.account_id
    assert shared.renter.read("/v1/accounts", order="desc")["data"] == [own]
    for order in ("asc", "desc"):
        late = shared.renter.read("/v1/accounts", order=order, since="2099-01-01T00:00:00Z")
        assert late["data"] == []


def test_a_cursor_of_one_direction_is_refused_in_the_other(shared: Scene) -> None:
    for _ in range(2):
        shared.renter.made("/v1/jobs", shared.job())
    cursor = shared.renter.read("/v1/jobs", limit=1)["next_cursor"]
    response = shared.renter.get(f"/v1/jobs?limit=1&order=desc&cursor={cursor}")
    assert (response.status_code, response.json()["code"]) == (400, "cursor_invalid")
    assert shared.renter.get("/v1/jobs?order=up").status_code == 422


def test_what_is_written_while_a_reader_walks_is_not_met_by_the_newest_first(shared: Scene) -> None:
    for _ in range(2):
        shared.renter.made("/v1/jobs", shared.job())
    before = _pages(shared, "/v1/jobs", 500)
    page = shared.renter.read("/v1/jobs", limit=1, order="desc")
    shared.renter.made("/v1/jobs", shared.job())
    rest = _pages(shared, "/v1/jobs", 500, order="desc", cursor=page["next_cursor"])
    assert [*page["data"], *rest] == before[::-1]


def test_since_leaves_out_what_was_recorded_before(shared: Scene) -> None:
    shared.renter.made("/v1/jobs", shared.job())
    clock: Any = shared.clock
    clock.advance(1_000_000)
    made = shared.renter.made("/v1/jobs", shared.job())
    event = shared.operator.read(f"/v1/audit/events/{made['position']}")
    for order in ("asc", "desc"):
        found = _pages(shared, "/v1/jobs", 1, order=order, since=event["recorded_at"])
        assert [one["job_id"] for one in found] == [made["job_id"]]
    assert _pages(shared, "/v1/jobs", 1, order="desc", since="2099-01-01T00:00:00Z") == []


def test_a_list_that_is_told_from_its_end_is_told_from_its_beginning_where_it_is_asked(
    shared: Scene,
) -> None:
    clock: Any = shared.clock
    for place in range(3):
        cheap = {"asset": "CREDIT", "units": str(1 + place)}
        shared.renter.post("/v1/leases", {"job": shared.job(max_price_per_gpu_hour=cheap)})
        clock.advance(1_000_000)
    path = "/v1/unmatched-requests"
    newest = _pages(shared, path, 500)
    assert len(newest) > 2
    assert newest == _pages(shared, path, 1, order="desc")
    assert _pages(shared, path, 2, order="asc") == newest[::-1]
    event = shared.operator.read(f"/v1/audit/events/{newest[0]['recorded_position']}")
    late = _pages(shared, path, 1, since=event["recorded_at"])
    assert newest[0] in late
    assert late == newest[: len(late)]
    assert _pages(shared, path, 1, order="asc", since="2099-01-01T00:00:00Z") == []


ONE_ORDER = {
    "sums by group, which no moment orders": (
        "list_usage_summary",
        "list_usage_breakdown",
        "list_utilisation",
        "list_resource_use",
        "list_earnings",
        "list_epoch_rewards",
        "list_wash_signals",
        "list_renter_signals",
        "list_region_days",
        "list_region_shares",
        "list_device_fees",
        "read_statement",
    ),
    "the order is the answer: by price, by turn, by name": (
        "search_offers",
        "list_pool_queue",
        "list_budgets",
    ),
    "what a score is made of, by two keys: where it comes from, and which input": (
        "list_node_evidence",
        "list_provider_evidence",
    ),
    "one thing's parts, from its beginning to its end": (
        "list_lease_steps",
        "list_resource_charges",
        "list_resource_rows",
        "list_statement_line_reports",
    ),
}
"""Lists without a direction, by why."""
BY_NUMBER = {
    "list_price_snapshots",
    "list_device_config_revisions",
    "list_node_hours",
    "list_epochs",
    "list_policies",
    "list_job_parts",
    "list_journal",
    "read_account_statement",
    "list_events",
}
"""Lists by a number that is no moment of recording, or that name their time otherwise: `order`."""


def test_every_list_of_the_document_takes_order_and_since_or_stands_here_with_its_reason() -> None:
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    named = document["components"].get("parameters", {})
    seen: set[str] = set()
    for methods in document["paths"].values():
        operation = methods.get("get", {})
        told = [
            named[one["$ref"].split("/")[-1]] if "$ref" in one else one
            for one in operation.get("parameters", ())
        ]
        names = {one["name"] for one in told}
        if "cursor" not in names:
            continue
        name = operation["operationId"]
        wanted = {"order"} if name in BY_NUMBER else {"order", "since"}
        if any(name in lists for lists in ONE_ORDER.values()):
            wanted = set()
        seen.add(name)
        assert names & {"order", "since"} == wanted, (name, "which of both it takes, and why")
    assert len(seen) > 60
    assert seen >= BY_NUMBER.union(*ONE_ORDER.values()), "a reason for a list that is not there"
