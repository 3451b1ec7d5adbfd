"""Reading: your own writes, the past, and lists page by page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.scenes.server import Scene


def _moment(at_us: int) -> str:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# --- positions -------------------------------------------------------------------------------


def test_every_answer_names_its_position_in_body_and_header(shared: Scene) -> None:
    made = shared.renter.post("/v1/jobs", shared.job())
    assert made.headers["Tallystick-Position"] == str(made.json()["position"])
    for path in (
        "/v1/jobs",
        "/v1/offers",
        "/v1/epochs",
        "/v1/accounts",
        "/v1/payouts",
        f"/v1/accounts/{shared.renter.account_id}/balances",
    ):
        read = shared.renter.get(path)
        assert read.headers["Tallystick-Position"] == str(read.json()["position"])
        assert read.json()["position"] >= made.json()["position"]


def test_a_fact_that_is_read_tells_its_own_position_and_the_header_that_of_the_answer(
    shared: Scene,
) -> None:
    shared.renter.made("/v1/jobs", shared.job())
    for event in shared.operator.read("/v1/audit/events", limit=2)["data"]:
        read = shared.operator.get(f"/v1/audit/events/{event['position']}")
        assert read.json() == event
        assert int(read.headers["Tallystick-Position"]) == shared.head() > event["position"]


def test_what_was_written_is_read_at_once(shared: Scene) -> None:
    for _ in range(3):
        made = shared.renter.made("/v1/jobs", shared.job())
        path = f"/v1/jobs/{made['job_id']}"
        told = shared.renter.get(path, {"Tallystick-Min-Position": str(made["position"])})
        assert told.status_code == 200
        assert told.json()["state"] == "open"


def test_a_position_that_is_not_written_is_waited_for_and_then_503(shared: Scene) -> None:
    response = shared.renter.get(
        "/v1/jobs", {"Tallystick-Min-Position": str(shared.head() + 1_000)}
    )
    assert (response.status_code, response.json()["code"]) == (503, "projection_behind")
    assert response.headers["Retry-After"] == "1"
    assert response.json()["retryable"] is True


def test_a_usage_position_that_is_not_written_is_503(shared: Scene) -> None:
    path = f"/v1/nodes/{shared.provider.node_id}/usage"
    assert shared.owner.get(path, {"Tallystick-Min-Usage": "3:0"}).status_code == 200
    response = shared.owner.get(path, {"Tallystick-Min-Usage": "3:7"})
    assert (response.status_code, response.json()["code"]) == (503, "projection_behind")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Tallystick-Min-Position", "-1"),
        ("Tallystick-Min-Position", "1.0"),
        ("Tallystick-Min-Position", "9" * 16),
        ("Tallystick-Min-Usage", "64:1"),
        ("Tallystick-Min-Usage", "1"),
        ("Tallystick-Min-Usage", "a:b"),
    ],
)
def test_a_position_header_of_the_wrong_form_is_refused(
    name: str, value: str, shared: Scene
) -> None:
    response = shared.renter.get("/v1/jobs", {name: value})
    assert (response.status_code, response.json()["code"]) == (400, "malformed_header")


# --- the past --------------------------------------------------------------------------------


def test_balances_and_leases_are_read_as_of_a_position_and_of_a_time(scene: Scene) -> None:
    renter, path = scene.renter, f"/v1/accounts/{scene.renter.account_id}/balances"
    clock: Any = scene.clock
    before, before_us = scene.head(), clock.now_us()
    clock.advance(1_000_000)
    lease = scene.running()
    reserved, reserved_us = scene.head(), clock.now_us()
    clock.advance(600_000_000)
    renter.made(f"/v1/leases/{lease['lease_id']}/close")
    after = scene.head()

    def cash(**moment: Any) -> str:
        told = renter.read(path, **moment)
        units = {one["part"]: str(one["balance"]["units"]) for one in told["data"]}
        return units["cash"]

    assert cash(as_of_position=before) == cash(as_of=_moment(before_us)) == "100000000"
    assert cash(as_of_position=reserved) == cash(as_of=_moment(reserved_us)) == "98000000"
    assert cash(as_of_position=after) == cash() == "99666667"
    told = renter.read(path, as_of=_moment(reserved_us))
    assert told["position"] == reserved
    assert told["as_of"] == _moment(reserved_us)

    def state(**moment: Any) -> str:
        return str(renter.read(f"/v1/leases/{lease['lease_id']}", **moment)["state"])

    assert state(as_of_position=reserved) == state(as_of=_moment(reserved_us)) == "active"
    assert state() == "closing"
    early = renter.get(f"/v1/leases/{lease['lease_id']}", as_of_position=before)
    assert (early.status_code, early.json()["code"]) == (404, "lease_unknown")
    listed = renter.read("/v1/leases", as_of_position=reserved, state="active")["data"]
    assert [one["lease_id"] for one in listed] == [lease["lease_id"]]
    assert renter.read("/v1/leases", as_of_position=before)["data"] == []
    journal = renter.read(f"/v1/accounts/{renter.account_id}/journal", as_of_position=reserved)[
        "data"
    ]
    assert [one["movement"]["units"] for one in journal] == ["-100000000", "2000000"]


@pytest.mark.parametrize(
    "query", ["as_of_position=999999999", "as_of_position=1&as_of=2026-11-20T08:00:00Z"]
)
def test_a_moment_that_cannot_be_read_is_refused(query: str, shared: Scene) -> None:
    response = shared.renter.get(f"/v1/leases?{query}")
    assert (response.status_code, response.json()["code"]) == (400, "as_of_unsupported")


def test_what_has_no_past_says_so(shared: Scene) -> None:
    for path in ("/v1/offers", "/v1/jobs", "/v1/earnings"):
        response = shared.owner.get(f"{path}?as_of_position=1")
        assert response.status_code in (400, 403)
    response = shared.renter.get("/v1/jobs?as_of_position=1")
    assert (response.status_code, response.json()["code"]) == (400, "as_of_unsupported")


# --- pages -----------------------------------------------------------------------------------


def test_pages_joined_are_the_list_and_the_last_one_says_so(shared: Scene) -> None:
    caller = shared.account()
    made = [caller.made("/v1/jobs", shared.job())["job_id"] for _ in range(7)]
    whole = [one["job_id"] for one in caller.read("/v1/jobs")["data"]]
    assert whole == made
    joined: list[str] = []
    page = caller.read("/v1/jobs", limit=3)
    while True:
        joined += [one["job_id"] for one in page["data"]]
        assert page["has_more"] == ("next_cursor" in page)
        if not page["has_more"]:
            break
        page = caller.read("/v1/jobs", limit=3, cursor=page["next_cursor"])
    assert joined == made


def test_the_next_page_is_linked(shared: Scene) -> None:
    response = shared.operator.get("/v1/accounts", limit=1)
    link = response.headers["Link"]
    assert link.endswith('; rel="next"')
    following = shared.operator.get(link[1 : link.index(">")])
    assert following.status_code == 200
    assert following.json()["data"] != response.json()["data"]


def test_pages_of_the_journal_are_one_snapshot(shared: Scene) -> None:
    caller = shared.account()
    for _ in range(3):
        shared.deposit(caller, 10)
    path = f"/v1/accounts/{caller.account_id}/journal"
    page = caller.read(path, limit=2)
    shared.deposit(caller, 10)
    rest = caller.read(path, limit=2, cursor=page["next_cursor"])
    assert (len(page["data"]), len(rest["data"]), rest["has_more"]) == (2, 1, False)


def _cursor(scene: Scene) -> str:
    return str(scene.operator.read("/v1/accounts", limit=1)["next_cursor"])


def test_a_cursor_is_of_one_list_one_caller_and_one_set_of_filters(shared: Scene) -> None:
    cursor = _cursor(shared)
    good = shared.operator.get("/v1/accounts", limit=3, cursor=cursor)
    assert good.status_code == 200
    for response in (
        shared.auditor.get("/v1/accounts", cursor=cursor),
        shared.operator.get("/v1/jobs", cursor=cursor),
        shared.operator.get("/v1/nodes", cursor=cursor, phase="active"),
        shared.operator.get("/v1/accounts", cursor=cursor[:-2] + "AA"),
        shared.operator.get("/v1/accounts", cursor="A" + cursor),
        shared.operator.get("/v1/accounts", cursor="not a cursor"),
        shared.operator.get("/v1/accounts", cursor="\u00e9"),
    ):
        assert (response.status_code, response.json()["code"]) == (400, "cursor_invalid")


def test_offers_come_cheapest_first_and_filtered(shared: Scene) -> None:
    found = shared.anybody.read("/v1/offers")["data"]
    prices = [int(one["price_per_gpu_hour"]["units"]) for one in found]
    assert prices == sorted(prices)
    assert {
        one["node_id"]
        for one in shared.anybody.read("/v1/offers", model="NVIDIA H100 PCIe")["data"]
    } == {shared.other.node_id}
    assert shared.anybody.read("/v1/offers", price_max=1)["data"] == []
    first = shared.anybody.read("/v1/offers", limit=1)
    second = shared.anybody.read("/v1/offers", limit=1, cursor=first["next_cursor"])
    assert first["data"] != second["data"]


# --- the audit list --------------------------------------------------------------------------


def test_events_are_found_by_party_type_time_and_position(scene: Scene) -> None:
    clock: Any = scene.clock
    clock.advance(1_000_000)
    from_us = clock.now_us()
    lease = scene.running()
    clock.advance(1_000_000)
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")

    def types(caller: Any = scene.auditor, **query: Any) -> list[str]:
        return [one["type"] for one in caller.read("/v1/audit/events", **query)["data"]]

    expected = [
        "lease.requested.v1",
        "lease.match_decided.v1",
        "lease.reserved.v1",
        "device.reserved.v1",
        "lease.ready.v1",
        "lease.opened.v1",
        "lease.closed.v1",
        "device.released.v1",
    ]
    assert types(party=lease["lease_id"]) == expected
    assert types(type="lease.closed.v1") == ["lease.closed.v1"]
    assert types(party=lease["lease_id"], type="lease.ready.v1") == ["lease.ready.v1"]
    until = _moment(clock.now_us())
    assert types(party=lease["lease_id"], **{"from": _moment(from_us), "to": until}) == expected[:6]
    events = scene.auditor.read("/v1/audit/events", party=lease["lease_id"])["data"]
    position = events[2]["position"]
    bounds = {"from_position": position - 1, "to_position": position + 1}
    assert types(party=lease["lease_id"], **bounds) == expected[1:3], "from is in, to is out"
    assert types(scene.renter, party=lease["lease_id"], **bounds) == ["lease.reserved.v1"]
    assert types(to_position=1) == []
    first = scene.auditor.read("/v1/audit/events", limit=1, **bounds)
    second = scene.auditor.read("/v1/audit/events", limit=1, **bounds, cursor=first["next_cursor"])
    paged = [one["position"] for one in first["data"] + second["data"]]
    assert (paged, second["has_more"]) == ([position - 1, position], False)
    odd = scene.auditor.get("/v1/audit/events?from_position=0")
    assert (odd.status_code, odd.json()["code"]) == (422, "invalid")
    assert types(party=lease["lease_id"], as_of_position=position) == expected[:3]
    mine = types(scene.renter, party=lease["lease_id"])
    assert set(mine) <= set(expected)
    assert "lease.requested.v1" in mine
    event = scene.auditor.read(f"/v1/audit/events/{position}")
    assert event["type"] == "lease.reserved.v1"
    assert "blind" not in event["body"]
    assert scene.stranger.get(f"/v1/audit/events/{position}").status_code == 404
