"""`tallystick region | cloud | datastore | reservation`: where nodes are, and what is there.

Thin clients of the API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.arguments import NodeId, ProviderId, RegionId
from cli.remote import Limit, Remote, credits_of, reads, records
from cli.terminal import amount, columns, facts, group

if TYPE_CHECKING:
    from tallystick_client.forms import (
        CloudAccountRequest,
        CloudQuotasAnswer,
        DatastoreRequest,
        RegionRequest,
        RegionTermsRequest,
        ReservationRequest,
    )

region = group(
    "region",
    "Regions: where a provider's nodes are.",
    "tallystick region open PROVIDER --name lab-1",
)

StorageMode = Literal["local", "central"]
Setting = Literal["edge", "datacenter"]
Admission = Literal["operator", "permissionless", "approved"]
_AMOUNTS = ("gathered", "infra", "arrears", "participation", "usage", "carry")
Cost = Annotated[str, typer.Option(metavar="CREDITS", help="Per UTC day.")]


@region.command("open", epilog="Example: tallystick region open prov_1f0c... --name lab-1")
@records
def open_region(
    remote: Remote,
    provider_id: ProviderId,
    name: Annotated[str, typer.Option(help="Short name, like lab-1.")],
    storage_mode: Annotated[
        StorageMode, typer.Option("--storage", help="Never changes.")
    ] = "local",
    setting: Annotated[Setting, typer.Option(help="Kind of place.")] = "datacenter",
    admission: Annotated[Admission, typer.Option(help="The party that admits nodes.")] = "operator",
    private: Annotated[
        bool, typer.Option("--private", help="For the provider's own jobs only.")
    ] = False,
    cloud_region: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of a cloud provider, like us-central1.")
    ] = None,
    site: Annotated[str | None, typer.Option(help="Place of machines of your own.")] = None,
) -> None:
    """Open a region of one of your providers."""
    body: RegionRequest = {
        "provider_id": provider_id,
        "name": name,
        "storage_mode": storage_mode,
        "setting": setting,
        "admission": admission,
        "allow_public_jobs": not private,
    }
    if cloud_region is not None:
        body["cloud_region"] = cloud_region
    if site is not None:
        body["site"] = site
    told = remote.ask(lambda c: c.open_region(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@region.command("list", epilog="Example: tallystick region list")
@reads
def list_regions(remote: Remote, limit: Limit = 50) -> None:
    """List your regions; all of them for operators and auditors."""
    found = remote.list(lambda c, size, cursor: c.list_regions(limit=size, cursor=cursor), limit)
    names = ("region_id", "name", "provider_id", "setting", "admission", "allow_public_jobs")
    remote.tell(found, columns(found["data"], names))


@region.command("show", epilog="Example: tallystick region show region_1f0c...")
@reads
def show_region(remote: Remote, region_id: RegionId) -> None:
    """Show one region."""
    told = remote.ask(lambda c: c.read_region(region_id))
    remote.tell(told, facts(told))


@region.command("ingress", epilog="Example: tallystick region ingress region_1f0c...")
@reads
def ingress_load(remote: Remote, region_id: RegionId) -> None:
    """Show how much work goes through each ingress node of a region."""
    told = remote.ask(lambda c: c.read_ingress_load(region_id))
    names = ("node_id", "workers", "leases", "served_gpu_us")
    remote.tell(told, columns(told["data"], names))


@region.command("neighbours", epilog="Example: tallystick region neighbours region_1f0c...")
@reads
def region_neighbours(remote: Remote, region_id: RegionId) -> None:
    """Show whether all nodes of a region reach each other on private addresses."""
    told: Any = remote.ask(lambda c: c.read_region_neighbours(region_id))
    names = ("node_id", "verdict", "reached", "missed", "untried", "told_at")
    lines = facts({"region_id": region_id, "verdict": told.get("verdict", "-")})
    rows = [{"told_at": "-", **one} for one in told["data"]]
    remote.tell(told, lines + columns(rows, names))


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
        bool, typer.Option("--refuse-none", help="Refuse no class of workload.")
    ] = False,
    security_tier: Annotated[
        int | None,
        typer.Option(min=0, max=9, help="Security tier that the region promises; 0: none."),
    ] = None,
) -> None:
    """Set which jobs may run in a region, what it refuses or ranks down, and how safe it is."""
    asked: Any = {
        "allow_public_jobs": not private,
        "refused_workloads": [] if none_refused else refuse or None,
        "down_ranked_workloads": down_rank or None,
        "security_tier": security_tier,
    }
    body: Any = {name: value for name, value in asked.items() if value is not None}
    told = remote.ask(lambda c: c.set_region_policy(region_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@region.command(
    "hardware-rules",
    epilog="Example: tallystick region hardware-rules region_1f0c... --rule tpm_2_0 --rule ram",
)
@records
def hardware_rules(
    remote: Remote,
    region_id: RegionId,
    rule: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="Once for each rule; none: no rule.")
    ] = None,
) -> None:
    """Set the hardware rules that a region insists on (operator)."""
    body: Any = {"rules": rule or []}
    told = remote.ask(lambda c: c.set_region_hardware(region_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@region.command("settings", epilog="Example: tallystick region settings --json")
@reads
def settings(remote: Remote) -> None:
    """Show what to expect of edge and of datacenter nodes, in numbers where known."""
    told = remote.ask(lambda c: c.list_settings())
    names = ("setting", "leases", "availability_ppm", "offline_ppm")
    remote.tell(told, columns(told["data"], names))


# --- quotas of a cloud region ------------------------------------------------------------------


@region.command("quotas", epilog="Example: tallystick region quotas region_1f0c...")
@reads
def quotas(remote: Remote, region_id: RegionId) -> None:
    """Show the quotas of a cloud region, and the jobs that can still start on each GPU model."""
    told = remote.ask(lambda c: c.read_cloud_quotas(region_id))
    remote.tell(told, _quota_lines(told))


@region.command(
    "report-quotas",
    epilog="Example: tallystick region report-quotas region_1f0c... --cpus 8/96 --local-ssd 0/750",
)
@records
def report_quotas(
    remote: Remote,
    region_id: RegionId,
    cpus: Annotated[str, typer.Option(metavar="USED/LIMIT", help="CPUs used, and the quota.")],
    local_ssd: Annotated[
        str, typer.Option(metavar="USED/LIMIT", help="Local SSD in GB used, and the quota.")
    ],
    gpu: Annotated[
        list[str] | None, typer.Option(metavar="MODEL=USED/LIMIT", help="Once for each model.")
    ] = None,
) -> None:
    """Report what the cloud of a region allows and what of it is used; the last report counts."""
    body: Any = {
        "gpus": [_quota_of_gpu(one) for one in gpu or ()],
        "cpus": _quota("--cpus", cpus),
        "local_ssd_gb": _quota("--local-ssd", local_ssd),
    }
    told = remote.ask(lambda c: c.report_cloud_quotas(region_id, body, idempotency_key=remote.key))
    remote.tell(told, _quota_lines(told))


def _quota_lines(told: CloudQuotasAnswer) -> list[str]:
    names = ("gpu", "used", "limit", "runnable_jobs", "limited_by")
    rows = [{**one, "limited_by": ", ".join(one["limited_by"])} for one in told["gpus"]]
    others = {"cpus": told.get("cpus"), "local_ssd_gb": told.get("local_ssd_gb")}
    used = {name: f"{one['used']} of {one['limit']}" for name, one in others.items() if one}
    return [*columns(rows, names), *facts(used)]


def _quota_of_gpu(text: str) -> dict[str, Any]:
    model, _, quota = text.partition("=")
    return {"gpu": model, **_quota("--gpu", quota)}


def _quota(option: str, text: str) -> dict[str, int]:
    used, _, limit = text.partition("/")
    if not (used.isascii() and used.isdigit() and limit.isascii() and limit.isdigit()):
        raise typer.BadParameter("write USED/LIMIT, like 5/8", param_hint=option)
    return {"limit": int(limit), "used": int(used)}


# --- how a region shares what its nodes earn ---------------------------------------------------


@region.command("terms", epilog="Example: tallystick region terms region_1f0c...")
@reads
def terms(remote: Remote, region_id: RegionId) -> None:
    """Show how a region shares what its nodes earn, version by version."""
    told = remote.ask(lambda c: c.read_region_terms(region_id))
    names = (
        "version",
        "effective_from",
        "shared",
        "participation_ppm",
        "availability_min_tier",
        "control",
        "ingress",
        "most",
    )
    rows: list[dict[str, Any]] = [
        {**one, **{cost: amount(one["infra"][cost]) for cost in ("control", "ingress", "most")}}
        for one in told["versions"]
    ]
    remote.tell(told, columns(rows, names))


@region.command(
    "set-terms",
    epilog="Example: tallystick region set-terms region_1f0c... --version 1 --from 2027-01-01"
    " --participation-ppm 200000 --control 3 --ingress 3 --most 20",
)
@records
def set_terms(
    remote: Remote,
    region_id: RegionId,
    version: Annotated[int, typer.Option(help="One more than the last one's.")],
    from_: Annotated[
        str, typer.Option("--from", metavar="DATE", help="A UTC day, like 2027-01-01")
    ],
    participation_ppm: Annotated[
        int, typer.Option(help="Part of a day's revenue for availability, in parts per million.")
    ] = 0,
    min_tier: Annotated[int, typer.Option(help="Time below this tier is not paid for.")] = 3,
    base: Cost = "0",
    control: Cost = "0",
    ingress: Cost = "0",
    per_gib: Annotated[
        str, typer.Option(metavar="CREDITS", help="For each GiB through ingress nodes.")
    ] = "0",
    most: Annotated[
        str | None,
        typer.Option(metavar="CREDITS", help="Highest cost of a day; default: no limit."),
    ] = None,
    arrears: Annotated[
        str, typer.Option(metavar="CREDITS", help="Highest cost that is carried to later days.")
    ] = "0",
    end: Annotated[bool, typer.Option("--end", help="Share nothing from that day on.")] = False,
) -> None:
    """Share what a region's nodes earn: control and ingress, then availability, then usage.

    Terms begin a week after they are set, and later where disputes may take longer.
    """
    body: RegionTermsRequest = {
        "version": version,
        "effective_from": from_,
        "shared": not end,
        "participation_ppm": participation_ppm,
        "availability_min_tier": min_tier,
        "infra": {
            "base": credits_of(base),
            "control": credits_of(control),
            "ingress": credits_of(ingress),
            "most": credits_of("1000000" if most is None else most),
            "arrears_max": credits_of(arrears),
            "per_gib": credits_of(per_gib),
        },
    }
    told = remote.ask(lambda c: c.set_region_terms(region_id, body, idempotency_key=remote.key))
    names = ("version", "effective_from", "shared", "participation_ppm", "availability_min_tier")
    remote.tell(told, columns(told["versions"], names))


@region.command(
    "shares", epilog="Example: tallystick region shares region_1f0c... --day 2027-01-01"
)
@reads
def shares(
    remote: Remote,
    region_id: RegionId,
    day: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Show the share of every node on this UTC day."),
    ] = None,
    limit: Limit = 50,
) -> None:
    """Show the results of a region's days; with a day, the share of every node and why."""
    if day is None:
        found = remote.list(
            lambda c, size, cursor: c.list_region_days(region_id, limit=size, cursor=cursor), limit
        )
        rows = [{**row, **{name: amount(row[name]) for name in _AMOUNTS}} for row in found["data"]]
        remote.tell(found, columns(rows, ("date", *_AMOUNTS, "nodes")))
        return
    found = remote.list(
        lambda c, size, cursor: c.list_region_shares(region_id, day, limit=size, cursor=cursor),
        limit,
    )
    money = ("revenue", "participation", "usage")
    rows = [{**row, **{name: amount(row[name]) for name in money}} for row in found["data"]]
    names = ("node_id", "available_gpu_us", "below_tier_gpu_us", *money)
    remote.tell(found, columns(rows, names))


# --- clouds ------------------------------------------------------------------------------------

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


# --- datastores and reservations ---------------------------------------------------------------

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
@reads
def list_datastores(remote: Remote, region: OfRegion = None, limit: Limit = 50) -> None:
    """List your datastores."""
    found = remote.list(
        lambda c, size, cursor: c.list_datastores(region_id=region, limit=size, cursor=cursor),
        limit,
    )
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
@reads
def list_reservations(remote: Remote, region: OfRegion = None, limit: Limit = 50) -> None:
    """List your reservations, and the lease that holds each."""
    found = remote.list(
        lambda c, size, cursor: c.list_reservations(region_id=region, limit=size, cursor=cursor),
        limit,
    )
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
