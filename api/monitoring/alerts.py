"""When a person should look: one row for each alert, which is also a rule for Prometheus.

    an alert holds  <=>  a sample of its metric compares with its threshold
    it is told      <=>  it has held for `for_s`

The same rows decide what the server mails by itself and what `deploy/prometheus/alerts.yml` says,
so that both have the same names, and each has its section in `docs/howto/alerts.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from prometheus_client.core import Metric

HOUR_S, DAY_S = 3_600, 86_400
DISK_FREE_MIN = 0.1
"""The part of a disk below which somebody should make room."""
Severity = Literal["page", "ticket"]


@dataclass(frozen=True, slots=True)
class Alert:
    """`expr`, where it is set, is Prometheus' alone: a rate, or that nothing answers."""

    name: str
    told: str
    severity: Severity
    for_s: int
    metric: str = ""
    above: float | None = None  # it holds while a sample is above, or
    below: float | None = None  # below this
    expr: str | None = None

    def holds(self, value: float) -> bool:
        """Whether a sample is beyond the threshold."""
        if self.above is not None:
            return value > self.above
        return self.below is not None and value < self.below

    def expression(self) -> str:
        """The same in PromQL."""
        if self.expr is not None:
            return self.expr
        if self.above is not None:
            return f"{self.metric} > {self.above:g}"
        return f"{self.metric} < {self.below:g}"


ALERTS: tuple[Alert, ...] = (
    Alert(
        "ServerAway", "No process answers /metrics", "page", 60, expr='up{job="tallystick"} == 0'
    ),
    Alert(
        "DatabaseAway",
        "The database does not answer",
        "page",
        60,
        expr="tallystick_database_up == 0",
    ),
    Alert(
        "StandbyAway",
        "Too few synchronous standbys stream: every write waits and none is answered",
        "page",
        60,
        "tallystick_standby_away",
        above=0,
    ),
    Alert(
        "ErrorsHigh",
        "More than 1 of 100 requests ends with a 5xx",
        "page",
        300,
        expr='sum(rate(tallystick_http_request_seconds_count{status=~"5.."}[5m]))'
        " > 0.01 * sum(rate(tallystick_http_request_seconds_count[5m]))",
    ),
    Alert(
        "RequestsSlow",
        "99 of 100 requests of a route take longer than 2.5 s",
        "ticket",
        600,
        expr="histogram_quantile(0.99, sum by (le, route)"
        " (rate(tallystick_http_request_seconds_bucket[10m]))) > 2.5",
    ),
    Alert(
        "BooksUnbalanced",
        "Debits and credits of an asset differ",
        "page",
        0,
        "tallystick_books_unbalanced",
        above=0,
    ),
    Alert(
        "TimerFailing",
        "A timer ends with an error",
        "ticket",
        300,
        "tallystick_job_failing",
        above=0,
    ),
    Alert(
        "TimerLate",
        "A timer has had no success for longer than its alarm",
        "page",
        60,
        "tallystick_job_late",
        above=0,
    ),
    Alert(
        "ViewBehind",
        "A view is more than a minute behind its log",
        "ticket",
        300,
        "tallystick_job_behind_seconds",
        above=60,
    ),
    Alert(
        "EpochLate",
        "An epoch ended 2 days ago and is not sealed",
        "ticket",
        0,
        "tallystick_epoch_overdue_seconds",
        above=2 * DAY_S,
    ),
    Alert(
        "CashOutsHeld", "Cash-outs are held", "ticket", HOUR_S, "tallystick_cash_out_holds", above=0
    ),
    Alert(
        "CashOutsWait",
        "A cash-out has waited for a day: it is held, or there is too little money in the bank",
        "page",
        0,
        "tallystick_cash_out_waiting_seconds",
        above=DAY_S,
    ),
    Alert(
        "PayoutsDiffer",
        "The processor's payouts and ours differ",
        "page",
        0,
        "tallystick_payout_differences",
        above=0,
    ),
    Alert(
        "NodesSilent",
        "Active nodes send no reports",
        "ticket",
        900,
        "tallystick_nodes_silent",
        above=0,
    ),
    Alert(
        "WebhooksWait",
        "A webhook could not be delivered for 6 hours",
        "ticket",
        0,
        "tallystick_webhooks_waiting_seconds",
        above=6 * HOUR_S,
    ),
    Alert(
        "ChainBehind",
        "The chain was not read for 2 hours",
        "page",
        0,
        "tallystick_chain_behind_seconds",
        above=2 * HOUR_S,
    ),
    Alert(
        "DiskLow",
        "Less than a tenth of the data folder's disk is free",
        "page",
        300,
        "tallystick_disk_free_ratio",
        below=DISK_FREE_MIN,
    ),
    Alert(
        "KeyRecovery",
        "A new key of the operator was announced",
        "page",
        0,
        "tallystick_key_recovery_waiting",
        above=0,
    ),
)
BY_NAME = {alert.name: alert for alert in ALERTS}


def holding(families: Iterable[Metric]) -> Iterator[tuple[Alert, str]]:
    """The alerts that hold by these numbers; the text tells of which one of several things."""
    by_metric = {family.name: family for family in families}
    for alert in ALERTS:
        family = by_metric.get(alert.metric)
        for sample in () if family is None else family.samples:
            if alert.holds(sample.value):
                yield alert, ", ".join(sample.labels.values())


def rules() -> str:
    """The file of rules for Prometheus."""
    lines = ["# Made by `python -m api.monitoring.write`; change api/monitoring/alerts.py instead."]
    lines += ["groups:", "  - name: tallystick", "    rules:"]
    for alert in ALERTS:
        lines += [
            f"      - alert: {alert.name}",
            f"        expr: {_quoted(alert.expression())}",
            f"        for: {alert.for_s}s",
            "        labels:",
            f"          severity: {alert.severity}",
            "        annotations:",
            f"          summary: {_quoted(alert.told)}",
            f"          runbook: docs/howto/alerts.md#{alert.name.lower()}",
        ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
