"""The price of a node: the owner's part is told before anything is published; offers are closed.

shown part == what `GET /v1/nodes/{node_id}/earnings/per-hour` says of this price, never ours
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from api.console.drawing.words import PLACES, decimal
from api.console.owner.own import ROWS_MAX, machine
from api.console.visits import entering
from api.console.visits.reading import Refused, Told, refused
from api.console.visits.visit import Visit

SETTLEMENTS = ("cash", "burn")
RIVALS_MAX = 50


async def show(visit: Visit) -> Response:
    """`/nodes/{node_id}/offer?price=2.50`: a form, and what of the price would be the owner's."""
    return await _page(visit, visit.asked("price"), visit.asked("settlement", "cash"))


async def take(visit: Visit) -> Response:
    """Publish it at the price whose part was shown."""
    node = await visit.read(f"/v1/nodes/{visit.params['node_id']}")
    text, settlement = visit.form.get("price", ""), visit.form.get("settlement", "cash")
    try:
        body: dict[str, Any] = {
            "provider_id": node["provider_id"],
            "node_id": node["node_id"],
            "price_per_gpu_hour": entering.credits_of(text, "the price"),
            "settlement": settlement,
            "fractions": visit.form.get("fractions") == "yes",
        }
        if visit.form.get("until"):
            body["available_until"] = _until(visit.form["until"])
        await visit.record("/v1/offers", body)
    except Refused as problem:
        if problem.ends_visit:
            raise
        return await _page(visit, text, settlement, problem)
    return visit.to(f"/nodes/{node['node_id']}")


def _until(text: str) -> str:
    """The end of a day of UTC. Raises Refused."""
    try:
        found = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise refused("invalid", "the last day is written like 2026-12-31") from None
    return found.replace(hour=23, minute=59, second=59).isoformat().replace("+00:00", "Z")


async def _page(
    visit: Visit, text: str, settlement: str, problem: Refused | None = None
) -> Response:
    node = await visit.read(f"/v1/nodes/{visit.params['node_id']}")
    path = f"/v1/nodes/{node['node_id']}"
    offers = await visit.read("/v1/offers", node_id=node["node_id"], limit=ROWS_MAX)
    parts: Told | None = None
    if text and problem is None:
        try:
            units = int(entering.credits_of(text, "the price")["units"])
            parts = await visit.read(f"{path}/earnings/per-hour", price=units)
            text = decimal(units, PLACES["CREDIT"]).replace(",", "").rstrip("0").rstrip(".")
        except Refused as found:
            if found.ends_visit:
                raise
            problem = found
    models = [one["model"] for one in (node.get("specs") or {}).get("devices", [])]
    asked: dict[str, Any] = {"model": models[0]} if models else {}
    rivals = await visit.read("/v1/offers", limit=RIVALS_MAX, **asked) if models else {"data": []}
    return visit.show(
        "owner/offer.html",
        200 if problem is None else problem.status,
        node=node,
        name=machine(node),
        offers=offers["data"],
        price_text=text,
        settlement=settlement if settlement in SETTLEMENTS else "cash",
        parts=parts,
        problem=problem,
        others=[one for one in rivals["data"] if one["node_id"] != node["node_id"]][:5],
    )


async def show_close(visit: Visit) -> Response:
    """`/nodes/{node_id}/offers/{offer_id}/close`: what would happen."""
    return visit.show("owner/close_offer.html", offer=await _offer(visit))


async def take_close(visit: Visit) -> Response:
    """Close it: no new lease begins from it."""
    offer = await _offer(visit)
    await visit.record(f"/v1/offers/{offer['offer_id']}/withdraw")
    return visit.to(f"/nodes/{offer['node_id']}")


async def _offer(visit: Visit) -> Told:
    """The offer of this address, if it is one of this node. Raises Refused."""
    node = await visit.read(f"/v1/nodes/{visit.params['node_id']}")
    offer = await visit.read(f"/v1/offers/{visit.params['offer_id']}")
    if offer["node_id"] != node["node_id"]:
        raise refused("not_found", "this offer is of another node")
    return offer
