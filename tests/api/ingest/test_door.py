"""The door of the usage log over its ASGI front, with a real log behind it.

The tests share one log; each has a node of its own and counts what it stored itself.
"""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import httpx
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.ingest import door as door_module
from api.ingest.door import MEDIA_TYPE, REQUEST_BYTES_MAX, Limits, NodeKey, UsageIngest, fast
from domain.metering import report
from domain.metering.report import ReportInvalid
from domain.metering.resources import SOURCES
from ledger.log import report_form as usage_form
from ledger.log import usage
from ledger.log.usage import UsageLog
from tests.conftest import Databases, fresh
from tests.examples import examples
from tests.scenes.usage_reports import STEP_US, Node, a_report, resource_rows, rows

NOW_US = 1_795_161_720_000_000
_numbers: Iterator[int] = itertools.count(1)


@dataclass
class Keys:
    """The port, answered from a dictionary."""

    known: dict[str, NodeKey]

    def lookup(self, node_id: str) -> NodeKey | None:
        return self.known.get(node_id)

    def enrol(self, node: Node, status: Any = "ok") -> Node:
        self.known[node.id] = NodeKey(node.key_id, node.public_key, status)
        return node


async def elsewhere(_scope: Any, receive: Any, send: Any) -> None:
    """The rest of the application."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": b"elsewhere"})


class Door:
    """The ASGI front with a log on a fresh database; one event loop for its whole life."""

    def __init__(self, database: str, **options: Any) -> None:
        self.database = database
        self.keys = Keys({})
        self.loop = asyncio.new_event_loop()
        self.log = self.run(self._open(options.pop("queue_reports_max", 2_000)))
        self.ingest = UsageIngest(self.log, self.keys, now_us=lambda: NOW_US, **options)
        app: Any = fast(elsewhere, self.ingest)
        transport = httpx.ASGITransport(app)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://test")
        self.before = dict(NOTHING)

    async def _open(self, queue_reports_max: int) -> UsageLog:
        log = UsageLog(self.database, now_us=lambda: NOW_US, queue_reports_max=queue_reports_max)
        await log.start()
        return log

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def close(self) -> None:
        self.run(self.client.aclose())
        self.run(self.log.close())
        self.loop.close()

    def post(self, node: Node, *envelopes: dict[str, Any], **headers: str) -> httpx.Response:
        return self.raw(node, json.dumps(list(envelopes)).encode(), **headers)

    def raw(self, node: Node, body: bytes, **headers: str) -> httpx.Response:
        return self.run(self.sending(node, body, **headers))  # type: ignore[no-any-return]

    async def sending(self, node: Node, body: bytes, **headers: str) -> httpx.Response:
        named = {"content-type": MEDIA_TYPE} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return await self.client.post(f"/v1/nodes/{node.id}/usage", content=body, headers=named)

    def stored(self) -> dict[str, int]:
        """How many rows each table of the log got since `before`, every chain recomputed."""
        with psycopg.connect(self.database) as connection:
            usage.verify(connection, range(64))
            row = connection.execute(
                "SELECT (SELECT count(*) FROM usage_event), (SELECT count(*) FROM usage_key),"
                " (SELECT count(*) FROM usage_node), (SELECT count(*) FROM usage_evidence)"
            ).fetchone()
        assert row is not None
        named = zip(NOTHING, row, strict=True)
        return {table: rows - self.before[table] for table, rows in named}


NOTHING = {"event": 0, "key": 0, "node": 0, "evidence": 0}


@pytest.fixture(scope="module")
def opened(postgres: Databases, template: str) -> Generator[Door, None, None]:
    with fresh(postgres, template) as database:
        door = Door(database)
        yield door
        door.close()


@pytest.fixture
def door(opened: Door) -> Door:
    """The door of all tests, counting from here."""
    opened.before = dict(NOTHING)
    opened.before = opened.stored()
    return opened


@pytest.fixture
def node(door: Door) -> Node:
    """An enrolled node that has sent nothing yet."""
    return door.keys.enrol(Node(f"node {next(_numbers)}"))


def refused(answer: httpx.Response, status: int, code: str, pointer: str | None) -> dict[str, Any]:
    """Check the problem document and return it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["code"] == code
    assert problem["type"] == f"/problems/{code}"
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]
    assert [error["pointer"] for error in problem["errors"]] == ([pointer] if pointer else [])
    return problem


# --- the straight way ------------------------------------------------------------------------


def test_a_report_is_answered_with_its_receipt(door: Door, node: Node) -> None:
    body, _ = node.next()
    with psycopg.connect(door.database) as connection:
        before = usage.lane_heads(connection)[node.lane].position
    answer = door.post(node, node.envelope(body))
    assert answer.status_code == 200
    with psycopg.connect(door.database) as connection:
        lane_hash = usage.lane_heads(connection)[node.lane].hash.hex()
    assert answer.json() == {
        "acked_seq": 1,
        "head": node.head.hex(),
        "server_time_us": NOW_US,
        "results": [
            {
                "status": "stored",
                "receipt": {
                    "seq": 1,
                    "hash": report.report_hash(body).hex(),
                    "lane": node.lane,
                    "position": before + 1,
                    "lane_hash": lane_hash,
                    "recorded_at": "2026-11-20T08:02:00.000000Z",
                    "flags": 0,
                },
            }
        ],
    }


def test_a_report_sent_twice_counts_once_and_is_no_error(door: Door, node: Node) -> None:
    envelope = node.envelope(node.next()[0])
    first = door.post(node, envelope)
    again = door.post(node, envelope, node.envelope(node.next()[0]))
    assert again.status_code == 200
    kinds = [result["status"] for result in again.json()["results"]]
    assert kinds == ["duplicate", "stored"]
    assert again.json()["results"][0]["receipt"] == first.json()["results"][0]["receipt"]
    assert door.stored() == {"event": 2, "key": 2, "node": 1, "evidence": 0}


def test_the_same_report_twice_in_one_request_is_stored_once(door: Door, node: Node) -> None:
    envelope = node.envelope(node.next()[0])
    answer = door.post(node, envelope, envelope)
    assert [result["status"] for result in answer.json()["results"]] == ["stored", "duplicate"]
    assert door.stored()["event"] == 1


def test_a_gzipped_request_is_the_same_request(door: Door, node: Node) -> None:
    plain = json.dumps([node.envelope(node.next()[0]) for _ in range(64)]).encode()
    answer = door.raw(node, gzip.compress(plain), content_encoding="gzip")
    assert answer.status_code == 200
    assert answer.json()["acked_seq"] == 64


def test_a_restarted_server_answers_a_resent_report_with_its_first_receipt(
    door: Door, node: Node
) -> None:
    envelope = node.envelope(node.next()[0])
    first = door.post(node, envelope)
    second = Door(door.database)
    second.keys.enrol(node)
    again = second.post(node, envelope)
    second.close()
    assert again.json()["results"][0]["receipt"] == first.json()["results"][0]["receipt"]


def test_a_node_learns_at_start_how_far_the_log_holds_its_chain(door: Door, node: Node) -> None:
    status, _, body = door.run(door.ingest.head(node.id))
    assert (status, json.loads(body)) == (
        200,
        {"acked_seq": 0, "head": node.genesis.hex(), "server_time_us": NOW_US},
    )
    door.post(node, node.envelope(node.next()[0]))
    _, _, body = door.run(door.ingest.head(node.id))
    assert json.loads(body)["head"] == node.head.hex()
    status, _, body = door.run(door.ingest.head("node_" + "f" * 32))
    assert (status, json.loads(body)["code"]) == (404, "node_unknown")


def test_other_paths_and_methods_go_on_to_the_application(door: Door, node: Node) -> None:
    async def get() -> tuple[int, int]:
        usage_head = await door.client.get(f"/v1/nodes/{node.id}/usage/head")
        deeper = await door.client.post("/v1/nodes/a/b/usage")
        return usage_head.status_code, deeper.status_code

    assert door.run(get()) == (418, 418)


# --- stored and flagged ----------------------------------------------------------------------


def flagged(door: Door, node: Node, body: bytes) -> dict[str, Any]:
    envelope = node.envelope(body) if b"{" in body else {}
    answer = door.post(node, envelope)
    assert answer.status_code == 200, answer.text
    (result,) = answer.json()["results"]
    assert result["receipt"]["flags"] == usage_form.FLAG_CONTENT
    return dict(result)


def test_a_signed_report_in_order_that_breaks_a_rule_is_stored_and_flagged(
    door: Door, node: Node
) -> None:
    """Unknown key, negative time, wrong sum, a float, NaN, 2^63: the chain goes on after each."""
    breaks: list[tuple[bytes, bytes]] = [
        (b'"v":1', b'"v":1,"more":1'),
        (b'"mono_us":', b'"mono_us":-'),
        (b'"unknown_us":0', b'"unknown_us":1'),
        (b'"samples":60', b'"samples":60.0'),
        (b'"samples":60', b'"samples":NaN'),
        (b'"samples":60', b'"samples":9223372036854775808'),
        (b'"samples":60', b'"samples":60,"samples":60'),
        (b'"events":[]', b'"events":[{}]'),
        (b'"agent":"0.1.0"', b'"agent":"a\\u0000b"'),
        (b'"agent":"0.1.0"', b'"agent":"0.1.0\\n"'),
    ]
    for old, new in breaks:
        body = node.body().replace(old, new)
        assert new in body
        node.seq, node.head = node.seq + 1, report.report_hash(body)
        flagged(door, node, body)
    valid = door.post(node, node.envelope(node.next()[0]))
    assert valid.json()["results"][0]["receipt"]["flags"] == 0
    assert door.stored()["event"] == len(breaks) + 1


def test_number_and_prev_of_a_broken_report_come_from_the_signed_bytes(
    door: Door, node: Node
) -> None:
    body = node.body().replace(b'"v":1', b'"v":3')
    lying = node.envelope(body) | {"id": "7", "sequence": "7"}
    refused(door.post(node, lying), 400, "malformed", "#/0/id")
    lying = node.envelope(body) | {"prevhash": "0" * 64}
    refused(door.post(node, lying), 400, "malformed", "#/0/prevhash")
    assert door.stored() == NOTHING


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"not json",
        b"[" * 50_000,
        b'{"node":"","seq":1}',
        b'{"node":"NODE","seq":true,"prev":"PREV"}',
        b'{"node":"NODE","seq":1.0,"prev":"PREV"}',
        b'{"node":"NODE","seq":9223372036854775808,"prev":"PREV"}',
        b'{"node":"NODE","seq":0,"prev":"PREV"}',
        b'{"node":"NODE","seq":1,"seq":2,"prev":"PREV"}',
        b'{"node":"NODE","seq":1,"prev":"PRE"}',
        b'{"node":"NODE","seq":1,"prev":"PREV"}\xff',
    ],
)
def test_signed_bytes_without_a_readable_identity_are_refused(
    door: Door, node: Node, body: bytes
) -> None:
    body = body.replace(b"NODE", node.id.encode()).replace(b"PREV", node.head.hex().encode())
    envelope = node.envelope(node.body()) | {
        "data_base64": _base64(body),
        "signature": _base64(node.sign(body)),
    }
    problem = refused(door.post(node, envelope), 400, "malformed", "#/0/data_base64")
    assert problem["acked_seq"] == 0
    assert door.stored() == NOTHING


def test_a_report_signed_for_another_node_is_refused(door: Door, node: Node) -> None:
    other = Node("two")
    other.key, other.key_id = node.key, node.key_id
    envelope = other.envelope(other.body()) | {"source": f"/nodes/{node.id}"}
    refused(door.post(node, envelope), 400, "malformed", "#/0/data_base64")
    assert door.stored() == NOTHING


def _base64(data: bytes) -> str:
    import base64

    return base64.b64encode(data).decode()


# --- the envelope ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "pointer"),
    [
        ("specversion", "2.0", "#/0/specversion"),
        ("id", 1, "#/0/id"),
        ("id", "2", "#/0/id"),
        ("id", "01", "#/0/id"),
        ("sequence", "2", "#/0/sequence"),
        ("source", "/nodes/node_other", "#/0/source"),
        ("type", "something.else.v1", "#/0/type"),
        ("time", "yesterday", "#/0/time"),
        ("time", "2026-13-20T08:00:00Z", "#/0/time"),
        ("time", "2026-11-20T08:00:00", "#/0/time"),
        ("time", float("nan"), "#"),
        ("prevhash", "0" * 63, "#/0/prevhash"),
        ("data_base64", "%%%", "#/0/data_base64"),
        ("data_base64", None, "#/0/data_base64"),
        ("signature", 2**63, "#/0/signature"),
        ("datacontenttype", "text/plain", "#/0/datacontenttype"),
        ("more", "x", "#/0"),
    ],
)
def test_an_envelope_that_is_wrong_or_disagrees_is_refused_by_its_field(
    door: Door, node: Node, field: str, value: Any, pointer: str
) -> None:
    good = node.envelope(node.body())
    refused(door.post(node, good | {field: value}), 400, "malformed", pointer)
    assert door.stored() == NOTHING


@pytest.mark.parametrize("field", ["id", "data_base64", "keyid", "time"])
def test_an_envelope_with_a_field_missing_is_refused(door: Door, node: Node, field: str) -> None:
    envelope = node.envelope(node.body())
    del envelope[field]
    problem = refused(door.post(node, envelope), 400, "malformed", "#/0")
    assert field in problem["detail"]


def test_a_field_twice_in_an_envelope_is_refused(door: Door, node: Node) -> None:
    text = json.dumps([node.envelope(node.body())])
    twice = text.replace('"specversion"', '"id": "9", "specversion"').encode()
    refused(door.raw(node, twice), 400, "malformed", "#")
    escaped = twice.replace(b'"dataschema": "', b'"dataschema": "\\u0041')
    refused(door.raw(node, escaped), 400, "malformed", "#")
    assert door.stored() == NOTHING
    once = text.encode().replace(b'"dataschema": "', b'"dataschema": "\\u0041')
    assert door.raw(node, once).status_code == 200


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"[{}]", b"null", b"[\xff\xfe]", b"\xef\xbb\xbf[]", b"[" * 9_000]
)
def test_a_request_that_is_no_batch_of_reports_is_refused(
    door: Door, node: Node, body: bytes
) -> None:
    answer = door.raw(node, body)
    assert answer.status_code == 400
    assert answer.json()["code"] == "malformed"
    assert answer.json()["acked_seq"] == 0
    assert door.stored() == NOTHING


# --- who, and how much -----------------------------------------------------------------------


def test_a_forged_signature_is_refused(door: Door, node: Node) -> None:
    body = node.body()
    for forged in (bytes(64), Node("two").sign(body), node.sign(body)[:63], b""):
        envelope = node.envelope(body, forged)
        problem = refused(door.post(node, envelope), 401, "bad_signature", "#/0/signature")
        assert (problem["acked_seq"], problem["head"]) == (0, node.genesis.hex())
    envelope = node.envelope(body) | {"keyid": "0" * 16}
    refused(door.post(node, envelope), 401, "bad_signature", "#/0/keyid")
    assert door.stored() == NOTHING


def test_a_node_nobody_enrolled_is_refused(door: Door) -> None:
    stranger = Node("stranger")
    answer = door.post(stranger, stranger.envelope(stranger.body()))
    refused(answer, 401, "bad_signature", None)
    assert door.stored() == NOTHING


@pytest.mark.parametrize("status", ["revoked", "quarantined"])
def test_a_node_that_lost_its_standing_is_told_to_keep_its_spool(
    door: Door, node: Node, status: str
) -> None:
    door.keys.enrol(node, status)
    refused(door.post(node, node.envelope(node.body())), 403, status, None)
    assert door.stored() == NOTHING


def test_a_body_of_ten_megabytes_is_refused(door: Door, node: Node) -> None:
    refused(door.raw(node, b"x" * 10_000_000), 413, "too_large", None)


def test_a_long_body_without_a_length_is_cut_off(door: Door, node: Node) -> None:
    async def endless() -> Any:
        for _ in range(1_000):
            yield b"x" * 65_536

    async def send() -> httpx.Response:
        return await door.client.post(
            f"/v1/nodes/{node.id}/usage", content=endless(), headers={"content-type": MEDIA_TYPE}
        )

    answer = door.run(send())
    refused(answer, 413, "too_large", None)
    assert answer.headers["connection"] == "close"


def test_a_zip_bomb_is_not_inflated(door: Door, node: Node) -> None:
    bomb = gzip.compress(b" " * 200_000_000, 9)
    assert len(bomb) < REQUEST_BYTES_MAX
    refused(door.raw(node, bomb, content_encoding="gzip"), 413, "too_large", None)


def test_a_cut_or_foreign_gzip_stream_is_refused(door: Door, node: Node) -> None:
    whole = gzip.compress(json.dumps([node.envelope(node.body())]).encode())
    for body in (b"plain", whole[:-9], whole + b"tail"):
        refused(door.raw(node, body, content_encoding="gzip"), 400, "malformed", None)
    refused(door.raw(node, whole, content_encoding="br"), 415, "unsupported_media_type", None)
    assert door.stored() == NOTHING


def test_another_media_type_is_refused(door: Door, node: Node) -> None:
    body = json.dumps([node.envelope(node.body())]).encode()
    answer = door.raw(node, body, content_type="application/json")
    refused(answer, 415, "unsupported_media_type", None)
    assert door.raw(node, body, content_type=f"{MEDIA_TYPE}; charset=utf-8").status_code == 200


def test_more_than_64_reports_are_refused(door: Door, node: Node) -> None:
    envelopes = [node.envelope(node.next()[0]) for _ in range(65)]
    refused(door.post(node, *envelopes), 413, "too_large", "#")
    assert door.stored() == NOTHING


def test_a_report_above_256_kib_is_refused(door: Door, node: Node) -> None:
    body = node.body() + b" " * report.BODY_BYTES_MAX
    refused(door.post(node, node.envelope(body)), 413, "too_large", "#/0/data_base64")


# --- order -----------------------------------------------------------------------------------


def test_a_gap_says_from_where_to_send_again(door: Door, node: Node) -> None:
    first, second, third = (node.envelope(node.next()[0]) for _ in range(3))
    problem = refused(door.post(node, second), 409, "gap", "#/0/id")
    assert (problem["acked_seq"], problem["head"]) == (0, node.genesis.hex())
    assert door.stored() == NOTHING
    problem = refused(door.post(node, first, third), 409, "gap", "#/1/id")
    assert problem["acked_seq"] == 1
    assert [result["status"] for result in problem["results"]] == ["stored"]
    assert door.stored()["event"] == 1


def test_a_fork_is_refused_and_stores_nothing(door: Door, node: Node) -> None:
    door.post(node, node.envelope(node.next()[0]))
    node.head = bytes(32)
    problem = refused(door.post(node, node.envelope(node.body())), 409, "fork", "#/0/prevhash")
    assert problem["acked_seq"] == 1
    assert door.stored()["event"] == 1


def test_an_equivocation_is_refused_and_leaves_its_evidence(door: Door, node: Node) -> None:
    other = node.envelope(node.body(agent="another"))
    door.post(node, node.envelope(node.next()[0]))
    problem = refused(door.post(node, other), 422, "equivocation", "#/0/id")
    assert (problem["acked_seq"], problem["head"]) == (1, node.head.hex())
    assert door.stored() == {"event": 1, "key": 1, "node": 1, "evidence": 1}


def test_reports_before_the_first_bad_one_are_kept(door: Door, node: Node) -> None:
    first, second = (node.envelope(node.next()[0]) for _ in range(2))
    forged = second | {"signature": _base64(bytes(64))}
    problem = refused(door.post(node, first, forged), 401, "bad_signature", "#/1/signature")
    assert (problem["acked_seq"], len(problem["results"])) == (1, 1)
    assert door.stored()["event"] == 1


# --- under load ------------------------------------------------------------------------------


def test_a_node_has_one_request_in_flight(door: Door, node: Node) -> None:
    bodies = [json.dumps([node.envelope(node.next()[0])]).encode() for _ in range(2)]

    async def both() -> list[httpx.Response]:
        with psycopg.connect(door.database) as blocker:
            blocker.execute("SELECT FROM usage_head FOR UPDATE")
            first = asyncio.create_task(door.sending(node, bodies[0]))
            while not door.ingest._in_flight:
                await asyncio.sleep(0.001)
            second = await door.sending(node, bodies[1])
        return [await first, second]

    first, second = door.run(both())
    assert first.status_code == 200
    refused(second, 429, "one_request_at_a_time", None)
    assert second.headers["retry-after"] == "1"


def test_a_node_that_sends_too_much_is_slowed_down(database: str) -> None:
    door = Door(database, limits=Limits(reports_per_second=1, reports_burst=64))
    node = door.keys.enrol(Node())
    reports = [node.envelope(node.next()[0]) for _ in range(65)]
    assert door.post(node, *reports[:64]).status_code == 200
    answer = door.post(node, reports[64])
    refused(answer, 429, "too_many_reports", None)
    assert answer.headers["retry-after"] == "1"
    other = door.keys.enrol(Node("two"))
    assert door.post(other, other.envelope(other.next()[0])).status_code == 200
    door.close()


def test_a_full_queue_is_503_with_retry_after(database: str) -> None:
    door = Door(database, queue_reports_max=1)
    node = door.keys.enrol(Node())
    answer = door.post(node, *(node.envelope(node.next()[0]) for _ in range(2)))
    refused(answer, 503, "busy", None)
    assert answer.headers["retry-after"] == "1"
    assert door.stored() == NOTHING
    door.close()


# --- short and long requests -----------------------------------------------------------------


def test_a_short_request_is_checked_where_it_came_in(
    door: Door, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_module, "_checkers", None)
    assert door.post(node, node.envelope(node.next()[0])).status_code == 200


@pytest.mark.parametrize(("packed", "alike"), [(False, False), (True, False), (True, True)])
def test_the_loop_goes_on_while_a_long_request_is_checked(
    door: Door, monkeypatch: pytest.MonkeyPatch, packed: bool, alike: bool
) -> None:
    node = door.keys.enrol(Node(f"long {next(_numbers)}"))
    batch = [node.envelope(node.next()[0]) for _ in range(1 if alike else 64)]
    batch *= 64 // len(batch)
    assert (len(gzip.compress(json.dumps(batch).encode())) < door_module.PACKED_BYTES_MAX) == alike
    told = threading.Event()
    check = door_module._is_signed

    def waits(*signed: Any) -> bool:
        assert told.wait(10), "the loop stands still"
        return check(*signed)

    monkeypatch.setattr(door_module, "_is_signed", waits)

    async def beside() -> httpx.Response:
        asyncio.get_running_loop().call_later(0.01, told.set)
        plain = json.dumps(batch).encode()
        if packed:
            return await door.sending(node, gzip.compress(plain), content_encoding="gzip")
        return await door.sending(node, plain)

    assert len(door.run(beside()).json()["results"]) == len(batch)


def test_a_request_that_no_thread_takes_in_time_is_busy_and_leaves_the_queue(
    door: Door, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = [node.envelope(node.next()[0]) for _ in range(64)]
    told, begun = threading.Event(), list[Any]()
    monkeypatch.setattr(door_module, "_is_signed", lambda *signed: begun.append(signed))
    with ThreadPoolExecutor(1) as checkers:
        monkeypatch.setattr(door_module, "_checkers", checkers)
        monkeypatch.setattr(door_module, "REQUEST_SECONDS_MAX", 0.05)
        taken = checkers.submit(told.wait, 5)
        answer = door.post(node, *batch)
        told.set()
        assert taken.result()
    refused(answer, 503, "busy", None)
    assert answer.headers["retry-after"] == "1"
    assert not begun


class Searched(bytes):
    """Bytes that count how often something is looked for in them."""

    times = 0

    def find(self, *asked: Any) -> int:
        self.times += 1
        return super().find(*asked)


def test_a_key_many_times_costs_no_more_than_one_that_stands_once() -> None:
    one = json.dumps([Node().envelope(Node().next()[0])], separators=(",", ":")).encode()
    raw = Searched(one.replace(b'"data_base64":', b'"data_base64":"",' * 1_000 + b'"data_base64":'))
    envelopes = door_module._decode_batch(raw)
    assert door_module._has_a_key_twice(raw, envelopes)
    assert not door_module._has_a_key_twice(one, envelopes)
    assert 1 <= raw.times <= 2


# --- the fast reading agrees with the reference ----------------------------------------------

POOL: list[Any] = [
    None,
    True,
    0,
    1,
    -1,
    2,
    63,
    64,
    1000,
    1001,
    STEP_US,
    STEP_US + 1,
    2**31,
    2**53 - 1,
    2**53,
    2**63,
    -(2**53),
    0.0,
    1.0,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    "tick",
    "gap",
    "whole",
    "mps:7",
    "lease_" + "0" * 32,
    "node_" + "0" * 32,
    "a\n",
    "a\\b",
    "\0",
    "ü",
    [],
    [0],
    [1, 2],
    [0, 0, 0, 0],
    [0, 1, 0, 1],
    [1, None, 1, 1],
    ["tick", "gap", "tick", "tick"],
    {},
    {"a": 1},
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path inside a JSON value."""
    children: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    return [path, *(place for key, item in children for place in places(item, (*path, key)))]


def mutate_tree(random: Random, body: bytes) -> bytes:
    """Replace, delete or add something somewhere."""
    tree = json.loads(body)
    path = random.choice([place for place in places(tree) if place])
    target = tree
    for step in path[:-1]:
        target = target[step]
    choice = random.random()
    if choice < 0.7:
        old = target[path[-1]]
        near = [old + random.choice([-1, 1, 7])] if type(old) is int else []
        target[path[-1]] = random.choice([*POOL, *near * 20])
    elif choice < 0.85:
        del target[path[-1]]
    elif isinstance(target, dict):
        target[random.choice(["more", "n", "cols", "lease", "resources"])] = random.choice(POOL)
    else:
        target.insert(random.randrange(len(target) + 1), random.choice(POOL))
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=random.random() < 0.5).encode(
        "utf-8", "surrogatepass"
    )


def mutate_bytes(random: Random, body: bytes) -> bytes:
    """Change the text itself: what a tree cannot show."""
    at = random.randrange(len(body))
    piece = random.choice(
        [
            b" ",
            b"\n",
            b"\\",
            b'"',
            b",",
            b"0",
            b"-",
            b".0",
            b"e1",
            b"\x00",
            b"\xff",
            b"\xc3\xbc",
            b"]",
        ]
    )
    choice = random.random()
    if choice < 0.4:
        return body[:at] + piece + body[at:]
    if choice < 0.7:
        return body[:at] + body[at + 1 :]
    key = random.choice([b'"v":1', b'"samples":60', b'"gi":null', b'"seq":1', b'"events":[]'])
    escaped = key.replace(b'"v"', b'"\\u0076"') if random.random() < 0.3 else key
    return body.replace(key, key + b"," + escaped, 1)


def some_report(random: Random) -> report.Report:
    """A valid report of some shape."""
    devices = random.choice([1, 2, 3])
    draft = a_report(devices=devices)
    chosen = list(rows(random.choice([1, 2, 4, 9]), devices))
    if random.random() < 0.5:
        for index, row in enumerate(chosen):
            lost = random.randrange(0, 1_000)
            chosen[index] = replace(
                row,
                lease=random.choice([row.lease, None]),
                available_us=row.available_us - lost,
                unknown_us=lost,
                busy_us=random.choice([None, 0, row.available_us - lost]),
                wall_slew_us=random.choice([0, 0, 5, -5]),
                reason=random.choice(["tick", "hour"]),
            )
    used = list(resource_rows(random.choice([1, 2, 5]), random.choice([1, devices])))
    if random.random() < 0.5:
        used = [
            replace(row, wall_slew_us=random.choice([0, 3]), source=random.choice(SOURCES))
            for row in used
        ]
    return replace(
        draft,
        rows=tuple(chosen) if random.random() < 0.95 else (),
        resources=tuple(used) if random.random() < 0.5 else (),
    )


def verdict(read: Any, body: bytes) -> tuple[str, int, str] | str:
    try:
        found = read(body)
    except ReportInvalid:
        return "invalid"
    return (found.node, found.seq, found.prev)


@examples(150)
@given(st.randoms(use_true_random=False))
def test_the_fast_reading_agrees_with_the_reference_on_mutated_reports(random: Random) -> None:
    body = report.encode(some_report(random))
    assert verdict(usage_form.read, body) == verdict(report.parse, body) != "invalid"
    for _ in range(30):
        mutated = body
        for _ in range(random.choice([1, 1, 2])):
            mutate = random.choice([mutate_tree, mutate_tree, mutate_bytes])
            try:
                mutated = mutate(random, mutated)
            except (ValueError, IndexError):
                break  # no longer JSON, or nothing left: as good a case as any
        assert verdict(usage_form.read, mutated) == verdict(report.parse, mutated), mutated


@pytest.mark.parametrize("change", ["device", "lease", "n", "devices", "leases", "boot", "agent"])
def test_what_a_node_names_is_judged_anew_when_a_byte_of_it_changes(change: str) -> None:
    body = report.encode(a_report())
    assert verdict(usage_form.read, body) != "invalid"  # and is remembered
    old, new = {
        "device": (b'"device":[0,1,0,1]', b'"device":[0,1,0,2]'),
        "lease": (b'"lease":[0,1,0,1]', b'"lease":[0,1,0,7]'),
        "n": (b'"n":4', b'"n":5'),
        "devices": (b'"shape":"whole"', b'"shape":"whale"'),
        "leases": (b'"leases":["lease_', b'"leases":["lease+'),
        "boot": (b'"boot":"', b'"boot":"x'),
        "agent": (b'"agent":"', b'"agent":"\xc3\xbc'),
    }[change]
    assert old in body
    broken = body.replace(old, new)
    assert verdict(usage_form.read, broken) == verdict(report.parse, broken) == "invalid"
    assert verdict(usage_form.read, body) != "invalid"


def test_what_is_remembered_of_nodes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_form, "NAMED_MAX", 3)
    monkeypatch.setattr(usage_form, "_named", {})
    for count in range(1, 9):
        whole = a_report(devices=count)
        body = report.encode(replace(whole, rows=rows(2 * count, count)))
        assert verdict(usage_form.read, body) == verdict(report.parse, body) != "invalid"
        assert len(usage_form._named) <= 3


@examples(200)
@given(st.randoms(use_true_random=False))
def test_valid_reports_do_not_need_the_slow_reading(random: Random) -> None:
    whole = some_report(random)
    body = report.encode(whole)
    assert not whole.rows or usage_form._holds(body, usage_form._decode(body))
