"""Epochs, and why a node got what it got in one: from GPU-seconds to tokens. Needs no session."""

from __future__ import annotations

from starlette.responses import Response

from api.console.visits.reading import refused
from api.console.visits.visit import Visit

ROWS_MAX = 100
SHARES = (
    ("compute", "Compute: what it served"),
    ("availability_tier_2", "Availability: the part for trust tier 2 and above"),
    ("availability", "Availability: the part for proven devices"),
)


async def show_all(visit: Visit) -> Response:
    """`/epochs`"""
    found = await visit.read("/v1/epochs", limit=ROWS_MAX)
    return visit.show("public/epochs.html", found=found, epochs=list(reversed(found["data"])))


async def show(visit: Visit) -> Response:
    """`/epochs/{epoch}`; `?node=` goes on to a node of it."""
    number = _number(visit)
    if node_id := visit.asked("node"):
        if not node_id.replace("_", "").isalnum() or not node_id.isascii():
            raise refused("invalid", "a node is an id such as node_1f0c")
        return visit.to(f"/epochs/{number}/nodes/{node_id}")
    epoch = await visit.read(f"/v1/epochs/{number}")
    rewards = signals = None
    if epoch.get("sealed_position") is not None:
        rewards = await visit.read(f"/v1/epochs/{number}/rewards", limit=ROWS_MAX)
        signals = await visit.read(f"/v1/epochs/{number}/signals", limit=ROWS_MAX)
    return visit.show("public/epoch.html", epoch=epoch, rewards=rewards, signals=signals)


async def explain(visit: Visit) -> Response:
    """`/epochs/{epoch}/nodes/{node_id}`"""
    number, node_id = _number(visit), visit.params["node_id"]
    told = await visit.read(f"/v1/epochs/{number}/explain/{node_id}")
    shares = [(heading, told[name]) for name, heading in SHARES]
    return visit.show(
        "public/explained.html", number=number, node_id=node_id, told=told, shares=shares
    )


def _number(visit: Visit) -> str:
    number = visit.params["epoch"]
    if not number.isdecimal() or not number.isascii():
        raise refused("not_found", "an epoch is a whole number")
    return number
