"""Numbers of several processes add up: counters of all, gauges of those that live."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from api.telemetry import metrics

WORKER = """
from api.telemetry import metrics
metrics.REPORTS.labels("stored").inc(int({reports}))
metrics.REPORTS_WAITING.set(int({waiting}))
print("counted", flush=True)
input()
"""


def test_whoever_answers_tells_the_numbers_of_every_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**os.environ, metrics.SHARED_FOLDER: str(tmp_path)}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER.format(reports=reports, waiting=waiting)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for reports, waiting in ((3, 10), (4, 20))
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "counted\n"
    monkeypatch.setenv(metrics.SHARED_FOLDER, str(tmp_path))
    assert _lines() >= {
        'tallystick_usage_reports_total{outcome="stored"} 7.0',
        "tallystick_usage_waiting 30.0",
    }
    workers[0].communicate("\n")
    assert _lines() >= {
        'tallystick_usage_reports_total{outcome="stored"} 7.0',
        "tallystick_usage_waiting 20.0",
    }
    workers[1].communicate("\n")
    assert 'tallystick_usage_reports_total{outcome="stored"} 7.0' in _lines()


def _lines() -> set[str]:
    return set(generate_latest(metrics.registry()).decode().splitlines())
