"""Pages of owners: numbers are the API's, forms act once and are refused in words, others see nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest

from api.main import create_app
from tests.api.console.test_sessions import Browser
from tests.scenes.server import Scene
from tests.scenes.work import hours_of_work


@pytest.fixture(scope="module")
def app(shared: Scene) -> Any:
    """The pages before an API with one worked hour."""
    hours_of_work(shared)
    return create_app(shared.service, with_console=True)


@pytest.fixture
def owner(app: Any, shared: Scene) -> Browser:
    return signed_in(app, shared.owner.key)


def signed_in(app: Any, key: str | None) -> Browser:
    browser = Browser(app)
    assert browser.sign_in(key).status_code == 303
    return browser


def page(browser: Browser, path: str, status: int = 200) -> str:
    """The text of a page that answers so."""
    told = browser.get(path)
    assert told.status_code == status, (
        path,
        told.status_code,
        re.sub(r"<[^>]+>", " ", told.text)[:900],
    )
    assert len(re.findall("<h1", told.text)) == 1, path
    return str(told.text)


def amounts(text: str) -> list[str]:
    """All digits of every amount."""
    return re.findall(r'<data value="[^"]*" title="([^"]+)"', text)


def test_earn_tells_today_the_month_and_what_is_held(shared: Scene, owner: Browser) -> None:
    told = page(owner, "/earn")
    held = shared.owner.read(f"/v1/accounts/{shared.owner.account_id}/maturity")["held_back"]
    assert held["units"] == "875000"
    assert amounts(told).count("0.875000 CREDIT") >= 4, "today, held, month and calendar"
    assert shared.provider.node_id in told
    assert "NVIDIA A100" in told
    assert shared.renter.account_id not in told


def test_a_node_tells_state_price_part_and_causes(shared: Scene, owner: Browser) -> None:
    node = f"/nodes/{shared.provider.node_id}"
    assert shared.provider.node_id in page(owner, "/nodes")
    told = page(owner, node)
    assert "2.000000 CREDIT" in amounts(told)
    assert "0.875000 CREDIT" in amounts(told), "its part"
    assert shared.renter.account_id not in told
    for act in ("activate", "maintenance", "drain", "retire", "admit", "confirm", "offer"):
        page(owner, f"{node}/{act}")
    page(owner, f"{node}/nothing", 404)
