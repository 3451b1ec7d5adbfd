"""Whatever is wrong with a request: a problem that names field and rule, and nothing recorded."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from typing import Any

import pytest

from api.door.door import DEPTH_MAX, parse
from api.door.errors import ERRORS_MAX, Problem
from tests.scenes.server import Scene

_numbers = itertools.count(1)
CAP = {"asset": "CREDIT", "units": "5000000"}


def _send(scene: Scene, content: bytes, path: str = "/v1/jobs", **headers: str) -> Any:
    named = {
        "Content-Type": "application/json",
        "Idempotency-Key": f"bad-{next(_numbers)}",
        **scene.renter.headers,
        **headers,
    }
    return scene.http.post(path, content=content, headers=named)


def _refused(scene: Scene, content: bytes, path: str = "/v1/jobs", **headers: str) -> Any:
    before = scene.head()
    response = _send(scene, content, path, **headers)
    assert 400 <= response.status_code < 500, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert scene.head() == before
    return response


def _job(**changes: Any) -> bytes:
    return json.dumps({"image": "work", "max_price_per_gpu_hour": CAP, **changes}).encode()


@pytest.mark.parametrize(
    ("content", "pointer"),
    [
        (_job(unheard_of=1), "#/unheard_of"),
        (_job(gpu_count="1"), "#/gpu_count"),
        (_job(gpu_count=1.0), "#/gpu_count"),
        (_job(gpu_count=1.5), "#/gpu_count"),
        (_job(gpu_count=True), "#/gpu_count"),
        (_job(gpu_count=0), "#/gpu_count"),
        (_job(gpu_count=-1), "#/gpu_count"),
        (_job(gpu_count=2**63), "#/gpu_count"),
        (_job(gpu_count=float("nan")), "#/gpu_count"),
        (_job(share_ppm=float("inf")), "#/share_ppm"),
        (_job(share_ppm=1_000_001), "#/share_ppm"),
        (_job(kind="party"), "#/kind"),
        (_job(command="echo"), "#/command"),
        (_job(command=["x" * 5_000]), "#/command/0"),
        (_job(max_price_per_gpu_hour={**CAP, "units": "-5"}), "#/max_price_per_gpu_hour/units"),
        (_job(max_price_per_gpu_hour={**CAP, "units": 5}), "#/max_price_per_gpu_hour/units"),
        (_job(max_price_per_gpu_hour={**CAP, "units": "1e6"}), "#/max_price_per_gpu_hour/units"),
        (_job(max_price_per_gpu_hour={**CAP, "units": "007"}), "#/max_price_per_gpu_hour/units"),
        (_job(max_price_per_gpu_hour={**CAP, "units": "1\n"}), "#/max_price_per_gpu_hour/units"),
        (_job(max_price_per_gpu_hour={**CAP, "asset": "USD"}), "#/max_price_per_gpu_hour/asset"),
        (_job(max_price_per_gpu_hour=None), "#/max_price_per_gpu_hour"),
        (b'{"image":"work"}', "#/max_price_per_gpu_hour"),
        (b"[]", "#/"),
        (b'"work"', "#/"),
        (b"null", "#/"),
    ],
)
def test_a_field_that_breaks_its_rule_is_named(content: bytes, pointer: str, shared: Scene) -> None:
    response = _refused(shared, content)
    assert (response.status_code, response.json()["code"]) == (422, "invalid")
    errors = response.json()["errors"]
    assert pointer in [error["pointer"] for error in errors]
    assert all(error["detail"] for error in errors)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"{'image': 1}",
        b'{"image": "\xff"}',
        '{"image": "w"}'.encode("utf-16"),
        b'{"image": "a", "image": "b"}',
        b'{"image": "\\u0000"}',
        b'{"image": "\\ud800"}',
        b'{"\\u0000": 1}',
        b"[" * 100_000,
        b'{"a":' * 20 + b"1" + b"}" * 20,
        b'{"gpu_count": ' + b"9" * 5_000 + b"}",
        json.dumps({"command": ["x"] * 1_001}).encode(),
        json.dumps({f"x{number}": 1 for number in range(1_001)}).encode(),
        json.dumps({"command": [[1] * 1_000] * 11}).encode(),
    ],
    ids=range(15),
)
def test_what_is_no_json_of_ours_is_refused_as_malformed(content: bytes, shared: Scene) -> None:
    response = _refused(shared, content)
    assert (response.status_code, response.json()["code"]) == (400, "malformed_json")


def test_sixteen_levels_are_read_and_seventeen_refused() -> None:
    assert parse(b"[" * DEPTH_MAX + b"]" * DEPTH_MAX)
    with pytest.raises(Problem):
        parse(b"[" * (DEPTH_MAX + 2) + b"]" * (DEPTH_MAX + 2))


@pytest.mark.parametrize(
    "content",
    [
        b'"' + b'\\"' * 500_000 + b"[" * 201,
        b"{" + b"".join(b'"%x":1,' % number for number in range(100_000)) + b'"1869f":1}',
    ],
    ids=["a string that does not end", "a key twice among many"],
)
def test_no_megabyte_takes_long_to_refuse(content: bytes, shared: Scene) -> None:
    began = time.monotonic()
    response = _refused(shared, content)
    assert (response.status_code, response.json()["code"]) == (400, "malformed_json")
    assert time.monotonic() - began < 2


def test_a_stranger_sends_no_more_than_an_inventory_needs(shared: Scene) -> None:
    specs = [
        {
            "device_id": f"{number:096}",
            "vendor": "v" * 256,
            "model": "m" * 256,
            "memory_mib": 2**40,
            "connection": "pcie",
            "pcie_gen": 1_000_000,
            "pcie_lanes": 1_000_000,
        }
        for number in range(64)
    ]
    joining = {**shared.provider.joining("AAAAAAAA", "x"), "devices": specs}
    assert shared.anybody.post("/v1/nodes/join", joining).json()["code"] == "join_code_unknown"
    long = {**joining, "agent": "a" * 65_536}
    assert shared.anybody.post("/v1/nodes/join", long).json()["code"] == "too_large"


def test_what_a_stranger_sends_is_not_read_where_a_key_is_needed(shared: Scene) -> None:
    named = {"Content-Type": "application/json", "Idempotency-Key": "stranger"}
    response = shared.http.post("/v1/jobs", content=b"{", headers=named)
    assert (response.status_code, response.json()["code"]) == (401, "unauthenticated")


def test_a_thousand_broken_fields_are_not_all_named(shared: Scene) -> None:
    response = _refused(shared, json.dumps({f"x{n}": 1 for n in range(1_000)}).encode())
    assert (response.status_code, response.json()["code"]) == (422, "invalid")
    assert len(response.json()["errors"]) == ERRORS_MAX


def test_a_body_of_ten_megabytes_is_refused_by_its_length_and_by_its_bytes(shared: Scene) -> None:
    big = b'{"image": "' + b"x" * 10_000_000 + b'"}'
    response = _refused(shared, big)
    assert (response.status_code, response.json()["code"]) == (413, "too_large")

    def chunks() -> Any:
        for start in range(0, len(big), 100_000):
            yield big[start : start + 100_000]

    named = {"Content-Type": "application/json", "Idempotency-Key": "big", **shared.renter.headers}
    response = shared.http.post("/v1/jobs", content=chunks(), headers=named)
    assert (response.status_code, response.json()["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/xml"},
        {"Content-Type": ""},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Encoding": "gzip"},
        {"Content-Type": "application/merge-patch+json"},
    ],
)
def test_another_media_type_is_refused(headers: dict[str, str], shared: Scene) -> None:
    response = _refused(shared, _job(), **headers)
    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ("/v1/leases/lease_%00", "#/path/lease_id"),
        ("/v1/leases/lease_%FF", "#/path/lease_id"),
        ("/v1/leases/42", "#/path/lease_id"),
        ("/v1/leases?limit=0", "#/query/limit"),
        ("/v1/leases?limit=501", "#/query/limit"),
        ("/v1/leases?limit=1.0", "#/query/limit"),
        ("/v1/leases?limit=%201", "#/query/limit"),
        ("/v1/leases?state=lost", "#/query/state"),
        ("/v1/leases?as_of=yesterday", "#/query/as_of"),
        ("/v1/leases?as_of=2026-11-20T08:00:00", "#/query/as_of"),
        ("/v1/leases?as_of=2026-13-20T08:00:00Z", "#/query/as_of"),
        ("/v1/leases?as_of_position=-1", "#/query/as_of_position"),
        ("/v1/leases?as_of_position=9223372036854775808", "#/query/as_of_position"),
        ("/v1/offers?model=%00", "#/query/model"),
        ("/v1/offers?model=H200%00&limit=5", "#/query/model"),
        ("/v1/epochs/0", "#/path/epoch"),
        ("/v1/audit/events/9223372036854775807", "#/path/position"),
    ],
)
def test_a_parameter_that_breaks_its_rule_is_named(path: str, pointer: str, shared: Scene) -> None:
    response = shared.renter.get(path)
    assert response.status_code == 422, response.text
    assert pointer in [error["pointer"] for error in response.json()["errors"]]


@pytest.mark.parametrize("moment", ["2255-06-05T23:47:34.740992Z", "9999-12-31T23:59:59.999999Z"])
def test_a_time_that_no_fact_can_hold_is_refused(moment: str, shared: Scene) -> None:
    path = f"/v1/accounts/{shared.renter.account_id}/api-keys"
    body = json.dumps({"scopes": ["meter"], "expires_at": moment}).encode()
    response = _refused(shared, body, path)
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "#/expires_at"
    assert shared.renter.get("/v1/leases", as_of=moment).status_code == 200


def test_an_unknown_parameter_is_refused_and_so_is_one_given_twice(shared: Scene) -> None:
    for query in ("offset=3", "limit=1&limit=2", "Limit=3"):
        response = shared.renter.get(f"/v1/leases?{query}")
        assert (response.status_code, response.json()["code"]) == (400, "parameter_unknown")


@pytest.mark.parametrize("command", ["close"])
def test_a_command_on_an_unknown_lease_names_the_rule(command: str, shared: Scene) -> None:
    lease_id = "lease_" + "0" * 32
    before = shared.head()
    response = shared.renter.post(f"/v1/leases/{lease_id}/{command}")
    assert (response.status_code, response.json()["code"]) == (404, "lease_unknown")
    assert response.json()["facts"] == {"lease_id": lease_id}
    assert shared.head() == before


def test_a_command_on_a_closed_lease_names_the_rule_and_changes_nothing(shared: Scene) -> None:
    lease = shared.lease()
    closed = shared.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    before = shared.head()
    again = shared.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    assert {**again, "position": 0} == {**closed, "position": 0}
    ready = shared.provider.node.post(
        f"/v1/nodes/{lease['node_id']}/assignments/{lease['lease_id']}/ready"
    )
    assert (ready.status_code, ready.json()["code"]) == (409, "lease_state")
    assert ready.json()["facts"]["status"] == "settled"
    assert shared.head() == before


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/", 404, "not_found"),
        ("GET", "/v1/leases/", 404, "not_found"),
        ("PUT", "/v1/leases", 405, "method_not_allowed"),
        ("PATCH", "/v1/leases/lease_1", 405, "method_not_allowed"),
        ("POST", "/healthz", 405, "method_not_allowed"),
    ],
)
def test_an_address_or_method_that_is_not_there_is_a_problem_too(
    method: str, path: str, status: int, code: str, shared: Scene
) -> None:
    response = shared.http.request(method, path, headers=shared.renter.headers)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert response.json()["request_id"] == response.headers["Request-Id"]


def test_a_caller_who_leaves_before_the_end_of_the_body_is_no_failure_of_ours(
    shared: Scene,
) -> None:
    """Or every stranger could fill the log with tracebacks."""
    told: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        told.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/jobs",
        "raw_path": b"/v1/jobs",
        "query_string": b"",
        "headers": [(b"content-length", b"100")],
        "client": ("a", 1),
        "server": ("b", 2),
        "scheme": "http",
        "root_path": "",
        "http_version": "1.1",
    }
    app: Any = shared.http.app
    asyncio.run(app(scope, receive, send))
    assert [message.get("status") for message in told] == [400, None]
