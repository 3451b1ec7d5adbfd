"""How far this node is from its region, and what goes through it, as told to the server.

Neighbours are tried on private addresses (`node_reporter/reports/neighbours.py`).
Latency is the median time of a few TCP connections to the region's control and to the ingress that
this node is behind; the server says where they are. An ingress node reads the byte counters of the
interface that workers come through and signs what it read. What cannot be measured or sent is left
out until the next round: no money waits for it, and the meter knows nothing of it.
"""

from __future__ import annotations

import base64
import json
import re
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nacl.signing import SigningKey

from domain.duration import DAY_US
from domain.fleet.keys import INGRESS_BYTES_TYPE, envelope
from node_reporter.reports import neighbours
from node_reporter.reports.client import Transport, Unreachable, parsed

SAMPLES = 5
TIMEOUT_S = 5
EVERY_S, FIRST_S = 300, 20
"""Seconds between rounds, and before the first: the meter starts alone."""
NETWORKS = Path("/sys/class/net")
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9][A-Za-z0-9.-]{0,252}):([0-9]{1,5})")
_INTERFACE = re.compile(r"[A-Za-z0-9_.-]{1,15}")

Dial = Callable[[str, int], int]


def dial(host: str, port: int) -> int:
    """How long a connection took, in microseconds. Raises OSError."""
    began = time.perf_counter_ns()
    with socket.create_connection((host, port), timeout=TIMEOUT_S):
        return max(1, (time.perf_counter_ns() - began) // 1_000)


@dataclass(frozen=True, slots=True)
class Counters:
    """What an interface has counted since it was made, at a moment."""

    at_us: int
    bytes_in: int
    bytes_out: int


class Reach:
    """One node's rounds. `interface`: of an ingress, the one that workers come through."""

    def __init__(
        self,
        node_id: str,
        key: SigningKey,
        bearer: str,
        url: str,
        transport: Transport,
        *,
        interface: str | None = None,
        networks: Path = NETWORKS,
        dial: Dial = dial,
        answers: neighbours.Answers | None = None,
    ) -> None:
        """Raises ValueError: no name of an interface."""
        if interface is not None and not _INTERFACE.fullmatch(interface):
            raise ValueError(f"{interface!r} is no name of a network interface")
        self._node, self._key = f"/v1/nodes/{node_id}", key
        self._bearer, self._url, self._transport = bearer, url, transport
        self._interface, self._networks, self._dial = interface, networks, dial
        self._before: Counters | None = None
        self._answers = answers

    def round(self, now_us: int) -> None:
        """Measure and tell once. Raises Unreachable."""
        told = self._targets()
        targets = told.get("data")
        ways = [self._way(one) for one in targets] if isinstance(targets, list) else []
        found = [way for way in ways if way is not None]
        if found:
            self._post("/latency", {"ways": found})
        if told.get("role") == "ingress" and self._interface is not None:
            self._tell_bytes(now_us)
        if self._answers is not None:
            self._tell_neighbours(told.get("neighbours"))

    def _tell_neighbours(self, asked: Any) -> None:
        assert self._answers is not None
        found = neighbours.report(self._answers, asked)
        if found is not None:
            self._post("/neighbours", found[0], signed=found[1])

    def _targets(self) -> Mapping[str, Any]:
        response = self._transport.request("GET", f"{self._node}/targets", self._headers(), None)
        try:
            told = parsed(response.body)
        except ValueError:
            return {}
        return told if isinstance(told, dict) and response.status == 200 else {}

    def _way(self, target: Any) -> dict[str, Any] | None:
        """The median of a few connections; None where there is nothing to connect to."""
        if not isinstance(target, dict) or target.get("target") not in ("control", "ingress"):
            return None
        place = self._place(target)
        if place is None:
            return None
        times = []
        for _ in range(SAMPLES):
            with suppress(OSError):
                times.append(self._dial(*place))
        if not times:
            return None
        rtt_us = sorted(times)[len(times) // 2]
        return {"target": target["target"], "rtt_us": rtt_us, "samples": len(times)}

    def _place(self, target: Mapping[str, Any]) -> tuple[str, int] | None:
        address = target.get("address")
        if address is None and target["target"] == "control":
            parts = urlsplit(self._url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
            return (parts.hostname or "localhost", port)
        found = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
        if found is None or not 0 < int(found[2]) < 65_536:
            return None
        return found[1].strip("[]"), int(found[2])

    def _tell_bytes(self, now_us: int) -> None:
        """What went through since the last round. A counter that began anew starts another one."""
        now, before = self._counters(now_us), self._before
        self._before = now
        if now is None or before is None or now.at_us <= before.at_us:
            return
        came, went = now.bytes_in - before.bytes_in, now.bytes_out - before.bytes_out
        if came < 0 or went < 0:
            return
        midnight = now.at_us - now.at_us % DAY_US
        if before.at_us < midnight < now.at_us:
            # No report crosses midnight UTC: the day before gets its part by time.
            share, length = midnight - before.at_us, now.at_us - before.at_us
            first = (came * share // length, went * share // length)
            self._tell_span(before.at_us, midnight, *first)
            self._tell_span(midnight, now.at_us, came - first[0], went - first[1])
            return
        self._tell_span(before.at_us, now.at_us, came, went)

    def _tell_span(self, from_us: int, until_us: int, came: int, went: int) -> None:
        body = {
            "from": _moment(from_us),
            "until": _moment(until_us),
            "bytes_in": came,
            "bytes_out": went,
        }
        raw = _written(body)
        self._post("/ingress-bytes", body, signed=envelope(INGRESS_BYTES_TYPE, raw))

    def _counters(self, now_us: int) -> Counters | None:
        assert self._interface is not None
        folder = self._networks / self._interface / "statistics"
        try:
            came, went = (
                int((folder / name).read_text(encoding="ascii"))
                for name in ("rx_bytes", "tx_bytes")
            )
        except (OSError, ValueError):
            return None
        return Counters(now_us, came, went)

    def _post(self, path: str, body: Mapping[str, Any], *, signed: bytes | None = None) -> None:
        """`signed`: what the node's key signs of it."""
        raw = _written(body)
        # Told again after a lost answer, the same bytes are the same call.
        key = sha256(raw + str(time.time_ns() // 1_000_000_000 // EVERY_S).encode()).hexdigest()
        headers = {**self._headers(), "Content-Type": "application/json", "Idempotency-Key": key}
        if signed is not None:
            signature = self._key.sign(signed).signature
            headers["Node-Signature"] = base64.b64encode(signature).decode()
        self._transport.request("POST", self._node + path, headers, raw)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._bearer}", "Accept": "application/json"}


def _written(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def keep_telling(make: Callable[[], Reach], stopped: Callable[[float], bool]) -> None:
    """A round every few minutes until `stopped(seconds)`, whatever becomes of one. `make` is asked
    again after a round that failed: the node's keys may be others by then.
    """
    reach: Reach | None = None
    wait_s: float = FIRST_S
    while not stopped(wait_s):
        wait_s = EVERY_S
        try:
            reach = make() if reach is None else reach
            reach.round(time.time_ns() // 1_000)
        except (Unreachable, OSError):
            reach = None


def _moment(at_us: int) -> str:
    seconds, rest = divmod(at_us, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:06d}Z"
