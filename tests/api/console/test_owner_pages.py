"""Pages of owners: their numbers are the API's, forms are refused in words, others see nothing."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest

from api.console.owner import causes
from api.main import create_app
from api.market.contests import LostBy
from domain.income.maturity import DEFAULT_WINDOW_US, DESTINATION_DELAY_US
from projections import tables
from tests.api.console.test_sessions import Browser
from tests.api.trust.test_tiers import SPOOF, spoofed
from tests.api.trust.test_tiers import told as reported
from tests.scenes.server import Scene
from tests.scenes.work import credits_, hours_of_work, run_income


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
    assert told.status_code == status, (path, told.status_code, plain(told.text))
    assert len(re.findall("<h1", told.text)) == 1, path
    return str(told.text)


def plain(text: str) -> str:
    """What a reader sees of it."""
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


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


def test_an_offer_shows_the_owners_part_first_and_a_second_one_warns(scene: Scene) -> None:
    browser = signed_in(create_app(scene.service, with_console=True), scene.owner.key)
    node_id = scene.provider.node_id
    path = f"/nodes/{node_id}/offer"
    assert "Nothing is published before" in page(browser, path)
    told = page(browser, f"{path}?price=2.50")
    assert "1.125000 CREDIT" in amounts(told), "45 % of 2.50"
    assert "Offer it at 2.5 CREDIT a GPU-hour" in told
    assert "offered already" in told, "a second offer warns"
    for wrong in ("0.01", "abc", "-1", "1.2345678", "1e9", "%3Cb%3E"):
        refused = browser.get(f"{path}?price={wrong}")
        assert refused.status_code == 422, wrong
        assert 'aria-invalid="true"' in refused.text
        assert "<b>" not in refused.text
    fields = {**browser.marks(f"{path}?price=2.50"), "price": "2.5", "settlement": "cash"}
    assert browser.send(path, {**fields, "price": "0.01"}).status_code == 422
    for _ in range(2):
        sent = browser.send(path, fields)
        assert (sent.status_code, sent.headers["location"]) == (303, f"/nodes/{node_id}")
    offers = scene.owner.read("/v1/offers", node_id=node_id)["data"]
    assert sorted(int(one["price_per_gpu_hour"]["units"]) for one in offers) == [
        2_000_000,
        2_500_000,
    ], "a form that is sent twice acts once"
    old = next(one for one in offers if one["price_per_gpu_hour"]["units"] == "2000000")
    close = f"/nodes/{node_id}/offers/{old['offer_id']}/close"
    page(browser, close)
    assert browser.send(close, browser.marks(close)).status_code == 303
    (left,) = scene.owner.read("/v1/offers", node_id=node_id)["data"]
    assert left["price_per_gpu_hour"]["units"] == "2500000"
    rival = signed_in(browser.http.app, scene.rival.key)
    for address in (f"/nodes/{node_id}", path, close, f"/nodes/{node_id}/drain"):
        page(rival, address, 404)
    assert rival.send(path, {**rival.marks("/earn"), "price": "9"}).status_code in (403, 404)


def test_a_node_runs_empty_and_comes_back_and_says_why_it_gets_no_work(scene: Scene) -> None:
    browser = signed_in(create_app(scene.service, with_console=True), scene.owner.key)
    node = f"/nodes/{scene.provider.node_id}"
    assert "Nothing is in the way" in page(browser, node)
    refused = browser.send(f"{node}/drain", browser.marks(f"{node}/drain"))
    assert refused.status_code == 422, "which leases go is to be chosen"
    fields = {**browser.marks(f"{node}/drain"), "choice": "keep"}
    assert browser.send(f"{node}/drain", fields).headers["location"] == node
    told = page(browser, node)
    assert "runs empty" in told
    assert "It takes no new leases until" not in told
    assert f'href="{node}/activate"' in told
    assert browser.send(f"{node}/activate", browser.marks(f"{node}/activate")).status_code == 303
    scene.owner.made(f"/v1/offers/{scene.provider.offer_id}/withdraw")
    assert "It is not offered" in page(browser, node)
    assert "It is not offered" in plain(page(browser, "/earn")) or "it is not offered" in plain(
        page(browser, "/earn")
    )


def test_a_preemptible_node_whose_offers_are_not_interruptible_says_so(scene: Scene) -> None:
    browser = signed_in(create_app(scene.service, with_console=True), scene.owner.key)
    node = f"/nodes/{scene.provider.node_id}"
    scene.owner.made(f"/v1{node}/capacity-class", {"capacity_class": "preemptible"})
    assert "Its offer does not fit its capacity class" in page(browser, node)
    scene.owner.made(f"/v1{node}/capacity-class", {"capacity_class": "on_demand"})
    assert "Nothing is in the way" in page(browser, node)


def test_a_node_tells_how_often_it_was_a_candidate_and_by_what_it_lost(scene: Scene) -> None:
    app = create_app(scene.service, with_console=True)
    cheap, dear = signed_in(app, scene.owner.key), signed_in(app, scene.rival.key)
    node, other = f"/nodes/{scene.provider.node_id}", f"/nodes/{scene.other.node_id}"
    assert "For none of them was it among the candidates." in plain(page(dear, other))
    lease = scene.lease()
    assert lease["node_id"] == scene.provider.node_id
    assert "It got 1 and lost 0." in plain(page(cheap, node))
    told = page(dear, other)
    assert "It got 0 and lost 1:" in plain(told)
    assert "1 \N{MULTIPLICATION SIGN} another asked less, 2.000" in plain(told)
    (lost,) = scene.rival.read(f"/v1{other}/matches")["reasons"]
    assert lost["winning_price_at_most"]["units"] == "2000000"
    assert lease["lease_id"] not in told
    assert scene.renter.account_id not in told


def test_a_cause_of_a_lost_match_has_words() -> None:
    reasons = [*get_args(LostBy)]
    told = causes.lost([{"reason": reason, "times": 1} for reason in reasons])
    assert sum(one["times"] for one in told) == len(reasons)
    assert set(causes.LOST) == set(reasons)


def test_a_node_that_reported_before_the_first_epoch_has_its_page(scene: Scene) -> None:
    """It was answered with an error: there is no epoch to name."""
    reported(scene, scene.provider, SPOOF, spoofed)
    with scene.service.connect() as connection:
        tables.step_all(connection)
    path = f"/nodes/{scene.provider.node_id}"
    trust = scene.owner.read(f"/v1{path}/trust")
    assert "epoch" not in trust
    assert trust["devices"]
    browser = signed_in(create_app(scene.service, with_console=True), scene.owner.key)
    assert "Trust tier 1" in plain(page(browser, path))


def test_a_machine_joins_step_by_step(scene: Scene) -> None:
    browser = signed_in(create_app(scene.service, with_console=True), scene.owner.key)
    told = page(browser, "/nodes/new")
    assert scene.provider.region_id in told
    fields = {"what": "code", "region_id": scene.provider.region_id}
    made = browser.send("/nodes/new", {**browser.marks("/nodes/new"), **fields})
    assert made.status_code == 200
    (code,) = re.findall(r"tallystick-node join \S+ (\S+) --state", made.text)
    assert code not in page(browser, "/nodes/new"), "shown once"
    scene.provider.machine("second")
    joined = scene.anybody.made(
        "/v1/nodes/join", scene.provider.joining(code, "NVIDIA A100-PCIE-80GB")
    )
    node = f"/nodes/{joined['node_id']}"
    told = page(browser, "/nodes/new")
    assert f'href="{node}/confirm"' in told, "the next step"
    node_told = scene.owner.read(f"/v1{node}")
    assert node_told["fingerprint"] in page(browser, f"{node}/confirm")
    key = {"key_id": node_told["key_id"]}
    marks = browser.marks(f"{node}/confirm")
    assert browser.send(f"{node}/confirm", {**marks, **key}).status_code == 422
    wrong = {**marks, "key_id": "0" * 16, "same": "yes"}
    assert browser.send(f"{node}/confirm", wrong).status_code in (409, 422)
    assert scene.owner.read(f"/v1{node}")["phase"] == "joining"
    same = {**browser.marks(f"{node}/confirm"), **key, "same": "yes"}
    assert browser.send(f"{node}/confirm", same).status_code == 303
    assert f'href="{node}/admit"' in page(browser, "/nodes/new")
    refused = browser.send(f"{node}/admit", browser.marks(f"{node}/admit"))
    assert refused.status_code in (403, 404, 409), "the operator lets in here"
    scene.operator.made(f"/v1{node}/admit")
    assert f'href="{node}/activate"' in page(browser, "/nodes/new")
    assert browser.send(f"{node}/activate", browser.marks(f"{node}/activate")).status_code == 303
    assert node not in page(browser, "/nodes/new")


OWN_PAGES = (
    "/earn",
    "/earn/2026-11",
    "/earn/2026-11/files",
    "/earn/cash-out",
    "/earn/payment",
    "/nodes",
    "/nodes/new",
    "/providers",
    "/regions",
    "/map",
)


def test_every_page_has_an_empty_state_and_others_get_the_page_that_says_why(
    app: Any, shared: Scene
) -> None:
    fresh = signed_in(app, shared.account().key)
    for path in OWN_PAGES:
        told = plain(page(fresh, path))
        assert shared.provider.node_id not in told, path
    narrow = signed_in(app, shared.account(scopes=["meter"]).key)
    for path in (*OWN_PAGES, f"/nodes/{shared.provider.node_id}"):
        assert "Your key does not allow this" in page(narrow, path, 403), path
    assert "No machine of yours is here" in page(fresh, "/earn")
    assert "First say how you are paid" in page(fresh, "/nodes/new")


@pytest.mark.parametrize("role", ["operator", "auditor", "renter"])
def test_others_see_their_own_earnings_alone(app: Any, shared: Scene, role: str) -> None:
    """A4: an operator's page called a rival's earnings its own."""
    browser = signed_in(app, getattr(shared, role).key)
    for path in OWN_PAGES:
        told = page(browser, path)
        assert "0.875000 CREDIT" not in amounts(told), path
        assert shared.provider.node_id not in told, path


def test_all_pages_of_an_owner_open(shared: Scene, owner: Browser) -> None:
    region = shared.provider.region_id
    for path in (*OWN_PAGES, f"/regions/{region}", f"/nodes/{shared.provider.node_id}/transfer"):
        told = page(owner, path)
        assert shared.renter.account_id not in told, path
    page(owner, "/regions/region_0", 404)
    page(owner, "/earn/2026-11/files/nothing", 404)


def test_a_cash_out_asks_first_with_the_amount_on_the_button(scene: Scene) -> None:
    browser = signed_in(create_app(scene.service, with_console=True), scene.owner.key)
    account, ask = f"/v1/accounts/{scene.owner.account_id}", "/earn/cash-out/send"
    hours_of_work(scene)
    told = page(browser, "/earn/cash-out")
    assert amounts(told).count("0.875000 CREDIT") >= 2, "held back, and when it matures"
    assert "no destination is set" in told
    clock: Any = scene.clock
    clock.advance(DEFAULT_WINDOW_US)
    run_income(scene, "maturity", "sweep")
    browser = signed_in(browser.http.app, scene.owner.key)
    marks = browser.marks("/earn/payment")
    wrong = browser.send("/earn/payment", {**marks, "mode": "credits", "destination": "a b"})
    assert wrong.status_code == 422
    assert 'aria-invalid="true"' in wrong.text
    marks = browser.marks("/earn/payment")
    fields = {**marks, "mode": "credits", "destination": "acct_<b>bank"}
    assert browser.send("/earn/payment", fields).headers["location"] == "/earn/cash-out"
    told = page(browser, "/earn/cash-out")
    assert "72 hours after it was set" in told
    assert "acct_&lt;b&gt;bank" in told
    assert "The smallest cash-out is" in told
    assert "0.87 CREDIT" in plain(page(browser, f"{ask}?amount=0.5", 422))
    assert ">Send 0.87 CREDIT</button>" in page(browser, ask), "nothing more comes: all of it goes"
    minimum = {"minimum": credits_(10_000)}
    scene.operator.made("/v1/cash-outs/terms/minimum", minimum)
    for text, says in (
        ("0.875", "whole cents"),
        ("0.88", "0.87 CREDIT at most"),
        ("-1", "an amount of CREDIT such as"),
        ("1,000", "an amount of CREDIT such as"),
        ("0", "whole cents"),
    ):
        assert says in plain(page(browser, f"{ask}?amount={text}", 422)), text
    asked = page(browser, ask)
    assert ">Send 0.87 CREDIT</button>" in asked
    assert ">Send 0.50 CREDIT</button>" in page(browser, f"{ask}?amount=0.5")
    assert scene.owner.read(f"{account}/cash-outs")["data"] == [], "asking sends nothing"
    marks = browser.marks(f"{ask}?amount=0.5")
    early = browser.send(ask, {**marks, "amount": "0.50"})
    assert early.status_code == 409, early.status_code
    assert "72 hours" in plain(early.text)
    clock.advance(DESTINATION_DELAY_US)
    browser = signed_in(browser.http.app, scene.owner.key)
    marks = browser.marks(f"{ask}?amount=0.5")
    early = browser.send(ask, {**marks, "amount": "0.50"})
    assert early.status_code == 303
    (one,) = scene.owner.read(f"{account}/cash-outs")["data"]
    assert one["amount"] == credits_(500_000)
    address = f"/earn/cash-out/{one['cash_out_id']}"
    assert early.headers["location"] == address
    assert ">Cancel these" in page(browser, address)
    assert address in page(browser, "/earn/cash-out")
    assert browser.send(address, browser.marks(address)).status_code == 303
    assert scene.owner.read(f"{account}/cash-outs/{one['cash_out_id']}")["state"] == "cancelled"
    assert ">Cancel these" not in page(browser, address)
    assert browser.send(address, browser.marks(address)).status_code == 303, "again is harmless"
    assert scene.owner.read(f"{account}/maturity")["earned"] == credits_(875_000)
    rival = signed_in(browser.http.app, scene.rival.key)
    page(rival, address, 404)
    viewer = signed_in(browser.http.app, scene.member(scene.owner, "viewer", ["earnings:read"]).key)
    page(viewer, "/earn/cash-out")
    refused = viewer.send(ask, {**viewer.marks(ask), "amount": "0.50"})
    assert refused.status_code == 403, "who may only read sends nothing"


def test_provider_region_and_transfer_take_forms_and_warn(scene: Scene) -> None:
    app = create_app(scene.service, with_console=True)
    newcomer = scene.account()
    browser = signed_in(app, newcomer.key)
    fields = {"kind": "physical", "payment_mode": "credits"}
    assert browser.send("/providers", {**browser.marks("/providers"), **fields}).status_code == 303
    (provider,) = newcomer.read("/v1/providers")["data"]
    told = page(browser, "/providers")
    assert provider["provider_id"] in told
    assert "You have a provider already" in told
    region = {
        "provider_id": provider["provider_id"],
        "name": "Not A Name",
        "setting": "edge",
        "admission": "permissionless",
        "public": "yes",
    }
    wrong = browser.send("/regions", {**browser.marks("/regions"), **region})
    assert wrong.status_code == 422
    made = browser.send("/regions", {**browser.marks("/regions"), **region, "name": "home"})
    assert made.status_code == 303
    assert "It takes nothing" in page(browser, made.headers["location"])
    owner = signed_in(app, scene.owner.key)
    node = f"/nodes/{scene.provider.node_id}"
    assert owner.send(f"{node}/transfer", {**owner.marks(f"{node}/transfer")}).status_code == 422
    sent = owner.send(
        f"{node}/transfer", {**owner.marks(f"{node}/transfer"), "account_id": newcomer.account_id}
    )
    assert f"{node}/accept" in sent.text
    page(browser, f"{node}/accept")
    taken = browser.send(f"{node}/accept", browser.marks(f"{node}/accept"))
    assert (taken.status_code, taken.headers["location"]) == (303, "/nodes")
    assert scene.provider.node_id in page(browser, "/nodes")
    told = page(browser, node)
    assert f"{node}/transfer" in told
    assert f"{node}/retire" not in told, "the machine is still another's"
    shares = scene.owner.read(f"/v1{node}/revenue-shares")["shares"]
    assert newcomer.account_id in str(shares)


def test_a_dispute_is_read_and_answered_without_a_name(scene: Scene) -> None:
    (lease,) = hours_of_work(scene)
    month = {"from": "2026-11-01T00:00:00Z", "to": "2026-12-01T00:00:00Z", "kind": "usage"}
    bill = f"/v1/accounts/{scene.renter.account_id}/statements"
    claim = {
        "lease_id": lease["lease_id"],
        "claim_code": "too_slow",
        "lines": [{"position": scene.renter.read(bill, **month)["lines"][0]["position"]}],
        "claim": "<script>alert(1)</script>",
    }
    opened = scene.renter.made("/v1/disputes", claim)
    app = create_app(scene.service, with_console=True)
    browser, path = signed_in(app, scene.owner.key), f"/disputes/{opened['dispute_id']}"
    assert path in page(browser, "/disputes")
    told = page(browser, path)
    assert "&lt;script&gt;alert(1)" in told
    assert "<script>alert" not in told
    assert scene.renter.account_id not in told
    assert "2.000000 CREDIT" in amounts(told)
    assert browser.send(path, browser.marks(path)).status_code == 422, "an answer says something"
    wrong = {**browser.marks(path), "statement": "It ran.", "position": "x"}
    assert "It ran." in browser.send(path, wrong).text, "what was typed stays"
    fields = {**browser.marks(path), "statement": "It ran."}
    assert browser.send(path, fields).headers["location"] == path
    assert "It ran." in page(browser, path)
    page(signed_in(app, scene.stranger.key), path, 404)


def test_a_month_its_lines_files_and_proofs_are_the_apis_own(scene: Scene) -> None:
    hours_of_work(scene)
    browser = signed_in(create_app(scene.service, with_console=True), scene.owner.key)
    told = page(browser, "/earn/2026-11")
    (position,) = set(re.findall(r"/earn/2026-11/lines/(\d+)", told))
    assert "the next head of the log" in page(browser, f"/earn/2026-11/lines/{position}")
    files = ("lines.csv", "lines.jsonl", "books.journal", "charges.csv", "log-key.json")
    month = f"/v1/accounts/{scene.owner.account_id}/statements/2026-11"
    told = scene.owner.get(f"{month}/lines.csv").content
    assert told
    assert browser.get("/earn/2026-11/files/lines.csv").content == told, "whole, byte for byte"
    for name in files:
        got = browser.get(f"/earn/2026-11/files/{name}")
        assert (got.status_code, bool(got.content)) == (200, True), name
        assert "attachment" in got.headers["content-disposition"]
    scene.sign_head()
    assert "Proof of this line" in page(browser, f"/earn/2026-11/lines/{position}")
    proof = browser.get(f"/earn/2026-11/lines/{position}/line.tlog-proof")
    path = f"/v1/accounts/{scene.owner.account_id}/statements/lines/{position}/proof"
    assert proof.content == scene.owner.get(path).content
