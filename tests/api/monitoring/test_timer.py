"""The server tells its operator by mail and by chat, once when an alert begins, once at its end."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email import message_from_bytes
from typing import Any

import psycopg
import pytest
from aiosmtpd.controller import Controller

from api.monitoring import figures
from api.monitoring.notices import NoticeNotSent
from api.monitoring.timer import run_alerts
from api.process.clock import SimulatedClock
from api.settings import Settings, SettingsInvalid
from ledger.beside import alerts as kept
from ledger.beside import timer_runs
from projections import tables
from tests.http_sink import Sink, http_sink
from tests.processes import free_port
from tests.scenes.server import Scene
from tests.scenes.shell import tallystick

MINUTE_US = 60_000_000


@dataclass
class Sinks:
    """A local mail server and a local chat, and what they took."""

    mails: list[bytes] = field(default_factory=list)
    chat: Sink = field(default_factory=lambda: Sink(""))
    mail_is_away: bool = False

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        if self.mail_is_away:
            return "451 not now"
        self.mails.append(envelope.content)
        return "250 OK"

    @property
    def chats(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.chat.taken]


@contextmanager
def listening(sinks: Sinks) -> Generator[tuple[str, str], None, None]:
    """The addresses of both."""
    port = free_port()  # the mail server's controller cannot choose one
    mail = Controller(sinks, hostname="127.0.0.1", port=port, ready_timeout=60)
    with http_sink() as sinks.chat:
        mail.start()
        try:
            yield f"smtp://127.0.0.1:{port}", f"{sinks.chat.url}/hook"
        finally:
            mail.stop()


@pytest.fixture
def watched(scene: Scene) -> Generator[tuple[Scene, Sinks], None, None]:
    sinks = Sinks()
    with listening(sinks) as (smtp_url, chat_url):
        scene.service.settings = replace(
            scene.service.settings,
            smtp_url=smtp_url,
            alert_mail_from="market@example.org",
            alert_mail_to="night@example.org, day@example.org",
            alert_chat_url=chat_url,
        )
        yield scene, sinks


def look(scene: Scene, minutes: int = 0) -> int:
    assert isinstance(scene.clock, SimulatedClock)
    scene.clock.advance(minutes * MINUTE_US)
    with scene.service.connect() as connection:
        return run_alerts(scene.service, connection, scene.clock.now_us())


def went(scene: Scene, error: str | None) -> None:
    """How the timer `sweep` went just now."""
    with scene.service.connect() as connection:
        timer_runs.record(connection, "sweep", scene.clock.now_us(), 10**15, error)


def test_the_operator_is_told_once_that_an_alert_began_and_once_that_it_ended(
    watched: tuple[Scene, Sinks],
) -> None:
    scene, sinks = watched
    went(scene, None)
    look(scene)
    before = len(sinks.chats)
    went(scene, "MoneyOutStopped: acct_1")
    assert look(scene) == 0, "a timer that failed once is no alert yet"
    assert look(scene, minutes=6) >= 1
    assert look(scene, minutes=1) == 0
    went(scene, None)
    assert look(scene) == 1
    texts = [chat["text"] for chat in sinks.chats[before:] if "(sweep)" in chat["text"]]
    assert [text.split("\n")[0] for text in texts] == [
        "tallystick: TimerFailing began (sweep)",
        "tallystick: TimerFailing ended (sweep)",
    ]
    assert "docs/howto/alerts.md#timerfailing" in texts[0]
    mails = [message_from_bytes(mail) for mail in sinks.mails]
    about = [mail for mail in mails if "(sweep)" in mail["Subject"]]
    assert [mail["Subject"] for mail in about] == [text.split("\n")[0] for text in texts]
    assert {mail["To"] for mail in about} == {"night@example.org, day@example.org"}
    assert "acct_1" not in str(sinks.chats), "an error may name a party"


def test_a_message_that_was_not_taken_is_sent_again(watched: tuple[Scene, Sinks]) -> None:
    scene, sinks = watched
    went(scene, "Broken: x")
    look(scene)
    sinks.chat.status, sinks.mail_is_away = 500, True
    said = r"\Amail: SMTPDataError; chat: HTTPStatusError\Z"
    with pytest.raises(NoticeNotSent, match=said):
        look(scene, minutes=6)
    sinks.chat.status, sinks.mail_is_away = 200, False
    assert look(scene, minutes=1) >= 1
    assert any("TimerFailing began (sweep)" in chat["text"] for chat in sinks.chats)
    with scene.service.connect() as connection:
        told = {each.name: each.told_us for each in kept.read(connection)}
    assert told["TimerFailing"] is not None


def test_one_way_that_is_away_does_not_repeat_the_message_on_the_other(
    watched: tuple[Scene, Sinks],
) -> None:
    scene, sinks = watched
    went(scene, "Broken: x")
    look(scene)
    sinks.chat.status = 500
    assert look(scene, minutes=6) >= 1
    assert look(scene, minutes=1) == 0
    told = [mail for mail in sinks.mails if b"TimerFailing began" in mail]
    assert len(told) == 1


def test_while_the_database_cannot_be_asked_nothing_ends(
    watched: tuple[Scene, Sinks], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, sinks = watched
    went(scene, "Broken: x")
    look(scene)
    assert look(scene, minutes=6) >= 1
    before = list(sinks.chats)

    def away() -> None:
        raise psycopg.OperationalError("gone")

    monkeypatch.setattr(scene.service, "connection", away)
    with pytest.raises(psycopg.OperationalError):
        look(scene, minutes=1)
    assert sinks.chats == before


def test_a_test_message_goes_every_way_that_is_set() -> None:
    sinks = Sinks()
    with listening(sinks) as (smtp_url, chat_url):
        ways = {
            "SMTP_URL": smtp_url,
            "ALERT_MAIL_FROM": "market@example.org",
            "ALERT_MAIL_TO": "night@example.org",
            "ALERT_CHAT_URL": chat_url,
        }
        sent = tallystick("alert", "test", "--json", **ways)
        assert (sent.code, sent.document) == (0, {"sent": ["chat", "mail"]}), sent.err
        assert len(sinks.mails) == len(sinks.chats) == 1
        sinks.mail_is_away = True
        half = tallystick("alert", "test", **ways)
        assert half.code == 1
        assert "not sent by mail (SMTPDataError)" in half.err
        assert smtp_url not in half.err
    nobody = tallystick("alert", "test")
    assert nobody.code == 1
    assert "TALLYSTICK_ALERT_CHAT_URL" in nobody.err


def test_silent_nodes_are_counted_and_told(watched: tuple[Scene, Sinks]) -> None:
    scene, sinks = watched
    assert value(scene, "tallystick_nodes_active") == 2
    assert value(scene, "tallystick_nodes_silent") == 0
    look(scene, minutes=16)
    assert value(scene, "tallystick_nodes_silent") == 2
    look(scene, minutes=16)
    assert any("NodesSilent began" in chat["text"] for chat in sinks.chats)


def test_the_books_are_told_by_kind_and_balance(shared: Scene) -> None:
    assert value(shared, "tallystick_books_unbalanced") == 0
    family = next(
        each
        for each in figures.read(shared.service).families
        if each.name == "tallystick_books_credits"
    )
    by_kind = {sample.labels["kind"]: sample.value for sample in family.samples}
    outside = sum(by_kind.pop(f"outside_{kind}", 0) for kind in ("bank", "card", "burned"))
    assert outside > 0
    assert outside + by_kind.pop("owed_by_parties", 0) == sum(by_kind.values())


def test_a_database_that_is_away_is_told_and_the_other_numbers_stay(
    shared: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise psycopg.OperationalError("gone")

    monkeypatch.setattr(shared.service, "connection", away)
    families = figures.read(shared.service).families
    assert [(each.name, each.samples[0].value) for each in families] == [
        ("tallystick_database_up", 0)
    ]


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"alert_mail_to": "a@example.org"}, "smtp_url: needed with alert_mail_to"),
        ({"smtp_url": "http://x"}, "smtp_url: an address, smtps://... or smtp://..."),
        ({"alert_chat_url": "ftp://x"}, "alert_chat_url: an address, https://... or http://..."),
        ({"otlp_url": "x:4318"}, "otlp_url: an address, https://... or http://..."),
        ({"smtp_url": "smtp://x:abc"}, "smtp_url: its host or its port cannot be read"),
        ({"smtp_url": "smtp://x:99999"}, "smtp_url: its host or its port cannot be read"),
        ({"alert_chat_url": "https://[::1"}, "alert_chat_url: its host or its port cannot be read"),
        ({"alert_mail_from": "a@x\nBcc: b@x"}, "alert_mail_from: addresses in one line"),
        ({"log_form": "xml"}, "log_form: must be console or json"),
        ({"log_level": "LOUD"}, "log_level: must be one of DEBUG, INFO, WARNING, ERROR"),
    ],
)
def test_a_setting_that_cannot_work_stops_the_start(setting: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsInvalid) as refused:
        Settings(**setting)  # type: ignore[arg-type]
    assert str(refused.value) == told


def value(scene: Scene, name: str) -> float:
    """The number, with the views at the head of the log: nothing follows it here."""
    with scene.service.connect() as connection:
        tables.step_all(connection)
    family = next(each for each in figures.read(scene.service).families if each.name == name)
    return float(family.samples[0].value)
