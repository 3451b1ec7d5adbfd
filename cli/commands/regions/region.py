"""`tallystick region`: where nodes are, and under which terms. Thin clients of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.arguments import ProviderId, RegionId
from cli.remote import AS_IT_IS, IN_ORDER, Remote, credits_of, lists, part_of, reads, records
from cli.terminal import amount, columns, facts, group

if TYPE_CHECKING:
    from tallystick_client.forms import CloudQuotasAnswer, RegionRequest, RegionTermsRequest

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
@lists(IN_ORDER)
def list_regions(remote: Remote) -> None:
    """List your regions; all of them for operators and auditors."""
    found = remote.list(lambda c, page: c.list_regions(**page))
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
    " --participation 0.2 --control 3 --ingress 3 --most 20",
)
@records
def set_terms(
    remote: Remote,
    region_id: RegionId,
    version: Annotated[int, typer.Option(help="One more than the last one's.")],
    from_: Annotated[
        str, typer.Option("--from", metavar="DATE", help="A UTC day, like 2027-01-01")
    ],
    participation: Annotated[
        str, typer.Option(metavar="PART", help="Part of a day's revenue for availability: 0.2.")
    ] = "0",
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
        "participation_ppm": part_of(participation),
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
@lists(AS_IT_IS)
def shares(
    remote: Remote,
    region_id: RegionId,
    day: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Show the share of every node on this UTC day."),
    ] = None,
) -> None:
    """Show the results of a region's days; with a day, the share of every node and why."""
    if day is None:
        found = remote.list(lambda c, page: c.list_region_days(region_id, **page))
        rows = [{**row, **{name: amount(row[name]) for name in _AMOUNTS}} for row in found["data"]]
        remote.tell(found, columns(rows, ("date", *_AMOUNTS, "nodes")))
        return
    found = remote.list(lambda c, page: c.list_region_shares(region_id, day, **page))
    money = ("revenue", "participation", "usage")
    rows = [{**row, **{name: amount(row[name]) for name in money}} for row in found["data"]]
    names = ("node_id", "available_gpu_us", "below_tier_gpu_us", *money)
    remote.tell(found, columns(rows, names))
