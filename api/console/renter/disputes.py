"""Disputes: what is contested, who said what, and how it was ruled; one is opened from a line."""

from __future__ import annotations

from starlette.responses import Response

from api.console.renter import listing
from api.console.visits import entering
from api.console.visits.reading import Refused, Told, refused
from api.console.visits.visit import Visit

CLAIMS = ("not_running", "unreachable", "too_slow", "wrong_hardware", "overcharged", "other")


async def show(visit: Visit) -> Response:
    """`/disputes`"""
    return visit.show("renter/disputes.html", found=await listing.newest(visit, "/v1/disputes"))


async def show_one(visit: Visit, problem: Refused | None = None) -> Response:
    """`/disputes/{dispute_id}`"""
    found = await visit.read(f"/v1/disputes/{visit.params['dispute_id']}")
    return visit.show(
        "renter/dispute.html",
        200 if problem is None else problem.status,
        problem=problem,
        found=found,
        may_answer=visit.may("renter", "provider") and found["state"] in ("opened", "answered"),
    )


async def take_one(visit: Visit) -> Response:
    """Say something in a dispute, with a fact of the log as evidence where there is one."""
    dispute_id, body = visit.params["dispute_id"], Told()
    try:
        if said := visit.form.get("statement", "").strip():
            body["statement"] = said
        if position := visit.form.get("position", "").strip():
            at = entering.whole(position, "a position of the log", 1, 10**12 - 1)
            body["evidence"] = [{"kind": "market_fact", "position": at}]
        await visit.record(f"/v1/disputes/{dispute_id}/answer", body)
    except Refused as problem:
        return await show_one(visit, problem)
    return visit.to(f"/disputes/{dispute_id}")


async def show_new(visit: Visit, problem: Refused | None = None) -> Response:
    """`/disputes/new?lease=&line=`: which line is contested, and why."""
    lease_id = visit.asked("lease") or visit.form.get("lease", "")
    line = visit.asked("line") or visit.form.get("line", "")
    if not lease_id.replace("_", "").isalnum() or not lease_id.isascii():
        raise refused("not_found", "a dispute is opened from a lease, or from a line of a bill")
    charges = await listing.newest(visit, f"/v1/leases/{lease_id}/charges")
    return visit.show(
        "renter/new_dispute.html",
        200 if problem is None else problem.status,
        problem=problem,
        lease_id=lease_id,
        line=line,
        charges=charges,
        claims=CLAIMS,
    )


async def take_new(visit: Visit) -> Response:
    """Open a dispute over one line."""
    form = visit.form
    try:
        position = entering.whole(form.get("line", ""), "the line", 1, 10**12)
        line: Told = {"position": position}
        claimed = form.get("claimed", "").strip()
        if claimed:
            line["claimed"] = entering.credits_of(claimed, "what you claim")
        body = {
            "lease_id": form.get("lease", ""),
            "lines": [line],
            "claim_code": form.get("code", ""),
            "claim": form.get("claim", "").strip() or None,
        }
        told = await visit.record("/v1/disputes", body)
    except Refused as problem:
        return await show_new(visit, problem)
    return visit.to(f"/disputes/{told['dispute_id']}")
