"""How a stranger gets an account: a code of the operator's, or, where a market is open, alone. And
that strangers who open many take nothing from anybody.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from api.door.unverified import ALLOWED, PAYMENTS_MAX
from api.main import operations
from api.parties.sign_up import SIGN_UPS_AT_ONCE
from api.parties.unused_timer import UNUSED_US, run_unused
from api.process.clock import SimulatedClock
from domain.parties.account import SCOPES_OF
from tests.api.parties.test_strangers import rows
from tests.scenes.server import Caller, Scene
from tests.scenes.serving import Market

DAY = 3
"""So many strangers a day in the market of these tests."""


@pytest.fixture
def open_market(founded_market: Market, tmp_path: Path) -> Generator[Scene, None, None]:
    with founded_market.copied(tmp_path, sign_up="open", sign_ups_per_day=DAY) as found:
        yield found


def clock_of(scene: Scene) -> SimulatedClock:
    assert isinstance(scene.clock, SimulatedClock)
    return scene.clock


def nonce(number: int) -> dict[str, str]:
    return {"nonce": f"{number:022}"}


def signed_up(scene: Scene, number: int = 1) -> Caller:
    told = scene.anybody.made("/v1/sign-up", nonce(number))
    return Caller(scene.http, told["key"], told["account_id"])


# --- by invitation -----------------------------------------------------------------------------


def test_the_operator_hands_over_a_code_and_never_sees_the_key(scene: Scene) -> None:
    told = scene.operator.made("/v1/account-invitations", {"kind": "party"})
    assert told["code"].startswith("ts_invite_")
    assert "key" not in told
    joined = scene.anybody.made("/v1/invitations/redeem", {"code": told["code"]})
    assert (joined["account_id"], joined["member_id"]) == (told["account_id"], told["member_id"])
    owner = Caller(scene.http, joined["key"], joined["account_id"])
    assert owner.read(f"/v1/accounts/{owner.account_id}")["kind"] == "party"
    (member,) = owner.read(f"/v1/accounts/{owner.account_id}/members")["data"]
    assert (member["member_id"], member["role"]) == (told["member_id"], "owner")
    assert "unverified" not in owner.read(f"/v1/accounts/{owner.account_id}")
    owner.made("/v1/providers", {"kind": "physical", "payment_mode": "credits"})
    again = scene.anybody.post("/v1/invitations/redeem", {"code": told["code"]})
    assert (again.status_code, again.json()["code"]) == (404, "invitation_unknown")


def test_only_the_operator_invites_and_the_code_ends(scene: Scene) -> None:
    body = {"kind": "party"}
    for caller in (scene.renter, scene.provider.owner):
        assert caller.post("/v1/account-invitations", body).json()["code"] == "scope_missing"
    assert scene.anybody.post("/v1/account-invitations", body).status_code == 401
    told = scene.operator.made("/v1/account-invitations", body)
    clock_of(scene).advance(25 * 3_600_000_000)
    late = scene.anybody.post("/v1/invitations/redeem", {"code": told["code"]})
    assert late.json()["code"] == "invitation_ended"


# --- by signing up -----------------------------------------------------------------------------


def test_a_market_is_by_invitation_unless_its_operator_says_otherwise(scene: Scene) -> None:
    before = rows(scene)
    answer = scene.anybody.post("/v1/sign-up", nonce(1))
    assert (answer.status_code, answer.json()["code"]) == (403, "sign_up_closed")
    assert rows(scene) == before, "nothing is kept of it"


def test_who_signs_up_can_read_and_pay_in_and_has_no_credit(open_market: Scene) -> None:
    scene = open_market
    stranger = signed_up(scene)
    path = f"/v1/accounts/{stranger.account_id}"
    assert stranger.read(path)["unverified"] is True
    assert stranger.read(f"{path}/balances")["data"] == []
    assert len(stranger.read("/v1/offers")["data"]) > 0
    paying = {"method": "bank", "amount": {"asset": "CREDIT", "units": "25000000"}}
    begun = [
        stranger.post(f"{path}/payments", paying, key=f"pay-{number}").json()["payment_id"]
        for number in range(PAYMENTS_MAX)
    ]
    before = rows(scene)
    assert stranger.post(f"{path}/payments", paying).json()["code"] == "account_unverified"
    assert rows(scene) == before, "nothing is kept of it"
    for number, payment_id in enumerate(begun):
        again = stranger.post(f"{path}/payments", paying, key=f"pay-{number}").json()
        assert again["payment_id"] == payment_id, "a lost answer is told again"


def test_what_an_unverified_account_asks_of_another_leaves_no_row(open_market: Scene) -> None:
    stranger = signed_up(open_market)
    other = f"/v1/accounts/{open_market.renter.account_id}"
    paying = {"method": "bank", "amount": {"asset": "CREDIT", "units": "25000000"}}
    before = rows(open_market)
    for path, body in ((f"{other}/payments", paying), (f"{other}/close", {})):
        answer = stranger.post(path, body)
        assert (answer.status_code, answer.json()["code"]) == (404, "account_unknown")
    assert stranger.delete(f"{other}/api-keys/aaaaaaaa").status_code == 404
    assert rows(open_market) == before


def test_an_unverified_account_takes_nothing_that_others_need(open_market: Scene) -> None:
    """Every operation that changes something, but for those that are named, and before its form is
    looked at: no lease, no provider, no name, no webhook, no member and no wallet.
    """
    stranger = signed_up(open_market)
    before = rows(open_market)
    tried = 0
    for operation in operations():
        audiences = operation.access.audiences
        if operation.method == "GET" or "public" in audiences or "key" not in audiences:
            continue
        if operation.name in ALLOWED or not operation.access.scopes & PARTY:
            continue
        path = (
            operation.path.replace("{account_id}", stranger.account_id)
            .replace("{", "")
            .replace("}", "")
        )
        answer = stranger.delete(path) if operation.method == "DELETE" else stranger.post(path, {})
        assert (answer.status_code, answer.json()["code"]) == (403, "account_unverified"), (
            operation.name
        )
        tried += 1
    assert tried > 100
    assert rows(open_market) == before
    assert {one.name for one in operations()} >= ALLOWED


PARTY = SCOPES_OF["party"]


def test_money_or_the_operators_word_opens_the_rest(open_market: Scene) -> None:
    scene = open_market
    paid, known = signed_up(scene, 1), signed_up(scene, 2)
    job = {"job": scene.job()}
    assert paid.post("/v1/leases", job).json()["code"] == "account_unverified"
    scene.deposit(paid, 25_000_000)
    assert paid.post("/v1/leases", job).status_code == 201
    body = {"kind": "physical", "payment_mode": "credits"}
    assert known.post("/v1/providers", body).json()["code"] == "account_unverified"
    assert known.post(f"/v1/accounts/{known.account_id}/verify").json()["code"] == "scope_missing"
    scene.operator.made(f"/v1/accounts/{known.account_id}/verify")
    assert known.post("/v1/providers", body).status_code == 201
    assert "unverified" not in known.read(f"/v1/accounts/{known.account_id}")


def test_so_many_a_day_and_so_many_of_an_address(open_market: Scene) -> None:
    scene = open_market
    for number in range(DAY):
        signed_up(scene, number)
    before = rows(scene)
    full = scene.anybody.post("/v1/sign-up", nonce(9))
    assert (full.status_code, full.json()["code"]) == (429, "sign_up_full")
    clock_of(scene).advance(25 * 3_600_000_000)
    for number in range(10, 10 + SIGN_UPS_AT_ONCE - DAY - 1):
        signed_up(scene, number)
    limited = scene.anybody.post("/v1/sign-up", nonce(20))
    assert (limited.status_code, limited.json()["code"]) == (429, "rate_limited")
    assert int(limited.headers["Retry-After"]) > 3_600
    assert rows(scene)["secret_salt"] <= before["secret_salt"] + SIGN_UPS_AT_ONCE


def test_a_lost_answer_is_told_to_who_drew_the_nonce_and_to_nobody_else(open_market: Scene) -> None:
    first = open_market.anybody.post("/v1/sign-up", nonce(1), key="sign-up-1").json()
    again = open_market.anybody.post("/v1/sign-up", nonce(1), key="sign-up-1").json()
    assert (again["account_id"], again["key"]) == (first["account_id"], first["key"])
    neighbour = open_market.anybody.post("/v1/sign-up", nonce(2), key="sign-up-1").json()
    assert neighbour["account_id"] != first["account_id"]
    assert neighbour["key"] != first["key"]
    for weak in ("", "short", "0" * 65, "with space and more of it"):
        assert open_market.anybody.post("/v1/sign-up", {"nonce": weak}).status_code == 422


def test_a_lost_answer_is_told_again_when_the_day_and_the_address_are_full(
    open_market: Scene,
) -> None:
    sign_up, anybody = "/v1/sign-up", open_market.anybody
    made = [anybody.post(sign_up, nonce(one), key=f"sign-up-{one}").json() for one in range(DAY)]
    for number in range(10, 10 + SIGN_UPS_AT_ONCE):
        assert anybody.post(sign_up, nonce(number)).status_code == 429
    for number, first in enumerate(made):
        again = anybody.post(sign_up, nonce(number), key=f"sign-up-{number}").json()
        assert (again["account_id"], again["key"]) == (first["account_id"], first["key"])


def test_what_was_never_used_is_closed_after_14_days(open_market: Scene) -> None:
    scene = open_market
    unused, paid, known = (signed_up(scene, number) for number in range(3))
    scene.deposit(paid, 25_000_000)
    scene.operator.made(f"/v1/accounts/{known.account_id}/verify")
    assert _pruned(scene) == 0
    clock_of(scene).advance(UNUSED_US)
    assert _pruned(scene) == 1
    assert _pruned(scene) == 0
    assert unused.get(f"/v1/accounts/{unused.account_id}").status_code == 401
    for kept in (paid, known):
        assert "closed_at" not in kept.read(f"/v1/accounts/{kept.account_id}")
    told: Any = scene.operator.read(f"/v1/accounts/{unused.account_id}")
    assert "closed_at" in told


def _pruned(scene: Scene) -> int:
    with scene.service.connect() as connection:
        return run_unused(scene.service, connection, scene.clock.now_us())
