"""`tallystick cloud`: how a cloud account is set up, and how its machines are held.

Thin clients of the API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.arguments import NodeId, ProviderId
from cli.remote import Remote, reads, records
from cli.terminal import columns, facts, group

if TYPE_CHECKING:
    from tallystick_client.forms import CloudAccountRequest

cloud = group(
    "cloud",
    "Clouds: how a provider's account is set up, and how nodes are held.",
    "tallystick cloud checklist PROVIDER",
)

CapacityClass = Literal["on_demand", "preemptible", "committed"]


@cloud.command("regions", epilog="Example: tallystick cloud regions")
@reads
def regions(remote: Remote) -> None:
    """List the regions of clouds that can be opened here."""
    told = remote.ask(lambda c: c.list_cloud_regions())
    remote.tell(told, columns(told["data"], ("cloud", "name", "place")))


@cloud.command("checklist", epilog="Example: tallystick cloud checklist prov_1f0c...")
@reads
def checklist(remote: Remote, provider_id: ProviderId) -> None:
    """Show what the account of a cloud provider has, and what it still needs."""
    told = remote.ask(lambda c: c.read_cloud_account(provider_id))
    remote.tell(told, _checklist(told))


@cloud.command(
    "report",
    epilog="Example: tallystick cloud report prov_1f0c... --project render-farm-7 "
    "--made-on 2022-03-01 --done paid_billing --done project",
)
@records
def report(
    remote: Remote,
    provider_id: ProviderId,
    project: Annotated[str, typer.Option(metavar="PROJECT", help="Id of the cloud's project.")],
    made_on: Annotated[str, typer.Option(metavar="DAY", help="When the project was made.")],
    done: Annotated[
        list[str] | None, typer.Option(metavar="STEP", help="Once for each step that is done.")
    ] = None,
    service_account: Annotated[
        str | None, typer.Option(metavar="EMAIL", help="Of the service account; never its key.")
    ] = None,
) -> None:
    """Report the whole checklist of a cloud provider's account; the last report counts."""
    body: Any = {"project_id": project, "project_made_on": made_on, "done": done or []}
    if service_account is not None:
        body["service_account"] = service_account
    asked: CloudAccountRequest = body
    told = remote.ask(
        lambda c: c.report_cloud_account(provider_id, asked, idempotency_key=remote.key)
    )
    remote.tell(told, _checklist(told))


def _checklist(told: Any) -> list[str]:
    rows = [
        {**step, "state": "done" if step["done"] else "missing" if step["required"] else "optional"}
        for step in told["steps"]
    ]
    shown = {"ready": "yes" if told["ready"] else "no"}
    names = ("project_id", "project_made_on", "service_account")
    shown |= {name: told[name] for name in names if told.get(name)}
    return [*facts(shown), *columns(rows, ("state", "step", "what"))]


@cloud.command("capacity", epilog="Example: tallystick cloud capacity node_1f0c... preemptible")
@records
def capacity(
    remote: Remote,
    node_id: NodeId,
    capacity_class: Annotated[
        CapacityClass, typer.Argument(metavar="CLASS", help="How its machine is held.")
    ],
) -> None:
    """Set the capacity class of a node: on_demand, preemptible or committed."""
    told = remote.ask(
        lambda c: c.set_capacity_class(
            node_id, {"capacity_class": capacity_class}, idempotency_key=remote.key
        )
    )
    remote.tell(told, facts(told))
