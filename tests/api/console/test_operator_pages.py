"""What the operator sees and does in the pages, and that nobody else sees any of it."""

from __future__ import annotations

import html
import json
import re
import threading
import time
from typing import Any

import psycopg
import pytest
from anyio.from_thread import start_blocking_portal

from api.console.operator import live
from api.console.sessions import sessions
from ledger.beside import timer_runs
from tests.api.console.test_sessions import Browser
from tests.api.console.test_sessions import app as app
from tests.api.console.test_sessions import browser as browser
from tests.scenes.server import Scene

PAGES = (
    "/operate",
    "/operate/admissions",
    "/operate/payouts",
    "/operate/capacity",
    "/operate/accounts",
)


@pytest.mark.parametrize("path", PAGES)
def test_the_pages_of_the_operator_open_to_the_operator_alone(
    shared: Scene, browser: Browser, path: str
) -> None:
    assert browser.get(path).headers["location"].startswith("/sign-in")
    browser.sign_in(shared.operator.key)
    told = browser.get(path)
    assert told.status_code == 200, told.text[-2000:]
    assert len(re.findall(r"<h1[ >]", told.text)) == 1
    assert 'aria-current="page"><span>' in told.text
    assert told.text.count('aria-current="page"><span>') == 1, "one line of the menu"
    own = f"/operate/accounts/{shared.renter.account_id}"
    for other in (shared.renter, shared.owner, shared.auditor):
        browser.sign_in(other.key)
        for wanted in (path, own):
            refused = browser.get(wanted)
            assert refused.status_code == 403, wanted
            assert "needs the scope operator" in refused.text
            assert 'href="/operate"' not in refused.text, "nor does the menu offer it"
        assert browser.send(own, {**browser.marks("/"), "act": "close"}).status_code == 403


def test_a_machine_is_validated_shipped_and_refused_by_forms(
    shared: Scene, browser: Browser
) -> None:
    place = shared.region("approved", admission="approved")
    body = {"region_id": place, "vendor": "nvidia", "model": "<i>A100</i>", "gpus": 4}
    asked = shared.owner.made("/v1/admissions", body)
    path = f"/operate/admissions/{asked['admission_id']}"
    browser.sign_in(shared.operator.key)
    listed = browser.get("/operate/admissions").text
    assert path in listed
    assert "<i>A100" not in listed, "a name is text"
    assert f'href="{path}"' in browser.get("/operate").text, "it waits for a person"
    for act, text, state in (("validate", "", "validated"), ("ship", "1Z99", "shipped")):
        fields = {**browser.marks(path), "act": act, "text": text}
        assert browser.send(path, fields).headers["location"] == path
        assert shared.operator.read(f"/v1/admissions/{asked['admission_id']}")["state"] == state
    assert "1Z99" in browser.get(path).text
    again = browser.send(path, {**browser.marks(path), "act": "validate"})
    assert again.status_code == 409, "it was validated before"
    assert browser.send(path, {**browser.marks(path), "act": "admit"}).status_code == 422
    fields = {**browser.marks(path), "act": "refuse", "text": "<u>too loud</u>"}
    assert browser.send(path, fields).status_code == 303
    assert "&lt;u&gt;too loud" in browser.get(path).text
    assert f'href="{path}"' not in browser.get("/operate").text, "it waits no longer"
    browser.sign_in(shared.owner.key)
    assert browser.send(path, {**browser.marks("/"), "act": "validate"}).status_code == 403


def test_a_node_is_admitted_by_its_button(shared: Scene, browser: Browser) -> None:
    shared.provider.ask(shared, "gamma", "NVIDIA A100-PCIE-80GB")
    node = f"/v1/nodes/{shared.provider.node_id}"
    browser.sign_in(shared.operator.key)
    path = f"/operate/nodes/{shared.provider.node_id}/admit"
    assert path not in browser.get("/operate/admissions").text, "its owner confirms it first"
    shared.owner.made(f"{node}/confirm", {"key_id": shared.provider.signing.key_id})
    assert path in browser.get("/operate/admissions").text
    sent = browser.send(path, browser.marks("/operate/admissions"))
    assert sent.headers["location"] == "/operate/admissions"
    assert shared.operator.read(node)["phase"] != "confirmed"
    assert path not in browser.get("/operate/admissions").text
    browser.sign_in(shared.renter.key)
    assert browser.send(path, browser.marks("/")).status_code in (403, 404)


def test_an_account_is_opened_held_and_closed(shared: Scene, browser: Browser) -> None:
    browser.sign_in(shared.operator.key)
    fields = {**browser.marks("/operate/accounts"), "kind": "party"}
    made = browser.send("/operate/accounts", fields)
    assert made.headers["cache-control"] == "no-store"
    (key,) = re.findall(r'data-testid="key">(ts_[^<]+)<', made.text)
    (account_id,) = re.findall(r'href="/operate/accounts/(acct_[0-9a-f]+)"', made.text)
    again = browser.send("/operate/accounts", fields)
    assert account_id in again.text, "a form acts once"
    assert key in again.text, "and answers the same"
    assert key not in browser.get(f"/operate/accounts/{account_id}").text
    fresh = Browser(browser.http.app)
    assert fresh.sign_in(key).status_code == 303, "the key opens its account"
    path = f"/operate/accounts/{account_id}"
    for act, fields in (("hold", {"reason": "<b>who</b>"}), ("release", {})):
        sent = browser.send(path, {**browser.marks(path), "act": act, **fields})
        assert sent.status_code == 303, sent.text[-1500:]
    unsure = browser.send(path, {**browser.marks(path), "act": "close"})
    assert unsure.status_code == 422
    assert "closed_at" not in shared.operator.read(f"/v1/accounts/{account_id}")
    sent = browser.send(path, {**browser.marks(path), "act": "close", "sure": "yes"})
    assert sent.status_code == 303
    assert "closed_at" in shared.operator.read(f"/v1/accounts/{account_id}")
    assert 'value="close"' not in browser.get(path).text
    stranger = Browser(browser.http.app)
    stranger.sign_in(shared.stranger.key)
    refused = stranger.send("/operate/accounts", {**stranger.marks("/"), "kind": "party"})
    assert refused.status_code == 403


def test_a_client_is_suspended_and_resumed(shared: Scene, browser: Browser) -> None:
    client = shared.client()
    path, listed = f"/operate/clients/{client.account_id}", "/operate/accounts"
    browser.sign_in(shared.operator.key)
    for act, is_suspended in (("suspend", True), ("resume", False)):
        assert f'value="{act}"' in browser.get(listed).text
        sent = browser.send(path, {**browser.marks(listed), "act": act})
        assert sent.headers["location"] == listed
        told: Any = shared.operator.read(f"/v1/clients/{client.account_id}")
        assert told["suspended"] is is_suspended


def test_what_is_wrong_comes_first_with_its_last_error(shared: Scene, browser: Browser) -> None:
    now_us = shared.clock.now_us()
    with shared.service.connect() as connection:
        timer_runs.record(connection, "chain", now_us, 600, "NodeFailed: <b>", duration_us=9_000)
        timer_runs.record(connection, "pin", now_us, 120_000_000, duration_us=250_000)
    told = shared.operator.read("/v1/alerts")
    held = [(one["name"], one["of"]) for one in told["data"] if "of" in one]
    assert ("TimerFailing", "chain") in held
    browser.sign_in(shared.operator.key)
    shown = browser.get("/operate").text
    assert f"<h1>{len(told['data'])} thing" in shown
    assert shown.count('data-testid="alert"') == len(told["data"])
    assert "NodeFailed: &lt;b&gt;" in shown
    assert shown.index("NodeFailed") < shown.index(">pin<"), "worst first"
    assert shared.renter.get("/v1/alerts").status_code == 403
    figures = {one["name"]: one["value"] for one in told["figures"] if "of" not in one}
    assert figures["tallystick_leases_open"] == "0"
    assert figures["tallystick_database_up"] == "1"
    shared.service.clock.advance(60_000_000)  # type: ignore[attr-defined]


def test_the_operators_page_is_told_of_changes_until_its_session_ends(
    shared: Scene, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "EVERY_SECONDS", 0.02)
    monkeypatch.setattr(live, "SESSION_EVERY_SECONDS", 0.05)
    for other in (shared.renter, shared.auditor):
        browser.sign_in(other.key)
        assert browser.get("/operate/live").status_code == 403
    browser.sign_in(shared.operator.key)
    text, told = browser.get("/operate").text, list[Any]()
    assert 'data-live="/operate/live"' in text
    with start_blocking_portal() as browser.http.portal:
        asked = threading.Thread(target=lambda: told.append(browser.get("/operate/live")))
        asked.start()
        waited = time.monotonic() + 20
        while not live._open and time.monotonic() < waited:
            time.sleep(0.01)
        time.sleep(0.3)
        monkeypatch.setattr(live, "STREAMS_MAX", 1)
        assert browser.get("/operate/live").status_code == 503, "they are bounded"
        assert browser.send("/sign-out", browser.marks("/")).status_code == 303
        asked.join(20)
    (stream,) = told
    assert live._open == 0
    assert stream.headers["content-type"].startswith("text/event-stream")
    (first, *_) = [line for line in stream.text.splitlines() if line.startswith("data: ")]
    values = json.loads(first.removeprefix("data: "))["values"]
    assert values["wrong"] in html.unescape(text)
    named = set(re.findall(r'data-key="([^"]*)"', text))
    assert named <= set(values), "each place of the page is told"


def test_the_operators_stream_ends_and_the_server_goes_on_while_the_database_is_away(
    shared: Scene, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_asked: Any) -> set[str]:
        raise psycopg.OperationalError("the database is away")

    monkeypatch.setattr(live, "SESSION_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(sessions, "alive", away)
    browser.sign_in(shared.operator.key)
    told = browser.get("/operate/live")
    assert (told.status_code, told.text) == (200, "retry: 5000\n\n"), "and the browser asks again"
    assert live._open == 0
