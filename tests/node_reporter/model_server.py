"""A small server of the usage protocol, kept in memory: what the real door promises and no more.

It verifies signature, order and form with the reference parser, answers as the design's table says,
and can be driven in process (it is a `Transport`) or over HTTP (`serve`). `Wire` stands between a
reporter and it and loses, repeats or refuses what it is told to.
"""

from __future__ import annotations

import base64
import gzip
import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from nacl.exceptions import BadSignatureError
from nacl.public import SealedBox
from nacl.signing import VerifyKey

from domain.fleet import keys as node_key
from domain.metering import report
from node_reporter.clock import Clock, SystemClock
from node_reporter.identity import key_id
from node_reporter.reports.client import Response, Unreachable

if TYPE_CHECKING:
    from ledger.log.usage import StoredReport

NODE = "node_" + "5" * 32
NODE_KEY = "tally_node_key"


@dataclass
class ModelServer:
    """One node's chain, as a server would keep it."""

    public_key: bytes = b""
    clock: Clock = field(default_factory=SystemClock)
    transfer_us: int = 0
    node_id: str = NODE
    bodies: list[bytes] = field(default_factory=list)
    alerts: list[str] = field(default_factory=list)
    windows: list[dict[str, Any]] = field(default_factory=list)
    specs: list[dict[str, Any]] = field(default_factory=list)
    joined: dict[str, Any] = field(default_factory=dict)
    refuse_next: list[tuple[int, str]] = field(default_factory=list)
    refuse_posts: list[tuple[int, str]] = field(default_factory=list)
    batch_max: int = 64
    rotations: list[dict[str, Any]] = field(default_factory=list)
    sealed_key: str | None = None  # answered to a change of the key in place of the right one
    received_us: dict[int, int] = field(default_factory=dict)

    # --- what a test looks at ----------------------------------------------------------------

    @property
    def seq(self) -> int:
        return len(self.bodies)

    @property
    def head(self) -> bytes:
        if self.bodies:
            return report.report_hash(self.bodies[-1])
        return report.genesis(self.node_id, self.public_key)

    def reports(self) -> list[report.Report]:
        """Every stored report, each read by the strict reference parser."""
        return [report.parse(body) for body in self.bodies]

    def stored(self) -> list[StoredReport]:
        """Every report as accrual reads it."""
        from ledger.log.usage import StoredReport  # a database client, which most tests do without

        return [
            StoredReport(
                lane=0,
                position=seq,
                node_id=self.node_id,
                node_seq=seq,
                flags=0,
                body=len(body).to_bytes(4, "big") + body,
                recorded_us=self.received_us[seq],
            )
            for seq, body in enumerate(self.bodies, 1)
        ]

    def rows(self) -> list[tuple[str, str | None, report.Row]]:
        """(device, lease, row) of every stored report, in order of arrival."""
        return [
            (one.devices[row.device].id, None if row.lease is None else one.leases[row.lease], row)
            for one in self.reports()
            for row in one.rows
        ]

    # --- the protocol ------------------------------------------------------------------------

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        """Answer one request, as a transport would bring it back."""
        if self.refuse_next:
            status, code = self.refuse_next.pop(0)
            return self._answer(status, code)
        if (method, path) == ("POST", "/v1/nodes/join"):
            return self._join(headers, body or b"")
        prefix = f"/v1/nodes/{self.node_id}"
        if (method, path) == ("GET", f"{prefix}/assignments"):
            if headers.get("Authorization") != f"Bearer {self.node_key}":
                return self._answer(401, "credentials_missing")
            return self._assignments(headers)
        if (method, path) == ("POST", f"{prefix}/specs"):
            self.specs.append(json.loads(body or b""))
            return _json(200, {})
        if (method, path) == ("POST", f"{prefix}/keys/rotate"):
            return self._rotate(body or b"", headers)
        if (method, path) == ("GET", f"{prefix}/usage/head"):
            known = headers.get("Authorization", f"Bearer {self.node_key}")
            if known != f"Bearer {self.node_key}":
                return self._answer(401, "credential_invalid")
            return self._answer(200, "")
        if (method, path) == ("POST", f"{prefix}/usage"):
            if self.refuse_posts:
                return self._answer(*self.refuse_posts.pop(0))
            if headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body or b"")
            return self._take(json.loads(body or b""))
        return self._answer(404, "not_found")

    def _assignments(self, headers: Mapping[str, str]) -> Response:
        told = _json(200, {"data": self.windows})
        tag = f'"{sha256(told.body).hexdigest()}"'
        if headers.get("If-None-Match") == tag:
            return Response(status=304, headers={"etag": tag}, body=b"")
        return Response(status=200, headers={**told.headers, "etag": tag}, body=told.body)

    def _join(self, headers: Mapping[str, str], raw: bytes) -> Response:
        self.joined = json.loads(raw)
        self.public_key = bytes.fromhex(self.joined["public_key"])
        signature = base64.b64decode(headers["Node-Signature"])
        VerifyKey(self.public_key).verify(node_key.envelope(node_key.JOIN_TYPE, raw), signature)
        return _json(201, {"node_id": self.node_id, "node_key": NODE_KEY})

    @property
    def node_key(self) -> str:
        """The bearer key changes with the key that signs."""
        return f"{NODE_KEY}_{len(self.rotations)}" if self.rotations else NODE_KEY

    def _rotate(self, raw: bytes, headers: Mapping[str, str]) -> Response:
        body = json.loads(raw)
        asked = node_key.envelope(node_key.ROTATE_REQUEST_TYPE, raw)
        signature = base64.b64decode(headers["Node-Signature"])
        VerifyKey(bytes.fromhex(body["public_key"])).verify(asked, signature)
        if self.rotations and body == self.rotations[-1]:
            return _json(200, self._sealed_key())
        old, new = self.public_key, bytes.fromhex(body["public_key"])
        least = self.seq
        if self.rotations:
            old = bytes.fromhex(self.rotations[-1]["public_key"])
            least = max(least, self.rotations[-1]["from_seq"])
        if body["previous_key_id"] != key_id(old) or body["from_seq"] <= least:
            self.alerts.append("rotation")
            return self._answer(409, "node_key_mismatch")
        said = node_key.rotation(self.node_id, body["from_seq"], old.hex(), new.hex())
        VerifyKey(old).verify(said, bytes.fromhex(body["previous_signature"]))
        VerifyKey(new).verify(said, bytes.fromhex(body["signature"]))
        self.rotations.append(body)
        return _json(200, self._sealed_key())

    def sealed(self) -> str:
        """The bearer key, for the holder of the newest signing key alone."""
        newest = VerifyKey(bytes.fromhex(self.rotations[-1]["public_key"]))
        box = SealedBox(newest.to_curve25519_public_key())
        return box.encrypt(self.node_key.encode()).hex()

    def _sealed_key(self) -> dict[str, str]:
        return {"sealed_node_key": self.sealed_key or self.sealed()}

    def key_at(self, seq: int) -> bytes:
        """The public key that signs the report of this number."""
        known = [one for one in self.rotations if one["from_seq"] <= seq]
        return bytes.fromhex(known[-1]["public_key"]) if known else self.public_key

    def _take(self, envelopes: list[dict[str, Any]]) -> Response:
        if len(envelopes) > self.batch_max:
            return self._answer(413, "too_large")
        results: list[dict[str, Any]] = []
        for envelope in envelopes:
            refused = self._store(envelope, results)
            if refused is not None:
                return self._answer(*refused, results=results)
        return self._answer(200, "", results=results)

    def _store(
        self, envelope: dict[str, Any], results: list[dict[str, Any]]
    ) -> tuple[int, str] | None:
        body = base64.b64decode(envelope["data_base64"])
        public = self.key_at(int(envelope["sequence"]))
        try:
            signature = base64.b64decode(envelope["signature"])
            VerifyKey(public).verify(report.pae(body), signature)
        except BadSignatureError:
            return self._alert(401, "bad_signature")
        if envelope["keyid"] != key_id(public):
            return self._alert(401, "bad_signature")
        one = report.parse(body)
        agrees = (envelope["id"], envelope["sequence"], envelope["source"], one.node) == (
            str(one.seq),
            str(one.seq),
            f"/nodes/{self.node_id}",
            self.node_id,
        )
        if not agrees or envelope["prevhash"] != one.prev or envelope["type"] != report.NAME:
            return self._alert(400, "malformed")
        if one.seq <= self.seq:
            if self.bodies[one.seq - 1] != body:
                return self._alert(422, "equivocation")
            results.append(_result(one.seq, body, "duplicate"))
            return None
        if one.seq > self.seq + 1:
            return 409, "gap"
        if one.prev != self.head.hex():
            return self._alert(409, "fork")
        self.bodies.append(body)
        self.received_us[one.seq] = self.clock.now().wall_us + self.transfer_us
        results.append(_result(one.seq, body, "stored"))
        return None

    def _alert(self, status: int, code: str) -> tuple[int, str]:
        self.alerts.append(code)
        return status, code

    def _answer(
        self, status: int, code: str, results: list[dict[str, Any]] | None = None
    ) -> Response:
        document: dict[str, Any] = {
            "acked_seq": self.seq,
            "head": self.head.hex(),
            "server_time_us": self.clock.now().wall_us,
            "results": results or [],
        }
        if code:
            document |= {"code": code, "detail": "as the test asked"}
        if status == 503:
            return Response(status=status, headers={"retry-after": "2"}, body=b"busy")
        return _json(status, document)


@dataclass
class Wire:
    """The way to the server: takes the next fault of its list for each POST of reports."""

    server: ModelServer
    faults: list[str] = field(default_factory=list)
    down: bool = False
    sent: list[tuple[Mapping[str, str], bytes]] = field(default_factory=list)

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        posts = (method, path.rpartition("/")[2]) == ("POST", "usage")
        fault = self.faults.pop(0) if self.faults and posts else "none"
        if self.down or fault == "lost_request":
            raise Unreachable("the request was lost")
        if fault == "old_again" and self.sent:
            self.server.request(method, path, *self.sent[0])
        if fault == "busy":
            return Response(status=503, headers={"retry-after": "2"}, body=b"busy")
        if posts and body is not None:
            self.sent.append((headers, body))
        if fault in ("reordered", "tail") and body is not None:
            headers, body = _shuffled(headers, body, fault)
        answer = self.server.request(method, path, headers, body)
        if fault == "twice":
            answer = self.server.request(method, path, headers, body)
        if fault == "lost_answer":
            raise Unreachable("the answer was lost")
        return answer


def _shuffled(
    headers: Mapping[str, str], body: bytes, fault: str
) -> tuple[Mapping[str, str], bytes]:
    """A batch the other way round, or without its first half."""
    if headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    batch = json.loads(body)
    batch = batch[::-1] if fault == "reordered" else batch[len(batch) // 2 :]
    plain = {name: value for name, value in headers.items() if name != "Content-Encoding"}
    return plain, json.dumps(batch).encode()


@contextmanager
def serve(server: ModelServer, *, hangs_up: bool = False) -> Generator[str, None, None]:
    """The server over HTTP on this machine; yields its address.

    `hangs_up`: it closes each connection after one answer without saying so beforehand.
    """
    guard = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(size) if size else None
            with guard:
                answer = server.request(self.command, self.path, dict(self.headers), body)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            self.close_connection = hangs_up

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            """Tests print nothing."""

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}"
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def _result(seq: int, body: bytes, status: str) -> dict[str, Any]:
    receipt = {"seq": seq, "hash": report.report_hash(body).hex(), "flags": 0}
    return {"status": status, "receipt": receipt}


def _json(status: int, document: dict[str, Any]) -> Response:
    return Response(status=status, headers={}, body=json.dumps(document).encode())
