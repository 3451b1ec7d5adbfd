"""Pages of a renter: every number is the API's, every form does what it says, or says why not."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

import psycopg
import pytest
from anyio.from_thread import start_blocking_portal

from api.console.renter import listing, watches
from api.console.visits.reading import Reader, Refused
from api.leasing import watched
from api.main import create_app
from api.metering import unbilled
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
    assert told.status_code == status, (
        path,
        told.status_code,
        re.findall(r'data-testid="detail">(.*?)<', told.text),
    )
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


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Live pages are looked at often, and their sessions too."""
    monkeypatch.setattr(watches, "EVERY_SECONDS", 0.04)
    monkeypatch.setattr(watches, "SESSION_EVERY_SECONDS", 0.05)


class Watching:
    """Live pages that are open, each in a thread; what each was told once it has ended."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []
        self._threads: list[threading.Thread] = []

    def open(self, browser: Browser, lease: str) -> None:
        def run() -> None:
            self.told.append((lease, browser.get(f"/leases/{lease}/live")))

        count = len(watches.WATCHES)
        self._threads.append(threading.Thread(target=run))
        self._threads[-1].start()
        until(lambda: len(watches.WATCHES) == count + 1)

    def ended(self) -> list[tuple[str, Any]]:
        for each in self._threads:
            each.join(20)
        assert len(self.told) == len(self._threads), "a stream does not end"
        return self.told


def state_seen(lease: watches.Watched) -> str:
    return "" if lease.seen is None else lease.seen.standing.state


def until(is_so: Any) -> None:
    waited = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < waited
        time.sleep(0.01)


@pytest.mark.usefixtures("quick")
def test_a_lease_is_watched_live_until_the_session_ends(shared: Scene, app: Any) -> None:
    lease = opened(shared)
    browser, pages = signed_in(app, shared.renter), Watching()
    with start_blocking_portal() as browser.http.portal:  # one event loop, as a server has
        assert f'data-live="/leases/{lease}/live"' in page(browser, f"/leases/{lease}")
        for _ in range(watches.STREAMS_EACH_MAX):
            pages.open(browser, lease)
        assert browser.get(f"/leases/{lease}/live").status_code == 429
        (reader,) = watches.WATCHES.readers.values()
        assert list(reader.leases) == [lease], "one entry for all that look at it"
        until(lambda: state_seen(reader.leases[lease]) == "active")
        shared.renter.made(f"/v1/leases/{lease}/close")
        until(lambda: state_seen(reader.leases[lease]) == "closing")
        time.sleep(0.1)
        assert browser.send("/sign-out", browser.marks("/")).status_code == 303
        told = pages.ended()
        ended = browser.get(f"/leases/{lease}/live")
    for _, one in told:
        assert one.headers["content-type"].startswith("text/event-stream")
        assert one.headers["cache-control"] == "no-store"
        assert '"state": "active"' in one.text
        assert '"say": "The lease is closing"' in one.text
    assert len(watches.WATCHES) == 0
    assert watches.WATCHES.readers == {}, "nothing is kept of a visitor"
    assert ended.status_code == 303


@pytest.mark.usefixtures("quick")
def test_all_watched_leases_are_read_together_however_many(
    shared: Scene, app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One look for all leases and pages; a page itself asks nothing."""
    looks: list[int] = []
    asked: list[str] = []
    real, fetch = watched.look, Reader.fetch

    def look(service: Any, before: Any) -> Any:
        looks.append(len(before))
        return real(service, before)

    async def fetched(self: Reader, method: str, path: str, *more: Any) -> Any:
        asked.append(path)
        return await fetch(self, method, path, *more)

    monkeypatch.setattr(watches, "look", look)
    leases = [opened(shared), opened(shared)]
    pages, browser = Watching(), signed_in(app, shared.renter)
    operator = signed_in(app, shared.operator)
    with shared.service.connection() as connection:
        lease_logs.append(connection, leases[0], 0, [("stdout", b"secret of the renter\n")], 0, 0)
    with start_blocking_portal() as portal:
        browser.http.portal = operator.http.portal = portal
        pages.open(browser, leases[0])
        pages.open(operator, leases[0])
        pages.open(browser, leases[1])
        until(lambda: looks[-1:] == [2])
        monkeypatch.setattr(Reader, "fetch", fetched)
        count = len(looks)
        until(lambda: len(looks) > count + 3)
        assert asked == [], "the pages ask nothing"
        monkeypatch.setattr(Reader, "fetch", fetch)
        browser.send("/sign-out", browser.marks("/"))
        operator.send("/sign-out", operator.marks("/"))
        told = pages.ended()
    assert max(looks) == 2, "every look is at all of them"
    texts = sorted(
        ("secret of the renter" in one.text, '"cost"' in one.text)
        for lease, one in told
        if lease == leases[0]
    )
    assert texts == [(False, True), (True, True)], "an operator sees the cost, and no output"
    for lease in leases:
        shared.renter.made(f"/v1/leases/{lease}/close")


@pytest.mark.usefixtures("quick")
def test_a_live_page_ends_when_its_key_is_revoked_or_its_member_removed(
    shared: Scene, app: Any
) -> None:
    lease, account = opened(shared), f"/v1/accounts/{shared.renter.account_id}"
    made = shared.renter.made(f"{account}/api-keys", {"scopes": ["renter"]})
    invited = shared.renter.made(f"{account}/invitations", {"role": "member", "scopes": ["renter"]})
    joined = shared.anybody.made("/v1/invitations/redeem", {"code": invited["code"]})
    pages = Watching()
    browsers = [Browser(app), Browser(app), signed_in(app, shared.renter)]
    for browser, key in zip(browsers, (made["key"], joined["key"]), strict=False):
        assert browser.sign_in(key).status_code == 303
    with start_blocking_portal() as portal:
        for browser in browsers:
            browser.http.portal = portal
            pages.open(browser, lease)
        assert shared.renter.delete(f"{account}/api-keys/{made['key_id']}").status_code == 200
        until(lambda: len(watches.WATCHES) == 2)
        shared.renter.made(f"{account}/members/{joined['member_id']}/remove")
        until(lambda: len(watches.WATCHES) == 1)
        time.sleep(0.2)
        assert len(watches.WATCHES) == 1, "the others go on"
        browsers[2].send("/sign-out", browsers[2].marks("/"))
        pages.ended()
    shared.renter.made(f"/v1/leases/{lease}/close")


@pytest.mark.usefixtures("quick")
def test_live_pages_end_when_their_leases_cannot_be_read(
    shared: Scene, app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, browser, pages = opened(shared), signed_in(app, shared.renter), Watching()
    with start_blocking_portal() as browser.http.portal:
        pages.open(browser, lease)

        def broken(*_: Any) -> Any:
            raise OSError("the database is away")

        with monkeypatch.context() as patched:
            patched.setattr(watches, "look", broken)
            pages.ended()
        assert watches.WATCHES.readers == {}
        again = Watching()
        again.open(browser, lease)
        time.sleep(0.2)
        browser.send("/sign-out", browser.marks("/"))
        ((_, told),) = again.ended()
    assert '"state": "active"' in told.text, "the next page is told again"
    shared.renter.made(f"/v1/leases/{lease}/close")


def test_a_look_sees_what_the_api_tells_and_asks_no_more_for_many(shared: Scene) -> None:
    leases = [opened(shared), opened(shared, term_seconds=1800)]
    with shared.service.connection() as connection:
        pieces = [("stdout", bytes([65 + number]) * 10_000) for number in range(20)]
        lease_logs.append(connection, leases[0], 0, pieces, 0, shared.clock.now_us())
    one = watched.look(shared.service, {leases[0]: None})
    both = watched.look(shared.service, dict.fromkeys(leases))
    assert both[leases[0]] == one[leases[0]]
    _, queries_of_one = counted(shared, one)
    _, queries_of_both = counted(shared, both)
    assert queries_of_both == queries_of_one
    for lease in leases:
        seen, told = both[lease], shared.renter.read(f"/v1/leases/{lease}")
        assert seen.charge_units == int(told["estimate"]["charge"]["units"])
        assert str(seen.gpu_us) == told["estimate"]["gpu_us"]
        assert seen.standing.state == told["state"]
        assert seen.until == (told.get("funds_end_at") or told.get("term_end_at"))
    seen = both[leases[0]]
    assert seen.next_seq == 20
    assert seen.printed == b"".join(body for _, body in pieces[-7:]), "its end alone"
    again, _ = counted(shared, both)
    assert again[leases[0]].printed == b""
    assert again[leases[0]].estimate is seen.estimate, "nothing has moved"
    assert watched.look(shared.service, {"lease_" + "0" * 32: None}) == {}
    for lease in leases:
        shared.renter.made(f"/v1/leases/{lease}/close")


def test_a_lease_whose_reports_cannot_be_read_ends_its_own_pages_alone(
    shared: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, sound = opened(shared), opened(shared)
    real = unbilled.estimates

    def estimates(ledger: Any, connection: Any, lease_ids: Any, now_us: int) -> Any:
        if broken in lease_ids:
            raise ValueError("what a node has sent")
        return real(ledger, connection, lease_ids, now_us)

    monkeypatch.setattr(watched, "estimates", estimates)
    found = watched.look(shared.service, {broken: None, sound: None})
    assert list(found) == [sound]
    assert found[sound].estimate is not None
    for lease in (broken, sound):
        shared.renter.made(f"/v1/leases/{lease}/close")


def counted(shared: Scene, before: Any) -> tuple[dict[str, watched.Seen], int]:
    """A look, and how many statements it sent: not what a reader of other pages sends beside it."""
    sent: list[Any] = []
    real, here = psycopg.Cursor.execute, threading.get_ident()

    def execute(self: Any, query: Any, *args: Any, **named: Any) -> Any:
        if threading.get_ident() == here:
            sent.append(query)
        return real(self, query, *args, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(psycopg.Cursor, "execute", execute)
        found = watched.look(shared.service, before)
    return found, len(sent)


def test_live_pages_of_a_session_an_account_and_a_process_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watches, "STREAMS_MAX", watches.STREAMS_OF_ACCOUNT_MAX + 1)
    every = watches.Watches()
    for number in range(watches.STREAMS_OF_ACCOUNT_MAX):
        every.begun("acct_1", f"session_{number // watches.STREAMS_EACH_MAX}")
    with pytest.raises(Refused, match="of one session"):
        every.begun("acct_1", "session_0")
    with pytest.raises(Refused, match="of one account"):
        every.begun("acct_1", "session_99")
    every.begun("acct_2", "session_100")
    with pytest.raises(Refused, match="too many pages"):
        every.begun("acct_3", "session_101")
    for number in range(watches.STREAMS_OF_ACCOUNT_MAX):
        every.ended("acct_1", f"session_{number // watches.STREAMS_EACH_MAX}")
    every.ended("acct_2", "session_100")
    assert len(every) == 0


def test_offers_are_compared_filtered_and_sorted_without_an_account(
    shared: Scene, app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    anybody = Browser(app)
    every = shared.anybody.read("/v1/offers")["data"]

    def shown(query: str = "") -> list[str]:
        text = page(anybody, f"/offers{query}")
        return re.findall(r'<th scope="row"><a href="/offers/(offer_\w+)"', text)

    assert shown() == [one["offer_id"] for one in every]
    text = page(anybody, "/offers")
    for one in every:
        assert f'value="{one["price_per_gpu_hour"]["units"]}"' in part(text, "offers")
    assert shown("?model=NVIDIA+H100+PCIe") == [shared.other.offer_id]
    assert shown("?price=2.5&memory=40") == [shared.provider.offer_id]
    assert shown("?sort=memory") != []
    assert set(shown("?sort=reputation")) == set(shown())
    assert "Nothing fits" in page(anybody, "/offers?price=0.01")
    assert "is an amount of CREDIT" in page(anybody, "/offers?price=cheap", 422)
    monkeypatch.setattr(listing, "ROWS", 1)
    assert len(shown()) == 1
    assert "Dearer ones" in page(anybody, "/offers")
    one = page(anybody, f"/offers/{shared.provider.offer_id}")
    assert "Sign in to rent it" in one
    assert 'value="price"' not in one
    sent_ = anybody.send(f"/offers/{shared.provider.offer_id}", anybody.marks("/sign-in"))
    assert sent_.status_code in (401, 403, 422)


def test_a_lease_is_opened_from_an_offer_and_price_and_holding_are_told_before(
    shared: Scene, renter: Browser
) -> None:
    path = f"/offers/{shared.provider.offer_id}"
    before = shared.head()
    asked = {"command": "python 'my train.py'", "gpus": "1", "hours": "3", "project": "speech"}
    told = sent(renter, path, do="price", **asked)
    assert told.status_code == 200, part(told.text, "problem")
    assert "<h1>Hold 6.000000 CREDIT and start?</h1>" in told.text
    assert shared.head() == before, "nothing is recorded by asking"
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', told.text))
    hidden = {name: value.replace("&#39;", "'") for name, value in hidden.items()}
    refused_ = renter.send(path, hidden)
    assert refused_.status_code == 422
    assert "tick" in part(refused_.text, "problem")
    assert shared.head() == before
    told = renter.send(path, {**hidden, "sure": "yes"})
    lease_id = told.headers["location"].removeprefix("/leases/")
    lease = shared.renter.read(f"/v1/leases/{lease_id}")
    assert lease["offer_id"] == shared.provider.offer_id
    assert lease["escrow"] == money(6_000_000)
    assert lease["max_price_per_gpu_hour"] == money(2_000_000)
    job = shared.renter.read(f"/v1/jobs/{lease['job_id']}")
    assert job["command"] == ["python", "my train.py"]
    assert renter.send(path, {**hidden, "sure": "yes"}).headers["location"].endswith(lease_id)
    shared.renter.made(f"/v1/leases/{lease_id}/close")
    for fields, said in (
        ({"gpus": "1", "hours": "1"}, "say what should run"),
        ({**asked, "gpus": "0"}, "GPUs is a whole number"),
        ({**asked, "command": "a 'b"}, "cannot be read"),
        ({**asked, "gpus": "60"}, "No machine fits"),
        ({**asked, "project": "<b>"}, "project_id"),
    ):
        answer = sent(renter, path, do="price", **fields)
        assert answer.status_code in (409, 422), (fields, answer.status_code)
        assert said in part(answer.text, "problem")


def test_a_bill_reaches_every_line_its_proof_and_its_files(
    shared: Scene, renter: Browser, stranger: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = f"/v1/accounts/{shared.renter.account_id}"
    month = {"from": "2026-11-01T00:00:00Z", "to": "2026-12-01T00:00:00Z"}
    every = shared.renter.read(f"{account}/statements", order="desc", limit=500, **month)["lines"]
    monkeypatch.setattr(listing, "ROWS", 10)
    text, seen = page(renter, f"/bills/{MONTH}"), list[str]()
    while True:
        seen += re.findall(r'aria-label="Line (\d+)"', text)
        (rest,) = re.findall(r'<a href="([^"]*)">Older ones', text) or [""]
        if not rest:
            break
        text = page(renter, rest.replace("&amp;", "&"))
    assert seen == [str(one["position"]) for one in every]
    text = page(renter, f"/bills/{MONTH}")
    assert "speech" in part(text, "projects") or "none" in part(text, "projects")
    for path in re.findall(r'href="(/bills/[^"]+)"', part(text, "exports")):
        told = renter.get(path)
        api = shared.renter.get(path.replace("/bills/", f"{account}/statements/"))
        assert told.status_code == 200, path
        assert len(told.content) == len(api.content)
        assert told.headers["content-disposition"].startswith("attachment")
    (usage,) = {one["position"] for one in every if one["kind"] == "usage"}
    line = page(renter, f"/bills/{MONTH}/lines/{usage}")
    assert "/disputes/new?lease=" in line
    proof = renter.get(f"/bills/{MONTH}/lines/{usage}/proof")
    assert proof.text == shared.renter.get(f"{account}/statements/lines/{usage}/proof").text
    (report,) = re.findall(r'name="report" value="(\d+)"', line)
    told = renter.get(f"/bills/{MONTH}/lines/{usage}/proof?report={report}")
    assert told.status_code == 200
    assert "tlog-proof" in told.headers["content-disposition"]
    page(stranger, f"/bills/{MONTH}/lines/{usage}/proof", 404)
    future = page(renter, "/bills/2031-01")
    assert "January 2031 has not begun" in future
    assert "Spendable" not in future
    past = page(renter, "/bills/2019-01")
    assert "Spendable" not in past, "what is spendable now is not of that month"


def test_money_is_paid_in_warned_of_and_capped(shared: Scene, renter: Browser, app: Any) -> None:
    account = f"/v1/accounts/{shared.renter.account_id}"
    told = sent(renter, "/money", do="pay", method="bank", amount="25")
    assert "Payment of 25.000000 CREDIT" in told.text
    (found,) = shared.renter.read(f"{account}/payments")["data"]
    assert f"with the reference {found['payment_id']}" in told.text
    later = page(renter, f"/payments/{found['payment_id']}")
    assert f"with the reference {found['payment_id']}" in later
    assert sent(renter, "/money", do="warn", levels="20 5.5").status_code == 303
    funds = shared.renter.read(f"{account}/funds")
    assert {one["units"] for one in funds["warnings"]} == {"20000000", "5500000"}
    told = sent(renter, "/money", do="budget", scope="project", target="speech", monthly="3")
    assert told.status_code == 303
    (budget,) = shared.renter.read(f"{account}/budgets")["data"]
    assert budget["monthly"] == money(3_000_000)
    text = page(renter, "/money")
    assert "3.000000 CREDIT" in digits(part(text, "budgets"))
    assert f'href="/payments/{found["payment_id"]}"' in part(text, "payments")
    head = shared.head()
    for fields, said in (
        ({"do": "pay", "method": "bank", "amount": "1"}, "25"),
        ({"do": "pay", "method": "gold", "amount": "25"}, "method"),
        ({"do": "pay", "method": "bank", "amount": "1e9"}, "is an amount of CREDIT"),
        ({"do": "warn", "levels": "low"}, "is an amount of CREDIT"),
        ({"do": "budget", "scope": "project", "target": "<i>", "monthly": "1"}, "target"),
        ({"do": "refill", "threshold": "1", "amount": "25", "monthly_max": "50"}, "payment"),
        ({"do": "nothing"}, "unknown"),
    ):
        answer = sent(renter, "/money", **fields)
        assert answer.status_code >= 400, fields
        assert said in part(answer.text, "problem"), fields
    assert shared.head() == head, "nothing was changed"
    waiting = part(page(renter, "/rent"), "waiting")
    assert f"/payments/{found['payment_id']}" in waiting
    reader = signed_in(app, shared.member(shared.renter, "billing", ["billing:read"]))
    assert 'method="post" action="/money"' not in page(reader, "/money")
    assert sent(reader, "/money", do="warn", levels="1").status_code == 403
    assert sent(renter, "/money", do="budget", scope="project", target="speech").status_code == 303
    assert "No invoice was issued yet" in page(renter, "/invoices")
    page(renter, "/invoices/INV-000001.pdf", 404)


def test_a_key_is_issued_within_ones_scopes_shown_once_and_revoked(
    shared: Scene, renter: Browser, stranger: Browser
) -> None:
    text = page(renter, "/keys")
    assert "scope:operator" not in text, "no more than one has"
    told = sent(renter, "/keys", do="issue", **{"scope:billing:read": "yes"})
    (key,) = re.findall(r'data-testid="key">(ts_\w+)<', told.text)
    assert told.headers["cache-control"] == "no-store"
    key_id = key.split("_")[2]
    text = page(renter, "/keys")
    assert key not in text, "it is shown once"
    assert key_id in part(text, "keys")
    assert shared.member is not None
    assert Caller(shared.http, key).get("/v1/webhooks").status_code == 403
    for fields, status, said in (
        ({"do": "issue"}, 422, "at least one scope"),
        ({"do": "issue", "scope:operator": "yes"}, 403, "operator"),
        ({"do": "revoke", "key_id": key_id}, 422, "tick"),
        ({"do": "revoke", "key_id": "../x", "sure": "yes"}, 422, "unknown"),
    ):
        answer = sent(renter, "/keys", **fields)
        assert answer.status_code in (status, 422), (fields, answer.status_code)
        assert said in part(answer.text, "problem"), fields
    assert sent(stranger, "/keys", do="revoke", key_id=key_id, sure="yes").status_code == 404
    assert sent(renter, "/keys", do="revoke", key_id=key_id, sure="yes").status_code == 303
    assert (
        Caller(shared.http, key).get(f"/v1/accounts/{shared.renter.account_id}/funds").status_code
        == 401
    )


def test_a_webhook_is_added_with_a_secret_shown_once_and_stopped(
    shared: Scene, renter: Browser, stranger: Browser
) -> None:
    told = sent(renter, "/webhooks", url="https://example.com/%3Cx%3E", types="lease.opened.v1")
    assert told.status_code == 200, part(told.text, "problem")
    (secret,) = re.findall(r'data-testid="secret">(whsec_[^<]+)<', told.text)
    (hook,) = shared.renter.read("/v1/webhooks")["data"]
    text = page(renter, "/webhooks")
    assert hook["url"] in text
    assert secret not in text
    path = f"/webhooks/{hook['endpoint_id']}"
    assert "Nothing was delivered yet" in page(renter, path)
    assert sent(renter, path, do="stop").status_code == 303
    assert shared.renter.read("/v1/webhooks")["data"][0]["enabled"] is False
    assert sent(renter, path, do="delete").status_code == 422
    assert sent(renter, "/webhooks", url="http://127.0.0.1/").status_code == 422
    page(stranger, path, 404)
    assert "No address is told yet" in page(stranger, "/webhooks")


def test_a_dispute_is_opened_from_a_line_and_spoken_in(
    shared: Scene, renter: Browser, stranger: Browser
) -> None:
    (lease_id, *_) = [
        one["lease_id"]
        for one in shared.renter.read("/v1/leases", state="settled")["data"]
        if one["hours_accrued"]
    ]
    (charge,) = shared.renter.read(f"/v1/leases/{lease_id}/charges")["data"]
    line = str(charge["position"])
    text = page(renter, f"/disputes/new?lease={lease_id}&line={line}")
    assert f'<option value="{line}" selected>' in text
    fields = {"lease": lease_id, "line": line, "code": "too_slow", "claim": "<b>slow</b>"}
    for changed, said in (({"claimed": "x"}, "CREDIT"), ({"code": "none"}, "claim_code")):
        answer = sent(renter, "/disputes/new", f"/leases/{lease_id}", **{**fields, **changed})
        assert answer.status_code == 422
        assert said in part(answer.text, "problem")
    told = sent(renter, "/disputes/new", f"/leases/{lease_id}", **fields)
    path = told.headers["location"]
    text = page(renter, path)
    assert "&lt;b&gt;slow&lt;/b&gt;" in text
    assert "<b>slow" not in text
    (found,) = shared.renter.read("/v1/disputes")["data"]
    assert path == f"/disputes/{found['dispute_id']}"
    assert sent(renter, path, statement="still slow").status_code == 303
    assert "still slow" in page(renter, path)
    assert f'href="{path}"' in page(renter, "/disputes")
    assert path in part(page(renter, "/rent"), "waiting")
    page(stranger, path, 404)
    assert "Nothing is disputed" in page(stranger, "/disputes")
    page(renter, "/disputes/new", 404)
