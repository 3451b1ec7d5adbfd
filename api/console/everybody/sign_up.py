"""Getting an account: with the code of an invitation, or by signing up where the market lets one.

The key is made by the API, is in the one answer that shows it, and goes nowhere else: not into a
cookie, an address or a row. What is sent again within a day is shown the same key again.
"""

from __future__ import annotations

import secrets

from starlette.responses import Response

from api.console.visits.reading import Refused, Told, refused
from api.console.visits.visit import Visit
from api.parties.sign_up import OPEN

NONCE_BYTES = 32
NOT_WHOLE = "this is no whole code: copy all of it, from ts_invite_ to its end"


async def show(visit: Visit) -> Response:
    """`/sign-up`"""
    return _page(visit)


async def take(visit: Visit) -> Response:
    """The forms of the page: `do` is `redeem` or `open`."""
    try:
        told = await _made(visit, visit.form.get("do", ""))
    except Refused as problem:
        return _page(visit, problem)
    return visit.show("everybody/signed_up.html", told=told)


async def _made(visit: Visit, what: str) -> Told:
    """The answer with the key. Raises Refused."""
    if what == "redeem":
        code = visit.form.get("code", "").strip()
        try:
            return await visit.record("/v1/invitations/redeem", {"code": code})
        except Refused as problem:
            if problem.code != "invalid":
                raise
            raise refused("invalid", NOT_WHOLE) from None
    if what == "open":
        # Drawn for this form: the same form sent twice opens one account.
        return await visit.record("/v1/sign-up", {"nonce": visit.form.get("nonce", "")})
    raise refused("invalid", "this form is unknown")


def _page(visit: Visit, problem: Refused | None = None) -> Response:
    return visit.show(
        "everybody/sign_up.html",
        200 if problem is None else problem.status,
        problem=problem,
        is_open=visit.service.settings.sign_up == OPEN,
        nonce=secrets.token_urlsafe(NONCE_BYTES),
    )
