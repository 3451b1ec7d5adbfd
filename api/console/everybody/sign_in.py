"""Signing in: an API key is shown once, or a wallet signs a text; then a cookie stands for it.

    wrong keys of one address <= FAILED_BURST + FAILED_PER_SECOND x t, in each process

The key goes from the form to the API's own check of keys, and is kept nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Coroutine
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from api.console.sessions import sessions, wallets
from api.console.visits import headers
from api.console.visits.visit import Visit
from api.door import errors
from api.door.auth import KEY, Principal
from api.door.errors import Problem, problem
from api.door.limits import Buckets, bucket_of
from api.parties.wallet_challenges import Made

FAILED_PER_SECOND, FAILED_BURST = 1, 20
HOME = "/"
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
Proven = TypeVar("Proven")
_failed = Buckets(FAILED_PER_SECOND, FAILED_BURST)


async def show(visit: Visit) -> Response:
    """`/sign-in`"""
    return _page(visit)


async def take(visit: Visit) -> Response:
    """The form with a key."""
    key = visit.form.get("key", "").strip()
    try:
        principal = await _guarded(visit, _by_key(visit, key))
    except Problem as refused:
        return _page(visit, refused.status, key_error=_said(refused))
    return await _begun(visit, principal, None)


async def take_wallet(visit: Visit) -> Response:
    """The form with a wallet's address, then the one with its signature."""
    nonce, address = visit.form.get("nonce", ""), visit.form.get("address", "").strip()
    try:
        if not nonce:
            if _ADDRESS.fullmatch(address) is None:
                raise problem("invalid", "an address is 0x and 40 letters of 0 to 9 and a to f")
            made = await _guarded(visit, run_in_threadpool(wallets.make, visit.service, address))
            return _page(visit, challenge=made)
        signature = visit.form.get("signature", "").strip()
        proof = run_in_threadpool(wallets.prove, visit.service, nonce, signature)
        principal, wallet = await _guarded(visit, proof)
    except Problem as refused:
        return _page(visit, refused.status, wallet_error=_said(refused))
    return await _begun(visit, principal, wallet)


async def _guarded(visit: Visit, proof: Awaitable[Proven]) -> Proven:
    """What the proof gives; after many wrong ones of an address its proofs are not looked at."""
    client = visit.request.client
    address = bucket_of(client.host) if client is not None else ""
    if _failed.is_empty(address):
        if isinstance(proof, Coroutine):
            proof.close()
        raise problem("rate_limited", "too many wrong keys from your address; wait a minute")
    try:
        return await proof
    except Problem:
        _failed.spend(address)
        raise


async def _by_key(visit: Visit, key: str) -> Principal:
    """What a key opens. Raises Problem: 401."""
    principal = await run_in_threadpool(visit.site.authenticator.authenticate, f"Bearer {key}")
    if principal.kind != KEY:
        raise problem(
            "credential_invalid", "this is the key of a machine; people sign in with theirs"
        )
    return principal


async def _begun(visit: Visit, principal: Principal, wallet: str | None) -> Response:
    """Signed in: a new cookie, never one that was there before."""
    browser = visit.request.headers.get("user-agent", "")
    token = await run_in_threadpool(sessions.begin, visit.service, principal, wallet, browser)
    if visit.session is not None:
        row = visit.session.row
        await run_in_threadpool(sessions.end, visit.service, visit.session, row.session_id)
    wanted = visit.form.get("next", "")
    response = visit.to(wanted if visit.site.is_shown(wanted) else HOME)
    headers.set_cookie(visit.request, response, headers.SESSION, token)
    headers.drop_cookie(visit.request, response, headers.FORM)
    return response


def _page(
    visit: Visit,
    status: int = 200,
    *,
    key_error: str = "",
    wallet_error: str = "",
    challenge: Made | None = None,
) -> Response:
    wanted = visit.form.get("next") or visit.asked("next")
    return visit.show(
        "everybody/sign_in.html",
        status,
        wanted=wanted if visit.site.is_shown(wanted) else "",
        key_error=key_error,
        wallet_error=wallet_error,
        challenge=challenge,
    )


def _said(refused: Problem) -> str:
    return refused.detail or errors.meaning_of(refused.code)
