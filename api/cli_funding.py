"""`tallystick promotion | payer | budget`: who pays, with what, and how much a month."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from api.cli_remote import ApiKey, IdempotencyKey, Limit, Remote, Url, credits_of
from api.cli_terminal import AsJson, amount, columns, facts, group, tell

if TYPE_CHECKING:
    from api.client import NewBudget, NewFundedAccount, NewPromotionGrant

promotion = group("Promotions: granted credits.", "tallystick promotion open spring-2026 1000")
payer = group("Payers: one account pays for others.", "tallystick payer fund ACCOUNT OTHER")
budget = group("Budgets: monthly caps.", "tallystick budget set ACCOUNT project train-7b 250")

Program = Annotated[str, typer.Argument(metavar="PROGRAM", help="Like spring-2026.")]
AccountId = Annotated[str, typer.Argument(metavar="ACCOUNT", help="acct_...")]
OtherId = Annotated[str, typer.Argument(metavar="FUNDED", help="acct_... that is paid for.")]
Credits = Annotated[str, typer.Argument(metavar="CREDITS", help="Like 25 or 2.50.")]


# --- promotions --------------------------------------------------------------------------------


@promotion.command("open", epilog="Example: tallystick promotion open spring-2026 1000")
def open_promotion(
    program: Program,
    credits: Credits,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Open a program with a fund from your own cash (operator)."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: c.open_promotion(
            {"program": program, "amount": credits_of(credits)}, idempotency_key=remote.key
        )
    )
    tell(told, _program(told), as_json=as_json)


@promotion.command("list", epilog="Example: tallystick promotion list --json")
def list_promotions(
    limit: Limit = 50, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """Every program (operators and auditors)."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_promotions(limit=size, cursor=cursor), limit
    )
    rows = [
        {**row, **{name: amount(row[name]) for name in ("opened", "granted", "left")}}
        for row in found["data"]
    ]
    names = ("program", "opened", "granted", "left", "opened_at", "closed_at")
    tell(found, columns(rows, names), as_json=as_json)


@promotion.command(
    "grant",
    epilog="Example: tallystick promotion grant spring-2026 acct_1f0c... 25 "
    "--expires-at 2027-01-01T00:00:00Z",
)
def grant_promotion(
    program: Program,
    account_id: AccountId,
    credits: Credits,
    priority: Annotated[int, typer.Option(min=0, max=1_000, help="Lower is spent first.")] = 100,
    expires_at: Annotated[
        str | None, typer.Option(help="RFC 3339; without it the grant does not expire.")
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Give an account credits of a program (operator)."""
    remote = Remote(url, api_key, key=idempotency_key)
    body: NewPromotionGrant = {
        "account_id": account_id,
        "amount": credits_of(credits),
        "priority": priority,
    }
    if expires_at is not None:
        body["expires_at"] = expires_at
    told = remote.ask(lambda c: c.grant_promotion(program, body, idempotency_key=remote.key))
    shown = {**told, "granted": amount(told["granted"]), "breakage": amount(told["breakage"])}
    tell(told, facts(shown), as_json=as_json)


@promotion.command("close", epilog="Example: tallystick promotion close spring-2026")
def close_promotion(
    program: Program,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """End a program; what it did not grant is your cash again (operator)."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.close_promotion(program, {}, idempotency_key=remote.key))
    tell(told, facts(told), as_json=as_json)


def _program(told: Mapping[str, Any]) -> list[str]:
    money = {name: amount(told[name]) for name in ("opened", "granted", "left")}
    return facts({**told, **money})


# --- payers ------------------------------------------------------------------------------------


@payer.command("show", epilog="Example: tallystick payer show acct_1f0c...")
def show_funding(
    account_id: AccountId, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """What an account may spend now, in spend order, and who pays the rest."""
    told = Remote(url, api_key).ask(lambda c: c.read_funding(account_id))
    rows = [{**row, "available": amount(row["available"])} for row in told["sources"]]
    by = told.get("payer")
    if by is not None:
        rows.append(
            {"source": f"of {by['payer_account_id']}", "available": amount(by["available"])}
        )
    names = ("source", "available", "priority", "expires_at")
    tell(told, columns(rows, names), as_json=as_json)


@payer.command("fund", epilog="Example: tallystick payer fund acct_1f0c... acct_77aa... --cap 500")
def fund_account(
    account_id: AccountId,
    funded: OtherId,
    cap: Annotated[
        str | None, typer.Option(metavar="CREDITS", help="At most so much a month.")
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Pay for another account from now on."""
    remote = Remote(url, api_key, key=idempotency_key)
    body: NewFundedAccount = {"funded_account_id": funded}
    if cap is not None:
        body["monthly_cap"] = credits_of(cap)
    told = remote.ask(lambda c: c.fund_account(account_id, body, idempotency_key=remote.key))
    tell(told, facts({**told, "monthly_cap": amount(told.get("monthly_cap"))}), as_json=as_json)


@payer.command("list", epilog="Example: tallystick payer list acct_1f0c...")
def list_funded(
    account_id: AccountId,
    limit: Limit = 50,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Whom an account pays for, and what of each cap is used this month."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_funded_accounts(account_id, limit=size, cursor=cursor), limit
    )
    rows = [
        {**row, "monthly_cap": amount(row.get("monthly_cap")), "used": amount(row.get("used"))}
        for row in found["data"]
    ]
    names = ("funded_account_id", "monthly_cap", "used", "since", "ended_at")
    tell(found, columns(rows, names), as_json=as_json)


@payer.command("end", epilog="Example: tallystick payer end acct_1f0c... acct_77aa...")
def stop_funding(
    account_id: AccountId,
    funded: OtherId,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Stop paying for another account, or (as that account) being paid for."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.stop_funding(account_id, funded, {}, idempotency_key=remote.key))
    tell(told, facts(told), as_json=as_json)


# --- budgets -----------------------------------------------------------------------------------


@budget.command("set", epilog="Example: tallystick budget set acct_1f0c... project train-7b 250")
def set_budget(
    account_id: AccountId,
    scope: Annotated[Literal["project", "key"], typer.Argument(metavar="project|key")],
    target: Annotated[str, typer.Argument(help="The project, or the key's 8 characters.")],
    credits: Annotated[
        str | None, typer.Argument(metavar="[CREDITS]", help="A month; without: no cap any more.")
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Cap what a project or an API key may hold in escrow a month."""
    remote = Remote(url, api_key, key=idempotency_key)
    body: NewBudget = {"scope": scope, "target": target}
    if credits is not None:
        body["monthly"] = credits_of(credits)
    told = remote.ask(lambda c: c.set_budget(account_id, body, idempotency_key=remote.key))
    money = {"monthly": amount(told.get("monthly")), "used": amount(told["used"])}
    tell(told, facts({**told, **money, "left": amount(told.get("left"))}), as_json=as_json)


@budget.command("list", epilog="Example: tallystick budget list acct_1f0c...")
def list_budgets(
    account_id: AccountId,
    limit: Limit = 50,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """The caps of an account, and what of each is used this month."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_budgets(account_id, limit=size, cursor=cursor), limit
    )
    rows = [
        {**row, **{name: amount(row.get(name)) for name in ("monthly", "used", "left")}}
        for row in found["data"]
    ]
    names = ("scope", "target", "month", "monthly", "used", "left", "alerted_percent")
    tell(found, columns(rows, names), as_json=as_json)
