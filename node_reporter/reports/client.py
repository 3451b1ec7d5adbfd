"""The wire: one request, one answer, and what the answer asks of us. No retry happens here.

Not the delivery: `delivery.py` decides what to send and when to try again. The transport is a port,
so a test or the demo can put a server in the same process behind it.

Whatever the server says, the meter goes on: an answer holds numbers we can store and text we can
print, or it is no answer; and it comes within half a minute, or not at all.
"""

from __future__ import annotations

import gzip
import http.client
import ipaddress
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Protocol
from urllib.parse import urlsplit

from domain.metering import report
from domain.nesting import is_too_deep
from node_reporter.clock import WALL_JITTER_US, Clock, ClockOffset, Moment
from node_reporter.identity import Rotation
from node_reporter.meter.leases import AssignmentsUnreadable, Window, parse_windows
from node_reporter.reports import reports
from node_reporter.reports.reports import SignedReport
from node_reporter.terminal import printable

TIMEOUT_S = 10
EXCHANGE_S_MAX = 30
"""For a whole answer: a server that sends a byte now and then must not hold up the meter."""
ANSWER_BYTES_MAX = 1024 * 1024
"""Read as JSON, the worst of this length takes 31 times the memory; the service's limit is 128 MiB
for all it does, and the page may be reading another answer at the same time."""
OFFSETS_KEPT = 8
NODE_KEY = re.compile(r"[!-~]{1,200}")
_SEALED = re.compile(r"[0-9a-f]{96,512}")
TAG = re.compile(r'"[!#-~]{1,100}"')
GZIP_BYTES_MIN = 16_384
"""A usual minute's report goes out as it is; what was kept through an outage goes out packed."""


class Unreachable(Exception):
    """No usable answer came: the server may or may not have done what was asked."""


class UrlRefused(Exception):
    """The server's address cannot be used, or not safely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What a transport brings back. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport(Protocol):
    """Carries one request to the server."""

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        """Raises Unreachable."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer to a usage call, read as leniently as honesty allows: None is not told."""

    status: int
    code: str = ""
    detail: str = ""
    acked_seq: int | None = None
    head: bytes | None = None
    retry_after_s: int | None = None
    receipts: tuple[Mapping[str, Any], ...] = field(default_factory=tuple)
    sealed_key: str = ""  # the bearer key that goes with a new signing key, which alone opens it


class HttpTransport:
    """One kept connection to one server, TLS checked against the system's authorities."""

    def __init__(self, url: str, *, allow_http: bool = False) -> None:
        """Raises UrlRefused: plain http is for this machine only unless allowed."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UrlRefused(f"{url!r} is not an http(s) address")
        if parts.scheme == "http" and not (allow_http or _is_loopback(parts.hostname)):
            raise UrlRefused(
                f"{url!r} would send the node's key in the clear: use https,"
                " or --allow-http in a network that is yours alone"
            )
        self._name = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._prefix = parts.path.rstrip("/")
        self._host, self._port = parts.hostname, parts.port
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._connection: http.client.HTTPConnection | None = None

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        kept = self._connection is not None
        try:
            return self._exchange(method, path, headers, body)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            # A server closes idle connections when it likes: only a fresh one proves it is away.
            # Every call may be repeated: reports by their number, the others by their key.
            if kept and isinstance(error, ConnectionError):
                return self.request(method, path, headers, body)
            said = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
            raise Unreachable(f"{self._name}: {said}") from error

    def _exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        connection, began_s = self._connected(), time.monotonic()
        if connection.sock is None:
            connection.connect()
        late = threading.Timer(EXCHANGE_S_MAX, _hang_up, (connection.sock,))
        late.daemon = True
        late.start()
        try:
            connection.request(method, self._prefix + path, body=body, headers=dict(headers))
            answer = connection.getresponse()
            content = answer.read(ANSWER_BYTES_MAX + 1)
        finally:
            late.cancel()
        too_long = len(content) > ANSWER_BYTES_MAX
        cut = bool(answer.length) or time.monotonic() - began_s >= EXCHANGE_S_MAX
        if too_long or cut or answer.will_close:
            self.close()
        if too_long:
            raise Unreachable(f"an answer of more than {ANSWER_BYTES_MAX} bytes")
        if cut:
            raise Unreachable("the answer did not come to its end")
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Response(status=answer.status, headers=named, body=content)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            self._connection = (
                http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
                if self._tls is None
                else http.client.HTTPSConnection(
                    self._host, self._port, timeout=TIMEOUT_S, context=self._tls
                )
            )
        return self._connection


def _hang_up(sock: socket.socket) -> None:
    """End what another thread waits for on this socket."""
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ServerClock:
    """The server's clock against the node's boot clock, and the round trip it was measured over.

    Nobody sets the boot clock and it goes on through suspension: a wall clock that was set a day
    ahead would make seven of the last eight measurements wrong by a day.
    """

    server_minus_boot_us: int
    rtt_us: int


class UsageClient:
    """The calls a node makes about itself, and the clock offset its answers tell."""

    def __init__(
        self, node_id: str, key_id: str, transport: Transport, clock: Clock, node_key: str = ""
    ) -> None:
        self.node_id = node_id
        self._key_id = key_id
        self._transport = transport
        self._clock = clock
        self.node_key = ""
        self._bearer: dict[str, str] = {}
        if node_key:
            self.use(node_key)
        self._measured: list[_ServerClock] = []
        self._server_minus_boot_us: int | None = None
        self._wall_minus_boot_us = 0
        self._assigned: tuple[str, tuple[Window, ...]] | None = None  # the list's tag, the list

    @property
    def offset(self) -> ClockOffset | None:
        """Server minus this node's wall clock as it stands now.

        It stays what it was until the wall clock is set, or a measurement says otherwise: an offset
        that follows the noise would cut and date time by another clock at every look.
        """
        if self._server_minus_boot_us is None:
            return None
        now = self._clock.now()
        wall_minus_boot_us = now.wall_us - now.boot_us
        if abs(wall_minus_boot_us - self._wall_minus_boot_us) > WALL_JITTER_US:
            self._wall_minus_boot_us = wall_minus_boot_us
        return ClockOffset(
            offset_us=self._server_minus_boot_us - self._wall_minus_boot_us,
            rtt_us=self._best.rtt_us,
        )

    @property
    def server_us(self) -> int:
        """The time by the server's clock, by the node's own where no answer told it."""
        offset = self.offset
        return self._clock.now().wall_us + (0 if offset is None else offset.offset_us)

    def head(self) -> Answer:
        """Ask for the last report the server holds. Raises Unreachable."""
        return self._usage_call("GET", "/usage/head", None)

    def post(self, signed: Sequence[SignedReport]) -> Answer:
        """Send reports in order. Raises Unreachable."""
        now = self._clock.now()
        body = reports.batch(self.node_id, self._key_id, signed, now.wall_us)
        packed = gzip.compress(body, 1, mtime=0) if len(body) >= GZIP_BYTES_MIN else None
        return self._usage_call("POST", "/usage", body, packed)

    def assignments(self) -> tuple[Window, ...] | None:
        """The node's leases; None where the server gave no list. Raises Unreachable.

        A list that has not changed since the last one is neither sent nor read again.
        """
        known = {} if self._assigned is None else {"If-None-Match": self._assigned[0]}
        response = self._call("GET", "/assignments", None, {**self._bearer, **known})
        if response.status == 304 and self._assigned is not None:
            return self._assigned[1]
        if response.status != 200:
            return None
        try:
            windows = parse_windows(parsed(response.body))
        except (ValueError, AssignmentsUnreadable):
            return None
        tag = response.headers.get("etag", "")
        self._assigned = (tag, windows) if TAG.fullmatch(tag) else None
        return windows

    def send_specs(self, specs: Mapping[str, Any], at_us: int) -> bool:
        """Tell the inventory as of this moment; whether the server took it. Raises Unreachable."""
        body = json.dumps(specs, separators=(",", ":")).encode()
        key = idempotency(body + str(at_us).encode())  # the same again later is another request
        headers = {"Content-Type": "application/json", **key, **self._bearer}
        return self._call("POST", "/specs", body, headers).status in (200, 201, 202, 204)

    def tell_rotation(self, rotation: Rotation) -> Answer:
        """Say which key signs from which report on; again is the same. Raises Unreachable."""
        body = rotation.body
        headers = {"Content-Type": "application/json", **idempotency(body)}
        headers["Node-Signature"] = rotation.request_signature
        response = self._call("POST", "/keys/rotate", body, headers)
        document = _document(response.body)
        told = document.get("sealed_node_key")
        sealed = told if isinstance(told, str) and _SEALED.fullmatch(told) else ""
        return replace(_answer(response, document), sealed_key=sealed)

    def use(self, node_key: str) -> None:
        """Call with this bearer key from now on."""
        self.node_key = node_key
        self._bearer = {"Authorization": f"Bearer {node_key}"}

    def _usage_call(
        self, method: str, path: str, body: bytes | None, packed: bytes | None = None
    ) -> Answer:
        headers = {"Content-Type": reports.CONTENT_TYPE} if body else self._bearer
        if packed is not None:
            body, headers = packed, {**headers, "Content-Encoding": "gzip"}
        sent = self._clock.now()
        response = self._call(method, path, body, headers)
        got = self._clock.now()
        document = _document(response.body)
        server_us = _whole(document.get("server_time_us"))
        if server_us is not None:
            self._measure(server_us, sent, got)
        return _answer(response, document)

    def _measure(self, server_us: int, sent: Moment, got: Moment) -> None:
        middle_us = (sent.boot_us + got.boot_us) // 2
        rtt_us = min(max(0, got.boot_us - sent.boot_us), report.CLOCK_RTT_US_MAX)
        self._measured.append(
            _ServerClock(server_minus_boot_us=server_us - middle_us, rtt_us=rtt_us)
        )
        del self._measured[:-OFFSETS_KEPT]
        best, held_us = self._best, self._server_minus_boot_us
        doubt_us = max(WALL_JITTER_US, (best.rtt_us + 1) // 2)
        if held_us is None or abs(best.server_minus_boot_us - held_us) > doubt_us:
            self._server_minus_boot_us = best.server_minus_boot_us

    @property
    def _best(self) -> _ServerClock:
        """Of the last eight, by the smallest round trip: the server is within half of it."""
        return min(self._measured, key=lambda each: each.rtt_us)

    def _call(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Response:
        return self._transport.request(
            method,
            f"/v1/nodes/{self.node_id}{path}",
            {"Accept": "application/json", **headers},
            body,
        )


def idempotency(body: bytes) -> dict[str, str]:
    """The header that makes a POST safe to repeat: the same bytes are the same request."""
    return {"Idempotency-Key": sha256(body).hexdigest()[:32]}


def parsed(body: bytes) -> Any:
    """The JSON of an answer. Raises ValueError."""
    text = body.decode()
    if is_too_deep(text):
        raise ValueError("nested too deep")
    return json.loads(text)


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = parsed(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _answer(response: Response, document: Mapping[str, Any]) -> Answer:
    acked_seq = _whole(document.get("acked_seq"))
    results = document.get("results")
    return Answer(
        status=response.status,
        code=printable(str(document.get("code", ""))[:100]),
        detail=printable(str(document.get("detail", ""))[:300]),
        acked_seq=acked_seq,
        head=None if acked_seq is None else _hash(document.get("head")),
        retry_after_s=_seconds(response.headers.get("retry-after")),
        receipts=tuple(_receipts(results if isinstance(results, list) else [])),
    )


def _receipts(results: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    for result in results:
        receipt = result.get("receipt") if isinstance(result, dict) else None
        if isinstance(receipt, dict):
            told = {name: _whole(receipt.get(name)) for name in ("seq", "flags")}
            if None not in told.values():
                yield told


def _whole(value: Any) -> int | None:
    """A number of the protocol, 0..2^53-1; None for whatever else stands in its place."""
    return value if type(value) is int and 0 <= value <= report.INT_MAX else None


def _hash(text: Any) -> bytes | None:
    is_hash = isinstance(text, str) and re.fullmatch(report.HASH_PATTERN, text) is not None
    return bytes.fromhex(text) if is_hash else None


def _seconds(text: str | None) -> int | None:
    return None if text is None or re.fullmatch(r"[0-9]{1,9}", text) is None else int(text)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
