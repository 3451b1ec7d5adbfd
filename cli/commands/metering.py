"""`tallystick meter | storage`: what is metered beside GPUs. Thin clients of the API."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cli.arguments import LeaseId, RegionId
from cli.remote import AS_IT_IS, Remote, lists, reads, records
from cli.terminal import columns, facts, group

meter = group(
    "meter", "Meters: CPU, memory, storage and network of leases.", "tallystick meter used"
)
storage = group("storage", "Storage nodes of regions.", "tallystick storage show region_1f0c...")

Meter = Literal["cpu", "memory", "storage", "network"]
Group = Literal["kind", "node_id", "client_id", "project_id", "lease_id", "route_id"]


# --- meters ----------------------------------------------------------------------------------


_AMOUNTS = ("cpu_us", "memory_byte_s", "storage_byte_s", "received_bytes", "sent_bytes")


@meter.command("list", epilog="Example: tallystick meter list lease_1f0c...")
@lists(AS_IT_IS)
def list_rows(remote: Remote, lease_id: LeaseId) -> None:
    """List the signed rows of a lease: what its work used beside GPU time, report by report."""
    found = remote.list(lambda c, page: c.list_resource_rows(lease_id, **page))
    remote.tell(found, columns(found["data"], ("usage_position", "from", "to", *_AMOUNTS)))


@meter.command("show", epilog="Example: tallystick meter show lease_1f0c...")
@reads
def show_lease(remote: Remote, lease_id: LeaseId) -> None:
    """Show what a lease used beside GPU time, and what each meter of it counts and costs."""
    told = remote.ask(lambda c: c.list_lease_resources(lease_id))
    used = told.get("used")
    lines = [] if used is None else columns([used], ("rows", *_AMOUNTS))
    rows = [{**one, "charge": one["charge"]["units"]} for one in told["resources"]]
    names = ("meter", "quantity", "unit", "charge", "rows", "accrued_at")
    remote.tell(told, [*lines, *columns(rows, names)])


@meter.command("charges", epilog="Example: tallystick meter charges lease_1f0c... network")
@lists(AS_IT_IS)
def list_charges(
    remote: Remote,
    lease_id: LeaseId,
    which: Annotated[Meter, typer.Argument(metavar="METER", help="Meter of the lease.")],
) -> None:
    """List the charges of one meter of a lease, each with the reports it was made of."""
    found = remote.list(lambda c, page: c.list_resource_charges(lease_id, which, **page))
    rows = [
        {
            **one,
            "charge": one["charge"]["units"],
            "refused": ", ".join(f"{lost['amount']} {lost['rule']}" for lost in one["refused"]),
        }
        for one in found["data"]
    ]
    names = ("position", "lane", "after_position", "through_position", "quantity", "charge")
    remote.tell(found, columns(rows, (*names, "refused")))


@meter.command("transfers", epilog="Example: tallystick meter transfers lease_1f0c...")
@reads
def show_transfers(remote: Remote, lease_id: LeaseId) -> None:
    """Show the bytes that a lease moved over the network, and the datasets of its job."""
    told = remote.ask(lambda c: c.read_lease_transfers(lease_id))
    remote.tell(told, facts({**told, "datasets": ", ".join(told["datasets"])}))


@meter.command("used", epilog="Example: tallystick meter used --by node_id --as-provider")
@lists(AS_IT_IS)
def list_used(
    remote: Remote,
    by: Annotated[Group, typer.Option(help="What to sum by.")] = "kind",
    as_provider: Annotated[
        bool, typer.Option("--as-provider", help="Of leases on your nodes, not your own.")
    ] = False,
) -> None:
    """List signed use of CPU, memory, storage and network, by kind of job, node or lease."""
    found = remote.list(lambda c, page: c.list_resource_use(by=by, as_provider=as_provider, **page))
    remote.tell(found, columns(found["data"], ("group", "leases", *_AMOUNTS)))


# --- storage nodes ---------------------------------------------------------------------------


@storage.command("provision", epilog="Example: tallystick storage provision region_1f0c... pd-ssd")
@records
def provision_storage(
    remote: Remote,
    region_id: RegionId,
    storage_class: Annotated[str, typer.Argument(metavar="CLASS", help="As the cloud names it.")],
) -> None:
    """Request a storage node for a region.

    The node runs day and night, so a long commitment with the cloud provider costs less.
    """
    told = remote.ask(
        lambda c: c.provision_storage_node(
            region_id, {"storage_class": storage_class}, idempotency_key=remote.key
        )
    )
    remote.tell(told, facts(told))


@storage.command("ready", epilog="Example: tallystick storage ready region_1f0c...")
@records
def ready_storage(remote: Remote, region_id: RegionId) -> None:
    """Report that the storage node serves: it is active. The machine runs this itself."""
    told = remote.ask(lambda c: c.confirm_storage_node(region_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@storage.command("replace", epilog="Example: tallystick storage replace region_1f0c... pd-ssd")
@records
def replace_storage(
    remote: Remote,
    region_id: RegionId,
    storage_class: Annotated[str, typer.Argument(metavar="CLASS", help="As the cloud names it.")],
) -> None:
    """Replace a region's storage node by another one. The nodes of the region stay."""
    told = remote.ask(
        lambda c: c.replace_storage_node(
            region_id, {"storage_class": storage_class}, idempotency_key=remote.key
        )
    )
    remote.tell(told, facts(told))


@storage.command("remove", epilog="Example: tallystick storage remove region_1f0c...")
@records
def remove_storage(remote: Remote, region_id: RegionId) -> None:
    """Remove a region's storage node once no node needs it. It is charged up to now."""
    told = remote.ask(lambda c: c.remove_storage_node(region_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@storage.command("show", epilog="Example: tallystick storage show region_1f0c...")
@reads
def show_storage(remote: Remote, region_id: RegionId) -> None:
    """Show the storage nodes of a region and their cost."""
    told = remote.ask(lambda c: c.read_storage_node(region_id))
    rows = [{**one, "charge": one["charge"]["units"]} for one in told["storage_nodes"]]
    names = ("sequence", "storage_class", "provisioned_at", "removed_at", "charge")
    remote.tell(told, columns(rows, names))
