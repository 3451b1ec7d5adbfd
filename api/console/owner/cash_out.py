"""Money out: how much can be taken, where the rest is, where it goes, and each cash-out.

    held back + payable + earned + cashed out + reduced == all that was ever credited    (the API's)

Nothing is sent before the amount was shown on the button that sends it.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from api.console.drawing.words import PLACES, decimal
from api.console.owner.home import calendar
from api.console.owner.own import ROWS_MAX, credits_, now_of
from api.console.visits import entering
from api.console.visits.reading import Refused, Told, refused
from api.console.visits.visit import Visit
from domain.funds.payment_terms import CENT_UNITS
from domain.income.cash_out import least_of


async def show(visit: Visit) -> Response:
    """`/earn/cash-out`"""
    return await _page(visit, "", None)


async def show_ask(visit: Visit) -> Response:
    """`/earn/cash-out/send?amount=`: what would be sent, with the amount on the button."""
    maturity = await visit.read(f"/v1/accounts/{visit.account_id}/maturity")
    text = visit.asked("amount")
    try:
        earned = int(maturity["earned"]["units"])
        asked = int(entering.credits_of(text, "the amount")["units"]) if text else None
        units = earned - earned % CENT_UNITS if asked is None else asked
        terms = await visit.read("/v1/cash-outs/terms")
        _check(units, earned, _least(maturity, terms))
    except Refused as problem:
        return await _page(visit, text, problem)
    mode = await visit.read(f"/v1/accounts/{visit.account_id}/payment-mode")
    return visit.show(
        "owner/cash_out_ask.html",
        amount_=credits_(units),
        text=decimal(units, PLACES["CREDIT"], 2).replace(",", ""),
        mode=mode,
        waits=_waits(visit, mode),
        left=credits_(earned - units),
    )


def _least(maturity: Told, terms: Told) -> int:
    """The smallest cash-out now, by the rule that the API refuses by."""
    coming = int(maturity["held_back"]["units"]) + int(maturity["payable"]["units"])
    return least_of(int(terms["minimum"]["units"]), int(maturity["earned"]["units"]), coming)


def _check(units: int, earned: int, least: int) -> None:
    """What the API would refuse is told before it is asked. Raises Refused."""
    if units % CENT_UNITS or units <= 0:
        raise refused("invalid", "an amount is in whole cents, such as 25.00")
    if units > earned:
        most = decimal(earned - earned % CENT_UNITS, PLACES["CREDIT"], 2)
        raise refused("invalid", f"you can take {most} CREDIT at most")
    if units < least:
        told = decimal(least, PLACES["CREDIT"], 2)
        raise refused("invalid", f"the smallest cash-out is {told} CREDIT")


async def take(visit: Visit) -> Response:
    """Ask for the cash-out whose amount stood on the button."""
    path, text = f"/v1/accounts/{visit.account_id}/cash-outs", visit.form.get("amount", "")
    try:
        body: dict[str, Any] = {"amount": entering.credits_of(text, "the amount")}
        made = await visit.record(path, body)
    except Refused as problem:
        if problem.ends_visit:
            raise
        return await _page(visit, text, problem)
    return visit.to(f"/earn/cash-out/{made['cash_out_id']}")


async def _page(visit: Visit, text: str, problem: Refused | None) -> Response:
    path = f"/v1/accounts/{visit.account_id}"
    maturity = await visit.read(f"{path}/maturity")
    rows = await visit.read(f"{path}/cash-outs", order="desc", limit=ROWS_MAX)
    terms = await visit.read("/v1/cash-outs/terms")
    mode = await visit.read(f"{path}/payment-mode")
    earned, least = int(maturity["earned"]["units"]), _least(maturity, terms)
    return visit.show(
        "owner/cash_out.html",
        200 if problem is None else problem.status,
        maturity=maturity,
        most=credits_(earned - earned % CENT_UNITS),
        minimum=credits_(least),
        can=earned >= least and mode.get("destination") is not None,
        is_enough=earned >= least,
        window_days=terms["window_seconds"] // 86_400,
        mode=mode,
        waits=_waits(visit, mode),
        rows=rows,
        text=text or decimal(earned - earned % CENT_UNITS, PLACES["CREDIT"], 2).replace(",", ""),
        problem=problem,
        calendar=calendar(maturity, visit),
    )


def _waits(visit: Visit, mode: Told) -> bool:
    """Whether the destination is so new that nothing leaves yet."""
    begins = mode.get("destination_from")
    return begins is not None and str(begins) > now_of(visit)


async def show_one(visit: Visit) -> Response:
    """`/earn/cash-out/{cash_out_id}`"""
    path = f"/v1/accounts/{visit.account_id}/cash-outs/{visit.params['cash_out_id']}"
    return visit.show("owner/cash_out_one.html", one=await visit.read(path))


async def take_one(visit: Visit) -> Response:
    """Cancel it, as long as nobody was asked to pay it."""
    one = visit.params["cash_out_id"]
    await visit.record(f"/v1/accounts/{visit.account_id}/cash-outs/{one}/cancel")
    return visit.to(f"/earn/cash-out/{one}")


async def show_mode(visit: Visit) -> Response:
    """`/earn/payment`: how one is paid, and where to."""
    return await _mode(visit, None)


async def take_mode(visit: Visit) -> Response:
    """Set it. A new destination is paid after 72 hours."""
    body: dict[str, Any] = {"mode": visit.form.get("mode", "")}
    if visit.form.get("destination", "").strip():
        body["destination"] = visit.form["destination"].strip()
    try:
        await visit.record(f"/v1/accounts/{visit.account_id}/payment-mode", body)
    except Refused as problem:
        if problem.ends_visit:
            raise
        return await _mode(visit, problem)
    return visit.to("/earn/cash-out")


async def _mode(visit: Visit, problem: Refused | None) -> Response:
    mode = await visit.read(f"/v1/accounts/{visit.account_id}/payment-mode")
    status = 200 if problem is None else problem.status
    return visit.show("owner/payment.html", status, mode=mode, problem=problem)
