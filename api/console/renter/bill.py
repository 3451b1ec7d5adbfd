"""The bill: what was charged in a month, for what, what is left, and how long it lasts."""

from __future__ import annotations

from starlette.responses import Response

from api.console.drawing.plots import Bar, Bars
from api.console.renter import listing
from api.console.visits.months import Month, month_of, this_month
from api.console.visits.reading import Told, refused
from api.console.visits.visit import Visit

EXPORTS = (
    (".csv", "FOCUS 1.2, CSV"),
    (".parquet", "FOCUS 1.2, Parquet"),
    ("/lines.csv", "Every line, CSV"),
    ("/lines.jsonl", "Every line, JSON"),
    (".journal", "Journal for hledger"),
)


async def now(visit: Visit) -> Response:
    """`/bills`: the bill of this month."""
    return visit.to(f"/bills/{this_month(visit).text}")


async def show(visit: Visit) -> Response:
    """`/bills/{month}`"""
    month, account = month_of(visit), f"/v1/accounts/{visit.account_id}"
    present = this_month(visit)
    if month.text > present.text:
        return visit.show("renter/no_bill.html", month=month, present=present)
    asked = {"account_id": visit.account_id, **month.period}
    bill_path = f"{account}/statements/{month.text}"
    bill = await visit.read(bill_path, limit=1)
    days = await visit.read("/v1/usage/summary", by="day", limit=31, **asked)
    projects = await listing.rows(visit, "/v1/usage/summary", "projects", by="project_id", **asked)
    lines = await listing.newest(visit, f"{account}/statements", "lines", "lines", **month.period)
    parts = await visit.read(f"{account}/statements", limit=1, **month.period)
    is_now = month == present
    return visit.show(
        "renter/bill.html",
        month=month,
        bill=bill,
        leases=await listing.rows(visit, bill_path, "leases", field="leases"),
        lines=lines,
        projects=projects,
        is_now=is_now,
        balances=(await visit.read(f"{account}/forecast"))["balances"] if is_now else [],
        unbilled=days.get("unbilled_estimate") if is_now else None,
        plot=by_day(month, days["data"]),
        parts=_parts(parts),
        exports=[(f"/bills/{month.text}{end}", name) for end, name in EXPORTS],
    )


async def export(visit: Visit) -> Response:
    """`/bills/{month}.csv` and the other files of a month, as the API writes them."""
    month = month_of(visit)
    path = f"/v1/accounts/{visit.account_id}/statements/{month.text}"
    return await visit.file(path + visit.here.removeprefix(f"/bills/{month.text}"))


def by_day(month: Month, days: list[Told]) -> Bars:
    """What was charged on each day of a month."""
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
    reports = await listing.rows(visit, f"{path}/reports")
    usage = [one for one in line["lines"] if one["kind"] == "usage" and one.get("lease_id")]
    return visit.show(
        "renter/line.html",
        month=month,
        line=line,
        reports=reports,
        lease_id=usage[0]["lease_id"] if usage else None,
    )


async def show_proof(visit: Visit) -> Response:
    """The proof of a line's fact, or with `?report=` of one of its signed reports."""
    position, report = visit.params["position"], visit.asked("report")
    if not position.isdecimal() or not (report or "0").isdecimal():
        raise refused("not_found", "a position is a whole number")
    path = f"/v1/accounts/{visit.account_id}/statements/lines/{position}"
    response = await visit.file(f"{path}/reports/{report}/proof" if report else f"{path}/proof")
    name = f"line-{position}-report-{report}" if report else f"line-{position}"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.tlog-proof"'
    return response
