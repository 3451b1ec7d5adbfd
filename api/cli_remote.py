"""A server as the thin clients see it: one request, one answer, problems as exit codes.

    exit 1: the server refuses      exit 2: the request breaks a rule of form (400, 422 `invalid`)

Every recording call carries an Idempotency-Key, so a lost answer is asked for again and nothing
happens twice. The API key comes from the environment where possible and is never printed.
"""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from api.cli_terminal import EXIT_NO, EXIT_USAGE, AnswerIsNo, InputUnusable

TRIES_MAX = 4
WAIT_SECONDS_MAX = 5
TIMEOUT_SECONDS = 30
START_SECONDS_MAX = 10
PAGE = 100

Url = Annotated[
    str | None,
    typer.Option("--url", envvar="TALLYSTICK_URL", help="Address of the server."),
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        "--api-key", envvar="TALLYSTICK_API_KEY", help="Better in the environment than here."
    ),
]
IdempotencyKey = Annotated[
    str | None,
    typer.Option("--idempotency-key", help="Repeat an earlier call with its key; else random."),
]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")]


class Remote:
    """One server and whose key we hold."""

    def __init__(self, url: str | None, api_key: str | None, *, key: str | None = None) -> None:
        """Raises InputUnusable. `key` is the Idempotency-Key of the one recording call."""
        import httpx

        self.url = (url or _of_this_machine()).rstrip("/")
        _check_url(self.url, has_secret=api_key is not None)
        self._key = key or f"cli-{secrets.token_hex(16)}"
        headers = {"Accept": "application/json"}
        if api_key is not None:
            headers["Authorization"] = f"Bearer {_printable_key(api_key)}"
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=TIMEOUT_SECONDS)

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """Read. Raises AnswerIsNo for a problem."""
        asked = {name: value for name, value in query.items() if value is not None}
        return self._told(lambda: self._http.get(path, params=asked))

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Record; absent values are left out. Raises AnswerIsNo for a problem."""
        content = {name: value for name, value in body.items() if value is not None}
        headers = {"Idempotency-Key": self._key}
        return self._told(lambda: self._http.post(path, json=content, headers=headers))

    def list(self, path: str, limit: int, **query: Any) -> dict[str, Any]:
        """The first `limit` of a list, page by page."""
        found: list[dict[str, Any]] = []
        page: dict[str, Any] = {}
        for page in self._pages(path, limit, query):
            found += page["data"]
            if len(found) >= limit:
                break
        return {
            "data": found[:limit],
            "has_more": bool(page.get("has_more")) or len(found) > limit,
            "position": page.get("position"),
        }

    def _pages(self, path: str, limit: int, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
        cursor: str | None = None
        while True:
            page = self.get(path, **query, limit=min(limit, PAGE), cursor=cursor)
            yield page
            cursor = page.get("next_cursor")
            if not page.get("has_more") or cursor is None:
                return

    def _told(self, ask: Callable[[], Any]) -> dict[str, Any]:
        for attempt in range(1, TRIES_MAX + 1):
            answer = self._asked(ask)
            if answer.is_success:
                told: dict[str, Any] = answer.json()
                return told
            problem = _problem(answer)
            if attempt == TRIES_MAX or not problem.get("retryable"):
                break
            time.sleep(_seconds(answer.headers.get("retry-after")))
        raise _no(problem)

    def _asked(self, ask: Callable[[], Any]) -> Any:
        """The answer. A server of this machine may still be starting, so that is waited for."""
        import httpx

        starts_for = START_SECONDS_MAX if _is_loopback(urlsplit(self.url).hostname or "") else 0
        ends = time.monotonic() + starts_for
        while True:
            try:
                return ask()
            except httpx.ConnectError:
                if time.monotonic() >= ends:
                    raise
                time.sleep(0.2)


def credits_of(text: str) -> dict[str, str]:
    """`2.78` as an amount of CREDIT. Raises InputUnusable; no float is involved."""
    form = re.fullmatch(r"([0-9]{1,12})(?:\.([0-9]{1,6}))?", text)
    if form is None:
        raise InputUnusable(f"{text!r} is no amount: credits like 25 or 2.78, six decimals at most")
    units = int(form[1]) * 1_000_000 + int((form[2] or "").ljust(6, "0"))
    return {"asset": "CREDIT", "units": str(units)}


def ppm_of(text: str) -> int:
    """`0.37` as parts per million. Raises InputUnusable."""
    form = re.fullmatch(r"([01])(?:\.([0-9]{1,6}))?", text)
    ppm = 0 if form is None else int(form[1]) * 1_000_000 + int((form[2] or "").ljust(6, "0"))
    if not 1 <= ppm <= 1_000_000:
        raise InputUnusable(f"{text!r} is no share: above 0 and at most 1, like 0.37")
    return ppm


def _of_this_machine() -> str:
    """Where `tallystick serve` listens with the same settings."""
    from api.cli_settings import in_force

    settings = in_force()
    scheme = "http" if settings.ssl_certfile is None else "https"
    return f"{scheme}://{settings.host}:{settings.port}"


def _check_url(url: str, *, has_secret: bool) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputUnusable(f"{url!r} is not an address: give one like https://tallystick.example")
    allowed = os.environ.get("TALLYSTICK_ALLOW_HTTP") == "1"
    if parts.scheme == "http" and has_secret and not (allowed or _is_loopback(parts.hostname)):
        raise InputUnusable(
            f"{url} would send the API key in the clear: use https, or set TALLYSTICK_ALLOW_HTTP=1"
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _printable_key(api_key: str) -> str:
    if re.fullmatch(r"[!-~]+", api_key) is None:
        raise InputUnusable("the API key has characters that no key has: copy it again")
    return api_key


def _problem(answer: Any) -> dict[str, Any]:
    """The problem document; something like one where a proxy answered."""
    try:
        document = answer.json()
    except ValueError:
        document = None
    if isinstance(document, dict) and "code" in document:
        return document
    return {"status": answer.status_code, "code": "http_error", "title": "Not an API answer"}


def _no(problem: dict[str, Any]) -> AnswerIsNo:
    lines = [f"refused: {problem.get('code')}: {problem.get('detail') or problem.get('title')}"]
    errors = problem.get("errors") or ()
    lines += [f"  {error.get('pointer')}: {error.get('detail')}" for error in errors]
    advice = _ADVICE.get(str(problem.get("code")))
    if advice is not None:
        lines.append(advice)
    wrong_form = problem.get("status") == 400 or problem.get("code") == "invalid"
    return AnswerIsNo("\n".join(lines), problem, code=EXIT_USAGE if wrong_form else EXIT_NO)


_ADVICE = {
    "unauthenticated": "set TALLYSTICK_API_KEY to your API key",
    "credential_invalid": "set TALLYSTICK_API_KEY to a key that is not revoked",
    "scope_missing": "use a key of the party this is for",
    "credit_too_low": "the operator can add money: tallystick account deposit",
    "http_error": "check TALLYSTICK_URL",
    "no_match": "tallystick offer list shows what is for rent",
}


def _seconds(text: str | None) -> float:
    wanted = int(text) if text is not None and text.isdecimal() else 1
    return min(wanted, WAIT_SECONDS_MAX)
