"""Maintenance of a node that is told before it begins: announced, called off, ended early."""

from __future__ import annotations

from starlette.responses import Response

from api.console.owner.own import machine
from api.console.renter import listing
from api.console.visits import entering
from api.console.visits.reading import Refused, refused
from api.console.visits.visit import Visit
from domain.fleet.maintenance import KINDS


async def show(visit: Visit) -> Response:
    """`/nodes/{node_id}/windows`"""
    return await _page(visit, None)


async def take(visit: Visit) -> Response:
    """Announce a window, or end one (`do` is `announce` or `cancel`)."""
    path, form = f"/v1/nodes/{visit.params['node_id']}/maintenances", visit.form
    try:
        if form.get("do") == "announce":
            at = visit.zone.at
            body = {
                "kind": form.get("kind", ""),
                "from": entering.moment_in(form.get("from", ""), "the beginning", at),
                "until": entering.moment_in(form.get("until", ""), "the end", at),
                "keep_leases": form.get("keep") == "yes",
            }
            await visit.record(path, body)
        elif form.get("do") == "cancel":
            await visit.record(f"{path}/{form.get('maintenance_id', '')}/cancel")
        else:
            raise refused("invalid", "this form is unknown")
    except Refused as problem:
        if problem.ends_visit:
            raise
        return await _page(visit, problem)
    return visit.to(visit.here)


async def _page(visit: Visit, problem: Refused | None) -> Response:
    path = f"/v1/nodes/{visit.params['node_id']}"
    node = await visit.read(path)
    return visit.show(
        "owner/windows.html",
        200 if problem is None else problem.status,
        node=node,
        name=machine(node),
        found=await listing.newest(visit, f"{path}/maintenances"),
        kinds=KINDS,
        written=visit.form if visit.form.get("do") == "announce" else {"keep": "yes"},
        may_change=visit.may("provider", "operator") and node["phase"] != "retired",
        problem=problem,
    )
