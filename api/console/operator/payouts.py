"""Money on its way out: cash-outs, payout roots, corrections of rewards, and what limits them."""

from __future__ import annotations

from starlette.responses import Response

from api.console.visits.reading import Told, refused
from api.console.visits.visit import Visit

ROWS_MAX = 200


async def show(visit: Visit) -> Response:
    """`/operate/payouts`"""
    waiting = await visit.read("/v1/cash-outs", open=True, order="desc", limit=ROWS_MAX)
    ended = await visit.read("/v1/cash-outs", open=False, order="desc", limit=ROWS_MAX)
    roots = await visit.read("/v1/payouts", order="desc", limit=ROWS_MAX)
    fixes = await visit.read("/v1/reward-corrections", order="desc", limit=ROWS_MAX)
    breakers = await visit.read("/v1/breakers")
    governors = await visit.read("/v1/governors")
    return visit.show(
        "operator/payouts.html",
        waiting=waiting,
        ended=ended,
        roots=roots,
        fixes=fixes,
        breakers=breakers["breakers"],
        governors=governors,
    )


async def show_one(visit: Visit) -> Response:
    """`/operate/payouts/{account_id}/{cash_out_id}`"""
    return visit.show("operator/cash_out.html", one=await _cash_out(visit))


async def take(visit: Visit) -> Response:
    """Say that a transfer was made or will not be, or hold the account's cash-outs. What is above
    a limit needs a second person's personal key, which no page has: the API refuses it, and the
    page names the command.
    """
    act, account = visit.form.get("act", ""), f"/v1/accounts/{visit.params['account_id']}"
    cash_out = f"{account}/cash-outs/{visit.params['cash_out_id']}"
    reason = visit.form.get("reason", "").strip()
    if act == "paid":
        await visit.record(f"{cash_out}/paid")
    elif act == "failed":
        await visit.record(f"{cash_out}/failed", {"reason": reason})
    elif act == "hold":
        await visit.record(f"{account}/cash-outs/hold", {"reason": reason})
    elif act == "release":
        await visit.record(f"{account}/cash-outs/release")
    else:
        raise refused("invalid", "a cash-out is paid, failed, held or released")
    return visit.to(visit.here)


async def _cash_out(visit: Visit) -> Told:
    account_id, cash_out_id = visit.params["account_id"], visit.params["cash_out_id"]
    return await visit.read(f"/v1/accounts/{account_id}/cash-outs/{cash_out_id}")
