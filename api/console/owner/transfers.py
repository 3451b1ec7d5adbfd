"""A part of a node goes to another account: offered by its owner, taken by the other one."""

from __future__ import annotations

from starlette.responses import Response

from api.console.owner.own import machine
from api.console.visits.reading import Refused
from api.console.visits.visit import Visit


async def show(visit: Visit) -> Response:
    """`/nodes/{node_id}/transfer`"""
    return await _page(visit, None)


async def take(visit: Visit) -> Response:
    """Offer one's part. Nothing changes until the other account accepts."""
    path = f"/v1/nodes/{visit.params['node_id']}/transfer"
    body = {"account_id": visit.form.get("account_id", "").strip()}
    try:
        made = await visit.record(path, body)
    except Refused as problem:
        if problem.ends_visit:
            raise
        return await _page(visit, problem)
    return visit.show("owner/transfer_offered.html", made=made)


async def _page(visit: Visit, problem: Refused | None) -> Response:
    node = await visit.read(f"/v1/nodes/{visit.params['node_id']}")
    shares = await visit.read(f"/v1/nodes/{node['node_id']}/revenue-shares")
    return visit.show(
        "owner/transfer.html",
        200 if problem is None else problem.status,
        node=node,
        name=machine(node),
        shares=shares,
        problem=problem,
        account_text=visit.form.get("account_id", ""),
    )


async def show_accept(visit: Visit) -> Response:
    """`/nodes/{node_id}/accept`: for the account that a part was offered to."""
    return visit.show("owner/transfer_accept.html", node_id=visit.params["node_id"])


async def take_accept(visit: Visit) -> Response:
    """Take it. No lease may hold the node."""
    await visit.record(f"/v1/nodes/{visit.params['node_id']}/transfer/accept")
    return visit.to("/nodes")
