"""The page on which a stranger gets an account: the key is shown once, and kept nowhere."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from api.main import create_app
from tests.api.console.test_renter import part, sent
from tests.api.console.test_sessions import Browser, rows
from tests.scenes.server import Scene
from tests.scenes.serving import Market


@pytest.fixture
def open_market(founded_market: Market, tmp_path: Path) -> Generator[Scene, None, None]:
    with founded_market.copied(tmp_path, sign_up="open", sign_ups_per_day=3) as found:
        yield found


@pytest.fixture(scope="module")
def app(shared: Scene) -> Any:
    return create_app(shared.service, with_console=True)


def key_in(told: Any) -> str:
    """The key that a page shows."""
    assert told.status_code == 200, told.text
    assert told.headers["cache-control"] == "no-store"
    found = re.search(r">(ts_(?:test|live)_\w+)<", part(told.text, "key"))
    assert found is not None
    key = found[1]
    assert key not in str(told.headers), "neither in a cookie nor in an address"
    return key


def test_a_code_is_redeemed_and_the_key_signs_in(shared: Scene, app: Any) -> None:
    stranger = Browser(app)
    page = stranger.get("/sign-up")
    assert page.status_code == 200
    assert "This market opens accounts by invitation" in page.text
    assert 'data-testid="open"' not in page.text
    assert 'href="/sign-up"' in stranger.get("/").text
    assert 'href="/sign-up"' in stranger.get("/sign-in").text
    made = shared.operator.made("/v1/account-invitations", {"kind": "party"})
    fields = {**stranger.marks("/sign-up"), "do": "redeem", "code": f" {made['code']} "}
    key = key_in(stranger.send("/sign-up", fields))
    assert key_in(stranger.send("/sign-up", fields)) == key, "the same form is one request"
    assert key not in str(rows(shared))
    assert stranger.sign_in(key).status_code == 303
    assert made["account_id"] in stranger.get("/sessions").text
    again = sent(Browser(app), "/sign-up", do="redeem", code=made["code"])
    assert again.status_code == 404, "it is used"
    assert "ts_test_" not in part(again.text, "problem")
    for wrong in ("", "ts_invite_" + "0" * 43, "<script>alert(1)</script>"):
        refused = sent(Browser(app), "/sign-up", do="redeem", code=wrong)
        assert 400 <= refused.status_code < 500, wrong
        assert "<script>alert" not in refused.text
    cut = sent(Browser(app), "/sign-up", do="redeem", code=made["code"][:-1])
    assert "copy all of it" in part(cut.text, "problem"), "and no pattern"
    closed = sent(Browser(app), "/sign-up", do="open", nonce="0" * 43)
    assert closed.status_code == 403
    assert "sign_up_closed" in closed.text
    assert sent(Browser(app), "/sign-up", do="other").status_code == 422


def test_no_other_site_sends_the_form(shared: Scene, app: Any) -> None:
    made = shared.operator.made("/v1/account-invitations", {"kind": "party"})
    stranger = Browser(app)
    fields = {**stranger.marks("/sign-up"), "do": "redeem", "code": made["code"]}
    foreign = stranger.send("/sign-up", fields, Sec_Fetch_Site="cross-site")
    assert foreign.status_code == 403
    assert stranger.send("/sign-up", {**fields, "csrf": "0" * 64}).status_code == 403
    key_in(stranger.send("/sign-up", fields))


def test_an_open_market_opens_one_account_a_form_and_some_a_day(open_market: Scene) -> None:
    app = create_app(open_market.service, with_console=True)
    stranger = Browser(app)

    def fields() -> dict[str, str]:
        text = stranger.get("/sign-up").text
        return {**dict(re.findall(r'name="(csrf|once|nonce)" value="([^"]*)"', text)), "do": "open"}

    first = fields()
    key = key_in(stranger.send("/sign-up", first))
    assert key_in(stranger.send("/sign-up", first)) == key, "sent twice, one account"
    others = {key_in(stranger.send("/sign-up", fields())) for _ in range(2)}
    assert len(others | {key}) == 3
    full = stranger.send("/sign-up", fields())
    assert full.status_code == 429
    assert "sign_up_full" in part(full.text, "problem")
    assert stranger.sign_in(key).status_code == 303
    assert "Your key does not allow this" not in stranger.get("/rent").text
    assert stranger.get("/money").status_code == 200, "it can pay in"


def test_roles_invitations_and_rotation_of_keys(shared: Scene, app: Any) -> None:
    owner, account = Browser(app), shared.account()
    assert owner.sign_in(account.key).status_code == 303
    path = f"/v1/accounts/{account.account_id}"
    told = sent(owner, "/keys", do="invite", role="viewer", **{"scope:billing:read": "yes"})
    assert told.status_code == 200
    (code,) = re.findall(r">(ts_invite_\w+)<", part(told.text, "code"))
    assert code not in owner.get("/keys").text, "shown once"
    waiting = part(owner.get("/keys").text, "invitations")
    (invitation,) = account.read(f"{path}/invitations")["data"]
    assert invitation["invitation_id"] in waiting
    none = sent(owner, "/keys", do="invite", role="viewer")
    assert none.status_code == 422
    assert "tick at least one scope" in part(none.text, "problem")
    member = Browser(app)
    key = key_in(sent(member, "/sign-up", do="redeem", code=code))
    joined = account.read(f"{path}/members")["data"][-1]["member_id"]
    assert "invitations" not in re.findall(r'data-testid="(\w+)"', owner.get("/keys").text)
    assert sent(owner, "/keys", do="role", member_id=joined, role="billing").status_code == 303
    assert account.read(f"{path}/members")["data"][-1]["role"] == "billing"
    last = account.read(f"{path}/members")["data"][0]["member_id"]
    refused = sent(owner, "/keys", do="role", member_id=last, role="viewer")
    assert refused.status_code == 409, "the last owner"
    assert sent(owner, "/keys", do="role", member_id="../x", role="viewer").status_code == 422
    assert member.sign_in(key).status_code == 303
    assert member.get("/keys").status_code == 403, "a member of billing sees no keys"
    for act in ("role", "remove", "invite", "rotate"):
        tried = sent(member, "/keys", "/bills", do=act, member_id=last, role="owner", sure="yes")
        assert tried.status_code in (403, 422), act
    unsure = sent(owner, "/keys", do="remove", member_id=joined)
    assert unsure.status_code == 422
    assert sent(owner, "/keys", do="remove", member_id=joined, sure="yes").status_code == 303
    assert member.get("/bills").headers["location"].startswith("/sign-in"), "at once"
    told = sent(owner, "/keys", do="invite", role="viewer", **{"scope:billing:read": "yes"})
    (one,) = account.read(f"{path}/invitations")["data"]
    ended = sent(owner, "/keys", do="withdraw", invitation_id=one["invitation_id"])
    assert ended.status_code == 303
    assert account.read(f"{path}/invitations")["data"] == []
    old = account.read(f"{path}/api-keys")["data"][0]["key_id"]
    fields = {**owner.marks("/keys"), "do": "rotate", "key_id": old}
    new = key_in(owner.send("/keys", fields))
    assert key_in(owner.send("/keys", fields)) == new, "sent twice, one successor"
    keys = account.read(f"{path}/api-keys")["data"]
    assert [one.get("succeeds") for one in keys if "revoked_at" not in one].count(old) == 1
    other = shared.stranger.account_id
    assert shared.stranger.read(f"/v1/accounts/{other}/api-keys")["data"]
    foreign = sent(owner, "/keys", do="rotate", key_id="0" * 10)
    assert foreign.status_code == 404
