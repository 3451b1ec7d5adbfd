"""Earnings: what each node earned in a month, when it can be spent, and the arithmetic of it."""

from __future__ import annotations

from starlette.responses import Response

from api.console.drawing.plots import Bar, Bars
from api.console.owner.own import earned_by
from api.console.visits.months import Month, month_of
from api.console.visits.reading import Refused, Told, Value, refused
from api.console.visits.visit import Visit

ROWS_MAX = 500


async def show(visit: Visit) -> Response:
    """`/earn/{month}`"""
    month = month_of(visit)
    maturity = await visit.read(f"/v1/accounts/{visit.account_id}/maturity")
    asked: dict[str, Value] = {**month.period, "account_id": visit.account_id, "limit": ROWS_MAX}
    nodes = await visit.read("/v1/earnings", by="node_id", **asked)
    cursor = visit.asked("after") or None
    hours = await visit.read("/v1/earnings", by="node_id,lease_id,hour", cursor=cursor, **asked)
    if cursor is None and not hours["has_more"]:
        hours["data"].sort(key=lambda one: str(one.get("hour", "")), reverse=True)
    return visit.show(
        "owner/earnings.html",
        month=month,
        maturity=maturity,
        by_node=nodes,
        by_hour=hours,
        plot=_by_day(month, await earned_by(visit, "hour", month.period)),
    )


def _by_day(month: Month, hours: list[Told]) -> Bars:
    """The API has earnings by hour: a day is the sum of its hours, in whole micro-credits."""
    earned: dict[str, int] = {}
    for one in hours:
        day = str(one.get("hour", ""))[:10]
        earned[day] = earned.get(day, 0) + int(one["earned"]["units"])
    bars = [Bar(str(int(day[8:])), (earned.get(day, 0),)) for day in month.days]
    return Bars(f"Earned by day, {month.name}", "CREDIT", 6, bars, ("Yours",))


async def show_line(visit: Visit) -> Response:
    """`/earn/{month}/lines/{position}`: the arithmetic of one lease hour."""
    month, position = month_of(visit), visit.params["position"]
    if not position.isdecimal():
        raise refused("not_found", "a position is a whole number")
    told = await visit.read(f"/v1/earnings/explain/{position}")
    path = f"/v1/accounts/{visit.account_id}/statements/lines/{position}/proof"
    return visit.show(
        "owner/line.html",
        month=month,
        told=told,
        position=position,
        is_proved=await _is_proved(visit, path),
    )


async def _is_proved(visit: Visit, path: str) -> bool:
    """Whether a signed head covers the line already."""
    try:
        await visit.reader.fetch("GET", path, {})
    except Refused:
        return False
    return True
