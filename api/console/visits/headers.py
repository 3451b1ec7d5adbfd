"""What stands on every answer of the console, and what a request must say of where it comes from.

    a page runs no script, shows no picture, sends no form and calls no address but of this server
    a form is taken  =>  it was sent by a page of this server, to the browser that sent it

A page asks for API keys and shows money, so no other site shows it in a frame.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    # With `no-referrer` a browser would not say where a form comes from.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
TLS_ALONE = "max-age=31536000"
SESSION, FORM = "tallystick-session", "tallystick-form"
"""Cookies: of a session, and of a browser that is about to sign in."""


def seal(request: Request, response: Response) -> Response:
    """The answer with the headers of all answers."""
    for name, value in HEADERS.items():
        response.headers[name] = value
    response.headers.setdefault("Cache-Control", "no-store")
    if request.url.scheme == "https":
        response.headers["Strict-Transport-Security"] = TLS_ALONE
    return response


def is_same_origin(headers: Headers) -> bool:
    """Whether a page of this very site asks, or no page of any site."""
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host")


def is_own_form(headers: Headers) -> bool:
    """Whether a form comes from a page of this site, by all that the browser says of it."""
    site = headers.get("sec-fetch-site", "same-origin")
    return site == "same-origin" and is_same_origin(headers)


def cookie_of(request: Request, name: str) -> str | None:
    """The cookie's value. Over TLS only one that no other host and no plain page can have set."""
    return request.cookies.get(_name(request, name)) or None


def set_cookie(request: Request, response: Response, name: str, value: str) -> None:
    """Until the browser closes, or the server forgets it; no script sees it."""
    response.set_cookie(
        _name(request, name),
        value,
        path="/",
        httponly=True,
        samesite="lax",
        secure=_is_tls(request),
    )


def drop_cookie(request: Request, response: Response, name: str) -> None:
    """Have the browser forget a cookie."""
    response.delete_cookie(
        _name(request, name), path="/", httponly=True, samesite="lax", secure=_is_tls(request)
    )


def _name(request: Request, name: str) -> str:
    return f"__Host-{name}" if _is_tls(request) else name


def _is_tls(request: Request) -> bool:
    return request.url.scheme == "https"
