"""`tallystick promotion | payer | budget | payment`: where credits come from, and their bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.arguments import AccountId, OwnAccount
from cli.remote import AS_IT_IS, IN_ORDER, Remote, acts, credits_of, lists, reads, records
from cli.terminal import amount, columns, facts, group, note

if TYPE_CHECKING:
    from tallystick_client.forms import (
        BankConfirmationRequest,
        BudgetRequest,
        FundedAccountRequest,
        PaymentRequest,
        PromotionGrantRequest,
    )

promotion = group(
    "promotion", "Promotions: granted credits.", "tallystick promotion open spring-2026 1000"
)
payer = group(
    "payer", "Payers: one account pays for others.", "tallystick payer fund ACCOUNT OTHER"
)
budget = group(
    "budget", "Budgets: monthly caps.", "tallystick budget set ACCOUNT project train-7b 250"
)

Program = Annotated[str, typer.Argument(metavar="PROGRAM", help="Like spring-2026.")]
OtherId = Annotated[str, typer.Argument(metavar="FUNDED", help="acct_... that is paid for.")]
Credits = Annotated[str, typer.Argument(metavar="CREDITS", help="Like 25 or 2.50.")]


# --- promotions --------------------------------------------------------------------------------


@promotion.command("open", epilog="Example: tallystick promotion open spring-2026 1000")
@records
def open_promotion(remote: Remote, program: Program, credits: Credits) -> None:
    """Open a program with a fund from your own cash (operator)."""
    told = remote.ask(
        lambda c: c.open_promotion(
            {"program": program, "amount": credits_of(credits)}, idempotency_key=remote.key
        )
    )
    remote.tell(told, facts(told))


@promotion.command("list", epilog="Example: tallystick promotion list --json")
@lists(IN_ORDER)
def list_promotions(remote: Remote) -> None:
    """List every program (operators and auditors)."""
    found = remote.list(lambda c, page: c.list_promotions(**page))
    rows = [
        {**row, **{name: amount(row[name]) for name in ("opened", "granted", "left")}}
        for row in found["data"]
    ]
    names = ("program", "opened", "granted", "left", "opened_at", "closed_at")
    remote.tell(found, columns(rows, names))


@promotion.command(
    "grant",
    epilog="Example: tallystick promotion grant spring-2026 acct_1f0c... 25 "
    "--expires-at 2027-01-01T00:00:00Z",
)
@records
def grant_promotion(
    remote: Remote,
    program: Program,
    account_id: AccountId,
    credits: Credits,
    priority: Annotated[int, typer.Option(min=0, max=1_000, help="Lower is spent first.")] = 100,
    expires_at: Annotated[
        str | None, typer.Option(help="RFC 3339; without it the grant does not expire.")
    ] = None,
) -> None:
    """Give an account credits of a program (operator)."""
    body: PromotionGrantRequest = {
        "account_id": account_id,
        "amount": credits_of(credits),
        "priority": priority,
    }
    if expires_at is not None:
        body["expires_at"] = expires_at
    told = remote.ask(lambda c: c.grant_promotion(program, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@promotion.command("close", epilog="Example: tallystick promotion close spring-2026")
@records
def close_promotion(remote: Remote, program: Program) -> None:
    """End a program. Credits that it did not grant become your cash again (operator)."""
    told = remote.ask(lambda c: c.close_promotion(program, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


# --- payers ------------------------------------------------------------------------------------


@payer.command("show", epilog="Example: tallystick payer show acct_1f0c...")
@reads
def show_funding(remote: Remote, account_id: OwnAccount = None) -> None:
    """Show what an account may spend now, in spend order, and its payer."""
    who = remote.own(account_id)
    told = remote.ask(lambda c: c.read_funding(who))
    rows = [{**row, "available": amount(row["available"])} for row in told["sources"]]
    by = told.get("payer")
    if by is not None:
        rows.append(
            {"source": f"of {by['payer_account_id']}", "available": amount(by["available"])}
        )
    names = ("source", "available", "priority", "expires_at")
    remote.tell(told, columns(rows, names))


@payer.command("fund", epilog="Example: tallystick payer fund acct_1f0c... acct_77aa... --cap 500")
@records
def fund_account(
    remote: Remote,
    account_id: AccountId,
    funded: OtherId,
    cap: Annotated[
        str | None, typer.Option(metavar="CREDITS", help="Highest amount a month.")
    ] = None,
) -> None:
    """Pay for another account from now on."""
    body: FundedAccountRequest = {"funded_account_id": funded}
    if cap is not None:
        body["monthly_cap"] = credits_of(cap)
    told = remote.ask(lambda c: c.fund_account(account_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@payer.command("list", epilog="Example: tallystick payer list acct_1f0c...")
@lists(IN_ORDER)
def list_funded(remote: Remote, account_id: OwnAccount = None) -> None:
    """List the accounts that an account pays for, and the use of each cap this month."""
    who = remote.own(account_id)
    found = remote.list(lambda c, page: c.list_funded_accounts(who, **page))
    rows = [
        {**row, "monthly_cap": amount(row.get("monthly_cap")), "used": amount(row.get("used"))}
        for row in found["data"]
    ]
    names = ("funded_account_id", "monthly_cap", "used", "since", "ended_at")
    remote.tell(found, columns(rows, names))


@payer.command("end", epilog="Example: tallystick payer end acct_1f0c... acct_77aa...")
@records
def stop_funding(remote: Remote, account_id: AccountId, funded: OtherId) -> None:
    """Stop paying for another account, or (as that account) stop being paid for."""
    told = remote.ask(lambda c: c.stop_funding(account_id, funded, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


# --- budgets -----------------------------------------------------------------------------------


@budget.command("set", epilog="Example: tallystick budget set acct_1f0c... project train-7b 250")
@records
def set_budget(
    remote: Remote,
    account_id: AccountId,
    scope: Annotated[
        Literal["project", "key"],
        typer.Argument(metavar="project|key", help="Whose spending the budget limits."),
    ],
    target: Annotated[str, typer.Argument(help="The project, or the key's 8 characters.")],
    credits: Annotated[
        str | None,
        typer.Argument(metavar="[CREDITS]", help="Credits a month; default: remove the cap."),
    ] = None,
) -> None:
    """Cap what a project or an API key may hold in escrow in a month."""
    body: BudgetRequest = {"scope": scope, "target": target}
    if credits is not None:
        body["monthly"] = credits_of(credits)
    told = remote.ask(lambda c: c.set_budget(account_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@budget.command("list", epilog="Example: tallystick budget list acct_1f0c...")
@lists(AS_IT_IS)
def list_budgets(remote: Remote, account_id: OwnAccount = None) -> None:
    """List the caps of an account, and the use of each this month."""
    who = remote.own(account_id)
    found = remote.list(lambda c, page: c.list_budgets(who, **page))
    rows = [
        {**row, **{name: amount(row.get(name)) for name in ("monthly", "used", "left")}}
        for row in found["data"]
    ]
    names = ("scope", "target", "month", "monthly", "used", "left", "alerted_percent")
    remote.tell(found, columns(rows, names))


# --- payment -----------------------------------------------------------------------------------

payment = group(
    "payment",
    "Payments: credits bought by card or bank.",
    "tallystick payment create acct_1f0c... 25",
)

PaymentId = Annotated[str, typer.Argument(metavar="PAYMENT", help="pay_...")]
Method = Literal["card", "bank"]
_LISTED = ("payment_id", "method", "state", "amount", "started_at")
_MONEY = ("amount", "received", "left")


@payment.command(
    "create", epilog="Example: tallystick payment create acct_1f0c... 25 --method card"
)
@records
def create(
    remote: Remote,
    account_id: AccountId,
    credits: Annotated[str, typer.Argument(metavar="CREDITS", help="Like 25 or 25.50.")],
    method: Annotated[Method, typer.Option(help="How to pay.")] = "card",
    save: Annotated[bool, typer.Option("--save", help="Keep the card for auto top-up.")] = False,
) -> None:
    """Start a payment and print where or how to pay."""
    body: PaymentRequest = {"method": method, "amount": credits_of(credits), "save_method": save}
    told = remote.ask(lambda c: c.create_payment(account_id, body, idempotency_key=remote.key))
    remote.tell(told, _facts(told))
    note("Credits are there once the payment has arrived: tallystick payment show")


@payment.command("list", epilog="Example: tallystick payment list acct_1f0c... --json")
@lists(IN_ORDER)
def list_(remote: Remote, account_id: OwnAccount = None) -> None:
    """List the payments of an account."""
    who = remote.own(account_id)
    found = remote.list(lambda c, page: c.list_payments(who, **page))
    rows = [{**row, "amount": amount(row["amount"])} for row in found["data"]]
    remote.tell(found, columns(rows, _LISTED))


@payment.command("show", epilog="Example: tallystick payment show pay_77ab...")
@reads
def show(remote: Remote, payment_id: PaymentId) -> None:
    """Show one payment, and how much of it went back."""
    told = remote.ask(lambda c: c.read_payment(payment_id))
    remote.tell(told, _facts(told))


@payment.command(
    "confirm", epilog="Example: tallystick payment confirm pay_77ab... --reference 11/17"
)
@acts
def confirm(
    remote: Remote,
    payment_id: PaymentId,
    reference: Annotated[str, typer.Option(help="The line on the bank's statement.")],
    credits: Annotated[
        str | None, typer.Option(help="The amount that arrived, if another than requested.")
    ] = None,
) -> None:
    """Confirm that a bank transfer arrived (operator)."""
    body: BankConfirmationRequest = {"reference": reference}
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
