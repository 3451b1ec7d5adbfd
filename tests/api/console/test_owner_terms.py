"""Pages on which an owner sets terms: parts of a node, announced maintenance, a region's terms."""

from __future__ import annotations

import re
from typing import Any

import pytest

from api.main import create_app
from tests.api.console.test_owner_pages import amounts, page, plain, signed_in
from tests.api.console.test_renter import part, sent
from tests.api.console.test_sessions import Browser
from tests.scenes.server import Scene


@pytest.fixture(scope="module")
def app(shared: Scene) -> Any:
    return create_app(shared.service, with_console=True)


@pytest.fixture
def owner(app: Any, shared: Scene) -> Browser:
    return signed_in(app, shared.owner.key)


def test_owners_of_a_node_and_their_parts(shared: Scene, app: Any, owner: Browser) -> None:
    node = shared.provider.node_id
    path, api = f"/nodes/{node}/split", f"/v1/nodes/{node}/revenue-shares"
    assert f'href="{path}"' in page(owner, f"/nodes/{node}")
    assert "100 %" in part(page(owner, path), "split")
    other = shared.stranger.account_id
    named = {"do": "set", "account-0": other}
    for part_of, status in (("", 422), ("-5", 422), ("101", 422), ("12.34567", 422), ("0", 422)):
        refused = sent(owner, path, **named, **{"part-0": part_of})
        assert refused.status_code == status, part_of
        assert "nothing was changed" in part(refused.text, "problem")
        for name, written in (("account-0", other), ("part-0", part_of)):
            assert f'name="{name}" value="{written}"' in refused.text, "what was written stays"
    unknown = sent(owner, path, do="set", **{"account-0": "<b>acct</b>", "part-0": "5"})
    assert 400 <= unknown.status_code < 500
    assert "<b>acct" not in unknown.text
    assert shared.owner.read(api)["shares"] == []
    assert sent(owner, path, **named, **{"part-0": "12.5"}).status_code == 303
    assert shared.owner.read(api)["shares"] == [{"account_id": other, "share_ppm": 125_000}]
    shown = plain(part(page(owner, path), "split"))
    assert "12.5 %" in shown
    assert "87.5 %" in shown
    stranger = signed_in(app, shared.stranger.key)
    assert "Give up your part" in page(stranger, path)
    assert "Split it anew" not in page(stranger, path)
    assert sent(stranger, path, do="leave").status_code == 422, "asked first"
    assert sent(stranger, path, do="leave", sure="yes").status_code == 303
    assert shared.owner.read(api)["shares"] == []
    rival = signed_in(app, shared.rival.key)
    page(rival, path, 404)
    taken = sent(rival, path, "/earn", do="set", **{"account-0": other, "part-0": "50"})
    assert taken.status_code == 404
    assert shared.owner.read(api)["shares"] == []


def test_maintenance_is_announced_and_called_off(shared: Scene, app: Any, owner: Browser) -> None:
    node = shared.provider.node_id
    path, api = f"/nodes/{node}/windows", f"/v1/nodes/{node}/maintenances"
    assert f'href="{path}"' in page(owner, f"/nodes/{node}")
    assert "Nothing is announced" in page(owner, path)
    told = {"do": "announce", "kind": "planned", "keep": "yes", "until": "2026-12-01T04:00"}
    for begins in ("", "tomorrow", "2026-12-01T05:00", "2026-13-01T00:00", "2020-01-01T00:00"):
        refused = sent(owner, path, **told, **{"from": begins})
        assert 400 <= refused.status_code < 500, begins
        assert "nothing was changed" in part(refused.text, "problem")
        for name, written in (("from", begins), ("until", told["until"])):
            assert f'name="{name}" type="datetime-local" value="{written}"' in refused.text
    unchecked = {**told, "keep": "", "kind": "security", "from": ""}
    refused = sent(owner, path, **unchecked)
    assert '<option value="security" selected>' in refused.text, "what was chosen stays"
    assert 'name="keep" value="yes">' in refused.text
    assert shared.owner.read(api)["data"] == []
    owner.http.cookies.set("zone", "Europe%2FBerlin")
    fields = {**owner.marks(path), **told, "from": "2026-12-01T02:00"}
    for _ in range(2):
        assert owner.send(path, fields).status_code == 303
    (window,) = shared.owner.read(api)["data"]
    assert window["from"].startswith("2026-12-01T01:00:00"), "on the reader's clock"
    assert window["keep_leases"] is True
    shown = part(page(owner, path), "windows")
    assert "1 Dec, 02:00" in shown
    renter = signed_in(app, shared.renter.key)
    assert renter.get(path).status_code in (200, 404)
    rival = signed_in(app, shared.rival.key)
    fields = {"do": "cancel", "maintenance_id": window["maintenance_id"]}
    assert sent(rival, path, "/earn", **fields).status_code == 404
    odd = sent(owner, path, do="cancel", maintenance_id="../../x")
    assert 400 <= odd.status_code < 500
    assert sent(owner, path, **fields).status_code == 303
    assert shared.owner.read(api)["data"][0]["status"] == "cancelled"


def test_a_region_gets_its_next_terms(shared: Scene, app: Any, owner: Browser) -> None:
    region = shared.provider.region_id
    path, api = f"/regions/{region}/terms", f"/v1/regions/{region}/terms"
    assert f'href="{path}"' in page(owner, f"/regions/{region}")
    text = page(owner, path)
    (earliest,) = re.findall(r'type="date" min="([^"]+)"', text)
    fields = {
        "version": "1",
        "from": earliest,
        "shared": "yes",
        "participation": "20",
        "tier": "3",
        "base": "0",
        "control": "3",
        "ingress": "3.5",
        "per_gib": "0.01",
        "most": "20",
        "arrears_max": "60",
    }
    for name, wrong in (
        ("from", "2026-11-21"),
        ("participation", "120"),
        ("tier", "9"),
        ("most", "many"),
        ("version", "7"),
    ):
        refused = sent(owner, path, **{**fields, name: wrong})
        assert 400 <= refused.status_code < 500, name
        assert "nothing was changed" in part(refused.text, "problem")
        assert 'value="3.5"' in refused.text, "what was written stays"
    assert shared.owner.read(api)["versions"] == []
    answer = sent(owner, path, **fields)
    assert answer.status_code == 303, plain(answer.text)
    (terms,) = shared.owner.read(api)["versions"]
    assert (terms["effective_from"], terms["participation_ppm"]) == (earliest, 200_000)
    assert terms["infra"]["ingress"] == {"asset": "CREDIT", "units": "3500000"}
    assert "3.500000 CREDIT" in amounts(page(owner, f"/regions/{region}"))
    again = page(owner, path)
    assert 'value="3.500000"' in again
    assert "Version 2" in plain(again)
    rival = signed_in(app, shared.rival.key)
    page(rival, path, 404)
    assert sent(rival, path, "/earn", **{**fields, "version": "2"}).status_code in (403, 404)
    assert len(shared.owner.read(api)["versions"]) == 1
