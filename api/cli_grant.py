"""`tallystick grant`: TOKEN unlocked milestone by milestone. Thin client of the API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli_remote import ApiKey, IdempotencyKey, Limit, Remote, Url
from api.cli_terminal import AsJson, InputUnusable, amount, columns, facts, group, tell

if TYPE_CHECKING:
    from api.client import Acceptance, MilestoneAsked, Money, NewGrant

app = group("Grants: TOKEN unlocked by milestones.", "tallystick grant list")

GrantId = Annotated[str, typer.Argument(metavar="GRANT", help="grant_...")]


@app.command(
    "open",
    epilog="Example: tallystick grant open acct_1f0c... 56500 --milestone api-integration=0.1",
)
def propose_grant(
    account_id: Annotated[str, typer.Argument(metavar="ACCOUNT", help="Whose it will be.")],
    total: Annotated[str, typer.Argument(metavar="TOKEN", help="Like 56500 or 0.5.")],
    milestone: Annotated[
        list[str], typer.Option(metavar="ID=SHARE", help="Like api-integration=0.1; repeat it.")
    ],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Propose a grant (governance). A second person opens it: `grant accept GRANT opening`."""
    remote = Remote(url, api_key, key=idempotency_key)
    body: NewGrant = {
        "account_id": account_id,
        "total": _tokens_of(total),
        "milestones": [_milestone_of(one) for one in milestone],
    }
    told = remote.ask(lambda c: c.propose_grant(body, idempotency_key=remote.key))
    tell(told, _lines(told), as_json=as_json)


@app.command("list", epilog="Example: tallystick grant list --json")
def list_grants(
    limit: Limit = 50, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """Every grant."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_grants(limit=size, cursor=cursor), limit
    )
    parts = ("total", "locked", "unlocked", "unassigned", "clawed_back")
    rows = [{**row, **{part: amount(row[part]) for part in parts}} for row in found["data"]]
    tell(found, columns(rows, ("grant_id", "state", *parts)), as_json=as_json)


@app.command("show", epilog="Example: tallystick grant show grant_1f0c...")
def show_grant(
    grant_id: GrantId, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """One grant, its milestones, and what has no milestone."""
    told = Remote(url, api_key).ask(lambda c: c.read_grant(grant_id))
    tell(told, _lines(told), as_json=as_json)


@app.command(
    "done",
    epilog="Example: tallystick grant done grant_1f0c... reputation --evidence https://...",
)
def propose_milestone(
    grant_id: GrantId,
    milestone_id: Annotated[str, typer.Argument(metavar="MILESTONE")],
    evidence: Annotated[str, typer.Option(help="Where it can be seen.")],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Say that a milestone is done (governance). A second person accepts it."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: c.propose_milestone(
            grant_id,
            {"milestone_id": milestone_id, "evidence": evidence},
            idempotency_key=remote.key,
        )
    )
    tell(told, _lines(told), as_json=as_json)


@app.command("accept", epilog="Example: tallystick grant accept grant_1f0c... reputation")
def accept_grant(
    grant_id: GrantId,
    what: Annotated[
        str, typer.Argument(metavar="opening|clawback|MILESTONE", help="What was proposed.")
    ],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Accept what another member of the governance has proposed."""
    remote = Remote(url, api_key, key=idempotency_key)
    body: Acceptance = {"what": "milestone", "milestone_id": what}
    if what == "opening":
        body = {"what": "opening"}
    elif what == "clawback":
        body = {"what": "clawback"}
    told = remote.ask(lambda c: c.accept_grant(grant_id, body, idempotency_key=remote.key))
    tell(told, _lines(told), as_json=as_json)


@app.command(
    "clawback", epilog='Example: tallystick grant clawback grant_1f0c... --reason "It was stopped"'
)
def propose_clawback(
    grant_id: GrantId,
    reason: Annotated[str, typer.Option(help="Why.")],
    only_unassigned: Annotated[
        bool, typer.Option("--unassigned", help="Only what has no milestone; the grant goes on.")
    ] = False,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Propose to take back what is not earned (governance). A second person accepts it."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: c.propose_clawback(
            grant_id,
            {"scope": "unassigned" if only_unassigned else "unearned", "reason": reason},
            idempotency_key=remote.key,
        )
    )
    tell(told, _lines(told), as_json=as_json)


def _lines(told: Mapping[str, Any]) -> list[str]:
    names = ("grant_id", "account_id", "state", "proposed_by", "proposed_at")
    parts = ("total", "locked", "unlocked", "unassigned", "clawed_back")
    shown = {name: told[name] for name in names} | {part: amount(told[part]) for part in parts}
    rows = [{**row, "amount": amount(row["amount"])} for row in told["milestones"]]
    return facts(shown) + columns(rows, ("milestone_id", "amount", "state", "proposed_by"))


def _tokens_of(text: str) -> Money:
    """`56500` as an amount of TOKEN. Raises InputUnusable; no float is involved."""
    form = re.fullmatch(r"([0-9]{1,11})(?:\.([0-9]{1,8}))?", text)
    if form is None:
        raise InputUnusable(f"{text!r} is no amount: TOKEN like 56500 or 0.5, eight decimals")
    units = int(form[1]) * 100_000_000 + int((form[2] or "").ljust(8, "0"))
    return {"asset": "TOKEN", "units": str(units)}


def _milestone_of(text: str) -> MilestoneAsked:
    """`api-integration=0.1`. Raises InputUnusable."""
    name, _, share = text.partition("=")
    form = re.fullmatch(r"([01])(?:\.([0-9]{1,6}))?", share)
    ppm = -1 if form is None else int(form[1]) * 1_000_000 + int((form[2] or "").ljust(6, "0"))
    if not name or not 0 <= ppm <= 1_000_000:
        raise InputUnusable(f"{text!r} is no milestone: like api-integration=0.1, at most 1")
    return {"milestone_id": name, "share_ppm": ppm}
