"""The console in a real browser: a renter's bill and an owner's earnings, from a running server.

Needs Chromium: Debian's package `chromium`, or any that `TALLYSTICK_TEST_CHROMIUM` names.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, sync_playwright

from tests.cli.test_serve import serving
from tests.conftest import Databases, fresh
from tests.scenes.server import opened
from tests.scenes.work import hours_of_work, seal_an_epoch_of_work

CHROMIUM = os.environ.get("TALLYSTICK_TEST_CHROMIUM") or shutil.which("chromium")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SCREENSHOTS = os.environ.get("TALLYSTICK_SCREENSHOTS")
"""A folder: the pictures in the documents are made by this test."""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")


@contextmanager
def browsing(folder: Path) -> Generator[Page, None, None]:
    with browser_in(folder) as context:
        yield new_page(context)


@contextmanager
def browser_in(folder: Path) -> Generator[BrowserContext, None, None]:
    with sync_playwright() as playwright:
        assert CHROMIUM is not None
        context = playwright.chromium.launch_persistent_context(
            folder / "profile",
            executable_path=CHROMIUM,
            args=list(QUIET),
            viewport={"width": 1200, "height": 1400},
        )
        yield context
        context.close()


def new_page(context: BrowserContext) -> Page:
    page = context.new_page()
    page.set_default_timeout(30_000)
    return page


def shown(page: Page, address: str, path: str, key: str, month: str = "2026-11") -> None:
    """Open a page, type a key and a month, and press the button."""
    page.goto(f"http://{address}/console/{path}")
    page.get_by_label("API key").fill(key)
    page.get_by_label("Month").fill(month)
    page.get_by_role("button", name="Show").first.click()


def pictured(page: Page, name: str) -> None:
    if SCREENSHOTS:
        page.wait_for_timeout(1_000)  # the bars grow
        page.screenshot(path=Path(SCREENSHOTS) / f"{name}.png", full_page=True)


def texts(page: Page, table: str) -> list[str]:
    """The rows of a table, as a reader sees them."""
    rows = page.get_by_test_id(table).locator("tbody tr")
    rows.first.wait_for()
    return [" ".join(row.inner_text().split()) for row in rows.all()]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[BrowserContext, None, None]:
    with browser_in(tmp_path_factory.mktemp("browser")) as context:
        yield context


@pytest.fixture
def page(browser: BrowserContext) -> Generator[Page, None, None]:
    page = new_page(browser)
    yield page
    page.close()


@pytest.fixture(scope="module")
def market(
    postgres: Databases, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Generator[dict[str, Any], None, None]:
    """A server with one settled lease hour of 2.00 credits, and the keys of both sides."""
    folder = tmp_path_factory.mktemp("market") / "server"
    with fresh(postgres, template) as database:
        told = _worked(database, folder)
        with serving(folder, database, "--no-jobs") as server:
            yield {**told, "address": server.address}


def _worked(database: str, folder: Path) -> dict[str, Any]:
    with opened(database, folder) as scene:
        lease = hours_of_work(scene)[0]
        path = f"/v1/accounts/{scene.renter.account_id}/statements"
        month = {"from": "2026-11-01T00:00:00Z", "to": "2026-12-01T00:00:00Z", "kind": "usage"}
        (line,) = scene.renter.read(path, **month)["lines"]
        return {
            "lease_id": lease["lease_id"],
            "renter": scene.renter.key,
            "owner": scene.owner.key,
            "position": line["position"],
            "node": scene.provider.node_id,
        }


def test_a_renter_sees_the_bill_and_takes_a_line_down_to_its_report(
    market: dict[str, Any], page: Page
) -> None:
    shown(page, market["address"], "bill", market["renter"])
    figures = page.get_by_test_id("figures")
    figures.get_by_text("2.000000 CREDIT", exact=True).first.wait_for()
    assert "98.000000 CREDIT" in figures.inner_text()
    (lease,) = texts(page, "leases")
    assert lease.startswith(f"{market['lease_id']} 1.000000 2.000000 CREDIT")
    assert lease.endswith("0.000000 1.000000 0.000000"), "nothing is signed yet"
    assert any("deposit" in row for row in texts(page, "lines"))
    pictured(page, "bill")
    page.get_by_label("Position").fill(str(market["position"]))
    page.get_by_role("button", name="Take this line down").click()
    steps = texts(page, "arithmetic")
    assert any(
        step.startswith("charge floor(gpu_us x price_per_gpu_hour / 3600000000)")
        and step.endswith("0 2000000 2000000")
        for step in steps
    ), steps
    (report,) = texts(page, "reports")
    assert "2026-11-20 09:02:00" in report
    pictured(page, "bill-line")
    assert page.get_by_label("API key").get_attribute("type") == "password"
    assert market["renter"] not in page.inner_text("body") + page.url


def test_an_owner_sees_what_was_earned_and_why(market: dict[str, Any], page: Page) -> None:
    shown(page, market["address"], "earnings", market["owner"])
    page.get_by_test_id("figures").get_by_text("0.875000 CREDIT").first.wait_for()
    (node,) = texts(page, "nodes")
    assert node.startswith(f"{market['node']} 1.000000 2.000000 CREDIT 0.250000 CREDIT")
    assert node.endswith("0.875000 CREDIT")
    assert len(texts(page, "upcoming")) == 1
    page.get_by_label("Position").fill(str(market["position"]))
    page.get_by_role("button", name="Show the arithmetic").click()
    assert any(step.endswith("0 875000 875000") for step in texts(page, "steps"))
    pictured(page, "earnings")


def test_anybody_sees_why_a_node_got_what_it_got(page: Page, database: str, tmp_path: Path) -> None:
    folder = tmp_path / "server"
    with opened(database, folder) as scene:
        seal_an_epoch_of_work(scene)
        node_id = scene.provider.node_id
    with serving(folder, database, "--no-jobs") as server:
        page.goto(f"http://{server.address}/console/epoch")
        page.get_by_label("Epoch").fill("1")
        page.get_by_label("Node").fill(node_id)
        page.get_by_role("button", name="Explain").click()
        compute, low, availability = texts(page, "shares")
        assert compute.startswith("Compute: what it served 79,498.19230768 TOKEN 3600000000")
        assert compute.endswith("79,498.19230768 TOKEN")
        assert low.startswith("Availability: the part for trust tier 2 and above")
        assert low.endswith("0.00000000 TOKEN")
        assert availability.endswith("0.00000000 TOKEN")
        assert "availability: " in page.get_by_test_id("reason").first.inner_text()
        (use,) = texts(page, "uses")
        assert use == "cash 0.000000 CREDIT 1.000000 100.0000 %"
        signals = page.get_by_test_id("signals").inner_text()
        assert "Concentration of customers\n100.0000 %" in signals
        assert "concentration" not in signals, "its first weeks with one customer raise no flag"
        pictured(page, "epoch")
        page.get_by_label("Node").fill("node_0")
        page.get_by_role("button", name="Explain").click()
        page.get_by_text("has neither use nor time of node_0").wait_for()


def test_every_link_at_the_top_of_a_page_leads_to_its_page(
    market: dict[str, Any], page: Page
) -> None:
    headings = ["Bill", "Earnings", "Epoch"]
    for start in ("", *map(str.lower, headings)):
        page.goto(f"http://{market['address']}/console/{start}")
        assert page.locator("header a").all_inner_texts() == headings
        for heading in headings:
            with page.expect_navigation() as arrived:
                page.locator("header").get_by_role("link", name=heading, exact=True).click()
            assert arrived.value.status == 200, (start, heading, page.url)
            assert page.url == f"http://{market['address']}/console/{heading.lower()}"
            assert page.title() == f"tallystick: {heading}"


def test_a_wrong_key_or_month_is_told_and_shows_nothing(market: dict[str, Any], page: Page) -> None:
    shown(page, market["address"], "bill", "ts_live_nothing")
    page.get_by_text("Credential invalid").wait_for()
    shown(page, market["address"], "bill", market["renter"], month="last")
    page.get_by_text("is not a month").wait_for()
    page.goto(f"http://{market['address']}/console")
    page.get_by_label("API key").wait_for()
    assert page.get_by_test_id("lines").count() == 0
