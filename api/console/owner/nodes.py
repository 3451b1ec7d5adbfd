"""Nodes of an owner: all of them, and one with its state, devices, trust, use, price and causes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import Response

from api.console.drawing.plots import Bar, Bars
from api.console.owner import causes
from api.console.owner.home import today_of
from api.console.owner.own import (
    DEVICES_MAX,
    ROWS_MAX,
    credits_,
    devices_of,
    earned_by,
    machine,
    now_of,
    offers_of,
    own_alone,
)
from api.console.renter import listing
from api.console.visits.reading import Refused, Told
from api.console.visits.visit import Visit

DAYS = 3
HOURS_MAX, LEASES_MAX, RIVALS_MAX, WINDOWS_MAX = 24 * DAYS + 1, 20, 50, 20
MINUTES_OF_US = 60_000_000


async def show_all(visit: Visit) -> Response:
    """`/nodes`"""
    found = await listing.newest(visit, "/v1/nodes", account_id=own_alone(visit))
    nodes = sorted(found["data"], key=lambda one: one["phase"] == "retired")
    devices, offers = await devices_of(visit, nodes), await offers_of(visit, nodes)
    earned = await earned_by(visit, "node_id", today_of(visit))
    today = {one.get("node_id"): one["earned"] for one in earned}
    rows = []
    for node in nodes:
        mine = _live(devices, node["node_id"])
        prices = [one for one in offers if one["node_id"] == node["node_id"]]
        rows.append(
            {
                "node": node,
                "name": machine(node),
                "state": causes.state_of(node),
                "doing": causes.doing(node, mine),
                "price": prices[0]["price_per_gpu_hour"] if prices else None,
                "today": today.get(node["node_id"], credits_(0)),
            }
        )
    return visit.show("owner/nodes.html", rows=rows, found=found)


def _live(devices: list[Told], node_id: str) -> list[Told]:
    return [one for one in devices if one["node_id"] == node_id and not one["retired"]]


async def show(visit: Visit) -> Response:
    """`/nodes/{node_id}`"""
    node_id = visit.params["node_id"]
    path = f"/v1/nodes/{node_id}"
    node = await visit.read(path)
    devices = await visit.read("/v1/devices", node_id=node_id, limit=DEVICES_MAX)
    offers = await visit.read("/v1/offers", node_id=node_id, limit=ROWS_MAX)
    reputation = await visit.read(f"{path}/reputation")
    matches = await visit.read(f"{path}/matches")
    hours = await visit.read(f"{path}/usage/hours", limit=HOURS_MAX, **_since(visit, DAYS))
    live = _live(devices["data"], node_id)
    return visit.show(
        "owner/node.html",
        node=node,
        name=machine(node),
        state=causes.state_of(node),
        call=causes.call_of(node),
        doing=causes.doing(node, live),
        devices=devices["data"],
        condition=await visit.read(f"{path}/condition"),
        trust=await visit.read(f"{path}/trust"),
        offers=offers["data"],
        parts=await _parts(visit, path),
        today=await _today(visit, path),
        plot=_plot(hours["data"]),
        leases=await _leases(visit, node_id),
        windows=await visit.read(f"{path}/maintenances", order="desc", limit=WINDOWS_MAX),
        why=causes.why_no_work(
            node, live, offers["data"], await _rivals(visit, live), now_of(visit)
        ),
        lost=causes.lost(matches["reasons"]),
        matches=matches,
        reputation=reputation,
        raises=causes.raises(reputation),
        next_tier=causes.next_tier(reputation),
        is_mine=node["account_id"] == visit.account_id,
    )


def _since(visit: Visit, days: int) -> dict[str, str]:
    now = datetime.fromtimestamp(visit.service.clock.now_us() // 1_000_000, UTC)
    first = now.replace(minute=0, second=0, microsecond=0) - timedelta(days=days)
    return {"from": first.isoformat().replace("+00:00", "Z")}


async def _parts(visit: Visit, path: str) -> Told | None:
    """The owner's part of a GPU-hour at the prices of its offers; None: the API does not say."""
    try:
        return await visit.read(f"{path}/earnings/per-hour")
    except Refused:
        return None


async def _today(visit: Visit, path: str) -> Told | None:
    """What the visitor earned with it today; None: who only looks has no part of it."""
    try:
        return await visit.read(f"{path}/earnings/today")
    except Refused:
        return None


async def _rivals(visit: Visit, devices: list[Told]) -> list[Told]:
    """The cheapest open offers of the same model."""
    if not devices:
        return []
    found = await visit.read("/v1/offers", model=devices[0]["model"], limit=RIVALS_MAX)
    rows: list[Told] = found["data"]
    return rows


async def _leases(visit: Visit, node_id: str) -> list[Told]:
    """The last leases on it with what each brought the owner: never who rented."""
    asked: dict[str, Any] = {"node_id": node_id, "account_id": visit.account_id}
    brought: dict[str, Told] = {}
    found = await visit.read("/v1/earnings", by="lease_id", limit=DEVICES_MAX, **asked)
    for one in found["data"]:
        if "lease_id" in one:
            brought[one["lease_id"]] = one
    rows = await visit.read(
        "/v1/leases", node_id=node_id, estimate=False, order="desc", limit=LEASES_MAX
    )
    return [
        {
            "lease_id": one["lease_id"],
            "state": one["state"],
            "from": one.get("opened_at") or one.get("reserved_at") or one["requested_at"],
            "until": one.get("closed_at"),
            "gpu_us": one["gpu_us"],
            "earned": brought.get(one["lease_id"], {}).get("earned", credits_(0)),
        }
        for one in rows["data"]
        if one.get("provider_account_id") == visit.account_id
    ]


def _plot(hours: list[Told]) -> Bars:
    """GPU-minutes of each hour: leased, and ready but not leased."""
    bars = [
        Bar(
            f"{one['hour'][11:13]}:00",
            (int(one["leased_gpu_us"]) // MINUTES_OF_US, int(one["idle_gpu_us"]) // MINUTES_OF_US),
        )
        for one in hours
    ]
    return Bars(
        "GPU-minutes by hour, UTC", "minutes", 0, bars, ("Leased", "Idle"), fills=("f1", "f4")
    )
