"""What is told of a request: its line, its numbers, and its span at a collector."""

from __future__ import annotations

import asyncio
import logging

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from api.telemetry import metrics
from api.telemetry.requests import observed
from api.telemetry.traces import Traces
from tests.http_sink import http_sink
from tests.scenes.server import Scene

LOGGER = "api.telemetry.requests"


def test_a_caller_who_leaves_before_the_answer_is_no_error_of_the_server() -> None:
    before = counted("/v1/nodes/{node_id}/usage", 499, "POST")
    scope = {"method": "POST", "path": "/x", "state": {"request_id": "r"}}

    async def left() -> None:
        """Nothing was sent."""

    asyncio.run(observed(Traces(), scope, "/v1/nodes/{node_id}/usage", left))
    assert counted("/v1/nodes/{node_id}/usage", 499, "POST") == before + 1


def test_strangers_make_no_series_of_methods(shared: Scene) -> None:
    before = counted("/v1/accounts/{account_id}", 405, "other")
    for method in ("PUT", "PATCH", "TRACE"):
        assert shared.http.request(method, "/v1/accounts/acct_1").status_code == 405
    assert counted("/v1/accounts/{account_id}", 405, "other") == before + 3


def counted(route: str, status: int, method: str = "GET") -> float:
    labels = {"method": method, "route": route, "status": str(status)}
    return metrics.OURS.get_sample_value("tallystick_http_request_seconds_count", labels) or 0.0


def test_a_request_is_told_by_its_route_its_account_and_the_id_in_its_answer(
    shared: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    before = counted("/v1/accounts/{account_id}", 200)
    account = shared.renter.account_id
    answer = shared.renter.get(f"/v1/accounts/{account}")
    assert answer.status_code == 200
    (line,) = [each for each in caplog.records if each.name == LOGGER]
    told = vars(line)
    assert told["request_id"] == answer.headers["Request-Id"]
    assert told["route"] == "/v1/accounts/{account_id}"
    assert (told["method"], told["status"], told["account"]) == ("GET", 200, account)
    assert told["duration_ms"] > 0
    assert counted("/v1/accounts/{account_id}", 200) == before + 1


def test_s_l21_what_an_auditor_reads_is_in_the_log_with_the_auditors_account(
    shared: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    theirs = shared.renter.account_id
    for path in (f"/v1/accounts/{theirs}/funding", "/v1/audit/events", "/v1/promotions"):
        assert shared.auditor.get(path).status_code == 200
    lines = [vars(each) for each in caplog.records if each.name == LOGGER]
    routes = ["/v1/accounts/{account_id}/funding", "/v1/audit/events", "/v1/promotions"]
    assert [each["route"] for each in lines] == routes
    assert {each["account"] for each in lines} == {shared.auditor.account_id}


def test_a_path_that_is_none_counts_as_one_route_whatever_it_says(shared: Scene) -> None:
    before = counted("unmatched", 404, "other")
    for path in ("/v1/nothing", "/etc/passwd", "/v1/nothing/2"):
        shared.http.get(path)
    assert counted("unmatched", 404, "other") == before + 3


def test_probes_and_reports_are_told_at_debug_alone(
    shared: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    shared.http.get("/healthz")
    media = {"Content-Type": "application/cloudevents-batch+json"}
    answer = shared.http.post("/v1/nodes/node_1/usage", content=b"[]", headers=media)
    assert answer.status_code == 401
    assert [each for each in caplog.records if each.name == LOGGER] == []
    assert counted("/v1/nodes/{node_id}/usage", 401, "POST") > 0


def test_what_fails_is_told_as_a_warning(
    shared: Scene, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    path = f"/v1/accounts/{shared.renter.account_id}"
    assert shared.renter.get(path).status_code == 200
    caplog.clear()
    monkeypatch.setattr(shared.service, "connection", broken)
    assert shared.renter.get(path).status_code == 500
    lines = [each for each in caplog.records if each.name == LOGGER]
    assert [(each.levelno, vars(each)["status"]) for each in lines] == [(logging.WARNING, 500)]


def test_traces_reach_a_collector_by_its_own_protocol(shared: Scene) -> None:
    with http_sink() as sink:
        shared.service.traces, before = Traces(sink.url), shared.service.traces
        try:
            answer = shared.renter.get(f"/v1/accounts/{shared.renter.account_id}")
            with shared.service.traces.timer("maturity"):
                pass
        finally:
            shared.service.traces.close()
            shared.service.traces = before
    sent = ExportTraceServiceRequest()
    for path, body in sink.taken:
        assert path == "/v1/traces"
        sent.MergeFromString(body)
    spans = {
        span.name: {each.key: each.value for each in span.attributes}
        for resource in sent.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    }
    assert "timer maturity" in spans
    told = spans["GET /v1/accounts/{account_id}"]
    assert told["http.response.status_code"].int_value == 200
    assert told["tallystick.request_id"].string_value == answer.headers["Request-Id"]


def test_without_an_address_nothing_is_traced(shared: Scene) -> None:
    assert shared.service.settings.otlp_url is None
    with shared.service.traces.request("GET") as span:
        assert not span.is_recording()
