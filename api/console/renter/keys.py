"""API keys and members of an account: what opens it, and who. A new key is shown once."""

from __future__ import annotations

import re

from starlette.responses import Response

from api.console.visits import entering
from api.console.visits.reading import Refused, refused
from api.console.visits.visit import Visit
from domain.parties.account import ROLES

HOLDERS = ("account:admin", "provider", "renter", "client", "operator", "payout:approve", "meter")
"""Any one of these scopes lets a holder of a key replace it."""
_ID = re.compile(r"[0-9A-Za-z_]{1,100}")


async def show(visit: Visit, problem: Refused | None = None) -> Response:
    """`/keys`"""
    account = f"/v1/accounts/{visit.account_id}"
    keys = await visit.read(f"{account}/api-keys")
    members = await visit.read(f"{account}/members")
    invited = await visit.read(f"{account}/invitations")
    row = visit.session.row if visit.session is not None else None
    return visit.show(
        "renter/keys.html",
        200 if problem is None else problem.status,
        problem=problem,
        keys=keys["data"][::-1],
        members=members["data"][::-1],
        invitations=invited["data"][::-1],
        roles=ROLES,
        my_member=row.member_id if row is not None else "",
        may_rotate=visit.may(*HOLDERS),
        mine=sorted(visit.principal.scopes),
        this_key=row.key_id if row is not None else None,
        may_change=visit.may("account:admin"),
    )


async def take(visit: Visit) -> Response:
    """The forms of the page: `do` says which. A key or a code is in this one answer only."""
    acts = {
        "issue": _issue,
        "rotate": _rotate,
        "revoke": _revoke,
        "invite": _invite,
        "withdraw": _withdraw,
        "role": _role,
        "remove": _remove,
    }
    act = acts.get(visit.form.get("do", ""))
    try:
        if act is None:
            raise refused("invalid", "this form is unknown")
        shown = await act(visit, f"/v1/accounts/{visit.account_id}")
    except Refused as problem:
        return await show(visit, problem)
    return visit.to("/keys") if shown is None else shown


async def _issue(visit: Visit, account: str) -> Response:
    told = await visit.record(f"{account}/api-keys", {"scopes": _scopes(visit)})
    return visit.show("renter/key.html", told=told)


async def _rotate(visit: Visit, account: str) -> Response:
    """A successor; the old key stays valid for a day."""
    told = await visit.record(f"{account}/api-keys/{_named(visit, 'key_id')}/rotate")
    return visit.show("renter/key.html", told=told)


async def _revoke(visit: Visit, account: str) -> None:
    entering.sure(visit.form.get("sure", ""), "what uses it stops")
    await visit.delete(f"{account}/api-keys/{_named(visit, 'key_id')}")


async def _invite(visit: Visit, account: str) -> Response:
    body = {"role": visit.form.get("role", ""), "scopes": _scopes(visit)}
    told = await visit.record(f"{account}/invitations", body)
    return visit.show("renter/invited.html", told=told)


async def _withdraw(visit: Visit, account: str) -> None:
    await visit.record(f"{account}/invitations/{_named(visit, 'invitation_id')}/withdraw")


async def _role(visit: Visit, account: str) -> None:
    body = {"role": visit.form.get("role", "")}
    await visit.record(f"{account}/members/{_named(visit, 'member_id')}/role", body)


async def _remove(visit: Visit, account: str) -> None:
    entering.sure(visit.form.get("sure", ""), "all keys of the member end")
    await visit.record(f"{account}/members/{_named(visit, 'member_id')}/remove")


def _scopes(visit: Visit) -> list[str]:
    """The ticked ones. Raises Refused: none."""
    wanted = [each for each in visit.form if each.startswith("scope:")]
    if not wanted:
        raise refused("invalid", "tick at least one scope: what the key may do")
    return sorted(each.removeprefix("scope:") for each in wanted)


def _named(visit: Visit, field: str) -> str:
    """The id in a hidden field. Raises Refused: it is none."""
    found = visit.form.get(field, "")
    if _ID.fullmatch(found) is None:
        raise refused("invalid", "this form is unknown")
    return found
