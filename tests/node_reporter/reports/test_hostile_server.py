"""A server that means harm, or was taken over: it can refuse a node, and nothing more.

Whatever it answers, the meter goes on, and an honest server gets every second afterwards.
"""

from __future__ import annotations

import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import SigningKey

from node_reporter.__main__ import main
from node_reporter.agent.agent import Reporter
from node_reporter.clock import SteppedClock
from node_reporter.gpus.simulated import SimulatedGpus
from node_reporter.identity import public_key
from node_reporter.reports import client
from node_reporter.reports.client import (
    ANSWER_BYTES_MAX,
    HttpTransport,
    Response,
    Unreachable,
    parsed,
)
from node_reporter.reports.joining import JoinRefused, join
from tests.node_reporter.model_server import NODE, NODE_KEY, ModelServer, serve

KEY = SigningKey(b"h" * 32)
WALL_US = 1_795_161_600_000_000
TICK_US = 10_000_000
LEASE = "lease_" + "1" * 32


@dataclass
class Taken:
    """A server in other hands while `answers` names what it says to a path's last part."""

    server: ModelServer
    answers: Mapping[str, Response]
    is_taken: bool = False

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        part = path.rpartition("/")[2]
        if self.is_taken and part in self.answers:
            return self.answers[part]
        return self.server.request(method, path, headers, body)


def said(body: bytes | Mapping[str, Any], status: int = 200, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Response(status=status, headers=named, body=content)


def told(folder: Path, answers: Mapping[str, Response], *, from_the_start: bool) -> list[str]:
    """Four minutes with a server that was taken, then an honest one: every second arrives."""
    clock, lines = SteppedClock(wall_us=WALL_US, mono_us=10**9), list[str]()
    server = ModelServer(public_key=public_key(KEY), clock=clock)
    wire = Taken(server, answers)
    reporter = Reporter(
        NODE,
        KEY,
        SimulatedGpus(clock),
        clock,
        folder / "spool.db",
        wire,
        node_key=NODE_KEY,
        tick_us=TICK_US,
        tell=lines.append,
        draw=lambda low, _high: low,
    )
    reporter.poll()
    for minute in range(20):
        wire.is_taken = (0 if from_the_start else 2) <= minute < 6
        for _ in range(60_000_000 // TICK_US):
            clock.advance(TICK_US)
            reporter.poll()
            reporter.turn()
    reporter.flush()
    reporter.close()
    metered_us = clock.now().mono_us - 10**9
    assert sum(row.len_us for _, _, row in server.rows()) == metered_us
    assert server.alerts == []
    return lines


def window(**changes: Any) -> dict[str, Any]:
    first = {"lease_id": LEASE, "device_id": "GPU-1", "from_us": WALL_US, **changes}
    return {"data": [first]}


USAGE: dict[str, Response] = {
    "time beyond any clock": said({"acked_seq": 0, "server_time_us": 10**30}),
    "time of another age": said({"acked_seq": 0, "server_time_us": -(2**53)}),
    "time that does not end": said(b'{"acked_seq":0,"server_time_us":Infinity}'),
    "brackets": said(b"[" * 100_000),
    "objects": said(b'{"a":' * 100_000),
    "digits": said(b'{"acked_seq":' + b"9" * 5_000 + b"}"),
    "a number no file holds": said({"acked_seq": 2**70, "head": "00" * 32}),
    "half a number": said({"acked_seq": 0.5}),
    "no hash": said({"acked_seq": 0, "head": "zz"}),
    "receipts": said(
        {
            "acked_seq": 0,
            "results": [
                {"receipt": {"seq": 2**70, "flags": 1}},
                {"receipt": 1},
                2,
                {"receipt": {"seq": 1, "flags": {"a": "b"}}},
            ],
        }
    ),
    "half a character": said(
        b'{"acked_seq":0,"results":[{"receipt":{"seq":1,"flags":"\\ud800"}}]}'
    ),
    "bytes": said(b"\xff\xfe{}"),
    "nothing": said(b""),
    "a wait in five thousand digits": said(b"{}", 503, retry_after="9" * 5_000),
    "a wait in other digits": said(b"{}", 503, retry_after="\u0663"),
}

ASSIGNMENTS: dict[str, Response] = {
    "brackets": said(b"[" * 100_000),
    "infinity": said(
        b'{"data":[{"lease_id":"%s","device_id":"x","from_us":1e999}]}' % LEASE.encode()
    ),
    "text": said({"data": "leases"}),
    "an object": said({"data": {"a": 1}}),
    "no objects": said({"data": [1, None, "a"]}),
    "a device that is a list": said(window(device_id=["GPU-1"])),
    "a device of control characters": said(window(device_id="\x1b[31m")),
    "a lease that is a number": said(window(lease_id=1)),
    "a time in text": said(window(from_us="17")),
    "a time before time": said(window(from_us=-1)),
    "a time beyond time": said(window(until_us=10**300)),
    "a share without end": said(
        b'{"data":[{"lease_id":"%s","device_id":"x","from_us":0,'
        b'"share_ppm":Infinity}]}' % LEASE.encode()
    ),
}


@pytest.mark.parametrize(
    "from_the_start",
    [
        pytest.param(
            True, marks=pytest.mark.slow("::test_no_answer_about_reports_stops_the_meter")
        ),
        False,
    ],
)
@pytest.mark.parametrize("name", USAGE)
def test_no_answer_about_reports_stops_the_meter(
    name: str, from_the_start: bool, tmp_path: Path
) -> None:
    answers = {"usage": USAGE[name], "head": USAGE[name]}
    told(tmp_path, answers, from_the_start=from_the_start)


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_no_list_of_assignments_stops_the_meter(name: str, tmp_path: Path) -> None:
    told(tmp_path, {"assignments": ASSIGNMENTS[name]}, from_the_start=False)


SMALLER = [b'{"a":{}}', b'{"":0}', b"[]", b'"ab"', b"1.5"]
"""Each takes less memory than the first unit below, which takes 32 MiB."""
WHOLE = pytest.mark.slow(
    "::test_the_worst_answer_of_full_length_leaves_room_in_the_services_memory"
)


@pytest.mark.parametrize("unit", [b"[[]]", *(pytest.param(unit, marks=WHOLE) for unit in SMALLER)])
def test_the_worst_answer_of_full_length_leaves_room_in_the_services_memory(unit: bytes) -> None:
    """Two at once, the meter's and the page's, beside the 36 MiB that the reporter takes."""
    body = b"[" + b",".join([unit] * (ANSWER_BYTES_MAX // (len(unit) + 1))) + b"]"
    assert len(body) <= ANSWER_BYTES_MAX + 1
    tracemalloc.start()
    try:
        parsed(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 2 * peak + 36 * 2**20 < 128 * 2**20, peak


def test_what_a_server_says_cannot_write_to_a_terminal(tmp_path: Path) -> None:
    evil = {"code": "\x1b[2J", "detail": "\x1b]0;title\x07\nreport 1 was accepted\u202e"}
    lines = told(tmp_path, {"usage": said(evil, 404)}, from_the_start=False)
    assert any("title" in line for line in lines)
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize(
    "answer",
    [
        {"node_id": "node_\x1b[31m", "node_key": NODE_KEY},
        {"node_id": "../../etc", "node_key": NODE_KEY},
        {"node_id": NODE, "node_key": "two\r\nlines"},
        {"node_id": NODE, "node_key": "\u00e9"},
        {"node_id": NODE, "node_key": ""},
        {"node_id": 5, "node_key": 5},
        {"node_id": NODE},
    ],
)
def test_a_node_that_cannot_be_written_down_is_not_joined(answer: dict[str, Any]) -> None:
    wire = Taken(ModelServer(), {"join": said(answer, 201)}, is_taken=True)
    with pytest.raises(JoinRefused, match="names no node"):
        join(wire, "CODE", KEY, {"devices": []}, "0.1.0")


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"errors": 5}', b'{"errors": [5], "detail": "\\u001b[2J"}', b"\xff"]
)
def test_a_refusal_to_join_is_one_line(body: bytes) -> None:
    wire = Taken(ModelServer(), {"join": said(body, 403)}, is_taken=True)
    with pytest.raises(JoinRefused) as refused:
        join(wire, "CODE", KEY, {"devices": []}, "0.1.0")
    assert str(refused.value).isprintable()


def test_what_is_no_code_and_who_does_not_answer_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = ("--state", str(tmp_path / "s"), "--backend", "sim")
    assert main(["join", "http://127.0.0.1:1", "1", *state]) == 1
    said = capsys.readouterr().err
    assert "'1' is no join code" in said
    assert "fingerprint" not in said, "no key is made"
    assert main(["join", "http://127.0.0.1:1", "7KQ2M9XD", *state]) != 0
    assert "http://127.0.0.1:1: Connection refused" in capsys.readouterr().err


def test_a_broken_rule_is_told_once() -> None:
    rule = "#/code: does not have the form"
    body = {
        "code": "invalid",
        "detail": rule,
        "errors": [{"pointer": "#/code", "detail": rule[8:]}],
    }
    wire = Taken(ModelServer(), {"join": said(body, 422)}, is_taken=True)
    with pytest.raises(JoinRefused) as refused:
        join(wire, "CODE", KEY, {"devices": []}, "0.1.0")
    assert str(refused.value).count("does not have the form") == 1


def test_the_program_prints_no_control_characters_of_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ModelServer(refuse_next=[(403, "\x1b[2Jcleared")])
    with serve(server) as url:
        code = main(["join", url, "7KQ2M9XD", "--state", str(tmp_path / "s"), "--backend", "sim"])
    assert code == 1
    shown = capsys.readouterr()
    assert "cleared" in shown.err
    assert (shown.out + shown.err).replace("\n", "").isprintable()


@contextmanager
def dripping(head: bytes) -> Generator[str, None, None]:
    """A server that sends `head` and then a byte ten times a second, for ever."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            taken, _ = listening.accept()
            with taken:
                try:
                    taken.sendall(head)
                    for _ in range(100):
                        taken.sendall(b"x")
                        time.sleep(0.1)
                except OSError:
                    return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join(20)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: ",
    ],
    ids=["a body of known length", "a body to the end", "a head"],
)
def test_an_answer_that_trickles_in_is_given_up(
    head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "EXCHANGE_S_MAX", 0.5)
    began = time.monotonic()
    with dripping(head) as url:
        with pytest.raises(Unreachable):
            HttpTransport(url).request("GET", "/", {}, None)
        assert time.monotonic() - began < 5
