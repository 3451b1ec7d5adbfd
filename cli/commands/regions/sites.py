"""`tallystick datastore | reservation`: what a region holds beside machines.

Thin clients of the API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli.arguments import RegionId
from cli.remote import IN_ORDER, Remote, lists, records
from cli.terminal import columns, facts, group

if TYPE_CHECKING:
    from tallystick_client.forms import DatastoreRequest, ReservationRequest

datastore = group(
    "datastore",
    "Datastores: file servers that jobs of a region mount.",
    "tallystick datastore add REGION --name renders --address 10.0.0.5",
)
reservation = group(
    "reservation",
    "Reservations: host names and ports that work keeps when it moves.",
    "tallystick reservation add REGION --name viewer --host viewer --port 8888",
)

DatastoreId = Annotated[str, typer.Argument(metavar="DATASTORE", help="datastore_...")]
ReservationId = Annotated[str, typer.Argument(metavar="RESERVATION", help="reservation_...")]
Name = Annotated[str, typer.Option(help="Unique in the region, like renders.")]
OfRegion = Annotated[
    str | None, typer.Option("--region", metavar="REGION", help="Only of this region.")
]


@datastore.command(
    "add",
    epilog="Example: tallystick datastore add region_1f0c... --name renders --address 10.0.0.5",
)
@records
def add_datastore(
    remote: Remote,
    region_id: RegionId,
    name: Name,
    address: Annotated[str, typer.Option(metavar="HOST", help="Of the server, without a port.")],
    kind: Annotated[Literal["nfs", "smb"], typer.Option(help="What the server speaks.")] = "nfs",
    root: Annotated[str, typer.Option(metavar="PATH", help="What jobs see as /.")] = "/",
    user: Annotated[str | None, typer.Option(help="Of an smb server.")] = None,
    password_file: Annotated[
        typer.FileText | None, typer.Option(help="First line: the password of an smb server.")
    ] = None,
) -> None:
    """Add a datastore to a region of yours; it needs the plan team."""
    body: DatastoreRequest = {
        "name": name,
        "kind": kind,
        "address": address,
        "root_path": root,
        "user": user,
        "password": None if password_file is None else password_file.readline().rstrip("\n"),
    }
    told = remote.ask(lambda c: c.add_datastore(region_id, body, idempotency_key=remote.key))
    shown = {name: value for name, value in told.items() if name != "advice"}
    remote.tell(told, [*facts(shown), *told["advice"]])


@datastore.command("list", epilog="Example: tallystick datastore list --region region_1f0c...")
@lists(IN_ORDER)
def list_datastores(remote: Remote, region: OfRegion = None) -> None:
    """List your datastores."""
    found = remote.list(lambda c, page: c.list_datastores(region_id=region, **page))
    names = ("datastore_id", "name", "kind", "address", "root_path", "region_id")
    remote.tell(found, columns(found["data"], names))


@datastore.command("remove", epilog="Example: tallystick datastore remove datastore_1f0c...")
@records
def remove_datastore(remote: Remote, datastore_id: DatastoreId) -> None:
    """Remove a datastore, and forget its user and password."""
    told = remote.ask(lambda c: c.remove_datastore(datastore_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@reservation.command(
    "add",
    epilog="Example: tallystick reservation add region_1f0c... --name viewer --host viewer "
    "--port 8888",
)
@records
def add_reservation(
    remote: Remote,
    region_id: RegionId,
    name: Name,
    host: Annotated[str, typer.Option(metavar="HOST", help="Published by mDNS, like viewer.")],
    port: Annotated[int, typer.Option(min=1, max=65_535, help="The work listens on it.")],
) -> None:
    """Reserve a host name and a port in a region of yours; it needs the plan team."""
    body: ReservationRequest = {"name": name, "kind": "port", "host_name": host, "port": port}
    told = remote.ask(lambda c: c.add_reservation(region_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@reservation.command("list", epilog="Example: tallystick reservation list")
@lists(IN_ORDER)
def list_reservations(remote: Remote, region: OfRegion = None) -> None:
    """List your reservations, and the lease that holds each."""
    found = remote.list(lambda c, page: c.list_reservations(region_id=region, **page))
    names = ("reservation_id", "name", "host_name", "port", "lease_id", "region_id")
    remote.tell(found, columns(found["data"], names))


@reservation.command("remove", epilog="Example: tallystick reservation remove reservation_1f0c...")
@records
def remove_reservation(remote: Remote, reservation_id: ReservationId) -> None:
    """Remove a reservation that no lease holds."""
    told = remote.ask(
        lambda c: c.remove_reservation(reservation_id, {}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))
