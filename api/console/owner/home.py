"""What an owner earns, when it arrives, and what each machine does now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import Response

from api.console.drawing.plots import Bar, Bars
from api.console.owner import causes
from api.console.owner.own import (
    FLEET_READERS,
    credits_,
    devices_of,
    earned_by,
    machine,
    nodes_of,
    now_of,
    offers_of,
    total,
)
from api.console.visits.months import Month, this_month
from api.console.visits.reading import Told
from api.console.visits.visit import Visit

MACHINES_SHOWN = 25
SERIES_MAX = 4
NODES_MAX = 10
"""More nodes than that are drawn as one bar a day: an hour has a row for each of them."""


async def show(visit: Visit) -> Response:
    """`/earn`"""
    month, account = this_month(visit), visit.account_id
    maturity = await visit.read(f"/v1/accounts/{account}/maturity")
    terms = await visit.read("/v1/cash-outs/terms")
    earned = await earned_by(visit, "node_id", month.period)
    today = await earned_by(visit, "node_id", today_of(visit))
    machines = await _machines(visit, earned, today)
    days = await _by_day(visit, month, len(earned) <= NODES_MAX)
    return visit.show(
        "owner/home.html",
        month=month,
        maturity=maturity,
        minimum=terms["minimum"],
        window_days=terms["window_seconds"] // 86_400,
        earned_today=total(today, "earned"),
        earned=total(earned, "earned"),
        machines=machines,
        has_more=len(machines) == MACHINES_SHOWN,
        plot=_plot(month, days, machines),
        has_nodes=visit.may(*FLEET_READERS),
        calendar=calendar(maturity, visit),
    )


def today_of(visit: Visit) -> dict[str, str]:
    """From midnight UTC on."""
    now = datetime.fromtimestamp(visit.service.clock.now_us() // 1_000_000, UTC)
    first = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return {
        "from": first.isoformat().replace("+00:00", "Z"),
        "to": (first + timedelta(days=1)).isoformat().replace("+00:00", "Z"),
    }


async def _by_day(visit: Visit, month: Month, is_few: bool) -> dict[tuple[str, str], int]:
    """By node and day, in micro-credits: a day is the sum of its hours. Of many nodes together."""
    found: dict[tuple[str, str], int] = {}
    for one in await earned_by(visit, "node_id,hour" if is_few else "hour", month.period):
        place = (str(one.get("node_id", "")), str(one["hour"])[:10])
        found[place] = found.get(place, 0) + int(one["earned"]["units"])
    return found


async def _machines(visit: Visit, month: list[Told], today: list[Told]) -> list[Told]:
    """Each node with its state, what it does, its price and what it earned."""
    if not visit.may(*FLEET_READERS):
        return []
    nodes = (await nodes_of(visit, MACHINES_SHOWN))["data"]
    devices = await devices_of(visit, nodes)
    offers = await offers_of(visit, nodes)
    told = []
    for node in nodes:
        node_id = node["node_id"]
        mine = [one for one in devices if one["node_id"] == node_id and not one["retired"]]
        offered = [one for one in offers if one["node_id"] == node_id]
        of_node: dict[str, Any] = {
            "node": node,
            "name": machine(node),
            "state": causes.state_of(node),
            "doing": causes.doing(node, mine),
            "price": offered[0]["price_per_gpu_hour"] if offered else None,
            "reputation_ppm": offered[0].get("supply", {}).get("reputation_ppm")
            if offered
            else None,
            "month": _of(month, node_id),
            "today": _of(today, node_id),
            "why": causes.why_no_work(node, mine, offered, [], now_of(visit)),
        }
        told.append(of_node)
    return told


def _of(rows: list[Told], node_id: str) -> dict[str, Any]:
    found = [one for one in rows if one.get("node_id") == node_id]
    return total(found, "earned")


def _plot(month: Month, days: dict[tuple[str, str], int], machines: list[Told]) -> Bars:
    """A bar for each day, with a part for each of the nodes that earned most, and for the rest."""
    sums: dict[str, int] = {}
    for (node_id, _), units in days.items():
        sums[node_id] = sums.get(node_id, 0) + units
    ranked = sorted(sums, key=lambda node_id: (-sums[node_id], node_id))
    shown = ranked if len(ranked) <= SERIES_MAX else ranked[: SERIES_MAX - 1]
    rest = [node_id for node_id in ranked if node_id not in shown]
    names = {one["node"]["node_id"]: one["name"] for one in machines}
    series = [_short(node_id, names) for node_id in shown] + (["All others"] if rest else [])
    bars = []
    for day in month.days:
        parts = [days.get((node_id, day), 0) for node_id in shown]
        if rest:
            parts.append(sum(days.get((node_id, day), 0) for node_id in rest))
        bars.append(Bar(str(int(day[8:])), tuple(parts or (0,))))
    title = f"Earned by day, {month.name}"
    return Bars(title, "CREDIT", 6, bars, tuple(series or ("Yours",)))


def _short(node_id: str, names: dict[str, str]) -> str:
    if not node_id:
        return "Yours"
    return f"{names.get(node_id, 'A node')} ({node_id.removeprefix('node_')[:6]})"


def calendar(maturity: Told, visit: Visit) -> list[Told]:
    """What matures on which day of UTC, the soonest first, with the days it was earned on.

    sum(calendar) == sum(upcoming): the next `UPCOMING_MAX` credits of the API
    """
    days: dict[str, Told] = {}
    for one in maturity["upcoming"]:
        day = one["matures_at"][:10]
        found = days.setdefault(
            day, {"at": one["matures_at"], "units": 0, "lines": 0, "earned_at": one["posted_at"]}
        )
        found["units"] += int(one["amount"]["units"])
        found["lines"] += 1
    today = now_of(visit)[:10]
    return [
        {**found, "amount": credits_(found["units"]), "is_today": day == today}
        for day, found in sorted(days.items())
    ]
