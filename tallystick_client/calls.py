"""How the client makes a call: `Calls`, the base of `Client`, and what it raises.

A recording call sends an Idempotency-Key, a fresh one unless the caller gives one. To repeat a call
whose answer was lost, give the key of the first try. A read sends the position of the client's
last write, so it sees that write whichever process of the server answers.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import quote

import httpx

if TYPE_CHECKING:
    from tallystick_client.forms import Problem

TIMEOUT_SECONDS = 30


class ApiProblem(Exception):
    """The server's answer is a problem document. `code` names the rule that refused."""

    def __init__(self, document: Problem, headers: Mapping[str, str]) -> None:
        super().__init__(document.get("code"), document.get("detail"))
        self.document = document
        self.code = document["code"]
        self.status = document["status"]
        self.is_retryable = document["retryable"]
        self.retry_after_seconds = int(headers.get("Retry-After", "0"))


class Calls:
    """One server and the API key; a context manager that closes its connections."""

    def __init__(
        self, url: str, key: str | None = None, *, http: httpx.Client | None = None
    ) -> None:
        self._http = http or httpx.Client(base_url=url, timeout=TIMEOUT_SECONDS)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.position = 0

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def download(self, path: str) -> Iterator[bytes]:
        """The file at an address of this API, a piece at a time. Raises ApiProblem."""
        with self._http.stream("GET", path, headers=self._headers, timeout=None) as response:
            if response.status_code >= 400:
                response.read()
                raise ApiProblem(_problem(response), response.headers)
            yield from response.iter_bytes()

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        idempotency_key: str | None = None,
        records: bool = False,
        if_match: str | None = None,
        media_type: str | None = None,
    ) -> Any:
        headers = dict(self._headers)
        if media_type is not None:
            headers["Content-Type"] = media_type
        if if_match is not None:
            headers["If-Match"] = if_match
        if records:
            headers["Idempotency-Key"] = idempotency_key or secrets.token_hex(16)
        elif method == "GET" and self.position:
            # Read your own writes, whichever process answers.
            headers["Tallystick-Min-Position"] = str(self.position)
        asked = {name: _text(value) for name, value in (query or {}).items() if value is not None}
        response = self._http.request(method, path, params=asked, json=body, headers=headers)
        if response.status_code >= 400:
            raise ApiProblem(_problem(response), response.headers)
        self.position = max(self.position, int(response.headers.get("Tallystick-Position", "0")))
        answered = response.headers.get("content-type", "").partition(";")[0]
        if answered == "application/json":
            return response.json()
        return response.text if answered == "text/plain" else response.content


def at(path: str, **names: object) -> str:
    """The address of one operation: each name of the path replaced, and quoted."""
    return path.format(**{name: quote(str(value), safe="") for name, value in names.items()})


def pages(first: Any, following: Any) -> Iterator[Any]:
    """Every item of a list: `pages(client.list_jobs(), lambda c: client.list_jobs(cursor=c))`."""
    page = first
    while True:
        yield from page["data"]
        if not page["has_more"]:
            return
        page = following(page["next_cursor"])


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _problem(response: httpx.Response) -> Problem:
    """The problem document; something like one where a proxy answered."""
    try:
        document = response.json()
    except ValueError:
        document = None
    if isinstance(document, dict) and "code" in document:
        return cast("Problem", document)
    return {
        "type": "/problems/http_error",
        "title": "Not an answer of the API",
        "status": response.status_code,
        "code": "http_error",
        "retryable": False,
        "instance": str(response.url),
        "request_id": "",
    }
