"""How many questions a page asks: a bounded number, each paid for as over the network."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from api.console.owner import home
from api.console.renter import listing
from api.console.visits.reading import Reader
from api.main import create_app
from tests.api.console.test_sessions import Browser
from tests.scenes.server import Scene
from tests.scenes.serving import Market

BURST = 12


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What pages have asked the API, in order."""
    found: list[str] = []
    real = Reader.fetch

    async def fetch(self: Reader, method: str, path: str, *more: Any) -> Any:
        found.append(path)
        return await real(self, method, path, *more)

    monkeypatch.setattr(Reader, "fetch", fetch)
    return found


@pytest.fixture
def narrow(founded_market: Market, tmp_path: Path) -> Generator[Scene, None, None]:
    """A market in which an address may ask a dozen times, and then once a second."""
    with founded_market.copied(tmp_path, requests_per_second=1, requests_burst=BURST) as found:
        yield found


def test_a_renters_pages_ask_lists_and_not_each_offer(shared: Scene, asked: list[str]) -> None:
    """Once a state and once an offer, that was up to 700 questions."""
    leases = [shared.running()["lease_id"] for _ in range(3)]
    closed = shared.running()["lease_id"]
    shared.renter.made(f"/v1/leases/{closed}/close")
    browser = Browser(create_app(shared.service, with_console=True))
    browser.sign_in(shared.renter.key)
    for path, most in (("/rent", 12), ("/leases", 2), (f"/leases/{leases[0]}", 9)):
        asked.clear()
        text = browser.get(path).text
        assert "NVIDIA A100-PCIE-80GB" in text, path
        assert not [each for each in asked if each.startswith("/v1/offers/")], path
        assert len(asked) <= most, (path, asked)
    text = browser.get("/rent").text
    assert all(f'href="/leases/{lease}"' in text for lease in (*leases, closed))
    for lease in leases:
        shared.renter.made(f"/v1/leases/{lease}/close")
    answer = shared.renter.read("/v1/leases", open=True)
    assert not {one["lease_id"] for one in answer["data"]} & set(leases)
    ended = shared.renter.read("/v1/leases", open=False, limit=100)["data"]
    assert {closed, *leases} <= {one["lease_id"] for one in ended}
    lent = shared.owner.read("/v1/leases", renter_id=shared.owner.account_id)
    assert lent["data"] == [], "an owner's machines are let to others"
    assert shared.stranger.read("/v1/leases", renter_id=shared.renter.account_id)["data"] == []


def test_offers_are_asked_for_by_name_also_those_that_were_closed(scene: Scene) -> None:
    one, other = scene.provider.offer_id, scene.other.offer_id
    scene.owner.made(f"/v1/offers/{one}/withdraw")
    assert [each["offer_id"] for each in scene.anybody.read("/v1/offers")["data"]] == [other]
    both = scene.anybody.read("/v1/offers", offer_ids=f"{one},{other}")["data"]
    assert {each["offer_id"]: "withdrawn_at" in each for each in both} == {one: True, other: False}
    alone = scene.anybody.read("/v1/offers", offer_ids=f"{one},{other}", model="NVIDIA H100 PCIe")
    assert [each["offer_id"] for each in alone["data"]] == [other]
    for wrong in ("", ",", f"{one},", "lease_1", ",".join([one] * 201)):
        assert scene.anybody.get("/v1/offers", offer_ids=wrong).status_code == 422, wrong[:50]


def test_a_visitor_who_is_not_signed_in_pays_for_each_question(
    narrow: Scene, asked: list[str]
) -> None:
    """A page of four questions costs four tokens of the address, as four calls do."""
    visitor = Browser(create_app(narrow.service, with_console=True))
    answers = [visitor.get("/").status_code for _ in range(BURST)]
    assert answers[:2] == [200, 200]
    assert 429 in answers
    assert len(asked) <= 2 * BURST, "old: 12 pages of 4 questions each"
    assert answers.count(200) <= BURST // 4 + 1
    told = Browser(create_app(narrow.service, with_console=True)).get("/sign-up")
    assert told.status_code == 200, "a page without questions costs one"


def test_an_owner_sees_the_newest_machines_and_a_way_to_all(
    scene: Scene, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With their own devices and offers, however many machines there are."""
    first = scene.provider.node_id
    scene.provider.join(scene, "gamma", "NVIDIA L40S", 1_000_000)
    second = scene.provider.node_id
    both = scene.owner.read("/v1/devices", node_ids=f"{first},{second}")["data"]
    assert {one["node_id"] for one in both} == {first, second}
    foreign = scene.other.node_id
    alone = scene.owner.read("/v1/devices", node_ids=f"{second},{foreign}")["data"]
    assert {one["node_id"] for one in alone} == {second}, "another owner's is left out"
    offers = scene.anybody.read("/v1/offers", node_ids=f"{second},{foreign}")["data"]
    assert {one["node_id"] for one in offers} == {second, foreign}
    assert scene.owner.get("/v1/devices", node_ids="lease_1").status_code == 422
    monkeypatch.setattr(home, "MACHINES_SHOWN", 1)
    monkeypatch.setattr(listing, "ROWS", 1)
    browser = Browser(create_app(scene.service, with_console=True))
    browser.sign_in(scene.owner.key)
    text = browser.get("/earn").text
    assert f'href="/nodes/{second}"' in text
    assert f'href="/nodes/{first}"' not in text
    assert '<a href="/nodes">All machines</a>' in text
    asked.clear()
    text = browser.get("/nodes").text
    assert len(asked) <= 4, asked
    assert "NVIDIA L40S" in text
    assert f'href="/nodes/{first}"' not in text
    (rest,) = re.findall(r'<a href="([^"]*)">Older ones', text)
    text = browser.get(rest.replace("&amp;", "&")).text
    assert f'href="/nodes/{first}"' in text
    assert "NVIDIA A100-PCIE-80GB" in text
