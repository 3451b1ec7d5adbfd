"""`tallystick maintenance`, `node drain | role` and `region policy | ingress | settings`: what is
told about supply before anybody rents it. Thin clients of the API.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from api.cli_arguments import NodeId, RegionId
from api.cli_remote import Limit, Remote, reads, records
from api.cli_supply import node as node
from api.cli_supply import region as region
from api.cli_terminal import columns, facts, group

app = group(
    "Maintenance: when a node will be worked on, told ahead.", "tallystick maintenance list NODE"
)

Kind = Literal["planned", "emergency", "security", "network", "capacity"]
Role = Literal["worker", "ingress", "control"]
_SHOWN = ("maintenance_id", "kind", "status", "from", "until", "keep_leases")


@app.command(
    "schedule",
    epilog="Example: tallystick maintenance schedule node_1f0c... --from 2026-12-01T02:00:00Z"
    " --until 2026-12-01T04:00:00Z --keep-leases",
)
@records
def schedule(
    remote: Remote,
    node_id: NodeId,
    from_: Annotated[str, typer.Option("--from", metavar="TIME", help="RFC 3339, with Z.")],
    until: Annotated[str, typer.Option(metavar="TIME", help="At most 7 days later.")],
    kind: Annotated[Kind, typer.Option(help="Why.")] = "planned",
    keep_leases: Annotated[
        bool, typer.Option("--keep-leases", help="Running leases go silent and come back.")
    ] = False,
) -> None:
    """Tell ahead when a node will be worked on: no lease is reserved over that time."""
    body: Any = {"kind": kind, "from": from_, "until": until, "keep_leases": keep_leases}
    told = remote.ask(lambda c: c.schedule_maintenance(node_id, body, idempotency_key=remote.key))
    remote.tell(told, facts({name: told.get(name) for name in _SHOWN}))


@app.command("list", epilog="Example: tallystick maintenance list node_1f0c...")
@reads
def list_maintenances(remote: Remote, node_id: NodeId, limit: Limit = 50) -> None:
    """What was announced for a node."""
    found = remote.list(
        lambda c, size, cursor: c.list_maintenances(node_id, limit=size, cursor=cursor), limit
    )
    remote.tell(found, columns(found["data"], _SHOWN))


@app.command("cancel", epilog="Example: tallystick maintenance cancel node_1f0c... maint_2a...")
@records
def cancel(
    remote: Remote,
    node_id: NodeId,
    maintenance_id: Annotated[str, typer.Argument(metavar="MAINTENANCE", help="maint_...")],
) -> None:
    """Call a maintenance off, or end one that runs."""
    told = remote.ask(
        lambda c: c.cancel_maintenance(node_id, maintenance_id, {}, idempotency_key=remote.key)
    )
    remote.tell(told, facts({name: told.get(name) for name in _SHOWN}))


@node.command("drain", epilog="Example: tallystick node drain node_1f0c... --keep-leases")
@records
def drain(
    remote: Remote,
    node_id: NodeId,
    keep_leases: Annotated[
        bool, typer.Option("--keep-leases", help="Reclaim none of those that run.")
    ] = False,
) -> None:
    """Let a node run empty: no new leases, and those with a reclaim window are reclaimed."""
    body: Any = {"keep_leases": keep_leases}
    told = remote.ask(lambda c: c.drain_node(node_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@node.command("role", epilog="Example: tallystick node role node_1f0c... worker --ingress node_9a")
@records
def role(
    remote: Remote,
    node_id: NodeId,
    role: Annotated[Role, typer.Argument(help="What the node is for.")],
    ingress: Annotated[
        str | None, typer.Option(metavar="NODE", help="The node a worker is reached through.")
    ] = None,
) -> None:
    """Say what a node is for: work, letting traffic in, or control."""
    body: Any = {"role": role, "ingress_node_id": ingress}
    told = remote.ask(lambda c: c.set_node_role(node_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@region.command("ingress", epilog="Example: tallystick region ingress region_1f0c...")
@reads
def ingress_load(remote: Remote, region_id: RegionId) -> None:
    """How much work goes through each ingress node of a region."""
    told = remote.ask(lambda c: c.read_ingress_load(region_id))
    names = ("node_id", "workers", "leases", "served_gpu_us")
    remote.tell(told, columns(told["data"], names))


Words = Annotated[list[str] | None, typer.Option(metavar="CLASS", help="Once for each class.")]


@region.command(
    "policy", epilog="Example: tallystick region policy region_1f0c... --refuse ip_lease"
)
@records
def policy(
    remote: Remote,
    region_id: RegionId,
    private: Annotated[
        bool, typer.Option("--private", help="For the provider's own jobs only.")
    ] = False,
    refuse: Words = None,
    down_rank: Words = None,
    none_refused: Annotated[
        bool, typer.Option("--refuse-none", help="Every class of workload may come.")
    ] = False,
    security_tier: Annotated[
        int | None, typer.Option(min=0, max=9, help="What the region promises; 0 is nothing.")
    ] = None,
) -> None:
    """Say whose jobs may run in a region, what it refuses or ranks down, and how safe it is."""
    asked: Any = {
        "allow_public_jobs": not private,
        "refused_workloads": [] if none_refused else refuse or None,
        "down_ranked_workloads": down_rank or None,
        "security_tier": security_tier,
    }
    body: Any = {name: value for name, value in asked.items() if value is not None}
    told = remote.ask(lambda c: c.set_region_policy(region_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@region.command("settings", epilog="Example: tallystick region settings --json")
@reads
def settings(remote: Remote) -> None:
    """What to expect of edge and of datacenter nodes, in numbers where there are any."""
    told = remote.ask(lambda c: c.list_settings())
    names = ("setting", "leases", "availability_ppm", "offline_ppm")
    remote.tell(told, columns(told["data"], names))
