"""One lease: what it does, costs and prints, what happened; let it run longer, stop it."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from api.console.renter import listing, output
from api.console.renter.live import OVER
from api.console.visits import entering
from api.console.visits.reading import Refused, Told
from api.console.visits.visit import Visit

HOURS = (1, 4, 12, 24)
EVENTS_SHOWN, PAGE = 50, 500
SURE = "I have what I need from it"
CLOSED = OVER | {"closing", "disputed"}


async def show(visit: Visit, problem: Refused | None = None) -> Response:
    """`/leases/{lease_id}`"""
    path = f"/v1/leases/{visit.params['lease_id']}"
    lease = await visit.read(path)
    offers = await listing.offers_of(visit, [lease])
    is_mine = lease["account_id"] == visit.account_id
    held = await _held(visit, lease) if is_mine else None
    return visit.show(
        "renter/lease.html",
        200 if problem is None else problem.status,
        problem=problem,
        lease=lease,
        gpu=listing.gpu_of(lease, offers),
        offer=offers.get(str(lease.get("offer_id"))),
        is_mine=is_mine,
        is_closed=lease["state"] in CLOSED,
        is_live=lease["state"] not in OVER,
        may_act=is_mine and visit.may("renter", "client") and lease["state"] not in CLOSED,
        held=held,
        choices=_choices(held),
        charges=await listing.newest(visit, f"{path}/charges"),
        health=await visit.read(f"{path}/health"),
        work=await _read_if(visit, f"{path}/work"),
        printed=await _printed(visit, lease),
        events=await _events(visit, path),
        events_shown=EVENTS_SHOWN,
        sure=SURE,
    )


async def take(visit: Visit) -> Response:
    """The forms of the page: `do` is `stop`, `longer` or `accept`."""
    lease_id = visit.params["lease_id"]
    try:
        await _done(visit, lease_id, visit.form.get("do", ""))
    except Refused as problem:
        return await show(visit, problem)
    return visit.to(f"/leases/{lease_id}")


async def events_file(visit: Visit) -> Response:
    """`/leases/{lease_id}/events.json`: all that happened."""
    lease_id = visit.params["lease_id"]
    found = await _events(visit, f"/v1/leases/{lease_id}")
    named = {"Content-Disposition": f'attachment; filename="{lease_id}.json"'}
    return JSONResponse({"lease_id": lease_id, "data": found}, headers=named)


async def _done(visit: Visit, lease_id: str, what: str) -> None:
    path, form = f"/v1/leases/{lease_id}", visit.form
    if what == "stop":
        entering.sure(form.get("sure", ""), SURE)
        await visit.record(f"{path}/close")
        return
    if what == "accept":
        await visit.record(f"{path}/accept")
        return
    lease = await visit.read(path)
    if lease.get("term_seconds"):
        hours = entering.whole(form.get("hours", ""), "hours", 1, 8760)
        await visit.record(f"{path}/extend", {"seconds": hours * 3600})
        return
    amount = form.get("amount", "")
    if form.get("hours"):
        hours = entering.whole(form["hours"], "hours", 1, 8760)
        held = await _held(visit, lease)
        found = None if held is None else _times(held["charge_per_hour"], hours)
    else:
        found = entering.credits_of(amount, "the amount")
    await visit.record(f"{path}/top-up", {"amount": found or entering.credits_of("", "the amount")})


async def _held(visit: Visit, lease: Told) -> Told | None:
    """What is held for a running lease, and what it costs an hour, as the forecast has it."""
    if not visit.may("account", "billing:read", "operator"):
        return None
    told = await visit.read(f"/v1/accounts/{visit.account_id}/forecast")
    found = [one for one in told["leases"] if one["lease_id"] == lease["lease_id"]]
    return found[0] if found else None


def _choices(held: Told | None) -> list[tuple[int, Told]]:
    """Hours to add, and what is held for them at the locked price."""
    if held is None:
        return []
    return [(hours, _times(held["charge_per_hour"], hours)) for hours in HOURS]


def _times(money: Told, count: int) -> Told:
    return {"asset": money["asset"], "units": str(int(money["units"]) * count)}


async def _read_if(visit: Visit, path: str) -> Told | None:
    """What only the parties of a lease may read; None: the visitor is none."""
    try:
        return await visit.read(path)
    except Refused as problem:
        if problem.status in (403, 404):
            return None
        raise


async def _printed(visit: Visit, lease: Told) -> output.Output | None:
    try:
        return await output.end_of(visit.reader, lease["lease_id"])
    except Refused as problem:
        if problem.status in (403, 404):
            return None
        raise


async def _events(visit: Visit, path: str) -> list[Told]:
    """All that happened, the newest first: the API begins with the oldest."""
    found: list[Told] = []
    cursor: Any = None
    while True:
        told = await visit.read(f"{path}/events", limit=PAGE, cursor=cursor)
        found += told["data"]
        cursor = told.get("next_cursor")
        if not told["has_more"]:
            return found[::-1]
