"""The bill: what was charged in a month, for what, what is left, and how long it lasts."""

from __future__ import annotations

from starlette.responses import Response

from api.console.drawing.plots import Bar, Bars
from api.console.visits.months import Month, month_of, this_month
from api.console.visits.reading import Told, refused
from api.console.visits.visit import Visit

LEASES_MAX, LINES_MAX, REPORTS_MAX = 50, 200, 50


async def now(visit: Visit) -> Response:
    """`/bills`: the bill of this month."""
    return visit.to(f"/bills/{this_month(visit).text}")


async def show(visit: Visit) -> Response:
    """`/bills/{month}`"""
    month, account = month_of(visit), f"/v1/accounts/{visit.account_id}"
    bill = await visit.read(f"{account}/statements/{month.text}", limit=LEASES_MAX)
    lines = await visit.read(f"{account}/statements", limit=LINES_MAX, **month.period)
    days = await visit.read(
        "/v1/usage/summary", by="day", account_id=visit.account_id, limit=31, **month.period
    )
    forecast = await visit.read(f"{account}/forecast")
    cash = next(one for one in forecast["balances"] if one["settlement"] == "cash")
    return visit.show(
        "renter/bill.html",
        month=month,
        bill=bill,
        lines=lines,
        cash=cash,
        plot=_by_day(month, days["data"]),
        parts=_parts(lines),
    )


def _by_day(month: Month, days: list[Told]) -> Bars:
    charged = {one["day"][:10]: int(one["charge"]["units"]) for one in days}
    bars = [Bar(str(int(day[8:])), (charged.get(day, 0),)) for day in month.days]
    return Bars(f"Charged by day, {month.name}", "CREDIT", 6, bars, ("Charged",))


def _parts(lines: Told) -> list[Told]:
    """Each balance: before, what moved it, and after."""
    opening = {one["part"]: one["balance"] for one in lines["opening"]}
    return [
        {
            "part": one["part"],
            "opening": opening.get(one["part"]),
            "kinds": [kind for kind in lines["kinds"] if kind["part"] == one["part"]],
            "closing": one["balance"],
        }
        for one in lines["closing"]
    ]


async def show_line(visit: Visit) -> Response:
    """`/bills/{month}/lines/{position}`: one line, down to the signed reports it came from."""
    month, position = month_of(visit), visit.params["position"]
    if not position.isdecimal():
        raise refused("not_found", "a position is a whole number")
    path = f"/v1/accounts/{visit.account_id}/statements/lines/{position}"
    line = await visit.read(path)
    reports = await visit.read(f"{path}/reports", limit=REPORTS_MAX)
    return visit.show("renter/line.html", month=month, line=line, reports=reports)
