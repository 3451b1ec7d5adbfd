"""API keys and members of an account: what opens it, and who. A new key is shown once."""

from __future__ import annotations

from starlette.responses import Response

from api.console.visits.reading import Refused, refused
from api.console.visits.visit import Visit


async def show(visit: Visit, problem: Refused | None = None) -> Response:
    """`/keys`"""
    account = f"/v1/accounts/{visit.account_id}"
    keys = await visit.read(f"{account}/api-keys")
    members = await visit.read(f"{account}/members")
    row = visit.session.row if visit.session is not None else None
    return visit.show(
        "renter/keys.html",
        200 if problem is None else problem.status,
        problem=problem,
        keys=keys["data"][::-1],
        members=members["data"][::-1],
        mine=sorted(visit.principal.scopes),
        this_key=row.key_id if row is not None else None,
        may_change=visit.may("account:admin"),
    )


async def take(visit: Visit) -> Response:
    """The forms of the page: `do` is `issue` or `revoke`. The key is in this one answer only."""
    path = f"/v1/accounts/{visit.account_id}/api-keys"
    try:
        if visit.form.get("do") == "issue":
            wanted = [each for each in visit.form if each.startswith("scope:")]
            scopes = sorted(each.removeprefix("scope:") for each in wanted)
            if not scopes:
                raise refused("invalid", "tick at least one scope: what the key may do")
            told = await visit.record(path, {"scopes": scopes})
            return visit.show("renter/key.html", told=told)
        key_id = visit.form.get("key_id", "")
        if visit.form.get("do") != "revoke" or not key_id.isalnum():
            raise refused("invalid", "this form is unknown")
        if visit.form.get("sure") != "yes":
            raise refused("invalid", "tick “what uses it stops” first; nothing was changed")
        await visit.delete(f"{path}/{key_id}")
    except Refused as problem:
        return await show(visit, problem)
    return visit.to("/keys")
