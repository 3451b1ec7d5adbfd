"""What the client raises when the server says no: one exception a kind, all of them `ApiProblem`.

Switch on `code`, which names the rule; the classes follow the HTTP status.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, cast

import httpx

if TYPE_CHECKING:
    from tallystick_client.forms import FieldError, Problem


class ApiProblem(Exception):
    """The server's answer is a problem document (RFC 9457). `code` names the rule that refused."""

    def __init__(self, document: Problem, retry_after_seconds: float | None = None) -> None:
        super().__init__(document.get("code"), document.get("detail"))
        self.document = document
        self.code = document["code"]
        self.status = document["status"]
        self.detail = document.get("detail") or document["title"]
        self.request_id = document["request_id"]
        """Tell it to the operator: the server's log has a line with it."""
        self.is_retryable = document["retryable"]
        self.retry_after_seconds = retry_after_seconds
        """As the server asks; None where it asks for nothing."""

    @property
    def errors(self) -> list[FieldError]:
        """Every field that broke a rule."""
        return self.document.get("errors", [])

    @property
    def pointer(self) -> str | None:
        """The first field that broke a rule, as a JSON pointer such as `#/share_ppm`."""
        return self.errors[0]["pointer"] if self.errors else None

    def __str__(self) -> str:
        where = "".join(f"; {one['pointer']}: {one['detail']}" for one in self.errors)
        of = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.code}: {self.detail}{where}{of}"


class BadRequest(ApiProblem):
    """400, 405, 413, 415, 428: the request has not the form of the API."""


class Unauthenticated(ApiProblem):
    """401: no key, or none that is known and not revoked."""


class Forbidden(ApiProblem):
    """403: the key may not do this."""


class NotFound(ApiProblem):
    """404: not there, or not for this key to see."""


class Conflict(ApiProblem):
    """409, 412: a rule of the market refuses it as things are now."""


class Unprocessable(ApiProblem):
    """422: a field breaks its rule (`pointer`), or the market's rules exclude it."""


class RateLimited(ApiProblem):
    """429: too many calls, also after the client waited as it was asked to."""


class ServerFailed(ApiProblem):
    """5xx: nothing is promised. Repeat a recording call with its Idempotency-Key."""


_KINDS: dict[int, type[ApiProblem]] = {
    400: BadRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    405: BadRequest,
    409: Conflict,
    412: Conflict,
    413: BadRequest,
    415: BadRequest,
    422: Unprocessable,
    428: BadRequest,
    429: RateLimited,
}
_OF_PROXIES = frozenset({429, 502, 503, 504})
"""What a proxy in front of the server answers for a while, without a problem document."""


def problem_of(response: httpx.Response) -> ApiProblem:
    """The exception of an answer that is no success. Its body must have been read."""
    document = _document(response)
    status = document["status"]
    kind = ServerFailed if status >= 500 else _KINDS.get(status, ApiProblem)
    return kind(document, retry_after(response.headers.get("Retry-After"), datetime.now(UTC)))


def retry_after(text: str | None, now: datetime) -> float | None:
    """Seconds that the header asks for, as a number or a date; None for anything else."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max(0.0, (at - now).total_seconds())


def _document(response: httpx.Response) -> Problem:
    """The problem document; something like one where a proxy answered."""
    try:
        document = response.json()
    except ValueError:
        document = None
    filled: Problem = {
        "type": "/problems/http_error",
        "title": "Not an answer of the API",
        "status": response.status_code,
        "code": "http_error",
        "retryable": response.status_code in _OF_PROXIES,
        "instance": str(response.url),
        "request_id": "",
    }
    if isinstance(document, dict) and isinstance(document.get("code"), str):
        return cast("Problem", {**filled, **document, "status": response.status_code})
    return filled
