"""Promotions, payers and budgets over HTTP: who may do what, and what each of them sees."""

from __future__ import annotations

from typing import Any

import pytest

from api.jobs import run_promotions
from tests.api.scene import Caller, Scene

DAY_US = 86_400_000_000


def credits_(units: int) -> dict[str, str]:
    return {"asset": "CREDIT", "units": str(units)}


def seen(response: Any) -> tuple[int, str]:
    return response.status_code, response.json().get("code", "")


def promotion(scene: Scene, program: str, units: int = 50_000_000) -> None:
    scene.deposit(scene.operator, units)
    scene.operator.made("/v1/promotions", {"program": program, "amount": credits_(units)})


def sources(caller: Caller) -> list[tuple[str, int]]:
    told = caller.read(f"/v1/accounts/{caller.account_id}/funding")
    return [(one["source"], int(one["available"]["units"])) for one in told["sources"]]


def test_a_grant_is_spent_before_cash_comes_back_as_a_grant_and_expires_into_breakage(
    scene: Scene,
) -> None:
    """Issue 3 part 2: grants with priority, expiry and a breakage account."""
    promotion(scene, "spring")
    grant = {"account_id": scene.renter.account_id, "amount": credits_(3_000_000), "priority": 5,
             "expires_at": "2026-11-21T00:00:00Z"}  # fmt: skip
    told = scene.operator.made("/v1/promotions/spring/grants", grant)
    assert told["expires_at"] == "2026-11-21T00:00:00.000000Z"
    other = scene.operator.post("/v1/promotions/spring/grants", {**grant, "priority": 6})
    assert seen(other) == (409, "promotion_terms")
    assert sources(scene.renter) == [("grant.spring", 3_000_000), ("cash", 100_000_000)]
    lease = scene.lease(funds=credits_(4_000_000))
    assert sources(scene.renter) == [("cash", 99_000_000)]
    scene.clock.advance(DAY_US)  # type: ignore[attr-defined]
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    assert sources(scene.renter) == [("cash", 100_000_000)], "the grant has expired: not spendable"
    book = {"part": "grant.spring", "balance": credits_(3_000_000)}
    balances = scene.renter.read(f"/v1/accounts/{scene.renter.account_id}/balances")["data"]
    assert book in [{name: row[name] for name in book} for row in balances]
    with scene.service.connect() as connection:
        now_us = scene.clock.now_us()
        assert run_promotions(scene.service, connection, now_us) == 1
        assert run_promotions(scene.service, connection, now_us) == 0
    assert scene.service.ledger.books.balance("network:breakage") == 3_000_000
    assert scene.service.ledger.books.books_balanced()
    (row,) = scene.operator.read("/v1/promotions/spring/grants")["data"]
    assert (row["granted"], row["breakage"]) == (credits_(3_000_000), credits_(3_000_000))
    scene.operator.made("/v1/promotions/spring/close")
    told = scene.auditor.read("/v1/promotions/spring")
    assert (told["granted"], told["left"]) == (credits_(3_000_000), credits_(0))
    assert scene.service.ledger.books.balance("party:acct_operator:cash") == 47_000_000


def test_promotions_are_the_operators(shared: Scene) -> None:
    body = {"program": "mine", "amount": credits_(1)}
    assert seen(shared.renter.post("/v1/promotions", body)) == (403, "scope_missing")
    assert seen(shared.operator.get("/v1/promotions/none")) == (404, "promotion_unknown")
    short = {"program": "short", "amount": credits_(10**15)}
    assert seen(shared.operator.post("/v1/promotions", short)) == (402, "credit_too_low")


def test_a_payer_pays_for_many_and_alone_sees_its_payments(scene: Scene) -> None:
    """C-25: one billing account may fund many user accounts and alone sees payments."""
    payer, mine = scene.renter, f"/v1/accounts/{scene.renter.account_id}"
    users = [scene.account(), scene.account()]
    for user, cap in zip(users, (None, credits_(3_000_000)), strict=True):
        body = {"funded_account_id": user.account_id}
        told = payer.made(
            f"{mine}/funded-accounts", body if cap is None else {**body, "monthly_cap": cap}
        )
        assert told.get("monthly_cap") == cap
    for user, available in zip(users, (100_000_000, 3_000_000), strict=True):
        told = user.read(f"/v1/accounts/{user.account_id}/funding")
        assert told["sources"] == []
        assert told["payer"]["available"] == credits_(available)
        assert user.read(f"/v1/accounts/{user.account_id}/deposits")["data"] == []
        for path in ("deposits", "balances", "funding", "journal", "funded-accounts"):
            assert seen(user.get(f"{mine}/{path}")) == (404, "account_unknown"), path
    rows = payer.read(f"{mine}/funded-accounts")["data"]
    assert [row["funded_account_id"] for row in rows] == [user.account_id for user in users]
    other = {"funded_account_id": users[0].account_id}
    taken = scene.stranger.post(f"/v1/accounts/{scene.stranger.account_id}/funded-accounts", other)
    assert seen(taken) == (409, "payer_exists")
    assert seen(scene.stranger.post(f"{mine}/funded-accounts", other)) == (404, "account_unknown")
    users[0].made(f"{mine}/funded-accounts/{users[0].account_id}/end")
    assert "payer" not in users[0].read(f"/v1/accounts/{users[0].account_id}/funding")


@pytest.fixture
def budgets(scene: Scene) -> str:
    return f"/v1/accounts/{scene.renter.account_id}/budgets"


def test_a_budget_is_set_listed_and_taken_away(scene: Scene, budgets: str) -> None:
    body = {"scope": "project", "target": "p", "monthly": credits_(5_000_000)}
    told = scene.renter.made(budgets, body)
    assert (told["left"], told["month"]) == (credits_(5_000_000), "2026-11")
    (row,) = scene.renter.read(budgets)["data"]
    assert (row["target"], row["used"]) == ("p", credits_(0))
    scene.renter.made(budgets, {"scope": "project", "target": "p"})
    assert scene.renter.read(budgets)["data"] == []
    nobody = {"scope": "key", "target": "00000000", "monthly": credits_(1)}
    assert seen(scene.renter.post(budgets, nobody)) == (404, "api_key_unknown")
    assert seen(scene.stranger.post(budgets, body)) == (404, "account_unknown")
