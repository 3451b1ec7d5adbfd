"""`tallystick payment`: buying credits, and confirming bank transfers. Thin clients of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from api.cli_remote import ApiKey, IdempotencyKey, Limit, Remote, Url, credits_of
from api.cli_terminal import AsJson, amount, columns, facts, group, note, tell

if TYPE_CHECKING:
    from api.client import BankConfirmation, NewPayment

app = group(
    "Payments: credits bought by card or bank.", "tallystick payment create acct_1f0c... 25"
)

AccountId = Annotated[str, typer.Argument(metavar="ACCOUNT", help="acct_...")]
PaymentId = Annotated[str, typer.Argument(metavar="PAYMENT", help="pay_...")]
Method = Literal["card", "bank"]
_LISTED = ("payment_id", "method", "state", "amount", "started_at")
_MONEY = ("amount", "received", "left")


@app.command("create", epilog="Example: tallystick payment create acct_1f0c... 25 --method card")
def create(
    account_id: AccountId,
    credits: Annotated[str, typer.Argument(metavar="CREDITS", help="Like 25 or 25.50.")],
    method: Annotated[Method, typer.Option(help="How to pay.")] = "card",
    save: Annotated[bool, typer.Option("--save", help="Keep the card for auto top-up.")] = False,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Start a payment and print where or how to pay."""
    remote = Remote(url, api_key, key=idempotency_key)
    body: NewPayment = {"method": method, "amount": credits_of(credits), "save_method": save}
    told = remote.ask(lambda c: c.create_payment(account_id, body, idempotency_key=remote.key))
    tell(told, _facts(told), as_json=as_json)
    note("Credits are there once the payment has arrived: tallystick payment show")


@app.command("list", epilog="Example: tallystick payment list acct_1f0c... --json")
def list_(
    account_id: AccountId,
    limit: Limit = 50,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """The payments of an account, oldest first."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_payments(account_id, limit=size, cursor=cursor), limit
    )
    rows = [{**row, "amount": amount(row["amount"])} for row in found["data"]]
    tell(found, columns(rows, _LISTED), as_json=as_json)


@app.command("show", epilog="Example: tallystick payment show pay_77ab...")
def show(
    payment_id: PaymentId, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """One payment, and what went back of it."""
    told = Remote(url, api_key).ask(lambda c: c.read_payment(payment_id))
    tell(told, _facts(told), as_json=as_json)


@app.command("confirm", epilog="Example: tallystick payment confirm pay_77ab... --reference 11/17")
def confirm(
    payment_id: PaymentId,
    reference: Annotated[str, typer.Option(help="The line on the bank's statement.")],
    credits: Annotated[
        str | None, typer.Option(help="What arrived, if it is not what was asked for.")
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Confirm that a bank transfer arrived (operator)."""
    remote = Remote(url, api_key, key=idempotency_key)
    body: BankConfirmation = {"reference": reference}
    if credits is not None:
        body["amount"] = credits_of(credits)
    told = remote.ask(lambda c: c.confirm_payment(payment_id, body, idempotency_key=remote.key))
    tell(told, _facts(told), as_json=as_json)


def _facts(told: Any) -> list[str]:
    """Amounts as people write them; what went back, one line each."""
    shown = {name: value for name, value in told.items() if name != "takings"}
    shown |= {name: amount(shown[name]) for name in _MONEY if name in shown}
    lines = facts(shown)
    rows = [{**taking, "amount": amount(taking["amount"])} for taking in told.get("takings", ())]
    return [*lines, *columns(rows, ("id", "kind", "state", "amount", "at"))] if rows else lines
