"""`tallystick payment`: buying credits, and confirming bank transfers. Thin clients of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from api.cli_arguments import AccountId
from api.cli_remote import Limit, Remote, credits_of, reads, records
from api.cli_terminal import amount, columns, facts, group, note

if TYPE_CHECKING:
    from tallystick_client.forms import BankConfirmation, NewPayment

app = group(
    "Payments: credits bought by card or bank.", "tallystick payment create acct_1f0c... 25"
)

PaymentId = Annotated[str, typer.Argument(metavar="PAYMENT", help="pay_...")]
Method = Literal["card", "bank"]
_LISTED = ("payment_id", "method", "state", "amount", "started_at")
_MONEY = ("amount", "received", "left")


@app.command("create", epilog="Example: tallystick payment create acct_1f0c... 25 --method card")
@records
def create(
    remote: Remote,
    account_id: AccountId,
    credits: Annotated[str, typer.Argument(metavar="CREDITS", help="Like 25 or 25.50.")],
    method: Annotated[Method, typer.Option(help="How to pay.")] = "card",
    save: Annotated[bool, typer.Option("--save", help="Keep the card for auto top-up.")] = False,
) -> None:
    """Start a payment and print where or how to pay."""
    body: NewPayment = {"method": method, "amount": credits_of(credits), "save_method": save}
    told = remote.ask(lambda c: c.create_payment(account_id, body, idempotency_key=remote.key))
    remote.tell(told, _facts(told))
    note("Credits are there once the payment has arrived: tallystick payment show")


@app.command("list", epilog="Example: tallystick payment list acct_1f0c... --json")
@reads
def list_(remote: Remote, account_id: AccountId, limit: Limit = 50) -> None:
    """The payments of an account, oldest first."""
    found = remote.list(
        lambda c, size, cursor: c.list_payments(account_id, limit=size, cursor=cursor), limit
    )
    rows = [{**row, "amount": amount(row["amount"])} for row in found["data"]]
    remote.tell(found, columns(rows, _LISTED))


@app.command("show", epilog="Example: tallystick payment show pay_77ab...")
@reads
def show(remote: Remote, payment_id: PaymentId) -> None:
    """One payment, and what went back of it."""
    told = remote.ask(lambda c: c.read_payment(payment_id))
    remote.tell(told, _facts(told))


@app.command("confirm", epilog="Example: tallystick payment confirm pay_77ab... --reference 11/17")
@records
def confirm(
    remote: Remote,
    payment_id: PaymentId,
    reference: Annotated[str, typer.Option(help="The line on the bank's statement.")],
    credits: Annotated[
        str | None, typer.Option(help="What arrived, if it is not what was asked for.")
    ] = None,
) -> None:
    """Confirm that a bank transfer arrived (operator)."""
    body: BankConfirmation = {"reference": reference}
    if credits is not None:
        body["amount"] = credits_of(credits)
    told = remote.ask(lambda c: c.confirm_payment(payment_id, body, idempotency_key=remote.key))
    remote.tell(told, _facts(told))


def _facts(told: Any) -> list[str]:
    """Amounts as people write them; what went back, one line each."""
    shown = {name: value for name, value in told.items() if name != "takings"}
    shown |= {name: amount(shown[name]) for name in _MONEY if name in shown}
    lines = facts(shown)
    rows = [{**taking, "amount": amount(taking["amount"])} for taking in told.get("takings", ())]
    return [*lines, *columns(rows, ("id", "kind", "state", "amount", "at"))] if rows else lines
