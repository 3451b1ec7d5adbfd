"""Probes: alive, ready, and numbers a monitor can read."""

from __future__ import annotations

import json

import psycopg
import pytest
from eventsourcing.persistence import OperationalError
from prometheus_client.parser import text_string_to_metric_families

from api.door import door, health
from api.openapi.write import DOCUMENT
from ledger.beside import timer_runs as job_runs
from ledger.beside.timer_runs import JobRun
from ledger.log.full_disk import FullDisk
from projections.runner import Connection
from tests.scenes.server import Scene


def test_a_process_that_runs_is_alive(shared: Scene) -> None:
    assert shared.http.get("/healthz").json() == {"status": "ok"}


def test_readiness_names_each_job_and_how_far_it_is_behind(shared: Scene) -> None:
    now_us = shared.clock.now_us()
    with shared.service.connect() as connection:
        job_runs.record(connection, "accrual", now_us - 5_000_000, 7_200_000_000)
        job_runs.record(connection, "chain", now_us, 600_000_000, "NodeFailed: acct_1 at http://x")
    told = shared.http.get("/readyz").json()
    jobs = {job["name"]: job for job in told["jobs"]}
    assert {"access/market", "fleet/market", "usage/usage", "tree", "checkpoint", "pin"} <= set(
        jobs
    )
    assert jobs["accrual"] == {"name": "accrual", "late": False, "succeeded_seconds_ago": 5}
    assert jobs["chain"] == {"name": "chain", "late": True, "error": "NodeFailed"}
    assert all(
        job["behind"] == job["head"] - job["position"] for job in told["jobs"] if "head" in job
    )


def test_s_l14_a_full_disk_is_told_by_readyz_and_the_log_while_reading_goes_on(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FullDisk()
    for module in (door, health):
        monkeypatch.setattr(module, "DISK", disk)
    assert scene.http.get("/readyz").status_code == 200

    def full(*_: object, **__: object) -> None:
        raise OperationalError from psycopg.errors.DiskFull("No space left on device")

    monkeypatch.setattr(scene.service.ledger.market.events, "put", full)
    refused = scene.renter.post("/v1/webhooks", {"url": "https://hooks.example.com/"})
    assert (refused.status_code, refused.json()["code"]) == (503, "busy")
    assert "the disk of the database is full" in caplog.text
    told = scene.http.get("/readyz")
    assert (told.status_code, told.json()["database"]) == (503, "disk full")
    assert scene.renter.get("/v1/webhooks").status_code == 200


def test_metrics_are_prometheus_text(shared: Scene) -> None:
    response = shared.http.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {each.name: each for each in text_string_to_metric_families(response.text)}
    assert families["tallystick_log_position"].samples[0].value == shared.head()
    assert {"tallystick_http_request_seconds", "tallystick_job_behind"} <= set(families)


def test_the_served_document_is_the_committed_one(shared: Scene) -> None:
    committed = json.loads(DOCUMENT.read_bytes())
    assert committed["openapi"] == "3.1.0"
    assert committed["paths"]
    assert shared.http.get("/openapi.json").json() == committed


def test_a_flood_of_probes_is_answered_and_does_not_reach_the_database(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    read = job_runs.read

    def counted(connection: Connection) -> list[JobRun]:
        asked.append(connection)
        return read(connection)

    monkeypatch.setattr(job_runs, "read", counted)
    answers = [scene.http.get("/readyz") for _ in range(3 * health.PROBES_BURST)]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.headers["Request-Id"] for answer in answers}) == len(answers)
    assert len(asked) < 2 * health.PROBES_BURST
