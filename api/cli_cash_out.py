"""`tallystick cash-out`: earned credits as money, and what keeps them. Thin clients of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from api.cli_remote import ApiKey, IdempotencyKey, Limit, Remote, Url, credits_of
from api.cli_terminal import AsJson, amount, columns, facts, group, tell

if TYPE_CHECKING:
    from api.client import NewCashOut, NewPaymentMode

app = group(
    "Cash-outs: earned credits that leave as money.", "tallystick cash-out request acct_1f0c..."
)

AccountId = Annotated[str, typer.Argument(metavar="ACCOUNT", help="acct_...")]
CashOutId = Annotated[str, typer.Argument(metavar="CASH_OUT", help="cashout_...")]
Mode = Literal["credits", "cash"]
_NAMES = ("cash_out_id", "amount", "state", "requested_at", "reference", "reason")


@app.command("request", epilog="Example: tallystick cash-out request acct_1f0c... --credits 25")
def request(
    account_id: AccountId,
    credits: Annotated[
        str | None, typer.Option(help="Like 25 or 25.50; without it everything earned.")
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Ask for earned credits in cash, to the destination that `mode` names."""
    remote = Remote(url, api_key, key=idempotency_key)
    body: NewCashOut = {} if credits is None else {"amount": credits_of(credits)}
    told = remote.ask(lambda c: c.submit_cash_out(account_id, body, idempotency_key=remote.key))
    tell(told, _facts(told), as_json=as_json)


@app.command("list", epilog="Example: tallystick cash-out list acct_1f0c... --json")
def list_(
    account_id: AccountId,
    limit: Limit = 50,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """The cash-outs of an account, oldest first."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_account_cash_outs(account_id, limit=size, cursor=cursor),
        limit,
    )
    rows = [{**row, "amount": amount(row["amount"])} for row in found["data"]]
    tell(found, columns(rows, _NAMES), as_json=as_json)


@app.command("show", epilog="Example: tallystick cash-out show acct_1f0c... cashout_77ab...")
def show(
    account_id: AccountId,
    cash_out_id: CashOutId,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """One cash-out, with the processor's reference or what the operator has to transfer."""
    told = Remote(url, api_key).ask(lambda c: c.read_cash_out(account_id, cash_out_id))
    tell(told, _facts(told), as_json=as_json)


@app.command("cancel", epilog="Example: tallystick cash-out cancel acct_1f0c... cashout_77ab...")
def cancel(
    account_id: AccountId,
    cash_out_id: CashOutId,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Take a request back before the processor was asked."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: c.cancel_cash_out(account_id, cash_out_id, {}, idempotency_key=remote.key)
    )
    tell(told, _facts(told), as_json=as_json)


@app.command("paid", epilog="Example: tallystick cash-out paid acct_1f0c... cashout_77ab...")
def paid(
    account_id: AccountId,
    cash_out_id: CashOutId,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Say that a bank transfer was made (operator)."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: c.confirm_cash_out(account_id, cash_out_id, {}, idempotency_key=remote.key)
    )
    tell(told, _facts(told), as_json=as_json)


@app.command("hold", epilog="Example: tallystick cash-out hold acct_1f0c... --reason identity")
def hold(
    account_id: AccountId,
    reason: Annotated[str, typer.Option(help="Why; the account reads it.")],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Hold all cash-outs of an account (operator)."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: c.add_cash_out_hold(account_id, {"reason": reason}, idempotency_key=remote.key)
    )
    tell(told, _hold_facts(told), as_json=as_json)


@app.command("release", epilog="Example: tallystick cash-out release acct_1f0c...")
def release(
    account_id: AccountId,
    hold_id: Annotated[str, typer.Option(help="Another hold than the operator's.")] = "operator",
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Release a hold; others stay (operator)."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: c.remove_cash_out_hold(
            account_id, {"hold_id": hold_id}, idempotency_key=remote.key
        )
    )
    tell(told, _hold_facts(told), as_json=as_json)


@app.command("mode", epilog="Example: tallystick cash-out mode acct_1f0c... cash --to acct_1NX...")
def mode(
    account_id: AccountId,
    paid_as: Annotated[
        Mode | None, typer.Argument(metavar="[credits|cash]", help="Without it: how it is.")
    ] = None,
    to: Annotated[str | None, typer.Option(help="Your account at the processor.")] = None,
    billing_account: Annotated[
        str | None, typer.Option(help="Whose credits they become; else your own.")
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """How an account is paid: as credits, or in cash by itself every day."""
    remote = Remote(url, api_key, key=idempotency_key)
    if paid_as is None:
        told = remote.ask(lambda c: c.read_payment_mode(account_id))
    else:
        body: NewPaymentMode = {"mode": paid_as}
        if to is not None:
            body["destination"] = to
        if billing_account is not None:
            body["billing_account_id"] = billing_account
        told = remote.ask(
            lambda c: c.set_payment_mode(account_id, body, idempotency_key=remote.key)
        )
    tell(told, facts(told), as_json=as_json)


@app.command("earnings", epilog="Example: tallystick cash-out earnings acct_1f0c...")
def earnings(
    account_id: AccountId, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """What is held back, payable and earned, and what matures when."""
    told: Any = Remote(url, api_key).ask(lambda c: c.read_maturity(account_id))
    rows = [{**row, "amount": amount(row["amount"])} for row in told["upcoming"]]
    parts = ("held_back", "payable", "earned", "matured", "reduced", "swept")
    shown = {name: amount(told[name]) for name in parts}
    holds = [f"held: {row['hold_id']}: {row['reason']}" for row in told["holds"]]
    tell(
        told,
        [*facts(shown), *holds, *columns(rows, ("matures_at", "amount", "at_position"))],
        as_json=as_json,
    )


def _facts(told: Any) -> list[str]:
    return facts(
        {**told, "amount": amount(told["amount"]), "returned": amount(told.get("returned"))}
    )


def _hold_facts(told: Any) -> list[str]:
    return facts({**told, "hold_ids": ", ".join(told["hold_ids"]) or "none"})
