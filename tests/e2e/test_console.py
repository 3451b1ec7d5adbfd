"""The console in a real browser: bill, earnings and epochs, and every page that can be clicked to.

Needs Chromium and npm, as `tests/e2e/pages/browser.py` says.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Generator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.conftest import Databases, fresh
from tests.e2e.pages.browser import CHROMIUM, browser_in, new_page, pictured
from tests.e2e.pages.crawling import Crawl, overheard, sign_in, sign_out
from tests.e2e.pages.market import ROLES, Market, market_in

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
REFERENCE = frozenset({"/docs", "/docs/*", "/problems", "/problems/*"})
"""The same for everybody, and long: one crawl looks at it."""
needs_axe = pytest.mark.skipif(shutil.which("npm") is None, reason="no npm: apt-get install npm")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[BrowserContext, None, None]:
    with browser_in(tmp_path_factory.mktemp("browser")) as context:
        yield context


@pytest.fixture
def page(browser: BrowserContext) -> Generator[Page, None, None]:
    browser.clear_cookies()
    page = new_page(browser)
    yield page
    page.close()


@pytest.fixture(scope="module")
def market(
    postgres: Databases, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Market, None, None]:
    folder = tmp_path_factory.mktemp("market") / "server"
    with fresh(postgres, template) as database, market_in(folder, database) as found:
        yield found


def texts(page: Page, table: str) -> list[str]:
    """The rows of a table, as a reader sees them."""
    rows = page.get_by_test_id(table).locator("tbody tr")
    rows.first.wait_for()
    return [" ".join(row.inner_text().split()) for row in rows.all()]


def whole(page: Page, table: str) -> list[list[str]]:
    """The rows of a table, with all digits of its amounts, whole ids and times in UTC."""
    rows = page.get_by_test_id(table).locator("tbody tr")
    return [
        row.locator("[title]").evaluate_all("all => all.map((each) => each.title)")
        for row in rows.all()
    ]


def titles(page: Page, test_id: str) -> list[str]:
    """All digits of the amounts of a part of the page."""
    found = page.get_by_test_id(test_id).locator("data")
    return [str(each.get_attribute("title")) for each in found.all()]


@pytest.mark.pages(
    "::test_every_page_of_a_stranger_leads_on_and_is_sound_at_one_width_in_one_scheme",
    "tests/api/console/test_renter.py::test_a_bill_reaches_every_line_its_proof_and_its_files",
)
def test_a_renter_sees_the_bill_and_takes_a_line_down_to_its_report(
    market: Market, page: Page
) -> None:
    sign_in(page, market.address, market.keys["renter"])
    page.get_by_role("link", name="Bills", exact=True).click()
    assert page.url.endswith("/bills/2026-11"), "the month of the server's clock"
    figures = titles(page, "figures")
    assert figures[0] == "2.000000 CREDIT"
    assert "98.000000 CREDIT" in figures
    ((lease, *numbers),) = whole(page, "leases")
    assert lease == market.told["lease_id"]
    assert numbers[0] == "3,600,000,000 GPU-microseconds"
    assert numbers[1:] == [
        "0 GPU-microseconds",
        "3,600,000,000 GPU-microseconds",
        "0 GPU-microseconds",
        "2.000000 CREDIT",
    ], "nothing is signed yet"
    assert any("deposit" in row for row in texts(page, "lines"))
    plot = page.get_by_test_id("by-day").get_by_role("img").first
    assert "Highest: 20 with 2.00 CREDIT; 29 of 30 are zero" in str(
        plot.get_attribute("aria-label")
    )
    pictured(page, "bill")
    page.get_by_role("link", name=f"Line {market.told['position']}").first.click()
    steps = texts(page, "arithmetic")
    assert any(
        step.startswith("charge floor(gpu_us x price_per_gpu_hour / 3600000000)")
        and step.endswith("0 2000000 2000000")
        for step in steps
    ), steps
    (report,) = whole(page, "reports")
    assert "20 Nov 2026, 09:02:00 UTC" in report
    pictured(page, "bill-line")
    assert market.keys["renter"] not in page.content() + page.url
    assert market.keys["renter"] not in str(page.context.cookies())


@pytest.mark.pages(
    "::test_a_stranger_takes_a_key_and_each_role_sees_its_pages",
    "tests/api/console/test_owner_pages.py"
    "::test_a_month_its_lines_files_and_proofs_are_the_apis_own",
)
def test_an_owner_sees_what_was_earned_and_why(market: Market, page: Page) -> None:
    sign_in(page, market.address, market.keys["owner"])
    page.get_by_role("link", name="Earnings", exact=True).click()
    assert "0.875000 CREDIT" in titles(page, "figures")
    ((machine, price, month, today),) = whole(page, "machines")
    assert (machine, price) == (market.told["node"], "2.000000 CREDIT")
    assert (month, today) == ("0.875000 CREDIT", "0.000000 CREDIT"), "it was earned yesterday"
    pictured(page, "earn")
    page.get_by_role("link", name="By node, lease and hour").click()
    assert "0.875000 CREDIT" in titles(page, "figures")
    ((node, used, charged, fee, *_, yours),) = whole(page, "nodes")
    assert (node, used) == (market.told["node"], "3,600,000,000 GPU-microseconds")
    assert (charged, fee, yours) == ("2.000000 CREDIT", "0.250000 CREDIT", "0.875000 CREDIT")
    assert len(texts(page, "upcoming")) == 1
    pictured(page, "earnings")
    page.get_by_role("link", name=f"Line {market.told['position']}").click()
    assert any(step.endswith("0 875000 875000") for step in texts(page, "steps"))


@pytest.mark.pages(
    "::test_every_page_of_a_stranger_leads_on_and_is_sound_at_one_width_in_one_scheme",
    "tests/api/console/test_public_pages.py::test_an_epoch_shows_what_the_api_says_and_its_file",
)
def test_anybody_sees_why_a_node_got_what_it_got(market: Market, page: Page) -> None:
    page.goto(f"http://{market.address}/")
    page.get_by_role("link", name="Epochs", exact=True).click()
    page.get_by_role("link", name="Epoch 1", exact=True).click()
    page.locator("#node").fill(market.told["node"])
    page.get_by_role("button", name="Explain").click()
    compute, low, availability = whole(page, "shares")
    assert compute[-1] == "79,498.19230768 TOKEN"
    assert texts(page, "shares")[0].startswith("Compute: what it served 79,498.19 3600000000")
    assert texts(page, "shares")[1].startswith("Availability: the part for trust tier 2 and above")
    assert low[-1] == availability[-1] == "0.00000000 TOKEN"
    assert "availability: " in page.get_by_test_id("reason").first.inner_text()
    ((burned, used),) = whole(page, "uses")
    assert (burned, used) == ("0.000000 CREDIT", "3,600,000,000 GPU-microseconds")
    assert texts(page, "uses") == ["cash 0.00 1.00 100 %"]
    signals = page.get_by_test_id("signals").inner_text()
    assert "Concentration of customers\n100 %" in signals
    assert "concentration" not in signals, "its first weeks with one customer raise no flag"
    pictured(page, "epoch")
    page.get_by_role("link", name="Epoch 1", exact=True).click()
    page.locator("#node").fill("node_0")
    page.get_by_role("button", name="Explain").click()
    page.get_by_text("has neither use nor time of node_0").wait_for()


@pytest.mark.pages(
    "tests/api/console/test_sessions.py::test_wrong_keys_of_an_address_are_bounded",
    "tests/api/console/test_sessions.py::test_a_key_signs_in_and_is_kept_nowhere",
)
def test_a_wrong_key_or_month_is_told_and_shows_nothing(market: Market, page: Page) -> None:
    sign_in(page, market.address, "ts_live_nothing")
    page.get_by_text("malformed, unknown, expired or revoked").wait_for()
    assert page.locator("#key").input_value() == "", "a key is not sent back"
    sign_in(page, market.address, market.keys["renter"], "/bills/last")
    page.get_by_text("is not a month").wait_for()
    sign_out(page)
    page.goto(f"http://{market.address}/bills/2026-11")
    page.locator("#key").fill(market.keys["renter"])
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page).to_have_url(f"http://{market.address}/bills/2026-11")
    page.get_by_test_id("lines").wait_for()


def test_the_page_of_the_log_checks_proofs_in_the_browser(market: Market, page: Page) -> None:
    """Fact, report and head hold; each of them changed in one place fails, by its step."""
    position = market.told["position"]
    sign_in(page, market.address, market.keys["renter"], f"/log?position={position}")
    proof, verified = page.locator("#proof"), page.get_by_test_id("verified")
    whole, head = proof.input_value(), page.get_by_test_id("head").inner_text()

    def checked(file: str, note: str = "", key: str = "") -> str:
        proof.fill(file)
        page.locator("#head").fill(note)
        if key:
            page.locator("#key").fill(key)
        verified.evaluate("place => place.replaceChildren()")
        page.get_by_role("button", name="Check", exact=True).click()
        verified.locator("li").first.wait_for()
        return verified.inner_text()

    with overheard(page) as complaints:
        told = checked(whole)
        assert f"Fact {position}, " in told
        assert "fails" not in told
        assert "is signed by the key (Ed25519)" in told or "has no Ed25519" in told
        page.get_by_role("button", name="Fetch the newest head").click()
        expect(page.locator("#head")).not_to_have_value("")
        assert "fails" not in checked(whole, page.locator("#head").input_value())
        lines = whole.split("\n")
        index = next(at for at, line in enumerate(lines) if line.startswith("index "))
        extra = json.loads(base64.b64decode(lines[1].removeprefix("extra ")))
        extra["entry"]["version"] += 1
        forged = base64.b64encode(json.dumps(extra).encode()).decode()
        for file, why in (
            (whole.replace(lines[1], f"extra {forged}"), "is not in the tree"),
            (whole.replace(lines[index], "index 0"), "is not in the tree"),
            (whole.replace(lines[index + 1] + "\n", "", 1), "the path is too short"),
            (whole.replace(lines[index + 1], lines[index + 2], 1), "is not in the tree"),
            (whole[:40], "not a .tlog-proof file"),
            ("<b>no</b>\n\n", "not a .tlog-proof file"),
        ):
            assert why in checked(file), why
        size = int(head.split("\n")[1])
        other = head.replace(f"\n{size}\n", f"\n{size - 1}\n")
        told = checked("", other)
        assert "the signature of the head is wrong" in told or "has no Ed25519" in told
        assert "the key's id" in checked(whole, key="x.example+00000000+AQ" + "A" * 42)
    assert complaints == []
    line = f"/v1/accounts/{market.accounts['renter']}/statements/lines/{position}/reports"
    (report, *_) = market.read("renter", line)["data"]
    sign_out(page)
    sign_in(page, market.address, market.keys["owner"])
    where = f"{report['lane']}/{report['usage_position']}"
    page.goto(f"http://{market.address}/log?report={where}")
    pinned = proof.input_value()
    told = checked(pinned)
    assert "is pinned by that fact" in told, told
    lines = pinned.split("\n")
    extra = json.loads(base64.b64decode(lines[1].removeprefix("extra ")))
    extra["report"]["node_seq"] += 1
    forged = base64.b64encode(json.dumps(extra).encode()).decode()
    assert "the report is not in its lane" in checked(pinned.replace(lines[1], f"extra {forged}"))


_BUTTONS = {"split": "Split it so", "windows": "Announce it", "terms": "Set version"}


def _region(market: Market) -> str:
    """Where the owner's machine stands."""
    found: str = market.read("owner", f"/v1/nodes/{market.told['node']}")["region_id"]
    return found


def test_a_stranger_takes_a_key_and_each_role_sees_its_pages(market: Market, page: Page) -> None:
    """The pages of which the documents show pictures."""
    headers = {"Authorization": f"Bearer {market.keys['operator']}", "Idempotency-Key": "invite"}
    asked = f"http://{market.address}/v1/account-invitations"
    invited = httpx.post(asked, json={"kind": "party"}, headers=headers).json()
    page.set_viewport_size({"width": 1000, "height": 700})
    page.goto(f"http://{market.address}/")
    pictured(page, "home", whole=False)
    page.get_by_role("link", name="Get an account").click()
    page.locator("#code").fill(invited["code"])
    pictured(page, "sign-up", whole=False)
    page.get_by_role("button", name="Take the key").click()
    key = page.get_by_test_id("key").inner_text()
    assert key.startswith("ts_")
    assert key not in page.url + str(page.context.cookies())
    sign_in(page, market.address, key)
    for link, heading in (("Home", "Nothing runs"), ("Keys", "Keys and members")):
        page.get_by_role("link", name=link, exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    sign_out(page)
    node, region = f"/nodes/{market.told['node']}", _region(market)
    shown = {
        "renter": (("rent", "/rent", "running"),),
        "owner": (
            ("machine", node, "use"),
            ("split", f"{node}/split", "split"),
            ("windows", f"{node}/windows", None),
            ("terms", f"/regions/{region}/terms", None),
        ),
        "operator": (("operate", "/operate", "timers"),),
    }
    for role, pages in shown.items():
        sign_in(page, market.address, market.keys[role])
        for name, path, part in pages:
            page.goto(f"http://{market.address}{path}")
            assert part is None or role == "renter" or page.get_by_test_id(part).is_visible()
            if name in _BUTTONS:
                expect(page.get_by_role("button", name=_BUTTONS[name])).to_be_visible()
            pictured(page, name, whole=name in ("split", "windows", "terms"))
        sign_out(page)


_COUNTED = """addEventListener('DOMContentLoaded', () => {
  window.told = 0;
  const counted = new MutationObserver(() => { window.told += 1; });
  counted.observe(document.querySelector('main'), {subtree: true, childList: true});
});"""


@pytest.mark.pages(
    "tests/api/console/test_operator_pages.py"
    "::test_the_operators_page_is_told_of_changes_until_its_session_ends"
)
def test_the_operators_page_is_told_of_changes_while_it_is_open(market: Market, page: Page) -> None:
    sign_in(page, market.address, market.keys["operator"])
    page.add_init_script(_COUNTED)
    with overheard(page) as complaints:
        page.goto(f"http://{market.address}/operate")
        for _ in range(200):
            if page.evaluate("window.told"):
                break
            page.wait_for_timeout(100)
        assert page.evaluate("window.told") > 0
        later = page.context.new_page()
        for _ in range(40):  # the alerts change beneath both: views catch up
            later.goto(f"http://{market.address}/operate")
            if _alerts(page) == _alerts(later):
                break
            page.wait_for_timeout(500)
        assert _alerts(page) == _alerts(later)
    assert complaints == []


def _alerts(page: Page) -> str:
    """What the operator's page says is wrong."""
    return page.locator('[data-key="wrong"]').inner_text()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Outlines of pages in which axe-core has found nothing, for all roles and all workers."""
    run = tmp_path_factory.getbasetemp()
    found = (run.parent if "PYTEST_XDIST_WORKER" in os.environ else run) / "sound"
    found.mkdir(exist_ok=True)
    return found


@needs_axe
@pytest.mark.pages(
    "::test_every_page_of_a_stranger_leads_on_and_is_sound_at_one_width_in_one_scheme",
    "::test_a_stranger_takes_a_key_and_each_role_sees_its_pages",
)
@pytest.mark.parametrize("role", ["", *ROLES])
def test_every_link_of_every_page_leads_on_and_every_page_is_sound(
    market: Market, page: Page, sound: Path, role: str
) -> None:
    crawl(market, page, role, Crawl(page, sound, leave=leave(role)))


@needs_axe
def test_every_page_of_a_stranger_leads_on_and_is_sound_at_one_width_in_one_scheme(
    market: Market, page: Page, sound: Path
) -> None:
    """The short form of the crawls; the reference is asked for, and not looked at. Of the roles a
    page each, above.
    """
    crawl(market, page, "", Crawl(page, sound, REFERENCE, (360,), ("light",)))


def leave(role: str) -> frozenset[str]:
    return REFERENCE if role else frozenset()


def crawl(market: Market, page: Page, role: str, found: Crawl) -> None:
    """As this role, from its home page; what it must have come to."""
    with overheard(page) as complaints:
        if role:
            sign_in(page, market.address, market.keys[role])
        else:
            page.goto(f"http://{market.address}/")
        found.run()
    assert found.wrong == [], "\n".join(found.wrong)
    assert complaints == []
    assert {"/", "/epochs", "/epochs/*", "/docs", *(REFERENCE - found.leave)} <= set(found.pages)
    assert ("/bills/*" in found.pages) == (role in ("renter", "owner", "operator", "auditor"))
    assert ("/sessions" in found.pages) == bool(role)
    assert ("/sign-up" in found.pages) == (not role)
    assert ("/operate/accounts" in found.pages) == (role == "operator")
    owned = {"/nodes/*", "/nodes/*/offer", "/nodes/*/drain", "/regions/*", "/earn/*/lines/*"}
    owned |= {"/nodes/*/split", "/nodes/*/windows", "/regions/*/terms"}
    assert (owned <= set(found.pages)) == (role == "owner")
