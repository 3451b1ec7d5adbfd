"""Home and search: what a visitor may see, and nothing else."""

from __future__ import annotations

import re

from tests.api.console.test_sessions import Browser
from tests.api.console.test_sessions import app as app
from tests.api.console.test_sessions import browser as browser
from tests.scenes.server import Scene


def found(text: str) -> list[str]:
    """The ids of the rows that were found."""
    part = text.partition('data-testid="found"')[2]
    return re.findall(r'title="([a-z]+_[0-9a-z_]+)"', part)


def test_home_explains_itself_and_shows_the_market(shared: Scene, browser: Browser) -> None:
    shown = browser.get("/").text
    offers = shared.anybody.read("/v1/offers", limit=100)
    assert f"<dd>{len(offers['data'])}</dd>" in shown
    cheapest = offers["data"][0]["price_per_gpu_hour"]["units"]
    assert f'<data value="{cheapest}"' in shown
    tariff = shared.anybody.read("/v1/tariffs")["data"][-1]
    assert f"{tariff['provider_share_ppm'] // 10_000} % of every charge" in shown
    assert "How to begin" in shown
    assert 'action="/search"' not in shown, "nothing to search without a session"
    assert browser.get("/search?q=x").headers["location"].startswith("/sign-in?next=")
    browser.sign_in(shared.renter.key)
    assert "How to begin" not in browser.get("/").text


def test_search_finds_by_id_by_part_by_name_and_by_position(
    shared: Scene, browser: Browser
) -> None:
    lease = shared.lease(job=shared.job(project_id="whisper-ft"))
    lease_id = lease["lease_id"]
    browser.sign_in(shared.renter.key)
    for asked in (lease_id, lease_id[:14], f"{lease_id[:14]}…", "WHISPER"):
        shown = browser.get("/search") if not asked else browser.get(f"/search?q={asked}")
        assert lease_id in found(shown.text), asked
    events = shared.renter.read("/v1/audit/events", order="desc", limit=1)["data"]
    position = events[0]["position"]
    assert f'href="/log/{position}"' in browser.get(f"/search?q={position}").text
    assert "Nothing was found" in browser.get("/search?q=no-such-thing").text
    for wrong in ("%00", "lease_../../x", "%3Cscript%3E", "lease_%2e%2e", "9" * 400):
        told = browser.get(f"/search?q={wrong}")
        assert told.status_code == 200, wrong
        assert "<script>" not in told.text
    browser.sign_in(shared.stranger.key)
    for asked in (lease_id, "whisper", str(position)):
        shown = browser.get(f"/search?q={asked}").text
        own = [one for one in (shared.stranger.account_id,) if asked in one]  # by its digits
        assert found(shown) == own, asked
        assert f'href="/log/{position}"' not in shown


def test_accounts_are_found_by_operators_and_nodes_by_their_owners(
    shared: Scene, browser: Browser
) -> None:
    node, account = shared.provider.node_id, shared.stranger.account_id
    browser.sign_in(shared.operator.key)
    assert f'href="/operate/accounts/{account}"' in browser.get(f"/search?q={account}").text
    assert node in found(browser.get(f"/search?q={node[:12]}").text)
    browser.sign_in(shared.owner.key)
    assert node in found(browser.get(f"/search?q={node}").text)
    assert found(browser.get(f"/search?q={account}").text) == []
    browser.sign_in(shared.rival.key)
    assert found(browser.get(f"/search?q={node}").text) == []


def test_every_other_browser_is_signed_out_at_once(shared: Scene, browser: Browser) -> None:
    others = [Browser(browser.http.app) for _ in range(2)]
    for each in (browser, *others):
        each.sign_in(shared.rival.key)
    assert browser.send("/sessions/end-others", {"csrf": "0"}).status_code == 403
    told = browser.send("/sessions/end-others", browser.marks("/sessions"))
    assert told.headers["location"] == "/sessions"
    assert browser.get("/sessions").status_code == 200
    assert [each.get("/sessions").status_code for each in others] == [303, 303]
    assert "but this one" not in browser.get("/sessions").text, "there is no other left"
