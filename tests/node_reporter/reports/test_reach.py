"""What a node measures of the way to its region, and how an ingress tells the bytes through it."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import SigningKey

from domain.duration import DAY_US
from domain.fleet import keys as node_key
from node_reporter.reports import reach
from node_reporter.reports.client import Response

KEY = SigningKey(b"\x07" * 32)
NOON_US = 20_000 * DAY_US + DAY_US // 2


class Server:
    """Answers which targets there are, and keeps what it is told."""

    def __init__(self, role: str, *targets: dict[str, Any]) -> None:
        self.answer = {"role": role, "data": list(targets)}
        self.told: list[tuple[str, dict[str, Any], Mapping[str, str], bytes]] = []

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if method == "GET":
            return Response(status=200, headers={}, body=json.dumps(self.answer).encode())
        assert body is not None
        self.told.append((path.rpartition("/")[2], json.loads(body), headers, body))
        return Response(status=200, headers={}, body=b"{}")


def node(server: Server, **more: Any) -> reach.Reach:
    return reach.Reach("node_1", KEY, "ts_node_x", "https://tally.example", server, **more)


def test_latency_is_the_median_of_the_connections_that_were_made() -> None:
    times = iter((900, 100, 500, 300, 700, 11, 12, 13))

    def dial(host: str, port: int) -> int:
        if (host, port) == ("in.example", 51_820) and next(times) == 12:
            raise OSError("refused")
        return 500 if host == "tally.example" else 9

    server = Server(
        "worker",
        {"target": "control", "address": None},
        {"target": "ingress", "address": "in.example:51820"},
        {"target": "moon", "address": "moon.example:1"},
        {"target": "ingress", "address": "no port"},
    )
    node(server, dial=dial).round(NOON_US)
    ((path, told, headers, _),) = server.told
    assert path == "latency"
    assert headers["Authorization"] == "Bearer ts_node_x"
    assert told["ways"] == [
        {"target": "control", "rtt_us": 500, "samples": 5},
        {"target": "ingress", "rtt_us": 9, "samples": 5},
    ]


def test_a_connection_is_timed_for_real() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert 1 <= reach.dial("127.0.0.1", listening.getsockname()[1]) < 5_000_000
    server = Server("worker", {"target": "control", "address": "127.0.0.1:1"})
    node(server).round(NOON_US)
    assert server.told == [], "where nothing answers there is nothing to tell"


def counted(folder: Path, came: int, went: int) -> None:
    where = folder / "wg0" / "statistics"
    where.mkdir(parents=True, exist_ok=True)
    (where / "rx_bytes").write_text(f"{came}\n", encoding="ascii")
    (where / "tx_bytes").write_text(f"{went}\n", encoding="ascii")


def test_an_ingress_signs_the_bytes_since_its_last_round(tmp_path: Path) -> None:
    server = Server("ingress")
    at = node(server, interface="wg0", networks=tmp_path)
    counted(tmp_path, 1_000, 50)
    at.round(NOON_US)
    assert server.told == [], "the first look has nothing to compare with"
    counted(tmp_path, 1_400, 51)
    at.round(NOON_US + 300_000_000)
    ((path, told, headers, raw),) = server.told
    assert path == "ingress-bytes"
    assert (told["bytes_in"], told["bytes_out"]) == (400, 1)
    assert told["from"] == "2024-10-04T12:00:00.000000Z"
    signature = base64.b64decode(headers["Node-Signature"])
    KEY.verify_key.verify(node_key.envelope(node_key.INGRESS_BYTES_TYPE, raw), signature)
    counted(tmp_path, 3, 3)
    at.round(NOON_US + 600_000_000)
    assert len(server.told) == 1, "the counter began anew"


def test_no_report_crosses_midnight_and_no_byte_is_lost(tmp_path: Path) -> None:
    server = Server("ingress")
    at = node(server, interface="wg0", networks=tmp_path)
    midnight = 20_001 * DAY_US
    counted(tmp_path, 0, 0)
    at.round(midnight - 100)
    counted(tmp_path, 10, 7)
    at.round(midnight + 200)
    first, second = (told for _, told, _, _ in server.told)
    assert first["until"] == second["from"] == "2024-10-05T00:00:00.000000Z"
    assert (first["bytes_in"], second["bytes_in"]) == (3, 7)
    assert first["bytes_out"] + second["bytes_out"] == 7


def test_a_worker_tells_no_bytes_and_an_interface_has_a_name(tmp_path: Path) -> None:
    server = Server("worker")
    at = node(server, interface="wg0", networks=tmp_path)
    counted(tmp_path, 1, 1)
    at.round(NOON_US)
    at.round(NOON_US + 1)
    assert server.told == []
    with pytest.raises(ValueError, match="no name"):
        node(server, interface="../etc")
