"""Once a minute: which alerts hold, and whose beginning or end was not told yet?

    messages of an alert == 1 when it has held for its time + 1 when it ended after that

A message that no way took is sent again in the next round: the timer tells the others, fails and
shows it. While the database cannot be asked nothing begins and nothing ends.
"""

from __future__ import annotations

from api.monitoring import alerts, figures, notices
from api.monitoring.notices import NoticeNotSent
from api.process.service import Service
from domain.duration import SECOND_US
from ledger.beside import alerts as kept
from ledger.beside.alerts import HeldAlert
from projections.runner import Connection

RUNBOOK = "docs/howto/alerts.md"


def run_alerts(service: Service, connection: Connection, now_us: int) -> int:
    """Look, and tell what is due; how many messages. Raises NoticeNotSent, or what says that the
    database cannot be asked.
    """
    found = alerts.holding(figures.read_all(service).families)
    holding = {(alert.name, about) for alert, about in found}
    kept.hold(connection, sorted(holding), now_us)
    told, failed = 0, []
    for each in kept.read(connection):
        try:
            told += _tell(service, connection, each, (each.name, each.about) in holding, now_us)
        except NoticeNotSent as error:
            failed.append(error)
    if failed:
        raise failed[0]
    return told


def _tell(
    service: Service, connection: Connection, each: HeldAlert, holds: bool, now_us: int
) -> int:
    """Its beginning or its end, if that is due; how many messages."""
    if not holds:
        if each.told_us is not None:
            notices.send(service.settings, _subject("ended", each), _text(each))
        kept.ended(connection, each)
        return int(each.told_us is not None)
    if each.told_us is not None or now_us < each.since_us + _held_for_us(each):
        return 0
    notices.send(service.settings, _subject("began", each), _text(each))
    kept.told(connection, each, now_us)
    return 1


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
