"""`tallystick epoch | reward`: epochs, and what two people change in their rewards by hand.

The server answers all of it but `epoch close`, which works on this machine's data and asks the same
gate as the background job.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.arguments import NodeId
from cli.commands.governance.grants import tokens_of
from cli.remote import (
    AS_IT_IS,
    BY_NUMBER,
    IN_ORDER,
    Remote,
    Signed,
    ToSign,
    Url,
    lists,
    reads,
    records,
)
from cli.settings import ConfigFile, DataDir, opened
from cli.signing import KeyFile, vote_on
from cli.terminal import (
    AnswerIsNo,
    AsJson,
    InputUnusable,
    amount,
    columns,
    facts,
    gpu_hours,
    group,
    note,
    tell,
)
from domain.metering.reasons import MeteringReason

if TYPE_CHECKING:
    from api.process.service import Service
    from tallystick_client.forms import RewardAdjustmentRequest, RewardSlashRequest

epoch = group("epoch", "Reward epochs: list, preview, close, explain.", "tallystick epoch list")

MONEY = (
    "emission",
    "compute_pool",
    "availability_pool",
    "treasury_pool",
    "compute_carry_before",
    "compute_carry",
    "rewards",
    "minted",
    "unissued",
    "recyclable",
    "release",
    "returned",
    "returned_release",
    "availability_carry_before",
    "availability_carry",
)


@epoch.command("list", epilog="Example: tallystick epoch list --json")
@lists(BY_NUMBER)
def list_epochs(remote: Remote) -> None:
    """List epochs, with the emission and rewards of each. Needs no key."""
    found = remote.list(lambda c, page: c.list_epochs(**page))
    rows = [{**row, **_amounts(row)} for row in found["data"]]
    names = ("epoch", "state", "start", "end", "emission", "rewards", "recipients")
    remote.tell(found, columns(rows, names))


@epoch.command(epilog="Example: tallystick epoch preview")
def preview(
    epoch: Annotated[
        int | None, typer.Argument(min=1, metavar="[EPOCH]", help="Default: the open epoch.")
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show the weights by which the open epoch's rewards would be split now. Needs no key."""
    told = Remote(url, None).ask(lambda c: c.preview_epoch(epoch=epoch))
    lines = facts({"epoch": told["epoch"], "is_final": told["is_final"]})
    weights, nodes = (
        [{**one, "burned": _credits(one["burned"])} for one in told[name]]
        for name in ("weights", "nodes")
    )
    lines += columns(weights, ("account_id", "burned", "gpu_us"))
    lines += columns(nodes, ("node_id", "account_id", "source", "burned", "gpu_us"))
    tell(told, lines, as_json=as_json)


@epoch.command(epilog="Example: tallystick epoch explain 3 node_1f0c...")
def explain(
    epoch: Annotated[int, typer.Argument(min=1, metavar="EPOCH", help="Its number.")],
    node_id: NodeId,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Explain a node's reward in a sealed epoch: inputs, formula, result. Needs no key."""
    told = Remote(url, None).ask(lambda c: c.explain_epoch(epoch, node_id))
    tell(told, _explanation(told), as_json=as_json)


SHARES = ("compute", "availability_tier_2", "availability")
SHARE = ("pool", "weight", "all_weight", "weight_part_ppm", "share", "cap", "paid")


def _explanation(told: Mapping[str, Any]) -> list[str]:
    """What a person reads; `--json` has every number."""
    head = ("node_id", "account_id", "paid", "policy_version", "cut_position", "bonus_ppm")
    lines = facts({name: told[name] for name in head})
    lines += told["reasons"]
    pools = [{"kind": kind, **_share(told[kind])} for kind in SHARES]
    lines += ["", "share = floor(pool x weight / all_weight); paid = share, or cap if lower"]
    lines += columns(pools, ("kind", *SHARE))
    if told["uses"]:
        uses = [{**one, "burned": _credits(one["burned"])} for one in told["uses"]]
        lines += ["", *columns(uses, ("source", "burned", "gpu_us", "weight_ppm"))]
    if told["devices"]:
        times = ("attested", "promised")
        devices = [
            {**one, **{f"{name}_hours": gpu_hours(one[f"{name}_us"]) for name in times}}
            for one in told["devices"]
        ]
        names = ("hardware_class", "tier", "attested_hours", "promised_hours", "rating_ppm")
        lines += ["", *columns(devices, (*names, "reason"))]
    if told["clients"]:
        rows = [
            {"client_id": one.get("client_id", "none known"), "reward": amount(one["reward"])}
            for one in told["clients"]
        ]
        lines += ["", *columns(rows, ("client_id", "reward"))]
    raised = ", ".join(told["signals"]["raised"])
    return [*lines, "", f"looks like wash trade: {raised or 'no'}"]


def _credits(units: str) -> str | None:
    return amount({"asset": "CREDIT", "units": units})


def _share(told: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a pool; `weight_part` is weight / all_weight, rounded down."""
    money = {name: amount(told.get(name)) for name in ("pool", "share", "cap", "paid")}
    weight, whole = int(told["weight"]), int(told["all_weight"])
    part_ppm = weight * 1_000_000 // whole if whole else None
    return {**told, **money, "weight_part_ppm": part_ppm}


@epoch.command("file", epilog="Example: tallystick epoch file 3 --out 3.json")
@reads
def save_epoch_file(
    remote: Remote,
    number: Annotated[int, typer.Argument(min=1, metavar="EPOCH", help="Its number.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the file is written.")],
) -> None:
    """Save the file of a sealed epoch, whose SHA-256 is in its seal. Needs no key."""
    found = remote.ask(lambda c: c.read_epoch_file(number))
    data = json.dumps(found, sort_keys=True, separators=(",", ":")).encode()
    out.write_bytes(data)
    told = {"epoch": number, "file": str(out), "sha256": hashlib.sha256(data).hexdigest()}
    remote.tell(told, facts(told))


@epoch.command("clients", epilog="Example: tallystick epoch clients 3 --json")
@reads
def show_epoch_clients(
    remote: Remote,
    number: Annotated[int, typer.Argument(min=1, metavar="EPOCH", help="Its number.")],
) -> None:
    """Show by compute client whose work a sealed epoch's rewards pay for. Needs no key."""
    told = remote.ask(lambda c: c.read_epoch_clients(number))
    rows = [
        {
            "account_id": account_id,
            "client_id": client_id or "none known",
            "reward": amount({"asset": "TOKEN", "units": units}),
        }
        for account_id, _, clients in told["rewards"]
        for client_id, units in clients
    ]
    remote.tell(told, columns(rows, ("account_id", "client_id", "reward")))


@epoch.command("signals", epilog="Example: tallystick epoch signals 3")
@lists(AS_IT_IS)
def list_signals(
    remote: Remote,
    epoch: Annotated[int, typer.Argument(min=1, metavar="EPOCH", help="Its number.")],
    renters: Annotated[
        bool, typer.Option("--renters", help="Signals of renters; for auditors.")
    ] = False,
) -> None:
    """Show how much of each node's use came from one renter, or from related ones."""
    told = remote.list(
        lambda c, page: (
            c.list_renter_signals(epoch, **page) if renters else c.list_wash_signals(epoch, **page)
        )
    )
    names = ("subject_id", "gpu_us", "counterparties", "largest_ppm", "related_ppm", "raised")
    remote.tell(told, columns(told["data"], names))


@epoch.command(epilog="Example: tallystick epoch close 3")
def close(
    epoch: Annotated[int, typer.Argument(min=1, metavar="EPOCH", help="Its number.")],
    override: Annotated[
        str | None,
        typer.Option(metavar="REASON", help="Close though the gate waits; the reason is recorded."),
    ] = None,
    to_sign: ToSign = None,
    signed: Signed = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Close, seal and credit an epoch that is over, on this machine's data.

    The background jobs do this by themselves. Exit 1 while the gate waits, naming what is missing:
    leases not accrued, nodes without reports up to its end, a chain not final, no price, or too
    early.
    """
    from api.door.errors import Problem
    from domain.refusal import Refused

    with opened(config, data_dir=data_dir) as service:
        if to_sign is not None:
            _write_override(service, epoch, override, to_sign)
            return
        try:
            told = _close(service, epoch, override, signed)
        except Problem as problem:
            raise InputUnusable(f"{signed}: {problem.detail}") from None
        except Refused as refused:
            if refused.reason is not MeteringReason.CUT_INCOMPLETE:
                raise
            raise AnswerIsNo(
                f"epoch {epoch} waits: {refused.facts}; let the jobs run, or give --override",
                {"refused": refused.reason.value, "facts": _texts(refused.facts)},
            ) from None
    tell(told, facts({**told, **_amounts(told)}), as_json=as_json)


def _write_override(service: Service, epoch: int, reason: str | None, file: Path) -> None:
    """What two governors sign to go round the gate. Raises InputUnusable."""
    from api.authority.governors import network_of
    from api.epochs.closing import override_act
    from cli import acts
    from domain.authority.register import GOVERNORS

    if reason is None:
        raise InputUnusable("--to-sign: only --override takes signatures")
    version = service.ledger.market.state_of(GOVERNORS).now.version
    told = {"network": network_of(service), "version": version}
    until_us = service.clock.now_us() + acts.GOOD_FOR_US
    key = f"cli-{secrets.token_hex(16)}"
    acts.write_act(file, acts.act_of(told, key, *override_act(epoch, reason), until_us))
    note(f"`tallystick governor sign {file}`, by two")


def _close(
    service: Service, epoch: int, override: str | None, signed: Path | None
) -> dict[str, Any]:
    from api.epochs import closing as settlement
    from api.process.leading import keeping_out
    from cli.acts import read_act

    ledger, now_us = service.ledger, service.clock.now_us()
    with service.connect() as connection, keeping_out(connection, "epochs"):
        cut = settlement.close_epoch(
            ledger,
            connection,
            epoch,
            now_us,
            "operator",
            override=override,
            signed=None if signed is None else read_act(signed),
        )
        folder = service.settings.data_dir
        sealed = settlement.seal_epoch(ledger, connection, epoch, now_us, data_dir=folder)
        settlement.mature_rewards(ledger, connection, epoch, now_us, data_dir=folder)
    return {
        "epoch": epoch,
        "cut_position": cut,
        "emission": {"asset": "TOKEN", "units": str(sealed.emission.units)},
        "file_sha256": sealed.file_sha256,
    }


def _texts(given: Any) -> dict[str, str]:
    return {name: str(value) for name, value in given.items()}


def _amounts(row: Mapping[str, Any]) -> dict[str, str | None]:
    return {name: amount(row[name]) for name in MONEY if name in row}


# --- reward ------------------------------------------------------------------------------------

reward = group("reward", "Rewards: slashes and adjustments.", "tallystick reward corrections")

Epoch = Annotated[
    int, typer.Argument(min=1, metavar="EPOCH", help="The epoch of the wrong reward.")
]
Account = Annotated[str, typer.Argument(metavar="ACCOUNT", help="acct_...")]
Why = Annotated[str, typer.Option(help="Why; it is recorded.")]
Evidence = Annotated[
    int | None, typer.Option(min=1, metavar="POSITION", help="A fact of the log that shows it.")
]


@reward.command(
    epilog='Example: tallystick reward slash 3 acct_1f0c... 12.5 --reason "No such GPU was there"'
)
@records
def slash(
    remote: Remote,
    epoch: Epoch,
    account_id: Account,
    tokens: Annotated[str, typer.Argument(metavar="TOKEN", help="Like 12.5.")],
    reason: Why,
    evidence: Evidence = None,
) -> None:
    """Propose to slash the unmatured part of a reward. A second person accepts."""
    body: RewardSlashRequest = {
        "account_id": account_id,
        "amount": tokens_of(tokens),
        "reason": reason,
    }
    if evidence is not None:
        body["evidence_position"] = evidence
    told = remote.ask(lambda c: c.propose_slash(epoch, body, idempotency_key=remote.key))
    remote.tell(told, _lines(told))


@reward.command(
    epilog='Example: tallystick reward adjust 3 acct_1f0c... --give 2.5 --reason "It came late"'
)
@records
def adjust(
    remote: Remote,
    epoch: Epoch,
    account_id: Account,
    reason: Why,
    give: Annotated[str | None, typer.Option(metavar="TOKEN", help="TOKEN to add.")] = None,
    take: Annotated[str | None, typer.Option(metavar="TOKEN", help="TOKEN to deduct.")] = None,
    evidence: Evidence = None,
) -> None:
    """Propose to add or deduct in the open epoch. A second person accepts it."""
    if (give is None) == (take is None):
        raise InputUnusable("either --give or --take")
    units = tokens_of(give or take or "")["units"]
    body: RewardAdjustmentRequest = {
        "account_id": account_id,
        "delta": units if take is None else f"-{units}",
        "reason": reason,
    }
    if evidence is not None:
        body["evidence_position"] = evidence
    told = remote.ask(
        lambda c: c.propose_reward_adjustment(epoch, body, idempotency_key=remote.key)
    )
    remote.tell(told, _lines(told))


@reward.command(epilog="Example: tallystick reward accept correction_1f0c...")
@records
def accept(
    remote: Remote,
    correction_id: Annotated[str, typer.Argument(metavar="CORRECTION", help="correction_...")],
    signer: KeyFile,
) -> None:
    """Vote for a correction with your personal key; what is signed is shown first."""
    ballot = remote.ask(lambda c: c.read_reward_correction(correction_id))["ballot"]
    vote = vote_on(ballot, signer, "yes")
    told = remote.ask(
        lambda c: c.accept_reward_correction(
            correction_id, {"vote": vote}, idempotency_key=remote.key
        )
    )
    remote.tell(told, _lines(told))


@reward.command(epilog="Example: tallystick reward corrections --json")
@lists(IN_ORDER)
def corrections(remote: Remote) -> None:
    """List every slash and adjustment, and its result."""
    found = remote.list(lambda c, page: c.list_reward_corrections(**page))
    names = ("correction_id", "kind", "state", "epoch", "account_id", "delta", "slashed")
    remote.tell(found, columns([_shown(row) for row in found["data"]], names))


def _lines(told: Mapping[str, Any]) -> list[str]:
    return facts(_shown(told))


def _shown(told: Mapping[str, Any]) -> dict[str, Any]:
    taken = {"slashed": amount(told["slashed"])} if "slashed" in told else {}
    return {**told, **taken}
