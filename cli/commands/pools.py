"""`tallystick pool | gang | utilisation | fragmentation`: pools, and how well nodes are used.

Thin clients of the API.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.arguments import NodeId
from cli.chain.connection import chain_of, signer_of
from cli.chain.options import ChainFile, ChainUrl, DevKey, Keystore
from cli.commands.billing import From, To
from cli.remote import AS_IT_IS, IN_ORDER, Remote, credits_of, lists, reads, records
from cli.settings import ConfigFile, DataDir, in_force
from cli.terminal import AsJson, InputUnusable, columns, facts, group, note, tell, top_level
from cli.work_options import Image, MaxMeters, MaxPrice, Models, work_of

if TYPE_CHECKING:
    from contracts.pool_controller import PoolRecord
    from tallystick_client.forms import (
        GangRequest,
        PoolComponentHealthRequest,
        PoolComponentRequest,
        PoolMetadataRequest,
        PoolPolicyForm,
        PoolRequest,
    )

pool = group("pool", "Pools: nodes under one scheduling policy.", "tallystick pool create research")
gang = group(
    "gang",
    "Gangs: leases that start together or not at all.",
    'tallystick gang open --members 8 --command "torchrun train.py" --max-price 3',
)

PoolId = Annotated[str, typer.Argument(metavar="POOL", help="pool_...")]
ComponentId = Annotated[str, typer.Argument(metavar="COMPONENT", help="comp_...")]
GangId = Annotated[str, typer.Argument(metavar="GANG", help="gang_...")]
_COMPONENT = ("component_id", "kind", "name", "health", "detail", "reported_at")
Scheduler = Literal["immediate", "first_come", "fair_share", "drf"]
PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy", metavar="FILE", help="File with the whole policy as JSON, as in the API."
    ),
]
SchedulerOption = Annotated[
    Scheduler | None, typer.Option(help="Rule for the next request; default: first_come.")
]


# --- pools -----------------------------------------------------------------------------------


@pool.command("create", epilog="Example: tallystick pool create research --scheduler drf")
@records
def create_pool(
    remote: Remote,
    name: Annotated[str, typer.Argument(help="A short name.")],
    scheduler: SchedulerOption = None,
    policy: PolicyFile = None,
    controller: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Contract that answers for the pool.")
    ] = None,
) -> None:
    """Create a pool of your own (provider or operator)."""
    body: PoolRequest = {"name": name, "policy": _policy(scheduler, policy)}
    if controller is not None:
        body["controller_address"] = controller
    told = remote.ask(lambda c: c.create_pool(body, idempotency_key=remote.key))
    remote.tell(told, _pool_facts(told))


@pool.command(
    "set-policy", epilog="Example: tallystick pool set-policy pool_1f0c... --policy fair.json"
)
@records
def set_policy(
    remote: Remote, pool_id: PoolId, scheduler: SchedulerOption = None, policy: PolicyFile = None
) -> None:
    """Set the whole policy of a pool of yours. Settings that are left out get their default."""
    body = _policy(scheduler, policy)
    told = remote.ask(lambda c: c.set_pool_policy(pool_id, body, idempotency_key=remote.key))
    remote.tell(told, _pool_facts(told))


@pool.command("add", epilog="Example: tallystick pool add pool_1f0c... node_1f0c...")
@records
def add_node(remote: Remote, pool_id: PoolId, node_id: NodeId) -> None:
    """Put a node of yours into a pool. A node is in one pool at most."""
    told = remote.ask(
        lambda c: c.add_pool_node(pool_id, {"node_id": node_id}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))


@pool.command("remove", epilog="Example: tallystick pool remove pool_1f0c... node_1f0c...")
@records
def remove_node(remote: Remote, pool_id: PoolId, node_id: NodeId) -> None:
    """Remove a node from a pool. Leases that run there go on."""
    told = remote.ask(
        lambda c: c.remove_pool_node(pool_id, node_id, {}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))


@pool.command("list", epilog="Example: tallystick pool list")
@lists(IN_ORDER)
def list_pools(remote: Remote) -> None:
    """List every pool: how many nodes it has, and how many requests wait for it."""
    found = remote.list(lambda c, page: c.list_pools(**page))
    rows = [{**row, "scheduler": row["policy"]["scheduler"]} for row in found["data"]]
    names = ("pool_id", "name", "scheduler", "nodes", "waiting", "version")
    remote.tell(found, columns(rows, names))


@pool.command("show", epilog="Example: tallystick pool show pool_1f0c...")
@reads
def show_pool(remote: Remote, pool_id: PoolId) -> None:
    """Show one pool: its policy, and how many accelerators of each kind it has."""
    told = remote.ask(lambda c: c.read_pool(pool_id))
    kinds = told.get("accelerators") or []
    names = ("vendor", "model", "gpu_class", "devices", "whole_free", "memory_mib")
    remote.tell(told, [*_pool_facts(told), *columns(kinds, names)])


@pool.command("nodes", epilog="Example: tallystick pool nodes pool_1f0c...")
@lists(IN_ORDER)
def list_nodes(remote: Remote, pool_id: PoolId) -> None:
    """List the nodes of a pool, of all providers."""
    found = remote.list(lambda c, page: c.list_pool_nodes(pool_id, **page))
    names = ("node_id", "provider_id", "phase", "models", "devices", "free")
    remote.tell(found, columns(found["data"], names))


@pool.command("queue", epilog="Example: tallystick pool queue pool_1f0c...")
@lists(AS_IT_IS)
def list_queue(remote: Remote, pool_id: PoolId) -> None:
    """List the requests that wait for a pool, in order of arrival."""
    found = remote.list(lambda c, page: c.list_pool_queue(pool_id, **page))
    rows = [{**row, "demand": _demand(row["demand"])} for row in found["data"]]
    names = ("place", "request_id", "is_gang", "demand", "account_id", "waits_since")
    remote.tell(found, columns(rows, names))


@pool.command("decisions", epilog="Example: tallystick pool decisions pool_1f0c...")
@lists(IN_ORDER)
def list_decisions(remote: Remote, pool_id: PoolId) -> None:
    """List the scheduler's decisions: the chosen request, the rule and the position in the log."""
    found = remote.list(lambda c, page: c.list_pool_decisions(pool_id, **page))
    names = ("position", "chosen", "rule", "policy_version", "waiting", "decided_at")
    remote.tell(found, columns(found["data"], names))


@pool.command("decision", epilog="Example: tallystick pool decision pool_1f0c... 4711")
@reads
def show_decision(
    remote: Remote,
    pool_id: PoolId,
    position: Annotated[int, typer.Argument(min=1, help="Of the market log.")],
) -> None:
    """Show all inputs of one decision. Exit 1 unless its rule gives the same again (owner)."""
    told = remote.ask(lambda c: c.read_pool_decision(pool_id, position))
    rows = [{**row, "demand": _demand(row["demand"])} for row in told["waiting"]]
    names = ("place", "request_id", "queue", "demand", "fits", "delays_first")
    plain: dict[str, Any] = {
        name: told[name] for name in ("chosen", "rule", "recomputed", "holds") if name in told
    }
    remote.tell(told, [*facts(plain), *columns(rows, names)])
    if not told["holds"]:
        raise typer.Exit(1)


# --- components, health and the controller contract ----------------------------------------


@pool.command("health", epilog="Example: tallystick pool health pool_1f0c...")
@reads
def show_health(remote: Remote, pool_id: PoolId) -> None:
    """Show how many nodes and components of a pool are well, and which are not."""
    told = remote.ask(lambda c: c.read_pool_health(pool_id))
    lines = columns([{"of": "nodes", **one} for one in told["nodes"]], ("of", "health", "count"))
    parts = [{"of": "components", **one} for one in told["components"]]
    lines += columns(parts, ("of", "health", "count")) if parts else []
    names = ("node_id", "health", "role", "degraded_leases", "reported_at")
    lines += columns(told["troubled_nodes"], names) if told["troubled_nodes"] else []
    troubled = told["troubled_components"]
    lines += columns(troubled, _COMPONENT) if troubled else []
    remote.tell(told, lines)


@pool.command("components", epilog="Example: tallystick pool components pool_1f0c...")
@lists(IN_ORDER)
def list_components(remote: Remote, pool_id: PoolId) -> None:
    """List the components of a pool, with what each last said of its health."""
    found = remote.list(lambda c, page: c.list_components(pool_id, **page))
    remote.tell(found, columns(found["data"], (*_COMPONENT, "is_removed")))


@pool.command(
    "add-component", epilog="Example: tallystick pool add-component pool_1f0c... gateway gateway-1"
)
@records
def add_component(
    remote: Remote,
    pool_id: PoolId,
    kind: Annotated[str, typer.Argument(help="gateway, scheduler, storage, monitor, licence ...")],
    name: Annotated[str, typer.Argument(help="A name of its own in the pool.")],
    endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="Where others of the pool reach it.")
    ] = None,
    licence: Annotated[
        str | None, typer.Option(metavar="LICENCE", help="lic_..., of the kind licence.")
    ] = None,
) -> None:
    """Register a component of your pool."""
    body: PoolComponentRequest = {"kind": kind, "name": name, "endpoint": endpoint}
    body["licence_id"] = licence
    told = remote.ask(lambda c: c.register_component(pool_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@pool.command(
    "remove-component", epilog="Example: tallystick pool remove-component pool_1f0c... comp_1f0c..."
)
@records
def remove_component(remote: Remote, pool_id: PoolId, component_id: ComponentId) -> None:
    """Remove a component from your pool, for good."""
    told = remote.ask(
        lambda c: c.remove_component(pool_id, component_id, {}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))


@pool.command(
    "report-health",
    epilog="Example: tallystick pool report-health pool_1f0c... comp_1f0c... degraded",
)
@records
def report_health(
    remote: Remote,
    pool_id: PoolId,
    component_id: ComponentId,
    health: Annotated[
        Literal["well", "degraded", "down"], typer.Argument(help="How the component is.")
    ],
    detail: Annotated[str, typer.Option(help="What is wrong, in a few words.")] = "",
) -> None:
    """Report the health of a component of your pool. A report counts for two hours."""
    body: PoolComponentHealthRequest = {"health": health, "detail": detail}
    told = remote.ask(
        lambda c: c.report_component_health(pool_id, component_id, body, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))


@pool.command(
    "set-metadata",
    epilog="Example: tallystick pool set-metadata pool_1f0c... region=eu-west contact=ops-desk",
)
@records
def set_metadata(
    remote: Remote,
    pool_id: PoolId,
    entries: Annotated[
        list[str], typer.Argument(metavar="NAME=VALUE...", help="Entries of the metadata.")
    ],
) -> None:
    """Set the whole metadata of your pool. Entries that are left out are gone."""
    pairs = [entry.partition("=") for entry in entries]
    if not all(mark for _, mark, _ in pairs):
        raise InputUnusable("each entry is NAME=VALUE")
    body: PoolMetadataRequest = {"metadata": {name: value for name, _, value in pairs}}
    told = remote.ask(lambda c: c.set_pool_metadata(pool_id, body, idempotency_key=remote.key))
    remote.tell(told, facts({name: told[name] for name in ("pool_id", "version", "sha256")}))


@pool.command("controller", epilog="Example: tallystick pool controller pool_1f0c...")
@reads
def show_controller(remote: Remote, pool_id: PoolId) -> None:
    """Show a pool's contract, and whether it said what the log says. Exit 1 where it does not."""
    told = remote.ask(lambda c: c.read_pool_controller(pool_id))
    checked = told.get("checked")
    plain = {"pool_id": pool_id, "address": told.get("address") or "none"}
    agrees = "not checked yet" if checked is None else "yes" if checked["agrees"] else "no"
    plain["agrees"] = agrees
    differences = [] if checked is None else checked["differences"]
    remote.tell(told, [*facts(plain), *differences])
    if differences:
        raise typer.Exit(1)


@pool.command(
    "deploy-controller", epilog="Example: tallystick pool deploy-controller --keystore owner.json"
)
def deploy_controller(
    keystore: Keystore = None,
    dev_key: DevKey = None,
    chain_url: ChainUrl = None,
    chain_file: ChainFile = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Deploy a contract for one pool, with your key. Name its address in `pool create`."""
    from contracts import pool_controller

    settings = in_force(config, data_dir=data_dir, chain_url=chain_url)
    with chain_of(settings, chain_file) as chain:
        signer = signer_of(chain.chain_id, keystore, dev_key)
        address = pool_controller.deploy(
            chain, signer, registrar=signer.address, anchorer=signer.address
        )
        told = {"address": address, "chain_id": chain.chain_id, "by": signer.address}
    tell(told, facts(told), as_json=as_json)


@pool.command(
    "publish", epilog="Example: tallystick pool publish pool_1f0c... --keystore owner.json"
)
@records
def publish(
    remote: Remote,
    pool_id: PoolId,
    keystore: Keystore = None,
    dev_key: DevKey = None,
    chain_url: ChainUrl = None,
    chain_file: ChainFile = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
) -> None:
    """Bring the pool's contract up to the log: components, metadata, and heads cut now.

    Run it again after a break: what is there already is not sent twice.
    """
    from contracts import pool_controller

    address = remote.ask(lambda c: c.read_pool_controller(pool_id)).get("address")
    if address is None:
        raise InputUnusable("this pool was created without a contract")
    remote.ask(lambda c: c.create_pool_heads(pool_id, {}, idempotency_key=remote.key))
    record = _record(remote, pool_id)
    settings = in_force(config, data_dir=data_dir, chain_url=chain_url)
    with chain_of(settings, chain_file) as chain:
        if not pool_controller.is_ours(chain, address):
            raise InputUnusable(f"the code at {address} is no controller of a pool")
        signer = signer_of(chain.chain_id, keystore, dev_key)
        done = []
        there = pool_controller.read(chain, address)
        for words, call in pool_controller.missing(record, there, address):
            note(words)
            receipt = chain.execute(signer, call)
            done.append({"act": words, "transaction": receipt.hash})
    remote.tell({"pool_id": pool_id, "address": address, "sent": done}, _sent_lines(done))


def _sent_lines(done: Sequence[Mapping[str, Any]]) -> list[str]:
    return columns(done, ("act", "transaction")) if done else ["nothing is missing there"]


def _record(remote: Remote, pool_id: str) -> PoolRecord:
    """The pool as the server tells it, to be put on its contract."""
    from contracts.pool_controller import Component, Heads, PoolRecord
    from domain.pools.component import COMPONENTS_MAX

    told = remote.ask(lambda c: c.read_pool_controller(pool_id))
    found = remote.list(lambda c, page: c.list_components(pool_id, **page), COMPONENTS_MAX)
    components = tuple(
        Component(one["component_id"], one["kind"], one["is_removed"]) for one in found["data"]
    )
    metadata, heads = told.get("metadata"), told.get("heads")
    cut = None
    if heads is not None:
        allocation, licence = heads["allocation_head"], heads["licence_head"]
        cut = Heads(heads["cut_position"], bytes.fromhex(allocation), bytes.fromhex(licence))
    return PoolRecord(
        components,
        () if metadata is None else (bytes.fromhex(metadata["sha256"]),),
        {} if cut is None else {cut.seq: cut},
    )


# --- gangs -----------------------------------------------------------------------------------


@gang.command(
    "open",
    epilog='Example: tallystick gang open --members 8 --gpus 8 --command "train" --max-price 3',
)
@records
def open_gang(
    remote: Remote,
    members: Annotated[int, typer.Option(min=1, max=128, help="Leases, each of one node.")],
    max_price: MaxPrice,
    min_members: Annotated[
        int | None, typer.Option(min=1, max=128, help="Smallest number that starts; default: all.")
    ] = None,
    command: Annotated[str | None, typer.Option(help="What each runs, as in a shell.")] = None,
    image: Image = None,
    gpus: Annotated[int, typer.Option(min=1, max=64, help="GPUs of each member.")] = 1,
    model: Models = None,
    pool_id: Annotated[
        str | None,
        typer.Option("--pool", metavar="POOL", help="Only in this pool, waiting in its queue."),
    ] = None,
    term: Annotated[
        int | None, typer.Option(min=1, metavar="SECONDS", help="Fixed term, else open end.")
    ] = None,
    funds: Annotated[
        str | None,
        typer.Option(
            metavar="CREDITS", help="Credits of each member; it ends when they are used up."
        ),
    ] = None,
    max_meter: MaxMeters = None,
) -> None:
    """Reserve every member at once, or none. A pool with a queue lets the gang wait."""
    asked: Any = work_of(command, image, gpus, model, max_price, max_meter)
    if pool_id is not None:
        asked["constraints"] = {"pool_id": pool_id}
    body: GangRequest = {
        "job": asked,
        "members": members,
        "min_members": min_members,
        "term_seconds": term,
        "funds": None if funds is None else credits_of(funds),
    }
    told = remote.ask(lambda c: c.open_gang(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@gang.command("list", epilog="Example: tallystick gang list")
@lists(IN_ORDER)
def list_gangs(remote: Remote) -> None:
    """List your gangs; all of them for operators and auditors."""
    found = remote.list(lambda c, page: c.list_gangs(**page))
    names = ("gang_id", "state", "members", "min_members", "ready", "place", "requested_at")
    remote.tell(found, columns(found["data"], names))


@gang.command("show", epilog="Example: tallystick gang show gang_1f0c...")
@reads
def show_gang(remote: Remote, gang_id: GangId) -> None:
    """Show one gang: its members and how many are ready, or its place in the queue."""
    told = remote.ask(lambda c: c.read_gang(gang_id))
    remote.tell(told, facts(told))


@gang.command("cancel", epilog="Example: tallystick gang cancel gang_1f0c...")
@records
def cancel_gang(remote: Remote, gang_id: GangId) -> None:
    """Cancel a gang before it has opened, at no charge."""
    told = remote.ask(lambda c: c.cancel_gang(gang_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


def _policy(scheduler: Scheduler | None, file: Path | None) -> PoolPolicyForm:
    """The policy of a file, or the default one with another scheduler."""
    policy: PoolPolicyForm = {}
    if file is not None:
        if scheduler is not None:
            raise InputUnusable("--policy is the whole policy: give it or --scheduler")
        try:
            policy = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputUnusable(f"{file}: {error}") from error
    elif scheduler is not None:
        policy = {"scheduler": scheduler}
    return policy


def _pool_facts(told: Any) -> list[str]:
    policy = told["policy"]
    names = ("pool_id", "name", "account_id", "version", "nodes", "waiting")
    plain = {name: told[name] for name in names if name in told}
    kept = {name: policy[name] for name in ("scheduler", "pricing", "rank") if name in policy}
    return facts({**plain, **kept})


def _demand(quantities: Any) -> str:
    """`2 gpu`: the GPUs in whole ones, the rest as it is told."""
    told = []
    for one in quantities:
        units = int(one["units"])
        whole = f"{units / 1e6:g}" if one["resource"].startswith("gpu") else str(units)
        told.append(f"{whole} {one['resource']}")
    return ", ".join(told)


# --- pool use ----------------------------------------------------------------------------------

commands = top_level()

WIDTH = 40
MARKS = {"leased": "#", "idle": ".", "mined": "m", "stranded": "x", "unavailable": "?"}
_NAMES = ("hour", "day", "pool", "region", "model", "node")


@commands.command(epilog="Example: tallystick utilisation --by day,pool")
@lists(AS_IT_IS)
def utilisation(
    remote: Remote,
    by: Annotated[str, typer.Option(help="hour or day first; pool, region, model, node.")] = "pool",
    pool: Annotated[str | None, typer.Option(help="Only of this pool.")] = None,
    from_: From = None,
    to: To = None,
) -> None:
    """Where the accelerators' time went.

    In the last column # is leased, . is idle, m is mined, x is stranded and ? is unavailable.
    """
    found = remote.list(
        lambda c, page: c.list_utilisation(by=by, pool_id=pool, from_=from_, to=to, **page)
    )
    rows = [
        {**row, "leased": _percent(row["leased_ppm"]), "time": bar(row)} for row in found["data"]
    ]
    remote.tell(found, columns(rows, (*_told(rows), "asset", "leased", "time")))


@commands.command(epilog="Example: tallystick fragmentation --by model --json")
@reads
def fragmentation(
    remote: Remote,
    by: Annotated[str, typer.Option(help="Some of pool, region, model.")] = "pool",
    pool: Annotated[str | None, typer.Option(help="Only of this pool.")] = None,
) -> None:
    """What is free now, and how many requests for 1, 2, 4 or 8 whole devices of a node fit."""
    found = remote.ask(lambda c: c.list_fragmentation(by=by, pool_id=pool))
    rows = [
        {
            **row,
            "free": f"{int(row['free_ppm']) / 1e6:.2f}",
            "in parts": _percent(row["fragmented_ppm"]),
        }
        for row in found["data"]
    ]
    names = ("devices", "whole_free", "free", "in parts", "room_1", "room_2", "room_4", "room_8")
    remote.tell(found, columns(rows, (*_told(rows), *names)))


def bar(row: Mapping[str, Any], width: int = WIDTH) -> str:
    """A line of marks whose lengths add up to the width; the last part takes what is left over."""
    physical = int(row["physical"])
    if not physical:
        return ""
    ends, total = [], 0
    for name in MARKS:
        total += int(row[name])
        ends.append(total * width // physical)
    lengths = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    return "".join(mark * length for mark, length in zip(MARKS.values(), lengths, strict=True))


def _told(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [name for name in _NAMES if any(row.get(name) is not None for row in rows)]


def _percent(ppm: int) -> str:
    return f"{ppm / 10_000:.1f} %"
