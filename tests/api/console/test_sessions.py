"""S-M11: who is signed in, and what nobody else can do with it.

A session opens what its key opens at this moment; the key is in no cookie and in no row; a form
acts only when a page of ours sent it, in the browser that it was made for.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from api.console.everybody import sign_in
from api.door.limits import Buckets
from api.main import create_app
from api.process.service import Service
from domain.parties.account import WALLET_DELAY_US
from ledger.beside.console_sessions import IDLE_US, LIFE_US, MEMBER_MAX
from tests.in_process import InProcess
from tests.scenes.server import Scene
from tests.scenes.wallets import ADDRESSES, KEYS, link, signed

HTML = {"Accept": "text/html"}
EVIL = {"Origin": "http://evil.example"}
SESSION = "tallystick-session"


class Browser:
    """Keeps cookies and sends forms, as a browser does."""

    def __init__(self, app: Any) -> None:
        self.http = InProcess(app, follow_redirects=False, headers=HTML)

    def get(self, path: str, **headers: str) -> Any:
        return self.http.get(path, headers=headers)

    def marks(self, path: str) -> dict[str, str]:
        """What the forms of a page have beside their fields."""
        return dict(re.findall(r'name="(csrf|once)" value="([^"]*)"', self.get(path).text))

    def send(self, path: str, fields: dict[str, str] | None = None, **headers: str) -> Any:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post(path, data=fields or {}, headers=told)

    def sign_in(self, key: str | None, **fields: str) -> Any:
        marks = self.marks("/sign-in")
        return self.send("/sign-in", {**marks, "key": str(key), **fields})

    @property
    def token(self) -> str:
        return str(self.http.cookies[SESSION])


@pytest.fixture(scope="module")
def app(shared: Scene) -> Any:
    """The pages before an API of the scene's own service."""
    return create_app(shared.service, with_console=True)


@pytest.fixture
def browser(app: Any, monkeypatch: pytest.MonkeyPatch) -> Browser:
    fresh = Buckets(sign_in.FAILED_PER_SECOND, sign_in.FAILED_BURST)
    monkeypatch.setattr(sign_in, "_failed", fresh)
    return Browser(app)


def rows(scene: Scene) -> list[tuple[Any, ...]]:
    with scene.service.connection() as connection:
        return connection.execute("SELECT * FROM public.console_session").fetchall()


def test_a_key_signs_in_and_is_kept_nowhere(shared: Scene, browser: Browser) -> None:
    assert browser.get("/bills").headers["location"] == "/sign-in?next=%2Fbills"
    told = browser.sign_in(shared.renter.key, next="/bills/2026-11")
    assert (told.status_code, told.headers["location"]) == (303, "/bills/2026-11")
    cookie = next(each for each in told.headers.get_list("set-cookie") if SESSION in each)
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert str(shared.renter.key) not in str(told.headers) + str(rows(shared))
    assert browser.token not in str(rows(shared)), "only its hash"
    shown = browser.get("/bills/2026-11")
    assert shown.status_code == 200
    assert shown.headers["cache-control"] == "no-store"
    assert shared.renter.account_id in shown.text
    assert str(shared.renter.key) not in shown.text


def test_over_tls_the_cookie_belongs_to_this_host_alone(shared: Scene, browser: Browser) -> None:
    browser.http.base_url = "https://testserver"
    told = browser.sign_in(shared.renter.key)
    (cookie,) = [each for each in told.headers.get_list("set-cookie") if SESSION in each]
    assert cookie.startswith(f"__Host-{SESSION}=")
    assert "Secure" in cookie
    assert "Path=/" in cookie
    assert "Domain" not in cookie
    assert "Strict-Transport-Security" in told.headers
    token = cookie.partition("=")[2].partition(";")[0]
    plain = Browser(browser.http.app)
    plain.http.base_url = "https://testserver"
    plain.http.cookies.set(SESSION, token)
    assert plain.get("/bills").headers["location"].startswith("/sign-in"), "set by a plain page"


def test_a_session_ends_with_its_key_its_time_its_row_and_by_signing_out(
    shared: Scene, browser: Browser
) -> None:
    clock: Any = shared.clock
    account = f"/v1/accounts/{shared.renter.account_id}"
    made = shared.renter.made(f"{account}/api-keys", {"scopes": ["billing:read", "account"]})
    browser.sign_in(made["key"])
    assert browser.get("/bills/2026-11").status_code == 200
    assert shared.renter.delete(f"{account}/api-keys/{made['key_id']}").status_code < 300
    gone = browser.get("/bills/2026-11")
    assert gone.status_code == 303, "at once"
    assert f"{SESSION}=" in gone.headers["set-cookie"], "the browser forgets it"
    for wait_us in (IDLE_US, LIFE_US):
        browser.sign_in(shared.renter.key)
        for _ in range(wait_us // (IDLE_US // 2) - 1):
            clock.advance(IDLE_US // 2)
            assert browser.get("/sessions").status_code == 200
        clock.advance(IDLE_US)
        assert browser.get("/sessions").status_code == 303
    browser.sign_in(shared.renter.key)
    token = browser.token
    assert browser.send("/sign-out", browser.marks("/")).headers["location"] == "/sign-in"
    browser.http.cookies.set(SESSION, token)
    assert browser.get("/sessions").status_code == 303, "the same cookie opens nothing"


def test_one_lists_and_ends_ones_own_sessions_and_nobody_elses(
    shared: Scene, browser: Browser
) -> None:
    app = browser.http.app
    second, stranger = Browser(app), Browser(app)
    browser.sign_in(shared.renter.key)
    second.sign_in(shared.renter.key)
    stranger.sign_in(shared.stranger.key)
    shown = browser.get("/sessions").text
    (other,) = re.findall(r"/sessions/(session_[0-9a-f]{16})/end", shown)
    path = f"/sessions/{other}/end"
    assert other not in stranger.get("/sessions").text
    assert stranger.send(path, stranger.marks("/")).status_code == 404
    assert second.get("/sessions").status_code == 200
    assert browser.send(path, browser.marks("/")).status_code == 303
    assert second.get("/sessions").status_code == 303
    for _ in range(MEMBER_MAX + 3):
        Browser(app).sign_in(shared.renter.key)
    ours = [row for row in rows(shared) if shared.renter.account_id in row]
    assert len(ours) == MEMBER_MAX


def test_any_worker_takes_the_cookie_and_the_form_that_another_one_made(
    shared: Scene, browser: Browser
) -> None:
    """users A12: with two workers there was no console. What a worker has made lies in no memory of
    it: a second one is opened on the same folder and database.
    """
    service = shared.service
    with Service.open(service.settings, clock=service.clock) as same:
        browser.sign_in(shared.renter.key)
        other = Browser(create_app(same, with_console=True))
        other.http.cookies.update(browser.http.cookies)
        for page in ("/bills/2026-11", "/leases", "/sessions"):
            assert other.get(page).status_code == 200, page
        assert other.send("/sign-out", browser.marks("/")).headers["location"] == "/sign-in"
        assert browser.get("/sessions").status_code == 303, "it ended for both"


def test_s_m11_a_form_acts_only_when_a_page_of_ours_sent_it(
    shared: Scene, browser: Browser
) -> None:
    browser.sign_in(shared.renter.key)
    marks, other = browser.marks("/sessions"), Browser(browser.http.app)
    other.sign_in(shared.stranger.key)
    for fields, headers in (
        ({"next": "/"}, {}),
        ({"csrf": ""}, {}),
        ({"csrf": "0" * 64}, {}),
        ({"csrf": "\u00e9"}, {}),
        (other.marks("/"), {}),
        (marks, {"Origin": "http://evil.example"}),
        (marks, {"Origin": "null"}),
        (marks, {"Sec_Fetch_Site": "cross-site"}),
        (marks, {"Sec_Fetch_Site": "same-site"}),
    ):
        assert browser.send("/sign-out", fields, **headers).status_code == 403, (fields, headers)
    assert browser.get("/sessions").status_code == 200, "still signed in"
    # Nor is another person signed in by a form that was made for another browser.
    fresh = Browser(browser.http.app)
    told = fresh.send("/sign-in", {**browser.marks("/sign-in"), "key": str(shared.renter.key)})
    assert told.status_code == 403
    assert browser.send("/sign-out", marks, Origin="http://testserver").status_code == 303


def test_s_m11_no_page_is_framed_or_runs_what_is_not_ours(shared: Scene, browser: Browser) -> None:
    for path in ("/", "/sign-in", "/nothing", "/docs", "/bills"):
        told = browser.get(path)
        policy = told.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert told.headers["x-content-type-options"] == "nosniff"
        assert told.headers["referrer-policy"] == "same-origin"
        assert told.headers["cross-origin-opener-policy"] == "same-origin"
        assert not [name for name in told.headers if name.startswith("access-control-")]
        assert not re.search(r" style=| on[a-z]+=|<script>|javascript:|https?://", told.text)
    assert browser.get("/", **EVIL).status_code == 403
    assert "X-Frame-Options" not in shared.http.get("/v1/offers", headers=EVIL).headers


@pytest.mark.parametrize(
    "wanted",
    [
        "http://evil.example",
        "//evil.example",
        "/\\evil.example",
        "/%5Cevil",
        "\\/evil",
        "/sign-out",
        "/v1/accounts",
        "/nothing",
        "/bills\r\nX: y",
        "javascript:alert(1)",
        "/bills#//evil",
        "",
    ],
)
def test_signing_in_goes_on_to_pages_of_ours_alone(
    shared: Scene, browser: Browser, wanted: str
) -> None:
    assert browser.sign_in(shared.renter.key, next=wanted).headers["location"] == "/"


def test_wrong_keys_of_an_address_are_bounded(shared: Scene, browser: Browser) -> None:
    node_key = Browser(browser.http.app).sign_in(shared.provider.node.key)
    assert node_key.status_code == 401, "people sign in, machines do not"
    seen = [browser.sign_in("ts_live_nothing").status_code for _ in range(sign_in.FAILED_BURST + 2)]
    assert seen[0] == 401
    assert seen[-1] == 429
    assert browser.sign_in(shared.renter.key).status_code == 429, "a right one neither, for now"
    assert SESSION not in browser.http.cookies


def test_a_page_shows_what_the_api_would_and_nothing_more(shared: Scene, browser: Browser) -> None:
    browser.sign_in(shared.auditor.key)
    assert "/bills" in browser.get("/").text
    narrow = shared.account(scopes=["account"])
    browser.sign_in(narrow.key)
    told = browser.get("/earn/2026-11")
    assert told.status_code == 403
    assert "earnings:read" in told.text
    assert 'href="/earn"' not in browser.get("/epochs").text, "and its menu does not offer it"


def test_a_wallet_signs_in_and_only_reads(shared: Scene, browser: Browser) -> None:
    clock: Any = shared.clock
    owner = shared.account()

    def asked(address: str) -> Any:
        marks = browser.marks("/sign-in")
        return browser.send("/sign-in/wallet", {**marks, "address": address})

    assert asked("0x1").status_code == 422
    assert asked(ADDRESSES[0]).status_code == 401, "no account is paid to it"
    link(owner, 0)
    assert asked(ADDRESSES[0]).status_code == 401, "not before it is in effect"
    clock.advance(WALLET_DELAY_US)
    shown = asked(ADDRESSES[0]).text
    (nonce,) = re.findall(r'name="nonce" value="([^"]*)"', shown)
    (text,) = re.findall(r'name="message"[^>]*>\n(.*?)</textarea>', shown, re.DOTALL)
    assert "wants you to sign in with your Ethereum account" in text
    for key, status in ((KEYS[1], 422), (KEYS[0], 422)):
        fields = {**browser.marks("/sign-in"), "nonce": nonce, "signature": signed(text, key)}
        assert browser.send("/sign-in/wallet", fields).status_code == status, "tried once"
    shown = asked(ADDRESSES[0]).text
    (nonce,) = re.findall(r'name="nonce" value="([^"]*)"', shown)
    (text,) = re.findall(r'name="message"[^>]*>\n(.*?)</textarea>', shown, re.DOTALL)
    fields = {**browser.marks("/sign-in"), "nonce": nonce, "signature": signed(text, KEYS[0])}
    assert browser.send("/sign-in/wallet", fields).status_code == 303
    assert owner.account_id in browser.get("/bills/2026-11").text
    (row,) = [row for row in rows(shared) if owner.account_id in row]
    assert ADDRESSES[0].lower() in row
    taken = browser.send("/sign-in/wallet", {**browser.marks("/sign-in"), **fields})
    assert taken.status_code in (403, 422), "a text works once"


def test_what_is_no_page_is_told_in_the_form_that_is_read(browser: Browser) -> None:
    told = browser.get("/nothing")
    assert (told.status_code, told.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "This page does not exist" in told.text
    assert told.headers["request-id"] in told.text
    plain = browser.http.get("/nothing", headers={"Accept": "*/*"})
    assert plain.headers["content-type"] == "application/problem+json"
    assert browser.get("/v1/nothing").headers["content-type"] == "application/problem+json"
    for old, new in (("/console", "/"), ("/console/bill", "/bills"), ("/redoc", "/docs")):
        assert browser.get(old).headers["location"] == new
    big = browser.send("/sign-in", {"key": "x" * 100_000})
    assert big.status_code == 413


def test_what_no_database_or_header_holds_is_refused_and_fails_nothing(
    shared: Scene, browser: Browser
) -> None:
    for path, fields in (
        ("/sign-in", {"key": "ts_live_\0"}),
        ("/sign-in/wallet", {"nonce": "\0", "signature": "0x"}),
        ("/sign-in/wallet", {"nonce": "a", "signature": "\0"}),
    ):
        told = browser.send(path, {**browser.marks("/sign-in"), **fields})
        assert told.status_code == 422, path
    browser.sign_in(shared.renter.key)
    marks = browser.marks("/webhooks")
    assert browser.get("/leases/%00").status_code == 404
    assert browser.send("/sessions/%00/end", marks).status_code == 404
    fields = {"url": "https://example.com/hook", "types": "", "once": "\u2603\r\nX: y"}
    told = browser.send("/webhooks", {**marks, **fields})
    assert told.status_code == 400, "no number of ours"
    assert "idempotency_key_invalid" in told.text


def test_styles_and_scripts_are_kept_for_a_year_and_change_their_address(browser: Browser) -> None:
    shown = browser.get("/").text
    for address in re.findall(r'(?:href|src)="(/static/[^"]+)"', shown):
        told = browser.get(address, **{"Accept-Encoding": "gzip"})
        assert told.status_code == 200
        assert told.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert len(told.content) <= 60_000
        mark, _, name = address.removeprefix("/static/").partition("/")
        assert browser.get(f"/static/{'0' * len(mark)}/{name}").status_code == 404
    assert browser.get("/static/../site.py").status_code == 404
