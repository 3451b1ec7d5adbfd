"""How the clients make a call: `Calls` and `AsyncCalls`, the bases of `Client` and `AsyncClient`.

A recording call sends an Idempotency-Key, a fresh one unless the caller gives one; its tries have
the same key, so that it happens once. To repeat a call whose answer was lost for good, give the key
of the first call. A read sends the position of the client's last write, so it sees that write
whichever process of the server answers.

The API key goes to the server that was named and nowhere else: no redirect is followed, and no
address of another server is asked.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import secrets
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx

from tallystick_client.problems import problem_of
from tallystick_client.retry import Retry

TIMEOUT_SECONDS = 30


def authorities() -> ssl.SSLContext:
    """Whom TLS believes: httpx's own choice, read once in a process for each that the environment
    names. Reading it takes 40 ms of a processor, more than a small call.
    """
    return _authorities(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _authorities(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    return httpx.create_ssl_context()


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request as it is sent, as often as it is."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]

    @property
    def is_safe(self) -> bool:
        """Whether sending it twice is the same as sending it once."""
        return self.method == "GET" or "Idempotency-Key" in self.headers


class _Base:
    """A server, a key, and what both kinds of clients do alike."""

    def __init__(self, key: str | None, retry: Retry | None) -> None:
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._retry = retry or Retry()
        self.position = 0

    def _asked(
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
    ) -> _Asked:
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
        given = {name: _text(value) for name, value in (query or {}).items() if value is not None}
        return _Asked(method, path, given, body, headers)

    def _answer(self, response: httpx.Response) -> Any:
        if not response.is_success:
            raise problem_of(response)
        self.position = max(self.position, int(response.headers.get("Tallystick-Position", "0")))
        answered = response.headers.get("content-type", "").partition(";")[0]
        if answered == "application/json":
            return response.json()
        return response.text if answered == "text/plain" else response.content

    def _wait_seconds(self, asked: _Asked, tried: int, failure: Exception) -> float:
        """Before the next try. Raises the failure where there is none."""
        seconds = self._retry.wait_seconds(tried, failure) if asked.is_safe else None
        if seconds is None:
            raise failure
        return seconds


class Calls(_Base):
    """One server and the API key; a context manager that closes its connections."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        retry: Retry | None = None,
        http: httpx.Client | None = None,
        allow_http: bool = False,
    ) -> None:
        """`http`: connections of your own, with their own address; no redirect is followed on them
        either. Raises ValueError.
        """
        super().__init__(key, retry)
        if http is None:
            check_url(url, has_key=key is not None, allow_http=allow_http)
        self._http = http or httpx.Client(
            base_url=url, timeout=TIMEOUT_SECONDS, verify=authorities()
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def download(self, path: str) -> Iterator[bytes]:
        """The file at a path of this API, a piece at a time; never tried again. Raises ApiProblem,
        and ValueError for an address of another server.
        """
        with self._http.stream(
            "GET", own_path(path), headers=self._headers, timeout=None, follow_redirects=False
        ) as response:
            if not response.is_success:
                response.read()
                raise problem_of(response)
            yield from response.iter_bytes()

    def _call(self, method: str, path: str, **told: Any) -> Any:
        asked, tried = self._asked(method, path, **told), 0
        while True:
            tried += 1
            try:
                return self._answer(
                    self._http.request(
                        asked.method,
                        asked.path,
                        params=asked.query,
                        json=asked.body,
                        headers=asked.headers,
                        follow_redirects=False,
                    )
                )
            except Exception as failure:
                time.sleep(self._wait_seconds(asked, tried, failure))


class AsyncCalls(_Base):
    """The same for asyncio; an async context manager that closes its connections."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        retry: Retry | None = None,
        http: httpx.AsyncClient | None = None,
        allow_http: bool = False,
    ) -> None:
        """`http`: connections of your own, with their own address; no redirect is followed on them
        either. Raises ValueError.
        """
        super().__init__(key, retry)
        if http is None:
            check_url(url, has_key=key is not None, allow_http=allow_http)
        self._http = http or httpx.AsyncClient(
            base_url=url, timeout=TIMEOUT_SECONDS, verify=authorities()
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def download(self, path: str) -> AsyncIterator[bytes]:
        """The file at a path of this API, a piece at a time; never tried again. Raises ApiProblem,
        and ValueError for an address of another server.
        """
        async with self._http.stream(
            "GET", own_path(path), headers=self._headers, timeout=None, follow_redirects=False
        ) as response:
            if not response.is_success:
                await response.aread()
                raise problem_of(response)
            async for piece in response.aiter_bytes():
                yield piece

    async def _call(self, method: str, path: str, **told: Any) -> Any:
        asked, tried = self._asked(method, path, **told), 0
        while True:
            tried += 1
            try:
                return self._answer(
                    await self._http.request(
                        asked.method,
                        asked.path,
                        params=asked.query,
                        json=asked.body,
                        headers=asked.headers,
                        follow_redirects=False,
                    )
                )
            except Exception as failure:
                await asyncio.sleep(self._wait_seconds(asked, tried, failure))


# --- addresses -------------------------------------------------------------------------------


def at(path: str, **names: object) -> str:
    """The address of one operation: each name of the path replaced, and quoted."""
    return path.format(**{name: quote(str(value), safe="") for name, value in names.items()})


def own_path(path: str) -> str:
    """The path itself. Raises ValueError for an address that may be of another server."""
    if not path.startswith("/") or path.startswith("//"):
        raise ValueError(f"{path!r} is no path of the API: it begins with one slash")
    return path


def check_url(url: str, *, has_key: bool, allow_http: bool) -> None:
    """Raises ValueError for what is no address, and where a key would be sent in the clear."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is not an address: give one like https://tallystick.example")
    if parts.scheme == "http" and has_key and not (allow_http or _is_loopback(parts.hostname)):
        raise ValueError(
            f"{url} would send the API key in the clear: use https, or allow_http=True"
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# --- lists -----------------------------------------------------------------------------------


def items(page_at: Callable[[str | None], Any], cursor: str | None) -> Iterator[Any]:
    """Every item of a list, page by page, each page when it is needed."""
    while True:
        page = page_at(cursor)
        yield from page["data"]
        if not page["has_more"]:
            return
        cursor = _next(page, cursor)


async def items_async(
    page_at: Callable[[str | None], Awaitable[Any]], cursor: str | None
) -> AsyncIterator[Any]:
    """The same for asyncio."""
    while True:
        page = await page_at(cursor)
        for one in page["data"]:
            yield one
        if not page["has_more"]:
            return
        cursor = _next(page, cursor)


def _next(page: Any, cursor: str | None) -> str:
    """Raises ValueError where a list would never end."""
    following = page["next_cursor"]
    if following == cursor:
        raise ValueError("the server answered with the same page again")
    return str(following)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
