"""`tallystick volume | dataset`: what outlives jobs, where data lie. Thin clients of the API."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.arguments import JobId, NodeId, RegionId
from cli.remote import IN_ORDER, Remote, lists, reads, records
from cli.terminal import columns, facts, group

volume = group("volume", "Volumes: disk that outlives jobs.", "tallystick volume list")
dataset = group("dataset", "Datasets: where the data of jobs lie.", "tallystick dataset list")

VolumeId = Annotated[str, typer.Argument(metavar="VOLUME", help="volume_...")]
_SHOWN = ("volume_id", "name", "size_gib", "region_id", "state", "leases", "charge")


# --- volumes ---------------------------------------------------------------------------------


@volume.command("create", epilog="Example: tallystick volume create region_1f0c... 100 checkpoints")
@records
def create_volume(
    remote: Remote,
    region_id: RegionId,
    size_gib: Annotated[int, typer.Argument(metavar="GIB", min=1, help="Its size.")],
    name: Annotated[str, typer.Argument(help="What you call it.")],
    project: Annotated[
        str | None, typer.Option("--project", help="Only jobs of this project mount it.")
    ] = None,
) -> None:
    """Create a volume. It costs from now on, and 72 hours of it are held as a reserve."""
    body: Any = {"region_id": region_id, "size_gib": size_gib, "name": name}
    if project is not None:
        body["project_id"] = project
    told = remote.ask(lambda c: c.create_volume(body, idempotency_key=remote.key))
    remote.tell(told, facts(_plain(told)))


@volume.command("list", epilog="Example: tallystick volume list --json")
@lists(IN_ORDER)
def list_volumes(remote: Remote) -> None:
    """List volumes, deleted ones too."""
    found = remote.list(lambda c, page: c.list_volumes(**page))
    remote.tell(found, columns([_plain(one) for one in found["data"]], _SHOWN))


@volume.command("show", epilog="Example: tallystick volume show volume_1f0c...")
@reads
def show_volume(remote: Remote, volume_id: VolumeId) -> None:
    """Show a volume, and the leases that have or had it."""
    told = remote.ask(lambda c: c.read_volume(volume_id))
    names = ("lease_id", "job_id", "path", "attached_at", "detached_at")
    lines = facts({name: value for name, value in _plain(told).items() if name != "attachments"})
    remote.tell(told, [*lines, *columns(told["attachments"], names)])


@volume.command("attach", epilog="Example: tallystick volume attach volume_1f0c... job_1f0c...")
@records
def attach_volume(
    remote: Remote,
    volume_id: VolumeId,
    job_id: JobId,
    path: Annotated[
        str, typer.Option("--path", help="Where programs find it, below /vol/.")
    ] = "/vol/data",
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Programs cannot change it.")
    ] = False,
) -> None:
    """Attach a volume to a job: its next leases mount it."""
    body: Any = {"job_id": job_id, "path": path, "read_only": read_only}
    told = remote.ask(lambda c: c.attach_volume(volume_id, body, idempotency_key=remote.key))
    remote.tell(told, columns(told["volumes"], ("volume_id", "path", "read_only")))


@volume.command("detach", epilog="Example: tallystick volume detach volume_1f0c... job_1f0c...")
@records
def detach_volume(remote: Remote, volume_id: VolumeId, job_id: JobId) -> None:
    """Detach a volume from a job: its next leases do not mount it."""
    body: Any = {"job_id": job_id}
    told = remote.ask(lambda c: c.detach_volume(volume_id, body, idempotency_key=remote.key))
    remote.tell(told, columns(told["volumes"], ("volume_id", "path", "read_only")))


@volume.command("delete", epilog="Example: tallystick volume delete volume_1f0c...")
@records
def delete_volume(remote: Remote, volume_id: VolumeId) -> None:
    """Delete a volume that no lease has attached. Its data are erased."""
    told = remote.ask(lambda c: c.delete_volume(volume_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(_plain(told)))


@volume.command("erased", epilog="Example: tallystick volume erased node_1f0c... volume_1f0c...")
@records
def confirm_erased(remote: Remote, node_id: NodeId, volume_id: VolumeId) -> None:
    """Confirm that a node of yours has nothing of a deleted volume. Its executor does it itself."""
    told = remote.ask(
        lambda c: c.confirm_volume_erased(node_id, volume_id, {}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))


def _plain(told: Any) -> dict[str, Any]:
    """A volume for people: amounts as units."""
    plain = {name: value for name, value in told.items() if name not in ("rate", "position")}
    return {**plain, "charge": told["charge"]["units"], "reserve": told["reserve"]["units"]}


# --- datasets --------------------------------------------------------------------------------


@dataset.command("place", epilog="Example: tallystick dataset place s3://corpus/v3 region_1f0c...")
@records
def place_dataset(
    remote: Remote,
    name: Annotated[str, typer.Argument(help="As jobs refer to it.")],
    region_ids: Annotated[list[str], typer.Argument(metavar="REGION...", help="region_...")],
    pinned: Annotated[
        bool, typer.Option("--pinned", help="Jobs that refer to it run only there.")
    ] = False,
) -> None:
    """Register where a dataset lies, or move it."""
    body: Any = {"name": name, "region_ids": region_ids, "pinned": pinned}
    told = remote.ask(lambda c: c.place_dataset(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@dataset.command("list", epilog="Example: tallystick dataset list --json")
@lists(IN_ORDER)
def list_datasets(remote: Remote) -> None:
    """List datasets and their regions."""
    found = remote.list(lambda c, page: c.list_datasets(**page))
    names = ("dataset_id", "name", "region_ids", "pinned")
    remote.tell(found, columns(found["data"], names))


@dataset.command("remove", epilog="Example: tallystick dataset remove dataset_1f0c...")
@records
def remove_dataset(
    remote: Remote,
    dataset_id: Annotated[str, typer.Argument(metavar="DATASET", help="dataset_...")],
) -> None:
    """Remove the place of a dataset. Jobs may still refer to its name."""
    told = remote.ask(lambda c: c.remove_dataset(dataset_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))
