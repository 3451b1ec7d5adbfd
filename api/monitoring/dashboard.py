"""The page for Grafana: one picture for each question that an operator asks first.

Written to `deploy/grafana/tallystick.json` by `python -m api.monitoring.write`; import it and
choose the Prometheus that scrapes `/metrics`.
"""

from __future__ import annotations

from typing import Any

from domain.record import dataclass

WIDTH, HEIGHT, COLUMNS = 8, 7, 3
SOURCE = {"type": "prometheus", "uid": "${source}"}


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: its question, what is drawn, how a line is called, and the unit."""

    title: str
    expr: str
    legend: str = ""
    unit: str = "short"


PANELS: tuple[Panel, ...] = (
    Panel(
        "How many requests?",
        "sum by (route) (rate(tallystick_http_request_seconds_count[5m]))",
        "{{route}}",
        "reqps",
    ),
    Panel(
        "How many of them fail?",
        'sum by (route, status) (rate(tallystick_http_request_seconds_count{status=~"5.."}[5m]))',
        "{{route}} {{status}}",
        "reqps",
    ),
    Panel(
        "How long do they take (p99)?",
        "histogram_quantile(0.99, sum by (le, route)"
        " (rate(tallystick_http_request_seconds_bucket[5m])))",
        "{{route}}",
        "s",
    ),
    Panel(
        "What becomes of usage reports?",
        "sum by (outcome) (rate(tallystick_usage_reports_total[5m]))",
        "{{outcome}}",
        "reqps",
    ),
    Panel("How many reports wait for their commit?", "tallystick_usage_waiting"),
    Panel("How many calls wait for the database?", "tallystick_database_waiting"),
    Panel("How far are the views behind?", "tallystick_job_behind_seconds", "{{job}}", "s"),
    Panel(
        "Which timers fail or are late?", "tallystick_job_failing + tallystick_job_late", "{{job}}"
    ),
    Panel("How fast does the log grow?", "rate(tallystick_log_position[5m])", "facts", "reqps"),
    Panel("Where are the credits?", "tallystick_books_credits / 1000000", "{{kind}}", "locale"),
    Panel("Do the books balance?", "tallystick_books_unbalanced", "{{asset}}"),
    Panel("How late is the seal of the epoch?", "tallystick_epoch_overdue_seconds", unit="s"),
    Panel("What holds payouts up?", "tallystick_cash_out_holds", "holds"),
    Panel("How far is the chain behind?", "tallystick_chain_behind_seconds", "{{deployment}}", "s"),
    Panel("How many nodes are silent?", "tallystick_nodes_silent", "silent"),
)


def dashboard() -> dict[str, Any]:
    """The page as Grafana reads it."""
    return {
        "title": "tallystick",
        "uid": "tallystick",
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "type": "datasource", "query": "prometheus", "label": "from"}
            ]
        },
        "panels": [_panel(number, panel) for number, panel in enumerate(PANELS)],
    }


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(number, COLUMNS)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": SOURCE,
        "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": "A", "datasource": SOURCE, "expr": panel.expr, "legendFormat": panel.legend}
        ],
    }
