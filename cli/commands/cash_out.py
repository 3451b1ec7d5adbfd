"""`tallystick cash-out`: earned credits as money, and what keeps them. Thin clients of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.arguments import AccountId, OwnAccount
from cli.remote import IN_ORDER, Remote, acts, credits_of, lists, reads, records
from cli.terminal import amount, columns, facts, group

if TYPE_CHECKING:
    from tallystick_client.forms import CashOutRequest, PaymentModeRequest

app = group(
    "cash-out",
    "Cash-outs: earned credits that leave as money.",
    "tallystick cash-out request acct_1f0c...",
)

CashOutId = Annotated[str, typer.Argument(metavar="CASH_OUT", help="cashout_...")]
Mode = Literal["credits", "cash"]
_NAMES = ("cash_out_id", "amount", "state", "requested_at", "reference", "reason")


@app.command("request", epilog="Example: tallystick cash-out request acct_1f0c... --credits 25")
@records
def request(
    remote: Remote,
    account_id: AccountId,
    credits: Annotated[
        str | None, typer.Option(help="Credits, like 25 or 25.50; default: everything earned.")
    ] = None,
) -> None:
    """Request a cash-out of earned credits, to the destination that `mode` names."""
    body: CashOutRequest = {} if credits is None else {"amount": credits_of(credits)}
    told = remote.ask(lambda c: c.submit_cash_out(account_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@app.command("list", epilog="Example: tallystick cash-out list acct_1f0c... --json")
@lists(IN_ORDER)
def list_(remote: Remote, account_id: OwnAccount = None) -> None:
    """List the cash-outs of an account."""
    who = remote.own(account_id)
    found = remote.list(lambda c, page: c.list_account_cash_outs(who, **page))
    rows = [{**row, "amount": amount(row["amount"])} for row in found["data"]]
    remote.tell(found, columns(rows, _NAMES))


@app.command("show", epilog="Example: tallystick cash-out show acct_1f0c... cashout_77ab...")
@reads
def show(remote: Remote, account_id: AccountId, cash_out_id: CashOutId) -> None:
    """Show one cash-out: whose work it pays for, and the processor's reference or the transfer that
    the operator must make.
    """
    told: Any = remote.ask(lambda c: c.read_cash_out(account_id, cash_out_id))
    shown = {name: value for name, value in told.items() if name != "clients"}
    rows = [
        {"client_id": row.get("client_id", "none known"), "amount": amount(row["amount"])}
        for row in told["clients"]
    ]
    remote.tell(told, [*facts(shown), *columns(rows, ("client_id", "amount"))])


@app.command("cancel", epilog="Example: tallystick cash-out cancel acct_1f0c... cashout_77ab...")
@records
def cancel(remote: Remote, account_id: AccountId, cash_out_id: CashOutId) -> None:
    """Cancel a cash-out that the processor was not yet asked to pay."""
    told = remote.ask(
        lambda c: c.cancel_cash_out(account_id, cash_out_id, {}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))


@app.command("paid", epilog="Example: tallystick cash-out paid acct_1f0c... cashout_77ab...")
@acts
def paid(remote: Remote, account_id: AccountId, cash_out_id: CashOutId) -> None:
    """Confirm that a bank transfer was made (operator)."""
    told = remote.ask(
        lambda c: c.confirm_cash_out(account_id, cash_out_id, {}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))


@app.command("hold", epilog="Example: tallystick cash-out hold acct_1f0c... --reason identity")
@records
def hold(
    remote: Remote,
    account_id: AccountId,
    reason: Annotated[str, typer.Option(help="Why; the account reads it.")],
) -> None:
    """Hold all cash-outs of an account (operator)."""
    told = remote.ask(
        lambda c: c.add_cash_out_hold(account_id, {"reason": reason}, idempotency_key=remote.key)
    )
    remote.tell(told, _hold_facts(told))


@app.command("release", epilog="Example: tallystick cash-out release acct_1f0c...")
@acts
def release(
    remote: Remote,
    account_id: AccountId,
    hold_id: Annotated[
        str, typer.Option(help="Id of another hold than the operator's.")
    ] = "operator",
) -> None:
    """Release a hold; others stay (operator)."""
    told = remote.ask(
        lambda c: c.remove_cash_out_hold(
            account_id, {"hold_id": hold_id}, idempotency_key=remote.key
        )
    )
    remote.tell(told, _hold_facts(told))


@app.command("mode", epilog="Example: tallystick cash-out mode acct_1f0c... cash --to acct_1NX...")
@records
def mode(
    remote: Remote,
    account_id: AccountId,
    paid_as: Annotated[
        Mode | None,
        typer.Argument(
            metavar="[credits|cash]", help="The mode to set; default: show the present one."
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            help="Destination of cash: your account at the payment processor, like acct_1NX..."
        ),
    ] = None,
    billing_account: Annotated[
        str | None, typer.Option(help="The account that gets the credits; else your own.")
    ] = None,
) -> None:
    """Show or set how an account is paid: as credits, or in cash every day."""
    if paid_as is None:
        told = remote.ask(lambda c: c.read_payment_mode(account_id))
    else:
        body: PaymentModeRequest = {"mode": paid_as}
        if to is not None:
            body["destination"] = to
        if billing_account is not None:
            body["billing_account_id"] = billing_account
        told = remote.ask(
            lambda c: c.set_payment_mode(account_id, body, idempotency_key=remote.key)
        )
    remote.tell(told, facts(told))


@app.command("earnings", epilog="Example: tallystick cash-out earnings")
@reads
def earnings(remote: Remote, account_id: OwnAccount = None) -> None:
    """Show what is held back, payable and earned, when it matures, and which clients brought it."""
    who = remote.own(account_id)
    told: Any = remote.ask(lambda c: c.read_maturity(who))
    rows = [{**row, "amount": amount(row["amount"])} for row in told["upcoming"]]
    parts = ("held_back", "payable", "earned", "matured", "reduced", "swept")
    shown = {name: amount(told[name]) for name in parts}
    holds = [f"held: {row['hold_id']}: {row['reason']}" for row in told["holds"]]
    totals = ("matured", "received", "swept", "paid")
    clients = [
        {
            "client_id": row.get("client_id", "none known"),
            **{name: amount(row[name]) for name in totals},
        }
        for row in told["clients"]
    ]
    lines = columns(rows, ("matures_at", "amount", "at_position"))
    remote.tell(told, [*facts(shown), *holds, *lines, *columns(clients, ("client_id", *totals))])


def _hold_facts(told: Any) -> list[str]:
    return facts({**told, "hold_ids": ", ".join(told["hold_ids"]) or "none"})
