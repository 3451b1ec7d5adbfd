"""`tallystick offer search | quote | explain`: what there is, what a job would get, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from api.cli_arguments import JobId
from api.cli_market import offer
from api.cli_remote import Limit, Remote, credits_of, ppm_of, reads
from api.cli_terminal import amount, columns, facts
from api.cli_work import MaxPrice, Share, words_of

if TYPE_CHECKING:
    from tallystick_client.forms import Demands, JobQuoteAsked, NewJob

Mode = Literal["whole", "mig", "mps", "time_slice", "memory"]
Isolation = Literal["process", "container", "vm", "machine"]
Setting = Literal["edge", "datacenter"]

Memory = Annotated[int | None, typer.Option(min=1, metavar="MIB", help="Of each GPU, at least.")]
Vendor = Annotated[str | None, typer.Option(help="Like nvidia.")]
Model = Annotated[str | None, typer.Option(help="Only this model.")]
Gpus = Annotated[int, typer.Option(min=1, max=64, help="GPUs of one node.")]
SettingOption = Annotated[Setting | None, typer.Option(help="Where the node stands.")]
IsolationOption = Annotated[Isolation | None, typer.Option(help="This level, or a stronger one.")]
Capability = Annotated[str | None, typer.Option(help="Like docker, cudnn or pytorch.")]
Cores = Annotated[int | None, typer.Option(min=1, help="CPU cores, at least.")]
Ram = Annotated[int | None, typer.Option(min=1, metavar="MIB", help="At least.")]
Storage = Annotated[int | None, typer.Option(min=1, metavar="GIB", help="At least.")]
Arch = Annotated[str | None, typer.Option(help="Like x86_64.")]
Kernel = Annotated[str | None, typer.Option(metavar="VERSION", help="At least, like 5.10.")]
NetworkClass = Annotated[
    Literal["internet", "local", "switched"] | None, typer.Option(help="This one, or a better one.")
]
Substrate = Annotated[str | None, typer.Option(help="Like bare_metal, esxi or kubernetes.")]
Tier = Annotated[int | None, typer.Option(min=0, max=9, help="Security tier, at least.")]
Reputation = Annotated[int | None, typer.Option(min=0, max=1_000_000, metavar="PPM")]


@offer.command("search", epilog="Example: tallystick offer search --memory 80000 --setting edge")
@reads
def search(
    remote: Remote,
    model: Model = None,
    vendor: Vendor = None,
    memory: Memory = None,
    gpus: Gpus = 1,
    mode: Annotated[Mode | None, typer.Option(help="How GPUs are shared.")] = None,
    setting: SettingOption = None,
    isolation: IsolationOption = None,
    capability: Capability = None,
    cores: Cores = None,
    ram: Ram = None,
    storage: Storage = None,
    arch: Arch = None,
    kernel: Kernel = None,
    network_class: NetworkClass = None,
    substrate: Substrate = None,
    tier: Tier = None,
    reputation: Reputation = None,
    max_price: Annotated[str | None, typer.Option(metavar="CREDITS", help="Per GPU-hour.")] = None,
    limit: Limit = 50,
) -> None:
    """Open offers that meet every demand, cheapest first. Needs no key."""
    price_max = None if max_price is None else int(credits_of(max_price)["units"])
    found = remote.list(
        lambda c, size, cursor: c.search_offers(
            model=model, vendor=vendor, memory_mib=memory, gpu_count=gpus, mode=mode,
            setting=setting, isolation=isolation, capability=capability, cpu_cores=cores,
            ram_mib=ram, storage_gib=storage, arch=arch, security_tier=tier,
            min_kernel=kernel, network_class=network_class, substrate=substrate,
            min_reputation_ppm=reputation, price_max=price_max, limit=size, cursor=cursor,
        ),
        limit,
    )  # fmt: skip
    rows = [{**row, "price": amount(row["price_per_gpu_hour"])} for row in found["data"]]
    names = ("offer_id", "price", "settlement", "devices_free", "models", "node_id")
    remote.tell(found, columns(rows, names))


@reads
def quote(
    remote: Remote,
    max_price: MaxPrice,
    command: Annotated[str, typer.Option(help="What would run, as in a shell.")] = "true",
    gpus: Gpus = 1,
    share: Share = "1",
    model: Model = None,
    vendor: Vendor = None,
    memory: Memory = None,
    setting: SettingOption = None,
    isolation: IsolationOption = None,
    capability: Capability = None,
    cores: Cores = None,
    ram: Ram = None,
    storage: Storage = None,
    arch: Arch = None,
    kernel: Kernel = None,
    network_class: NetworkClass = None,
    substrate: Substrate = None,
    tier: Tier = None,
    reputation: Reputation = None,
    term: Annotated[int | None, typer.Option(min=1, metavar="SECONDS", help="Fixed term.")] = None,
) -> None:
    """What a job would get now, why, and if nothing, which demand to ease. Nothing is recorded."""
    demands: Demands = {
        "vendors": None if vendor is None else [vendor],
        "memory_mib": memory,
        "setting": setting,
        "isolation": isolation,
        "capabilities": None if capability is None else [capability],
        "cpu_cores": cores,
        "ram_mib": ram,
        "storage_gib": storage,
        "arch": arch,
        "min_kernel": kernel,
        "network_class": network_class,
        "substrate": substrate,
        "security_tier": tier,
        "min_reputation_ppm": reputation,
    }
    job: NewJob = {
        "command": words_of(command),
        "gpu_count": gpus,
        "share_ppm": ppm_of(share),
        "models": [] if model is None else [model],
        "max_price_per_gpu_hour": credits_of(max_price),
        "constraints": demands,
    }
    body: JobQuoteAsked = {"job": job, "term_seconds": term}
    told = remote.ask(lambda c: c.quote_job(body))
    remote.tell(told, _quoted(told))


@reads
def explain(remote: Remote, job_id: JobId) -> None:
    """Why the leases of a job are where they are, or why it has none. Exit 1: a record differs."""
    told = remote.ask(lambda c: c.explain_job(job_id))
    lines: list[str] = []
    for match in told["matches"]:
        shown = {name: match.get(name) for name in _MATCH if match.get(name) is not None}
        lines += [*facts({**shown, "differences": ", ".join(match["differences"]) or "none"}), ""]
        lines += [*_dimensions(match.get("dimensions") or []), ""]
    now = told.get("now")
    remote.tell(told, [*lines, *([] if now is None else _quoted(now))])
    if any(match["differences"] for match in told["matches"]):
        raise typer.Exit(1)


_MATCH = ("lease_id", "node_id", "rule", "considered", "runner_up", "deciding", "recomputed")


def _quoted(told: Mapping[str, Any]) -> list[str]:
    offered = told.get("offered")
    if offered is not None:
        shown = {**offered, "price_per_gpu_hour": amount(offered["price_per_gpu_hour"])}
        shown.pop("expected", None)
        head = facts({**shown, "considered": told["considered"]})
    else:
        head = facts({"match": "none", "impossible": told.get("impossible") or "no"})
        rows = [dict(one) for one in told["relaxations"]]
        names = ("field", "required", "offered", "nodes", "distance_ppm")
        head = [*head, "", "One of these alone would give a match:", *columns(rows, names)]
    return [*head, "", *_dimensions(told["dimensions"])]


def _dimensions(told: list[Any]) -> list[str]:
    names = ("dimension", "required", "best_offered", "nodes_left", "nodes_refused")
    return columns([{"best_offered": "", **one} for one in told], names)


def register(app: typer.Typer) -> None:
    """`tallystick quote` and `tallystick explain`."""
    epilog = "Example: tallystick quote --max-price 3 --memory 80000"
    app.command("quote", epilog=epilog)(quote)
    app.command("explain", epilog="Example: tallystick explain job_1f0c...")(explain)
