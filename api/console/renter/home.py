"""The home of a renter: what runs, what it costs now, how long the money lasts, what waits."""

from __future__ import annotations

from datetime import timedelta

from starlette.responses import Response

from api.console.drawing.zones import moment_of
from api.console.renter import bill, listing
from api.console.visits.months import Month, this_month
from api.console.visits.reading import Told, Value
from api.console.visits.visit import Visit

ROWS_MAX, LATELY_MAX, NEAR_PERCENT = 100, 5, 80
PAYERS = ("account", "billing:read", "operator")


async def show(visit: Visit) -> Response:
    """`/rent`"""
    month, running = this_month(visit), await _leases(visit, True, ROWS_MAX)
    ended = await _leases(visit, False, 4 * LATELY_MAX)
    lately = sorted(ended, key=lambda one: str(one.get("closed_at", "")), reverse=True)[:LATELY_MAX]
    offers = await listing.offers_of(visit, running + lately)
    money = await _money(visit, month) if visit.may(*PAYERS) else None
    return visit.show(
        "renter/home.html",
        month=month,
        money=money,
        running=[{**one, "gpu": listing.gpu_of(one, offers)} for one in running],
        lately=[{**one, "gpu": listing.gpu_of(one, offers)} for one in lately],
        waiting=await _waiting(visit, running, money),
    )


async def _leases(visit: Visit, is_open: bool, most: int) -> list[Told]:
    """The newest leases that one rents, that are open or that are not."""
    if not visit.may("renter", "client", "audit:read"):
        return []
    asked: dict[str, Value] = {"open": is_open, "renter_id": visit.account_id}
    found: list[Told] = (await visit.read("/v1/leases", order="desc", limit=most, **asked))["data"]
    return found


async def _money(visit: Visit, month: Month) -> Told:
    account = f"/v1/accounts/{visit.account_id}"
    told: Told = {
        "forecast": await visit.read(f"{account}/forecast"),
        "bill": await visit.read(f"{account}/statements/{month.text}", limit=1),
        "budgets": await visit.read(f"{account}/budgets", limit=ROWS_MAX),
        "funds": await visit.read(f"{account}/funds"),
        "payments": await visit.read(f"{account}/payments", order="desc", limit=ROWS_MAX),
        "usage": None,
        "plot": None,
    }
    if visit.may("renter", "client", "provider", "meter", "billing:read", "operator"):
        days = await visit.read(
            "/v1/usage/summary", by="day", account_id=visit.account_id, limit=31, **month.period
        )
        told |= {"usage": days, "plot": bill.by_day(month, days["data"])}
    return told


async def _waiting(visit: Visit, running: list[Told], money: Told | None) -> list[Told]:
    """What a person should look at: a heading, a word about it, and the page of it."""
    soon = visit.zone.now + timedelta(days=1)
    ending = [one for one in running if one.get("funds_end_at")]
    found = [_ends(one) for one in ending if moment_of(str(one["funds_end_at"])) < soon]
    found += [
        {
            "title": "A price is quoted, and waits for your answer",
            "lease": one["lease_id"],
            "at": one.get("quoted_until"),
            "path": f"/leases/{one['lease_id']}",
        }
        for one in running
        if one["state"] == "quoted"
    ]
    if money is not None:
        found += _of_money(money)
    if visit.may("renter"):
        told = await visit.read("/v1/disputes", state="open", order="desc", limit=ROWS_MAX)
        found += [
            {
                "title": "A dispute is open",
                "amount": one["claimed"],
                "at": one["expires_at"],
                "path": f"/disputes/{one['dispute_id']}",
            }
            for one in told["data"]
        ]
    return found


def _ends(lease: Told) -> Told:
    return {
        "title": "The money held for a lease ends within a day",
        "lease": lease["lease_id"],
        "at": lease["funds_end_at"],
        "path": f"/leases/{lease['lease_id']}",
    }


def _of_money(money: Told) -> list[Told]:
    found: list[Told] = []
    for one in money["budgets"]["data"]:
        monthly, used = one.get("monthly"), int(one["used"]["units"])
        if monthly is not None and used * 100 >= int(monthly["units"]) * NEAR_PERCENT:
            title = f"The budget of {one['scope']} {one['target']} is nearly used"
            found.append({"title": title, "amount": one["used"], "path": "/money"})
    for level in money["funds"]["below"]:
        title = "Your spendable balance is below a level that you set"
        found.append({"title": title, "amount": level, "path": "/money"})
    if money["funds"].get("stopped_reason"):
        found.append({"title": "Automatic top-up has stopped", "path": "/money"})
    for one in money["payments"]["data"]:
        if one["state"] == "started":
            title = "A payment waits for your transfer"
            told = {"title": title, "amount": one["amount"], "at": one["expires_at"]}
            found.append({**told, "path": f"/payments/{one['payment_id']}"})
    return found
