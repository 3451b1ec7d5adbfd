"""Where the number of a node's reputation comes from: its arithmetic, its tier, its evidence."""

from __future__ import annotations

from starlette.responses import Response

from api.console.drawing.words import decimal
from api.console.visits.reading import Told
from api.console.visits.visit import Visit

EVIDENCE_MAX = 100


async def show(visit: Visit) -> Response:
    """`/nodes/{node_id}/reputation`; `?cursor=` goes on in the evidence."""
    node_id = visit.params["node_id"]
    path = f"/v1/nodes/{node_id}/reputation"
    told = await visit.read(path)
    evidence = await visit.read(
        f"{path}/evidence", limit=EVIDENCE_MAX, cursor=visit.asked("cursor") or None
    )
    standing = told.get("standing")
    return visit.show(
        "public/reputation.html",
        node_id=node_id,
        told=told,
        evidence=evidence,
        standing=standing,
        observed=_observed,
        next_tier=None if standing is None else _next(standing),
    )


def _next(standing: Told) -> Told | None:
    """The lowest tier that the node has not reached."""
    above = [one for one in standing["tiers"] if one["tier"] > standing["tier"]]
    return min(above, key=lambda one: int(one["tier"]), default=None)


def _observed(units: int) -> str:
    """Micro-observations as observations: after fading they have fractions."""
    return decimal(units, 6, 2)
