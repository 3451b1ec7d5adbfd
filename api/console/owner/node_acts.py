"""What an owner does with a node: each act is asked about on a page of its own, then done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response

from api.console.owner import causes
from api.console.owner.own import machine
from api.console.visits.reading import refused
from api.console.visits.visit import Visit


@dataclass(frozen=True, slots=True)
class Act:
    """`path`: what the API calls it. `choices`: (value, label, body), of which one is chosen."""

    path: str
    heading: str
    says: str
    button: str
    tone: str = "main"
    choices: tuple[tuple[str, str, dict[str, Any]], ...] = field(default=())


ACTS = {
    "activate": Act(
        "activate",
        "Activate this machine?",
        "It takes new leases from now on, at the prices of its offers.",
        "Activate it",
    ),
    "maintenance": Act(
        "maintenance",
        "Begin maintenance?",
        "It takes no new leases. Those that run go on. Activate it when you are done.",
        "Begin maintenance",
    ),
    "drain": Act(
        "drain",
        "Let this machine run empty?",
        "It takes no new leases until it is activated again. What shall happen to those that run?",
        "Let it run empty",
        "danger",
        (
            ("keep", "They go on until they end by themselves", {"keep_leases": True}),
            (
                "reclaim",
                "They are reclaimed, within the window that each was quoted",
                {"keep_leases": False},
            ),
        ),
    ),
    "retire": Act(
        "retire",
        "Retire this machine for good?",
        "It cannot come back under this name: its devices may join again as a new node. What it"
        " earned stays yours.",
        "Retire it for good",
        "danger",
    ),
    "admit": Act(
        "admit",
        "Let this machine in?",
        "You may do this where your region admits without the operator; elsewhere it is refused.",
        "Let it in",
    ),
}


async def show(visit: Visit) -> Response:
    """`/nodes/{node_id}/ACT`: what would happen."""
    act = _act(visit)
    node = await visit.read(f"/v1/nodes/{visit.params['node_id']}")
    runs = await visit.read("/v1/leases", node_id=node["node_id"], order="desc", limit=50)
    live = [one for one in runs["data"] if one["state"] in ("active", "paused", "degraded")]
    return visit.show(
        "owner/act.html",
        act=act,
        node=node,
        name=machine(node),
        state=causes.state_of(node),
        live=len(live),
    )


async def take(visit: Visit) -> Response:
    """Do it."""
    act, node_id = _act(visit), visit.params["node_id"]
    body: dict[str, Any] = {}
    if act.choices:
        chosen = {value: told for value, _, told in act.choices}
        if visit.form.get("choice") not in chosen:
            raise refused("invalid", "choose what happens to the leases that run")
        body = chosen[visit.form["choice"]]
    await visit.record(f"/v1/nodes/{node_id}/{act.path}", body)
    return visit.to(f"/nodes/{node_id}")


def _act(visit: Visit) -> Act:
    return ACTS[visit.here.rpartition("/")[2]]


async def show_confirm(visit: Visit) -> Response:
    """`/nodes/{node_id}/confirm`: the fingerprint, to be compared with the machine's own."""
    node = await visit.read(f"/v1/nodes/{visit.params['node_id']}")
    return visit.show("owner/confirm.html", node=node, name=machine(node), error="")


async def take_confirm(visit: Visit) -> Response:
    """Confirm it, if the owner says that all characters are the same."""
    node = await visit.read(f"/v1/nodes/{visit.params['node_id']}")
    if visit.form.get("same") != "yes":
        error = "Compare all characters, and say that they are the same."
        return visit.show("owner/confirm.html", 422, node=node, name=machine(node), error=error)
    path = f"/v1/nodes/{node['node_id']}"
    await visit.record(f"{path}/confirm", {"key_id": visit.form.get("key_id", "")})
    return visit.to(f"/nodes/{node['node_id']}")
