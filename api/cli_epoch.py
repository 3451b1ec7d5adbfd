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
@reads
def explain(
    remote: Remote,
    epoch: Annotated[int, typer.Argument(min=1, metavar="EPOCH", help="Its number.")],
    node_id: NodeId,
) -> None:
    """Why a node earned in an epoch what it did: inputs, formula, result."""
    told = _explained(remote, epoch, node_id)
    remote.tell(told, facts(told))


def _explained(remote: Remote, epoch: int, node_id: str) -> dict[str, Any]:
    """Put together from the epoch, the node's earnings and the weights at the cut."""
    split = remote.ask(lambda c: c.read_epoch(epoch))
    earned = remote.ask(lambda c: c.list_earnings(by="node_id,epoch", node_id=node_id, epoch=epoch))
    if not earned["data"]:
        raise AnswerIsNo(f"{node_id} earned nothing in epoch {epoch}, or it is not yours")
    row = earned["data"][0]
    account_id = row["account_id"]
    weights = remote.ask(lambda c: c.preview_epoch(epoch=epoch))
    burned = {each["account_id"]: int(each["burned"]) for each in weights["weights"]}
    rewards = remote.list(
        lambda c, size, cursor: c.list_epoch_rewards(epoch, limit=size, cursor=cursor), REWARDS_MAX
    )["data"]
    credited = [each["credited"] for each in rewards if each["account_id"] == account_id]
    pool = sum(
        int(part["units"])
        for part in (split.get("compute_pool"), split.get("compute_carry_before"))
        if part is not None
    )
    told = {
        "epoch": epoch,
        "state": split["state"],
        "is_final": weights["is_final"],
        "node_id": node_id,
        "account_id": account_id,
        "gpu_us": row["gpu_us"],
        "charge": row["charge"],
        "provider_part": row["provider"],
        "burn_weight_of_node": row["burn"]["units"],
        "burn_weight_of_account": str(burned.get(account_id, 0)),
        "burn_weight_of_all": str(sum(burned.values())),
        "pool": {"asset": "TOKEN", "units": str(pool)} if "compute_pool" in split else None,
        "reward_of_account": credited[0] if credited else None,
        "formula": "reward = floor(pool x weight of account / weight of all)",
    }
    return {name: value for name, value in told.items() if value is not None}


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
