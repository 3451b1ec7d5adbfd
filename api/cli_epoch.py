"""`tallystick epoch`: reward epochs. Everybody reads them from the server; closing one by hand is
for whoever has the data, and asks the same gate as the background job.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli_arguments import NodeId
from api.cli_remote import Limit, Remote, Url, reads
from api.cli_settings import ConfigFile, DataDir, opened
from api.cli_terminal import AnswerIsNo, AsJson, amount, columns, facts, group, tell

if TYPE_CHECKING:
    from api.service import Service

app = group("Reward epochs: list, preview, close, explain.", "tallystick epoch list")

MONEY = (
    "emission", "compute_pool", "availability_pool", "treasury_pool", "compute_carry_before",
    "compute_carry", "rewards", "minted", "unissued", "recyclable", "release", "returned",
    "returned_release", "availability_carry_before", "availability_carry",
)  # fmt: skip
REWARDS_MAX = 100_000


@app.command("list", epilog="Example: tallystick epoch list --json")
def list_epochs(limit: Limit = 50, url: Url = None, as_json: AsJson = False) -> None:
    """Epochs in order, with what each emitted and rewarded. Needs no key."""
    found = Remote(url, None).list(
        lambda c, size, cursor: c.list_epochs(limit=size, cursor=cursor), limit
    )
    rows = [{**row, **_amounts(row)} for row in found["data"]]
    names = ("epoch", "state", "start", "end", "emission", "rewards", "recipients")
    tell(found, columns(rows, names), as_json=as_json)


@app.command(epilog="Example: tallystick epoch preview")
def preview(
    epoch: Annotated[
        int | None, typer.Argument(min=1, metavar="[EPOCH]", help="Else open.")
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """The weights that the open epoch's rewards would be split by now. Needs no key."""
    told = Remote(url, None).ask(lambda c: c.preview_epoch(epoch=epoch))
    lines = facts({"epoch": told["epoch"], "is_final": told["is_final"]})
    lines += columns(told["weights"], ("account_id", "burned", "gpu_us"))
    lines += columns(told["nodes"], ("node_id", "account_id", "source", "burned", "gpu_us"))
    tell(told, lines, as_json=as_json)


@app.command(epilog="Example: tallystick epoch explain 3 node_1f0c...")
def explain(
    epoch: Annotated[int, typer.Argument(min=1, metavar="EPOCH", help="Its number.")],
    node_id: NodeId,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Why a node got what it got in a sealed epoch: inputs, formula, result. Needs no key."""
    told = Remote(url, None).ask(lambda c: c.explain_epoch(epoch, node_id))
    tell(told, _explanation(told), as_json=as_json)


SHARE = ("pool", "weight", "all_weight", "share", "cap", "paid")


def _explanation(told: Mapping[str, Any]) -> list[str]:
    """What a person reads; `--json` has every number."""
    head = ("node_id", "account_id", "paid", "policy_version", "cut_position", "bonus_ppm")
    lines = facts({name: told[name] for name in head})
    lines += told["reasons"]
    pools = [{"kind": kind, **_amounts(told[kind])} for kind in ("compute", "availability")]
    lines += ["", "share = floor(pool x weight / all_weight); paid = share, or cap if lower"]
    lines += columns(pools, ("kind", *SHARE))
    if told["uses"]:
        lines += ["", *columns(told["uses"], ("source", "burned", "gpu_us", "weight_ppm"))]
    if told["devices"]:
        names = ("hardware_class", "tier", "attested_us", "promised_us", "rating_ppm", "reason")
        lines += ["", *columns(told["devices"], names)]
    raised = ", ".join(told["signals"]["raised"])
    return [*lines, "", f"looks like wash trade: {raised or 'no'}"]


@app.command("signals", epilog="Example: tallystick epoch signals 3")
@reads
def list_signals(
    remote: Remote,
    epoch: Annotated[int, typer.Argument(min=1, metavar="EPOCH", help="Its number.")],
    renters: Annotated[bool, typer.Option("--renters", help="Of renters; for auditors.")] = False,
    limit: Limit = 50,
) -> None:
    """How much of each node's use one renter made, or related ones."""
    told = remote.list(
        lambda c, size, cursor: (
            c.list_renter_signals(epoch, limit=size, cursor=cursor)
            if renters
            else c.list_wash_signals(epoch, limit=size, cursor=cursor)
        ),
        limit,
    )
    names = ("subject_id", "gpu_us", "counterparties", "largest_ppm", "related_ppm", "raised")
    remote.tell(told, columns(told["data"], names))


@app.command(epilog="Example: tallystick epoch close 3")
def close(
    epoch: Annotated[int, typer.Argument(min=1, metavar="EPOCH", help="Its number.")],
    override: Annotated[
        str | None,
        typer.Option(metavar="REASON", help="Close though the gate waits; the reason is recorded."),
    ] = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Close, seal and credit an epoch that is over, on this machine's data.

    The background jobs do it by themselves. Exit 1, naming what is missing, when the gate waits:
    leases not accrued and nodes not heard up to its end, a chain not final, no price, too early.
    """
    from domain.refusal import Reason, Refused

    with opened(config, data_dir=data_dir) as service:
        try:
            told = _close(service, epoch, override)
        except Refused as refused:
            if refused.reason is not Reason.CUT_INCOMPLETE:
                raise
            raise AnswerIsNo(
                f"epoch {epoch} waits: {refused.facts}; let the jobs run, or give --override",
                {"refused": refused.reason.value, "facts": _texts(refused.facts)},
            ) from None
    tell(told, facts({**told, **_amounts(told)}), as_json=as_json)


def _close(service: Service, epoch: int, override: str | None) -> dict[str, Any]:
    from api import settlement
    from api.leading import keeping_out

    ledger, now_us = service.ledger, service.clock.now_us()
    with service.connect() as connection, keeping_out(connection, "epochs"):
        cut = settlement.close_epoch(
            ledger, connection, epoch, now_us, "operator", override=override
        )
        how: Any = {
            "data_dir": service.settings.data_dir,
            "development": service.settings.environment == "development",
        }
        sealed = settlement.seal_epoch(ledger, connection, epoch, now_us, **how)
        settlement.mature_rewards(ledger, connection, epoch, now_us, **how)
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
