"""`tallystick maintenance`: when a node will be worked on. Thin clients of the API."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from api.cli_arguments import NodeId
from api.cli_remote import Limit, Remote, reads, records
from api.cli_terminal import columns, facts, group

app = group(
    "Maintenance: when a node will be worked on, told ahead.", "tallystick maintenance list NODE"
)

Kind = Literal["planned", "emergency", "security", "network", "capacity"]
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
