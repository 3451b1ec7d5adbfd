"""`tallystick grant | breaker`: TOKEN unlocked by milestones, and limits of minting and paying."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.remote import IN_ORDER, Remote, acts, credits_of, lists, reads, records
from cli.signing import KeyFile, vote_on
from cli.terminal import InputUnusable, amount, columns, facts, group

if TYPE_CHECKING:
    from tallystick_client.forms import (
        BreakerLimitRequest,
        GrantAcceptanceRequest,
        GrantMilestoneRequest,
        MilestoneGrantRequest,
        Money,
    )

grant = group("grant", "Grants: TOKEN unlocked by milestones.", "tallystick grant list")

GrantId = Annotated[str, typer.Argument(metavar="GRANT", help="grant_...")]


@grant.command(
    "open",
    epilog="Example: tallystick grant open acct_1f0c... 56500 --milestone api-integration=0.1",
)
@records
def propose_grant(
    remote: Remote,
    account_id: Annotated[
        str, typer.Argument(metavar="ACCOUNT", help="The account that receives the grant.")
    ],
    total: Annotated[str, typer.Argument(metavar="TOKEN", help="Like 56500 or 0.5.")],
    milestone: Annotated[
        list[str], typer.Option(metavar="ID=SHARE", help="Like api-integration=0.1; repeat it.")
    ],
    stated_value: Annotated[
        str | None,
        typer.Option(metavar="USD", help="What the total is said to be worth, in US dollars."),
    ] = None,
) -> None:
    """Propose a grant. A second person opens it: `grant accept GRANT opening`."""
    body: MilestoneGrantRequest = {
        "account_id": account_id,
        "total": tokens_of(total),
        "milestones": [_milestone_of(one) for one in milestone],
    }
    if stated_value is not None:
        body["stated_micro_usd"] = int(credits_of(stated_value)["units"])
    told = remote.ask(lambda c: c.propose_grant(body, idempotency_key=remote.key))
    remote.tell(told, _lines(told))


@grant.command("list", epilog="Example: tallystick grant list --json")
@lists(IN_ORDER)
def list_grants(remote: Remote) -> None:
    """List every grant."""
    found = remote.list(lambda c, page: c.list_grants(**page))
    parts = ("total", "locked", "unlocked", "unassigned", "clawed_back")
    rows = [{**row, **{part: amount(row[part]) for part in parts}} for row in found["data"]]
    remote.tell(found, columns(rows, ("grant_id", "state", *parts)))


@grant.command("show", epilog="Example: tallystick grant show grant_1f0c...")
@reads
def show_grant(remote: Remote, grant_id: GrantId) -> None:
    """Show one grant, its milestones, and the part without a milestone."""
    told = remote.ask(lambda c: c.read_grant(grant_id))
    remote.tell(told, _lines(told))


@grant.command(
    "done", epilog="Example: tallystick grant done grant_1f0c... reputation --evidence https://..."
)
@records
def propose_milestone(
    remote: Remote,
    grant_id: GrantId,
    milestone_id: Annotated[
        str, typer.Argument(metavar="MILESTONE", help="Name of the milestone, as in the grant.")
    ],
    evidence: Annotated[str, typer.Option(help="Address or text that shows the result.")],
) -> None:
    """Report a milestone as done. A second person accepts it."""
    told = remote.ask(
        lambda c: c.propose_milestone(
            grant_id,
            {"milestone_id": milestone_id, "evidence": evidence},
            idempotency_key=remote.key,
        )
    )
    remote.tell(told, _lines(told))


@grant.command("accept", epilog="Example: tallystick grant accept grant_1f0c... reputation")
@records
def accept_grant(
    remote: Remote,
    grant_id: GrantId,
    what: Annotated[
        str,
        typer.Argument(
            metavar="opening|clawback|MILESTONE", help="The part of the grant that was proposed."
        ),
    ],
    signer: KeyFile,
) -> None:
    """Vote for a proposal with your personal key; what is signed is shown first."""
    kind = {"opening": "grant", "clawback": "clawback"}.get(what, "milestone")
    subject = f"{grant_id}/{what}" if kind == "milestone" else grant_id
    found = remote.ask(lambda c: c.read_grant(grant_id))["ballots"]
    ballots = [one for one in found if (one["kind"], one["subject"]) == (kind, subject)]
    if not ballots:
        raise InputUnusable(f"{what} of {grant_id} is not voted on now; see `grant show`")
    vote = vote_on(ballots[0], signer, "yes")
    body: GrantAcceptanceRequest = {"what": "milestone", "milestone_id": what, "vote": vote}
    if what == "opening":
        body = {"what": "opening", "vote": vote}
    elif what == "clawback":
        body = {"what": "clawback", "vote": vote}
    told = remote.ask(lambda c: c.accept_grant(grant_id, body, idempotency_key=remote.key))
    remote.tell(told, _lines(told))


@grant.command(
    "clawback", epilog='Example: tallystick grant clawback grant_1f0c... --reason "It was stopped"'
)
@records
def propose_clawback(
    remote: Remote,
    grant_id: GrantId,
    reason: Annotated[str, typer.Option(help="Why.")],
    only_unassigned: Annotated[
        bool,
        typer.Option("--unassigned", help="Only the part without a milestone; the grant goes on."),
    ] = False,
) -> None:
    """Propose to claw back what is not earned. A second person accepts it."""
    told = remote.ask(
        lambda c: c.propose_clawback(
            grant_id,
            {"scope": "unassigned" if only_unassigned else "unearned", "reason": reason},
            idempotency_key=remote.key,
        )
    )
    remote.tell(told, _lines(told))


def _lines(told: Mapping[str, Any]) -> list[str]:
    names = ("grant_id", "account_id", "state", "proposed_by", "proposed_at")
    parts = ("total", "locked", "unlocked", "unassigned", "clawed_back")
    shown = {name: told[name] for name in names} | {part: amount(told[part]) for part in parts}
    rows = [{**row, "amount": amount(row["amount"])} for row in told["milestones"]]
    return facts(shown) + columns(rows, ("milestone_id", "amount", "state", "proposed_by"))


def tokens_of(text: str) -> Money:
    """`56500` as an amount of TOKEN. Raises InputUnusable; no float is involved."""
    form = re.fullmatch(r"([0-9]{1,11})(?:\.([0-9]{1,8}))?", text)
    if form is None:
        raise InputUnusable(f"{text!r} is no amount: TOKEN like 56500 or 0.5, eight decimals")
    units = int(form[1]) * 100_000_000 + int((form[2] or "").ljust(8, "0"))
    return {"asset": "TOKEN", "units": str(units)}


def _milestone_of(text: str) -> GrantMilestoneRequest:
    """`api-integration=0.1`. Raises InputUnusable."""
    name, _, share = text.partition("=")
    form = re.fullmatch(r"([01])(?:\.([0-9]{1,6}))?", share)
    ppm = -1 if form is None else int(form[1]) * 1_000_000 + int((form[2] or "").ljust(6, "0"))
    if not name or not 0 <= ppm <= 1_000_000:
        raise InputUnusable(f"{text!r} is no milestone: like api-integration=0.1, at most 1")
    return {"milestone_id": name, "share_ppm": ppm}


# --- breaker -----------------------------------------------------------------------------------

breaker = group("breaker", "Breakers: limits of minting and paying.", "tallystick breaker list")


@breaker.command("list", epilog="Example: tallystick breaker list --json")
@reads
def list_breakers(remote: Remote) -> None:
    """List each breaker: its limit, what counts against it now, and what waits."""
    told = remote.ask(lambda c: c.list_breakers())
    rows = [_in_assets(row) for row in told["breakers"]]
    lines = columns(rows, ("breaker", "limit", "window_seconds", "aggregate", "waiting"))
    waits = [
        {**one, "breaker": row["breaker"]} for row in told["breakers"] for one in row["waiting"]
    ]
    remote.tell(told, lines + columns(waits, ("breaker", "ref", "amount", "reason", "since")))


@breaker.command(
    "set", epilog='Example: tallystick breaker set mint --limit 15000 --reason "A week"'
)
@acts
def set_breaker(
    remote: Remote,
    breaker: Annotated[
        str, typer.Argument(metavar="mint|payout|cash_out", help="What the limit is for.")
    ],
    reason: Annotated[str, typer.Option(help="Why; it is recorded.")],
    limit: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT",
            help="In TOKEN, of cash_out in CREDIT, like 15000 or 2.5; default: no limit.",
        ),
    ] = None,
    window: Annotated[
        int,
        typer.Option(metavar="SECONDS", min=1, help="Time over which the amounts are added up."),
    ] = 86_400,
) -> None:
    """Set or remove a limit. Waiting amounts are checked again."""
    body: BreakerLimitRequest = {"window_seconds": window, "reason": reason}
    if limit is not None:
        is_cash = breaker == "cash_out"
        body["limit"] = credits_of(limit)["units"] if is_cash else tokens_of(limit)["units"]
    name: Literal["mint", "payout", "cash_out"] = breaker  # type: ignore[assignment]
    told = remote.ask(lambda c: c.set_breaker(name, body, idempotency_key=remote.key))
    remote.tell(told, facts(_in_assets(told)))


def _in_assets(row: Mapping[str, Any]) -> dict[str, Any]:
    """A breaker with its amounts in TOKEN or CREDIT, and how many wait."""
    shown = {name: value for name, value in row.items() if name != "asset"}
    for name in ("limit", "aggregate"):
        if row.get(name) is not None:
            shown[name] = amount({"asset": row["asset"], "units": row[name]})
    return {**shown, "waiting": len(row["waiting"])}
