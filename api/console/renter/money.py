"""Money of an account: what is spendable, paying in, warnings, automatic top-up and budgets."""

from __future__ import annotations

from starlette.responses import Response

from api.console.renter import listing
from api.console.visits import entering
from api.console.visits.reading import Refused, Told, refused
from api.console.visits.visit import Visit


async def show(visit: Visit, problem: Refused | None = None) -> Response:
    """`/money`"""
    account = f"/v1/accounts/{visit.account_id}"
    return visit.show(
        "renter/money.html",
        200 if problem is None else problem.status,
        problem=problem,
        balances=(await visit.read(f"{account}/forecast"))["balances"],
        funds=await visit.read(f"{account}/funds"),
        budgets=await listing.rows(visit, f"{account}/budgets", "budgets"),
        payments=await listing.newest(visit, f"{account}/payments", "payments"),
        terms=await visit.read("/v1/payment-terms"),
        may_change=visit.may("account:admin"),
    )


async def take(visit: Visit) -> Response:
    """The forms of the page: `do` is `pay`, `warn`, `budget`, `refill` or `no-refill`."""
    account, form, what = f"/v1/accounts/{visit.account_id}", visit.form, visit.form.get("do")
    body: Told
    try:
        if what == "pay":
            amount = entering.credits_of(form.get("amount", ""), "the amount")
            body = {"method": form.get("method", ""), "amount": amount}
            told = await visit.record(
                f"{account}/payments", {**body, "save_method": form.get("save") == "yes"}
            )
            # Where to pay is in this one answer only, so it is shown and not gone on to.
            return visit.show("renter/payment.html", payment=told)
        if what == "warn":
            levels = form.get("levels", "").replace(",", " ").split()
            body = {"thresholds": [entering.credits_of(each, "each level") for each in levels]}
            await visit.record(f"{account}/funds/warnings", body)
        elif what == "budget":
            monthly = form.get("monthly", "").strip()
            cap = entering.credits_of(monthly, "the budget") if monthly else None
            body = {"scope": form.get("scope", ""), "target": form.get("target", "").strip()}
            await visit.record(f"{account}/budgets", {**body, "monthly": cap})
        elif what == "refill":
            names = ("threshold", "amount", "monthly_max")
            body = {each: entering.credits_of(form.get(each, ""), f"the {each}") for each in names}
            body["payment_id"] = form.get("payment_id", "").strip()
            await visit.record(f"{account}/funds/auto-top-up", body)
        elif what == "no-refill":
            await visit.delete(f"{account}/funds/auto-top-up")
        else:
            raise refused("invalid", "this form is unknown")
    except Refused as problem:
        return await show(visit, problem)
    return visit.to("/money")


async def show_payment(visit: Visit) -> Response:
    """`/payments/{payment_id}`"""
    found = await visit.read(f"/v1/payments/{visit.params['payment_id']}")
    return visit.show("renter/payment.html", payment=found)


async def show_invoices(visit: Visit) -> Response:
    """`/invoices`"""
    found = await listing.newest(visit, f"/v1/accounts/{visit.account_id}/invoices")
    return visit.show("renter/invoices.html", found=found)


async def invoice(visit: Visit) -> Response:
    """`/invoices/{number}.pdf` or `.html`, as the API writes it; always a file, never a page."""
    name = visit.here.removeprefix("/invoices/")
    response = await visit.file(f"/v1/accounts/{visit.account_id}/invoices/{name}")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
