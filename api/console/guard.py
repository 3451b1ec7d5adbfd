"""What stands around the console's pages: their headers, whose scripts may reach them, how many.

    web sockets of one address at the same time <= ADDRESS_SOCKETS_MAX, of all <= SOCKETS_MAX

A page asks for an API key, so no other site shows it in a frame, and no script of another site
speaks with it: a request or socket that names an origin names this server's own.
"""

from __future__ import annotations

from collections import Counter
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.door.limits import bucket_of

PATH = "/console"
SOCKETS_MAX = 512
ADDRESS_SOCKETS_MAX = 32
HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'self'; object-src 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
TLS_ALONE = "max-age=31536000"
REFUSED, TOO_MANY = 1008, 1013
"""Codes with which a socket is closed (RFC 6455): against the rules, try again later."""


def guarded(app: ASGIApp, *, has_tls: bool) -> ASGIApp:
    """The application with this around all that is below `/console`."""
    sockets: Counter[str] = Counter()

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] not in ("http", "websocket") or not is_consoles(path):
            return await app(scope, receive, send)
        is_ours = is_same_origin(Headers(scope=scope))
        if scope["type"] == "http":
            if not is_ours:
                return await _refuse(send)
            return await app(scope, receive, with_headers(send, has_tls=has_tls))
        client = scope.get("client")
        address = bucket_of(client[0]) if client else ""
        is_full = sockets.total() >= SOCKETS_MAX or sockets[address] >= ADDRESS_SOCKETS_MAX
        if not is_ours or is_full:
            return await send({"type": "websocket.close", "code": TOO_MANY if is_ours else REFUSED})
        sockets[address] += 1
        try:
            await app(scope, receive, send)
        finally:
            sockets[address] -= 1
            if not sockets[address]:
                del sockets[address]

    return wrapped


def is_same_origin(headers: Headers) -> bool:
    """Whether a script of this very site asks, or no script of any site."""
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host")


def with_headers(send: Send, *, has_tls: bool) -> Send:
    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name in [each for each in headers if each.startswith("access-control-")]:
                del headers[name]
            for name, value in HEADERS.items():
                headers[name] = value
            if has_tls:
                headers["Strict-Transport-Security"] = TLS_ALONE
        await send(message)

    return told


def is_consoles(path: str) -> bool:
    """Whether a path is the console's or below it."""
    return path == PATH or path.startswith(f"{PATH}/")


async def _refuse(send: Send) -> None:
    await send({"type": "http.response.start", "status": 403, "headers": []})
    await send({"type": "http.response.body", "body": b"another site's script"})
