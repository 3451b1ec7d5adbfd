"""Signed usage reports in, receipts out: the door of the usage log.

It judges authorship (the node's key), order (the log does, under the lane's lock), form and size.
It does not judge what a row is worth, and it never refuses a correctly signed, next-in-order report
for its content: that is stored and flagged, or the node's chain would stall for ever.

    200 for a report  <=>  it is durable, now or from an earlier time, and this is its first receipt
    reports before the first refused one of a request are kept

`fast` puts this one operation in front of the framework, which costs as much as the signature.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import threading
import time
import zlib
from collections.abc import Awaitable, Callable, Generator, Iterable, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Meta
from nacl.bindings import crypto_sign_BYTES, crypto_sign_open
from nacl.exceptions import BadSignatureError

from api.telemetry import metrics
from domain.metering import report
from domain.metering.report import ReportInvalid
from ledger.log import report_form as usage_form
from ledger.log.lane_logs import LaneLogs
from ledger.log.usage import (
    AppendFailed,
    Full,
    Item,
    Receipt,
    Status,
    Unavailable,
    UsageLog,
    item,
    wall_clock_us,
)

REQUEST_BYTES_MAX = 1_048_576
REQUEST_SECONDS_MAX = 15.0
"""How long a node waits for its receipts before it is told to send again."""
REPORTS_MAX = 64
MEDIA_TYPE = "application/cloudevents-batch+json"

Headers = list[tuple[bytes, bytes]]
Answer = tuple[int, Headers, bytes]
"""Status, headers, body."""


class NodeKey(msgspec.Struct, frozen=True, gc=False):
    """What the door must know of a node: the key its reports are signed with, and its standing.

    `before`: the key whose place this one took, at report `from_seq`. Earlier reports are still
    signed by it, when a node that was away, or a server that went back, brings them again.
    """

    key_id: str
    public_key: bytes
    status: Literal["ok", "revoked", "quarantined"] = "ok"
    from_seq: int = 1
    before: NodeKey | None = None
    is_taken_back: bool = False  # a replaced key of which nothing is taken that is not stored

    def at(self, sequence: str) -> NodeKey:
        """The key that signs the report of this number, as the envelope writes it."""
        key = self
        if key.before is None or not (sequence.isascii() and sequence.isdecimal()):
            return key
        seq = int(sequence[:20])
        while key.before is not None and seq < key.from_seq:
            key = key.before
        return key

    @property
    def first(self) -> bytes:
        """The public key that the node's chain begins with."""
        key = self
        while key.before is not None:
            key = key.before
        return key.public_key


class NodeKeys(Protocol):
    """Where the door learns keys: answers from memory, called once a request."""

    def lookup(self, node_id: str) -> NodeKey | None:
        """The node's present key; None for a node nobody enrolled."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one node may send; a report of 100 rows holds 100 GPU-minutes."""

    reports_per_second: int = 100
    reports_burst: int = 1_000
    retry_after_seconds: int = 1


# --- the envelope ----------------------------------------------------------------------------

_Short = Annotated[str, Meta(min_length=1, max_length=256)]


class _Envelope(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    specversion: Literal["1.0"]
    id: _Short
    source: _Short
    type: Literal["usage.reported.v1"]
    time: Annotated[datetime, Meta(tz=True)]
    dataschema: _Short
    sequence: _Short
    prevhash: Annotated[str, Meta(pattern=rf"\A{report.HASH_PATTERN}\Z")]
    signature: bytes
    keyid: _Short
    data_base64: bytes
    datacontenttype: Literal["application/json", None] = None


_decode_batch = msgspec.json.Decoder(list[_Envelope]).decode
_encode = msgspec.json.encode
_LONG_VALUE = b'"data_base64":"'
_ENVELOPE_KEYS = len(_Envelope.__struct_fields__)
_AT = re.compile(r"^(?P<detail>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_genesis = lru_cache(maxsize=65_536)(report.genesis)


class Refusal(Exception):
    """The request, or one report of it, is refused with this status and code."""

    def __init__(self, status: int, code: str, detail: str, pointer: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.pointer = pointer


_TITLES = {
    "malformed": "The envelope or the identity of a report cannot be read",
    "bad_signature": "The key is unknown or did not sign these bytes",
    "revoked": "The key of this node was revoked",
    "quarantined": "This node is in quarantine",
    "gap": "Reports before this one are missing",
    "fork": "The report does not follow the last stored one",
    "equivocation": "Another report with this number was signed before",
    "too_large": "The request is too large",
    "unsupported_media_type": "Media type or encoding is not supported",
    "one_request_at_a_time": "Another request of this node is in progress",
    "too_many_reports": "This node sends more than it may",
    "busy": "Too many reports are waiting",
    "unavailable": "The usage log cannot be reached",
    "internal": "The report could not be stored",
    "node_unknown": "No such node",
}
_acked_seq = attrgetter("acked_seq")
_REFUSED = {
    Status.EQUIVOCATION: (422, "equivocation"),
    Status.GAP: (409, "gap"),
    Status.FORK: (409, "fork"),
}
_RETRYABLE = frozenset({409, 413, 429, 503})
_OUTCOMES = {
    (True, False): metrics.REPORTS.labels("stored"),
    (True, True): metrics.REPORTS.labels("stored_flagged"),
    (False, False): metrics.REPORTS.labels("duplicate"),
    (False, True): metrics.REPORTS.labels("duplicate"),
}
"""By whether it was stored now, and whether it is flagged."""
_JSON: Headers = [(b"content-type", b"application/json")]


class UsageIngest:
    """`POST /v1/nodes/{id}/usage` and `GET .../usage/head` without any framework."""

    def __init__(
        self,
        log: LaneLogs | UsageLog,
        keys: NodeKeys,
        limits: Limits | None = None,
        now_us: Callable[[], int] = wall_clock_us,
    ) -> None:
        self._log = log
        self._keys = keys
        self._limits = limits or Limits()
        self._now_us = now_us
        self._in_flight: set[str] = set()
        self._flights = threading.Lock()
        self._budgets: dict[str, _Budget] = {}

    async def ingest(self, node_id: str, raw: bytes, content_encoding: str | None = None) -> Answer:
        """Store the reports of one request; the answer is sent after the commit."""
        try:
            key = self._key_of(node_id)
            items, refusal = await _checked_in_turn(node_id, key, raw, content_encoding)
            return await self._take(node_id, key, items, refusal)
        except Refusal as refusal:
            return await self._refused(node_id, refusal, ())

    async def head(self, node_id: str) -> Answer:
        """How far the log holds this node's chain: what a reporter asks at every start."""
        if self._keys.lookup(node_id) is None:
            return await self._refused(node_id, Refusal(404, "node_unknown", "never enrolled"), ())
        try:
            body = await self._progress(node_id)
        except Unavailable:
            refusal = Refusal(503, "unavailable", "try again later")
            return await self._refused(node_id, refusal, ())
        return 200, [*_JSON, (b"cache-control", b"no-store")], _encode(body)

    def refuse(self, node_id: str, refusal: Refusal) -> Awaitable[Answer]:
        """The problem document of a request that was refused before it was read."""
        return self._refused(node_id, refusal, ())

    def _key_of(self, node_id: str) -> NodeKey:
        key = self._keys.lookup(node_id)
        if key is None:
            raise Refusal(401, "bad_signature", "no key is known for this node")
        if key.status != "ok":
            raise Refusal(403, key.status, f"the node is {key.status}; keep the spool")
        return key

    @contextmanager
    def hold(self, node_id: str) -> Generator[None, None, None]:
        """While its key is changed no report of the node is on its way. Called in any thread.

        Raises Refusal: 429 one_request_at_a_time.
        """
        with self._flights:
            self._enter(node_id)
        try:
            yield
        finally:
            self._in_flight.discard(node_id)

    def _enter(self, node_id: str) -> None:
        if node_id in self._in_flight:
            raise Refusal(429, "one_request_at_a_time", "wait for the answer to the other one")
        self._in_flight.add(node_id)

    async def _take(
        self, node_id: str, key: NodeKey, items: list[Item], refusal: Refusal | None
    ) -> Answer:
        if not items:
            assert refusal is not None
            return await self._refused(node_id, refusal, ())
        # From here the sender is known to be the node: only now may it use up its own share.
        with self._flights:
            self._enter(node_id)
        try:
            if self._keys.lookup(node_id) != key:
                raise Refusal(503, "unavailable", "the key was changed meanwhile; send it again")
            self._spend(node_id, len(items))
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                anew = await self._signed_anew(node_id, key, items)
                if anew is not None:
                    items, refusal = items[:anew], _replaced(anew)
                    if not items:
                        raise refusal
                receipts = await self._log.append(items)
        except TimeoutError:
            # The reports wait on; stored later, they answer as duplicates.
            raise Refusal(503, "unavailable", "no answer in time; send it again") from None
        except Full:
            raise Refusal(503, "busy", "the queue of the usage log is full") from None
        except Unavailable:
            raise Refusal(
                503, "unavailable", "nothing may have been stored; send it again"
            ) from None
        except AppendFailed:
            raise Refusal(500, "internal", "the report was not stored") from None
        finally:
            self._in_flight.discard(node_id)
        return await self._answer(node_id, items, receipts, refusal)

    async def _signed_anew(self, node_id: str, key: NodeKey, items: list[Item]) -> int | None:
        """The first report that a replaced key signed and that may not be taken: it has another
        content than the one stored, or is not stored and the key was taken back. Whoever has found
        an old key must be able to accuse nobody of an equivocation.
        """
        if key.before is None:
            return None
        signers = [key.at(str(one.seq)) for one in items]
        old = [one.seq for one, signer in zip(items, signers, strict=True) if signer is not key]
        if not old:
            return None
        stored = await self._log.hashes(node_id, old)
        for index, (one, signer) in enumerate(zip(items, signers, strict=True)):
            if signer is key:
                continue
            known = stored.get(one.seq)
            if signer.is_taken_back if known is None else known != one.hash:
                return index
        return None

    async def _answer(
        self, node_id: str, items: list[Item], receipts: list[Receipt], refusal: Refusal | None
    ) -> Answer:
        results: list[dict[str, Any]] = []
        last = max(receipts, key=_acked_seq)
        for one, receipt in zip(items, receipts, strict=True):
            if receipt.position is None:
                if receipt.status is Status.NOT_REACHED:
                    continue  # a number below a refused one, sent after it
                refusal = _order_refusal(one, receipt, len(results))
                break
            results.append(_result(one, receipt))
            _OUTCOMES[receipt.status is Status.STORED, bool(receipt.flags)].inc()
        if refusal is not None:
            return await self._refused(node_id, refusal, results, last)
        return (
            200,
            _JSON,
            _encode(
                {
                    "acked_seq": last.acked_seq,
                    "head": last.head.hex(),
                    "server_time_us": self._now_us(),
                    "results": results,
                }
            ),
        )

    async def _refused(
        self,
        node_id: str,
        refusal: Refusal,
        results: Sequence[dict[str, Any]],
        last: Receipt | None = None,
    ) -> Answer:
        metrics.REPORTS.labels(f"refused_{refusal.code}").inc()
        problem: dict[str, Any] = {
            "type": f"/problems/{refusal.code}",
            "title": _TITLES[refusal.code],
            "status": refusal.status,
            "detail": refusal.detail,
            "instance": f"/v1/nodes/{node_id}/usage",
            "code": refusal.code,
            "retryable": refusal.status in _RETRYABLE,
            "request_id": os.urandom(8).hex(),
            "facts": {},
            "errors": [],
        }
        if refusal.pointer is not None:
            problem["errors"] = [{"pointer": refusal.pointer, "detail": refusal.detail}]
        if last is not None:
            problem |= {"acked_seq": last.acked_seq, "head": last.head.hex()}
            problem["server_time_us"] = self._now_us()
        else:
            problem |= await self._progress_if_known(node_id, refusal.status)
        problem["results"] = results
        headers: Headers = [(b"content-type", b"application/problem+json")]
        if refusal.status in (429, 503):
            headers.append((b"retry-after", b"%d" % self._limits.retry_after_seconds))
        if refusal.status == 401:
            headers.append((b"www-authenticate", b"Signature"))
        return refusal.status, headers, _encode(problem)

    async def _progress_if_known(self, node_id: str, status: int) -> dict[str, Any]:
        """The node's progress; without it when the node is unknown or the log is under load."""
        if status in (429, 500, 503) or self._keys.lookup(node_id) is None:
            return {"server_time_us": self._now_us()}
        try:
            return await self._progress(node_id)
        except Unavailable:
            return {"server_time_us": self._now_us()}

    async def _progress(self, node_id: str) -> dict[str, Any]:
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                acked_seq, head = await self._log.head(node_id)
        except TimeoutError:
            raise Unavailable("no answer in time") from None
        if head is None:
            key = self._keys.lookup(node_id)
            assert key is not None
            head = report.genesis(node_id, key.first)
        return {"acked_seq": acked_seq, "head": head.hex(), "server_time_us": self._now_us()}

    def _spend(self, node_id: str, reports: int) -> None:
        budget = self._budgets.get(node_id)
        if budget is None:
            budget = self._budgets[node_id] = _Budget(self._limits)
        if not budget.spend(reports):
            raise Refusal(429, "too_many_reports", "slow down and send the rest later")


class _Budget:
    """A token bucket of one node, in reports; integer nanoseconds, no drift."""

    __slots__ = ("_burst_ns", "_cost_ns", "_full_at_ns")

    def __init__(self, limits: Limits) -> None:
        self._cost_ns = 1_000_000_000 // limits.reports_per_second
        self._burst_ns = self._cost_ns * max(limits.reports_burst, REPORTS_MAX)
        self._full_at_ns = 0

    def spend(self, reports: int) -> bool:
        now_ns = time.monotonic_ns()
        full_at_ns = max(self._full_at_ns, now_ns) + reports * self._cost_ns
        if full_at_ns - now_ns > self._burst_ns:
            return False
        self._full_at_ns = full_at_ns
        return True


# --- one request -----------------------------------------------------------------------------


Checked = tuple[list[Item], Refusal | None]
"""The reports up to the first that is refused, and its refusal."""


def _checked(node_id: str, key: NodeKey, plain: bytes) -> Checked:
    """The reports of one request, ready for the log. Raises Refusal: it is no batch of reports."""
    items: list[Item] = []
    for index, envelope in enumerate(_envelopes(plain)):
        try:
            items.append(_item(node_id, key, envelope, index))
        except Refusal as refusal:
            return items, refusal
    return items, None


def _inflated_and_checked(
    node_id: str, key: NodeKey, raw: bytes, content_encoding: str | None
) -> Checked:
    return _checked(node_id, key, _inflated(raw, content_encoding))


LOOP_BYTES_MAX = 32_768
"""A longer request is checked in a thread: 64 reports take as long as 64 requests. Out of gzip."""
PACKED_BYTES_MAX = 8_192
"""What gzip has packed into more is not looked at in the loop."""
_checkers = ThreadPoolExecutor(2, "check reports")


async def _checked_in_turn(
    node_id: str, key: NodeKey, raw: bytes, content_encoding: str | None
) -> Checked:
    """As `_inflated_and_checked`. Raises Refusal, also when no thread was free in time.

    A short one is checked where it came in: passing the interpreter to a thread and back costs more
    than the signature that runs without it. One that waits for a thread waits as it was sent.
    """
    short = None
    if len(raw) <= (PACKED_BYTES_MAX if content_encoding else LOOP_BYTES_MAX):
        short = _inflated_up_to(LOOP_BYTES_MAX, raw, content_encoding)
    if short is not None:
        return _checked(node_id, key, short)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(REQUEST_SECONDS_MAX):
            return await loop.run_in_executor(
                _checkers, _inflated_and_checked, node_id, key, raw, content_encoding
            )
    except TimeoutError:
        # One that no thread has begun leaves the queue with this.
        raise Refusal(503, "busy", "not checked in time; send it again") from None


def _inflated(raw: bytes, content_encoding: str | None) -> bytes:
    """The request's bytes as sent or out of gzip, never more than the limit."""
    if len(raw) > REQUEST_BYTES_MAX:
        raise _too_large(f"at most {REQUEST_BYTES_MAX} bytes")
    plain = _inflated_up_to(REQUEST_BYTES_MAX, raw, content_encoding)
    if plain is None:
        raise _too_large(f"at most {REQUEST_BYTES_MAX} bytes after gunzip")
    return plain


def _inflated_up_to(most: int, raw: bytes, content_encoding: str | None) -> bytes | None:
    """The request's bytes as sent or out of gzip; None: gzip holds more than `most`."""
    if content_encoding in (None, "", "identity"):
        return raw
    if content_encoding != "gzip":
        raise Refusal(415, "unsupported_media_type", "content encodings: identity, gzip")
    inflater = zlib.decompressobj(wbits=31)
    try:
        plain = inflater.decompress(raw, most + 1)
    except zlib.error:
        raise Refusal(400, "malformed", "not gzip") from None
    if len(plain) > most:
        return None
    if not inflater.eof or inflater.unused_data:
        raise Refusal(400, "malformed", "the gzip stream is cut or has a tail")
    return plain


def _too_large(detail: str, pointer: str | None = None) -> Refusal:
    return Refusal(413, "too_large", detail, pointer)


def _envelopes(raw: bytes) -> list[_Envelope]:
    try:
        envelopes = _decode_batch(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed_envelope(str(error)) from None
    if not envelopes:
        raise Refusal(400, "malformed", "at least one report is needed", "#")
    if len(envelopes) > REPORTS_MAX:
        raise _too_large(f"{len(envelopes)} reports, at most {REPORTS_MAX}", "#")
    if _has_a_key_twice(raw, envelopes):
        raise Refusal(400, "malformed", "a key twice in one envelope", "#")
    return envelopes


def _has_a_key_twice(raw: bytes, envelopes: list[_Envelope]) -> bool:
    """All values are strings, so without escapes a key too many is seen by counting quotes."""
    keys = len(envelopes) * _ENVELOPE_KEYS
    keys -= sum(envelope.datacontenttype is None for envelope in envelopes)
    if b"\\" not in raw:
        return _quotes(raw, len(envelopes)) != 4 * keys
    found: list[int] = []
    json.loads(raw, object_pairs_hook=lambda pairs: found.append(len(pairs)))
    return sum(found) != keys


def _quotes(raw: bytes, leaps: int) -> int:
    """How many there are: as many long values, where there can be none, are leapt over."""
    found, at = 0, 0
    for _ in range(leaps):
        long = raw.find(_LONG_VALUE, at)
        if long < 0:
            break
        begin = long + len(_LONG_VALUE)
        found += raw.count(b'"', at, begin)
        at = raw.index(b'"', begin)
    return found + raw.count(b'"', at)


def _malformed_envelope(said: str) -> Refusal:
    """msgspec names the place at the end of its message: ` - at `$[0].id``."""
    match = _AT.match(said)
    assert match is not None
    path = re.sub(r"[.\[]", "/", match["path"] or "").replace("]", "")
    return Refusal(400, "malformed", match["detail"], f"#{path}")


def _item(node_id: str, key: NodeKey, envelope: _Envelope, index: int) -> Item:
    """One report, its signature verified, ready for the log. Raises Refusal."""
    body = envelope.data_base64
    if len(body) > report.BODY_BYTES_MAX:
        detail = f"a report has at most {report.BODY_BYTES_MAX} bytes"
        raise _too_large(detail, f"#/{index}/data_base64")
    chain_key, key = key, key.at(envelope.sequence)
    if envelope.keyid != key.key_id:
        raise Refusal(401, "bad_signature", "unknown key", f"#/{index}/keyid")
    if not _is_signed(body, envelope.signature, key.public_key):
        detail = "the signature does not fit the report"
        raise Refusal(401, "bad_signature", detail, f"#/{index}/signature")
    flags = 0
    try:
        identity = usage_form.read(body)
    except ReportInvalid as broken:
        flags = usage_form.FLAG_CONTENT
        identity = _identity_of_broken(body, broken, index)
    _check_agreement(node_id, envelope, identity, index)
    return item(
        node_id,
        identity.seq,
        bytes.fromhex(identity.prev),
        body,
        key.key_id,
        envelope.signature,
        _genesis(node_id, chain_key.first),
        flags,
    )


def _replaced(index: int) -> Refusal:
    detail = "another key has replaced this one, which signs nothing anew"
    return Refusal(401, "bad_signature", detail, f"#/{index}/keyid")


def _is_signed(body: bytes, signature: bytes, public_key: bytes) -> bool:
    if len(signature) != crypto_sign_BYTES:
        return False
    try:
        crypto_sign_open(signature + report.pae(body), public_key)
    except BadSignatureError:
        return False
    return True


def _identity_of_broken(body: bytes, broken: ReportInvalid, index: int) -> usage_form.Identity:
    try:
        return usage_form.read_leniently(body)
    except ReportInvalid:
        detail = f"{broken.rule}: {broken.detail}"
        raise Refusal(400, "malformed", detail, f"#/{index}/data_base64") from None


def _check_agreement(
    node_id: str, envelope: _Envelope, identity: usage_form.Identity, index: int
) -> None:
    """Envelope and path must say what the signed bytes say."""
    seq = str(identity.seq)
    for field, said, signed in (
        ("data_base64", node_id, identity.node),
        ("source", envelope.source, f"/nodes/{node_id}"),
        ("id", envelope.id, seq),
        ("sequence", envelope.sequence, seq),
        ("prevhash", envelope.prevhash, identity.prev),
    ):
        if said != signed:
            detail = f"{field} does not agree with the signed report or the path"
            raise Refusal(400, "malformed", detail, f"#/{index}/{field}")


def _order_refusal(one: Item, receipt: Receipt, index: int) -> Refusal:
    status, code = _REFUSED[receipt.status]
    detail = {
        Status.GAP: f"report {one.seq} after {receipt.acked_seq}: send from the next one on",
        Status.FORK: f"prev of report {one.seq} is not the hash of report {receipt.acked_seq}",
        Status.EQUIVOCATION: f"report {one.seq} is stored with other signed bytes",
    }[receipt.status]
    field = "prevhash" if receipt.status is Status.FORK else "id"
    return Refusal(status, code, detail, f"#/{index}/{field}")


def _result(one: Item, receipt: Receipt) -> dict[str, Any]:
    assert receipt.lane_hash is not None
    assert receipt.recorded_us is not None
    return {
        "status": "stored" if receipt.status is Status.STORED else "duplicate",
        "receipt": {
            "seq": one.seq,
            "hash": one.hash.hex(),
            "lane": one.lane,
            "position": receipt.position,
            "lane_hash": receipt.lane_hash.hex(),
            "recorded_at": _moment(receipt.recorded_us),
            "flags": receipt.flags,
        },
    }


def _moment(at_us: int) -> str:
    """RFC 3339 in UTC, always six decimals."""
    second, rest_us = divmod(at_us, 1_000_000)
    return f"{_second(second)}.{rest_us:06d}Z"


@lru_cache(maxsize=1_024)
def _second(at_s: int) -> str:
    return (_EPOCH + timedelta(seconds=at_s)).strftime("%Y-%m-%dT%H:%M:%S")


def tune_collector() -> None:
    """Take what is loaded out of the garbage collector's sight and let it run rarely.

    Call once when everything is wired: a full collection over all imported modules costs tens of
    milliseconds, and the default runs one every few hundred requests. Everybody waits while the
    collector runs, for about 0.3 ms per thousand objects: so it looks at few at a time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 50)
    gc.enable()


# --- in front of the framework ---------------------------------------------------------------

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

_PREFIX, _SUFFIX = "/v1/nodes/", "/usage"


def node_of(path: str) -> str | None:
    """The node whose reports are posted to this path; None for every other path."""
    if not (path.startswith(_PREFIX) and path.endswith(_SUFFIX)):
        return None
    node_id = path[len(_PREFIX) : -len(_SUFFIX)]
    return None if not node_id or "/" in node_id else node_id


def fast(app: Asgi, ingest: UsageIngest) -> Asgi:
    """`app` with the hot route in front of it; every other request goes on to `app`."""

    async def front(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            return await app(scope, receive, send)
        node_id = node_of(scope["path"])
        if node_id is None:
            return await app(scope, receive, send)
        try:
            length, encoding = _request_head(scope["headers"])
            raw = await _read(receive, length)
        except Refusal as refusal:
            status, headers, body = await ingest.refuse(node_id, refusal)
            # What was not read must not be taken for the next request.
            headers.append((b"connection", b"close"))
        else:
            if raw is None:
                return None  # the client has gone
            status, headers, body = await ingest.ingest(node_id, raw, encoding)
        length_header = (b"content-length", b"%d" % len(body))
        await send(
            {"type": "http.response.start", "status": status, "headers": [*headers, length_header]}
        )
        await send({"type": "http.response.body", "body": body})
        return None

    return front


def _request_head(headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str | None]:
    """Content length (0 when not given) and encoding. Raises Refusal."""
    media_type, length, encoding = "", 0, None
    for name, value in headers:
        if name == b"content-type":
            media_type = value.split(b";", 1)[0].strip().lower().decode("latin-1")
        elif name == b"content-length":
            length = int(value) if value.isdigit() else 0
        elif name == b"content-encoding":
            encoding = value.strip().lower().decode("latin-1")
    if media_type != MEDIA_TYPE:
        raise Refusal(415, "unsupported_media_type", f"content type: {MEDIA_TYPE}")
    if length > REQUEST_BYTES_MAX:
        raise _too_large(f"at most {REQUEST_BYTES_MAX} bytes")
    return length, encoding


async def _read(receive: Receive, length: int) -> bytes | None:
    message = await receive()
    if message["type"] == "http.disconnect":
        return None
    raw: bytes = message.get("body", b"")
    if not message.get("more_body"):
        return raw
    parts, size = [raw], len(raw)
    while message.get("more_body"):
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > max(length, REQUEST_BYTES_MAX):
            raise _too_large(f"at most {REQUEST_BYTES_MAX} bytes")
    return b"".join(parts)
