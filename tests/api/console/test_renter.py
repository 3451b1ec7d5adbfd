"""Pages of a renter: every number is the API's, every form does what it says, or says why not."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from api.console.renter import listing, live
from api.main import create_app
from ledger.beside import lease_logs
from tests.api.console.test_sessions import Browser
from tests.scenes.server import Caller, Scene
from tests.scenes.work import hours_of_work, pin_and_sign

MONTH = "2026-11"


@pytest.fixture(scope="module")
def app(shared: Scene) -> Any:
    """The pages before an API of the scene's own service; one lease hour is settled."""
    hours_of_work(shared)
    pin_and_sign(shared)
    return create_app(shared.service, with_console=True)


def signed_in(app: Any, caller: Caller) -> Browser:
    browser = Browser(app)
    assert browser.sign_in(caller.key).status_code == 303
    return browser


@pytest.fixture
def renter(app: Any, shared: Scene) -> Browser:
    return signed_in(app, shared.renter)


@pytest.fixture
def stranger(app: Any, shared: Scene) -> Browser:
    return signed_in(app, shared.stranger)


def page(browser: Browser, path: str, status: int = 200) -> str:
    told = browser.get(path)
    assert told.status_code == status, (path, told.status_code, re.findall(r'data-testid="detail">(.*?)<', told.text))
    return str(told.text)


def part(text: str, test_id: str) -> str:
    """A part of a page, from its mark to the end of the part."""
    found = re.search(rf'<(\w+) [^>]*data-testid="{test_id}".*?</\1>', text, re.DOTALL)
    assert found is not None, test_id
    return found[0]


def digits(text: str) -> list[str]:
    """All digits of the amounts in a text."""
    return re.findall(r'<data value="[^"]*" title="([^"]*)"', text)


def sent(browser: Browser, path: str, at: str = "", **fields: str) -> Any:
    return browser.send(path, {**browser.marks(at or path), **fields})


def money(units: int) -> dict[str, str]:
    return {"asset": "CREDIT", "units": str(units)}


def opened(shared: Scene, **changes: Any) -> str:
    lease_id: str = shared.running(**changes)["lease_id"]
    return lease_id


def test_the_home_says_what_runs_what_it_costs_and_how_long_the_money_lasts(
    shared: Scene, renter: Browser, stranger: Browser
) -> None:
    lease = opened(shared, job=shared.job(project_id="speech"))
    text = page(renter, "/rent")
    assert "<h1>One lease runs</h1>" in text
    forecast = shared.renter.read(f"/v1/accounts/{shared.renter.account_id}/forecast")
    cash = forecast["balances"][0]
    shown = digits(part(text, "figures"))
    assert f"{int(cash['spendable']['units']) / 1e6:.6f} CREDIT" in shown
    assert f"{int(cash['charge_per_hour']['units']) / 1e6:.6f} CREDIT" in shown
    assert cash["lasts_until"] in part(text, "figures")
    assert "not billed yet" in text
    running = part(text, "running")
    assert f'href="/leases/{lease}"' in running
    assert "NVIDIA A100-PCIE-80GB" in running
    assert 'class="est"' in running
    assert "speech" in running
    assert f"/leases/{lease}" in part(text, "waiting"), "its money ends within a day"
    assert "2.000000 CREDIT" in part(text, "lately")
    empty = page(stranger, "/rent")
    assert "<h1>Nothing runs</h1>" in empty
    assert lease not in empty
    assert "/offers" in empty
    shared.renter.made(f"/v1/leases/{lease}/close")


def test_leases_are_listed_newest_first_with_a_way_to_the_rest(
    shared: Scene, renter: Browser, stranger: Browser, app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "ROWS", 2)
    for _ in range(3):
        lease = shared.lease()
        shared.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    every = shared.renter.read("/v1/leases", order="desc", limit=100)["data"]
    text, seen = page(renter, "/leases"), list[str]()
    while True:
        seen += re.findall(r'<th scope="row"><a href="/leases/(lease_\w+)"', text)
        (rest,) = re.findall(r'<a href="([^"]*)">Older ones', text) or [""]
        if not rest:
            break
        text = page(renter, rest.replace("&amp;", "&"))
    assert seen == [one["lease_id"] for one in every]
    settled = page(renter, "/leases?state=settled")
    assert all(one["state"] == "settled" or one["lease_id"] not in settled for one in every)
    assert "No lease here" in page(stranger, "/leases?state=active")
    assert page(renter, "/leases?state=%3Cscript%3E", 422).count("<script>") == 0
    narrow = signed_in(app, shared.account(scopes=["billing:read"]))
    assert "Your key does not allow this" in page(narrow, "/leases", 403)


def test_a_lease_shows_its_cost_health_output_and_life_to_its_parties_alone(
    shared: Scene, renter: Browser, stranger: Browser, app: Any
) -> None:
    (settled, *_) = [
        one["lease_id"] for one in shared.renter.read("/v1/leases", state="settled")["data"]
    ]
    text = page(renter, f"/leases/{settled}")
    (charge,) = shared.renter.read(f"/v1/leases/{settled}/charges")["data"]
    assert f'href="/bills/{MONTH}/lines/{charge["position"]}"' in part(text, "charges")
    assert "2.000000 CREDIT" in digits(part(text, "charges"))
    events = shared.renter.read(f"/v1/leases/{settled}/events")["data"]
    shown = re.findall(r'data-h="Position">(\d+)<', part(text, "events"))
    assert shown == [str(one["position"]) for one in reversed(events)]
    assert renter.get(f"/leases/{settled}/events.json").json()["data"][0] == events[-1]
    assert "data-live" not in text, "it is over"
    assert 'value="stop"' not in text
    page(stranger, f"/leases/{settled}", 404)
    page(stranger, f"/leases/{settled}/live", 404)
    page(stranger, f"/leases/{settled}/log.txt", 404)
    owners = page(signed_in(app, shared.owner), f"/leases/{settled}")
    assert "rented by another account" in owners
    assert 'value="stop"' not in owners


def test_a_lease_is_extended_and_stopped_and_both_are_asked_before(
    shared: Scene, renter: Browser, stranger: Browser
) -> None:
    lease = opened(shared)
    path, api = f"/leases/{lease}", f"/v1/leases/{lease}"
    held = shared.renter.read(api)["escrow"]["units"]
    assert "4 h, hold" in page(renter, path)
    for fields, told in (
        ({"do": "longer", "amount": "many"}, "is an amount of CREDIT"),
        ({"do": "longer", "amount": "-1"}, "is an amount of CREDIT"),
        ({"do": "longer", "hours": "0"}, "a whole number"),
        ({"do": "longer", "amount": "999999"}, "CREDIT"),
        ({"do": "stop"}, "I have what I need from it"),
    ):
        answer = sent(renter, path, **fields)
        assert answer.status_code in (402, 409, 422), (fields, answer.status_code)
        assert told in part(answer.text, "problem")
    assert shared.renter.read(api)["escrow"]["units"] == held
    assert sent(stranger, path, "/rent", do="stop", sure="yes").status_code == 404
    fields = {**renter.marks(path), "do": "longer", "hours": "4"}
    for _ in range(2):
        assert renter.send(path, fields).headers["location"] == path, "sent twice, acts once"
    assert int(shared.renter.read(api)["escrow"]["units"]) == int(held) + 4 * 2_000_000
    assert sent(renter, path, do="longer", amount="1.5").status_code == 303
    assert int(shared.renter.read(api)["escrow"]["units"]) == int(held) + 9_500_000
    assert sent(renter, path, do="stop", sure="yes").status_code == 303
    assert shared.renter.read(api)["closed_by"] == "renter"
    assert 'value="stop"' not in page(renter, path)
    fixed = shared.running(term_seconds=3600)["lease_id"]
    assert sent(renter, f"/leases/{fixed}", do="longer", hours="1").status_code == 303
    ends = shared.renter.read(f"/v1/leases/{fixed}")
    assert ends["term_end_at"] > ends["opened_at"][:11] + "10"
    shared.renter.made(f"/v1/leases/{fixed}/close")


def test_the_end_of_a_long_output_is_shown_as_text_and_all_of_it_is_a_file(
    shared: Scene, renter: Browser
) -> None:
    lease = opened(shared)
    pieces = [("stdout", f"step {number}\n".encode()) for number in range(99)]
    pieces.append(("stderr", b"\x1b[31m<script>alert(1)</script>\x1b[0m\n\xff"))
    with shared.service.connection() as connection:
        lease_logs.append(connection, lease, 0, pieces, 5, shared.clock.now_us())
    text = part(page(renter, f"/leases/{lease}"), "log")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\n\ufffd" in text
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "5 bytes were printed and not kept" in text
    whole = renter.get(f"/leases/{lease}/log.txt")
    assert whole.content == b"".join(piece for _, piece in pieces)
    assert whole.headers["content-disposition"].startswith("attachment")
    assert whole.headers["x-content-type-options"] == "nosniff"
    shared.renter.made(f"/v1/leases/{lease}/close")


def test_a_lease_is_watched_live_until_the_session_ends(
    shared: Scene, app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "EVERY_SECONDS", 0.02)
    monkeypatch.setattr(live, "READS_PER_SECOND", 10_000)
    monkeypatch.setattr(live, "SESSION_EVERY_SECONDS", 0.05)
    lease = opened(shared)
    browser = signed_in(app, shared.renter)
    with start_blocking_portal() as browser.http.portal:  # one event loop, as a server has
        assert f'data-live="/leases/{lease}/live"' in page(browser, f"/leases/{lease}")
        told: list[Any] = []
        asked = [
            threading.Thread(target=lambda: told.append(browser.get(f"/leases/{lease}/live")))
            for _ in range(live.STREAMS_EACH_MAX)
        ]
        for each in asked:
            each.start()
        waited = time.monotonic() + 20
        while len(live.WATCHES) < live.STREAMS_EACH_MAX and time.monotonic() < waited:
            time.sleep(0.01)
        assert browser.get(f"/leases/{lease}/live").status_code == 429
        assert len(live.WATCHES._watched) == 1, "one entry for all that look at it"
        shared.renter.made(f"/v1/leases/{lease}/close")
        time.sleep(0.3)
        assert browser.send("/sign-out", browser.marks("/")).status_code == 303
        for each in asked:
            each.join(20)
        ended = browser.get(f"/leases/{lease}/live")
    assert len(told) == live.STREAMS_EACH_MAX
    for one in told:
        assert one.headers["content-type"].startswith("text/event-stream")
        assert one.headers["cache-control"] == "no-store"
        assert '"state": "active"' in one.text
        assert '"say": "The lease is closing"' in one.text
    assert len(live.WATCHES) == 0
    assert live.WATCHES._watched == {}, "nothing is kept of a visitor"
    assert ended.status_code == 303
