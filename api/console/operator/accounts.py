"""All accounts: open one, hold its cash-outs, close it; clients, and their suspension."""

from __future__ import annotations

from starlette.responses import Response

from api.console.visits.reading import refused
from api.console.visits.visit import Visit

ROWS_MAX = 200


async def show_all(visit: Visit) -> Response:
    """`/operate/accounts`; `?cursor=` goes on."""
    found = await visit.read(
        "/v1/accounts", order="desc", limit=ROWS_MAX, cursor=visit.asked("cursor") or None
    )
    clients = await visit.read("/v1/clients", order="desc", limit=ROWS_MAX)
    return visit.show("operator/accounts.html", found=found, clients=clients)


async def open_one(visit: Visit) -> Response:
    """Open an account. The answer has its first key, once, so it is shown here and nowhere else."""
    made = await visit.record("/v1/accounts", {"kind": visit.form.get("kind", "")})
    return visit.show("operator/opened.html", made=made)


async def show(visit: Visit) -> Response:
    """`/operate/accounts/{account_id}`"""
    path = f"/v1/accounts/{visit.params['account_id']}"
    account = await visit.read(path)
    members = await visit.read(f"{path}/members")
    return visit.show("operator/account.html", account=account, members=members["data"])


async def take(visit: Visit) -> Response:
    """Hold or release the cash-outs of an account, or close it."""
    account_id, act = visit.params["account_id"], visit.form.get("act", "")
    path = f"/v1/accounts/{account_id}"
    if act == "hold":
        reason = visit.form.get("reason", "").strip()
        await visit.record(f"{path}/cash-outs/hold", {"reason": reason})
    elif act == "release":
        await visit.record(f"{path}/cash-outs/release")
    elif act == "close" and visit.form.get("sure") == "yes":
        await visit.record(f"{path}/close")
    else:
        raise refused("invalid", "say what to do, and that you are sure where it is asked")
    return visit.to(f"/operate/accounts/{account_id}")


async def suspend(visit: Visit) -> Response:
    """Suspend a compute client, or resume it."""
    act = visit.form.get("act", "")
    if act not in ("suspend", "resume"):
        raise refused("invalid", "a client is suspended or resumed")
    await visit.record(f"/v1/clients/{visit.params['client_id']}/{act}")
    return visit.to("/operate/accounts")
