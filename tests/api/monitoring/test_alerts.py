"""Alerts: the same rows are rules for Prometheus, messages of the server and a page of advice."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily

from api.monitoring import alerts, figures, write
from api.monitoring.dashboard import PANELS, dashboard
from api.telemetry import metrics
from tests.scenes.server import Scene

HOWTO = Path(__file__).parents[3] / "docs" / "howto" / "alerts.md"
NAME = re.compile(r"\b(tallystick_[a-z_]+)")


def test_the_files_are_as_the_code_says() -> None:
    assert write.RULES.read_text() == alerts.rules()
    assert write.PAGE.read_text() == write.page()


def test_prometheus_takes_the_rules() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    done = subprocess.run(
        [promtool, "check", "rules", str(write.RULES)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"{len(alerts.ALERTS)} rules found" in done.stdout


def test_every_alert_and_every_picture_asks_for_a_metric_that_is_there(shared: Scene) -> None:
    shared.http.get("/healthz")
    registry = metrics.registry()
    registry.register(figures.read(shared.service))
    text = generate_latest(registry).decode()
    there = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    there |= {f"{name}{end}" for name in there for end in ("_count", "_bucket", "_total")}
    asked = " ".join([*(a.expression() for a in alerts.ALERTS), *(p.expr for p in PANELS)])
    assert set(NAME.findall(asked)) - there == set()
    assert len(set(NAME.findall(asked))) > 15


def test_every_alert_has_its_section_of_advice() -> None:
    sections = re.split(r"^## ", HOWTO.read_text(), flags=re.MULTILINE)[1:]
    by_name = {text.split("\n", 1)[0]: text for text in sections}
    assert set(by_name) >= {alert.name for alert in alerts.ALERTS}
    for alert in alerts.ALERTS:
        assert "**What to do.**" in by_name[alert.name], alert.name


def test_pictures_do_not_lie_over_each_other() -> None:
    places = [tuple(panel["gridPos"].values()) for panel in dashboard()["panels"]]
    assert len(set(places)) == len(PANELS)
    assert json.loads(write.page())["title"] == "tallystick"


@pytest.mark.parametrize(
    ("name", "value", "holds"),
    [
        ("tallystick_books_unbalanced", 0, False),
        ("tallystick_books_unbalanced", 1, True),
        ("tallystick_job_behind_seconds", 60, False),
        ("tallystick_job_behind_seconds", 61, True),
        ("tallystick_disk_free_ratio", 0.1, False),
        ("tallystick_disk_free_ratio", 0.09, True),
    ],
)
def test_an_alert_holds_beyond_its_threshold_and_not_at_it(
    name: str, value: float, holds: bool
) -> None:
    family = GaugeMetricFamily(name, "told", labels=("job",))
    family.add_metric(("one",), value)
    found = list(alerts.holding([family]))
    assert [about for _, about in found] == (["one"] if holds else [])
