"""`tallystick reward`: slashes and adjustments, by two people. Thin client of the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli_grant import tokens_of
from api.cli_remote import Limit, Remote, reads, records
from api.cli_terminal import InputUnusable, amount, columns, facts, group

if TYPE_CHECKING:
    from tallystick_client.forms import NewAdjustment, NewSlash

app = group("Rewards: slashes and adjustments.", "tallystick reward corrections")

Epoch = Annotated[int, typer.Argument(min=1, metavar="EPOCH", help="Whose reward was wrong.")]
Account = Annotated[str, typer.Argument(metavar="ACCOUNT", help="acct_...")]
Why = Annotated[str, typer.Option(help="Why; it is recorded.")]
Evidence = Annotated[
    int | None, typer.Option(min=1, metavar="POSITION", help="A fact of the log that shows it.")
]


@app.command(
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
    """Propose to take what has not matured of a reward (governance). A second person accepts it."""
    body: NewSlash = {"account_id": account_id, "amount": tokens_of(tokens), "reason": reason}
    if evidence is not None:
        body["evidence_position"] = evidence
    told = remote.ask(lambda c: c.propose_slash(epoch, body, idempotency_key=remote.key))
    remote.tell(told, _lines(told))


@app.command(
    epilog='Example: tallystick reward adjust 3 acct_1f0c... --give 2.5 --reason "It came late"'
)
@records
def adjust(
    remote: Remote,
    epoch: Epoch,
    account_id: Account,
    reason: Why,
    give: Annotated[str | None, typer.Option(metavar="TOKEN", help="To be given.")] = None,
    take: Annotated[str | None, typer.Option(metavar="TOKEN", help="To give back.")] = None,
    evidence: Evidence = None,
) -> None:
    """Propose to give or to take with the open epoch (governance). A second person accepts it."""
    if (give is None) == (take is None):
        raise InputUnusable("either --give or --take")
    units = tokens_of(give or take or "")["units"]
    body: NewAdjustment = {
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


@app.command(epilog="Example: tallystick reward accept correction_1f0c...")
@records
def accept(
    remote: Remote,
    correction_id: Annotated[str, typer.Argument(metavar="CORRECTION", help="correction_...")],
) -> None:
    """Accept what another member of the governance has proposed: now it moves."""
    told = remote.ask(
        lambda c: c.accept_reward_correction(correction_id, {}, idempotency_key=remote.key)
    )
    remote.tell(told, _lines(told))


@app.command(epilog="Example: tallystick reward corrections --json")
@reads
def corrections(remote: Remote, limit: Limit = 50) -> None:
    """Every slash and adjustment, and what came of it."""
    found = remote.list(
        lambda c, size, cursor: c.list_reward_corrections(limit=size, cursor=cursor), limit
    )
    names = ("correction_id", "kind", "state", "epoch", "account_id", "delta", "slashed")
    remote.tell(found, columns([_shown(row) for row in found["data"]], names))


def _lines(told: Mapping[str, Any]) -> list[str]:
    return facts(_shown(told))


def _shown(told: Mapping[str, Any]) -> dict[str, Any]:
    taken = {"slashed": amount(told["slashed"])} if "slashed" in told else {}
    return {**told, **taken}
