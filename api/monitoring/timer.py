"""Once a minute: which alerts hold, and whose beginning or end was not told yet?

    messages of an alert == 1 when it has held for its time + 1 when it ended after that

A message that no way took is sent again in the next round: the timer fails and shows it.
"""

from __future__ import annotations

from api.monitoring import alerts, figures, notices
from api.process.service import Service
from domain.duration import SECOND_US
from ledger.beside import alerts as kept
from ledger.beside.alerts import HeldAlert
from projections.runner import Connection

RUNBOOK = "docs/howto/alerts.md"


def run_alerts(service: Service, connection: Connection, now_us: int) -> int:
    """Look, and tell what is due; how many messages. Raises NoticeNotSent."""
    holding = {
        (alert.name, about) for alert, about in alerts.holding(figures.read(service).families)
    }
    kept.hold(connection, sorted(holding), now_us)
    told = 0
    for each in kept.read(connection):
        if (each.name, each.about) not in holding:
            if each.told_us is not None:
                notices.send(service.settings, _subject("ended", each), _text(each))
                told += 1
            kept.ended(connection, each)
        elif each.told_us is None and now_us >= each.since_us + _held_for_us(each):
            notices.send(service.settings, _subject("began", each), _text(each))
            kept.told(connection, each, now_us)
            told += 1
    return told


def _held_for_us(each: HeldAlert) -> int:
    alert = alerts.BY_NAME.get(each.name)
    return 0 if alert is None else alert.for_s * SECOND_US


def _subject(what: str, each: HeldAlert) -> str:
    about = f" ({each.about})" if each.about else ""
    return f"tallystick: {each.name} {what}{about}"


def _text(each: HeldAlert) -> str:
    alert = alerts.BY_NAME.get(each.name)
    meaning = "This alert is not in this version any more" if alert is None else alert.told
    return f"{meaning}.\nWhat it means and what to do: {RUNBOOK}#{each.name.lower()}\n"
