"""Promotions, payers and budgets over HTTP: who may do what, and what each of them sees."""

from __future__ import annotations

from typing import Any

import pytest

from api.funds.promotion_timer import run_promotions
from api.leasing.restarts import run_restarts
from domain.duration import HOUR_US
from domain.epochs.reward_terms import REWARD_TERMS
from domain.lease.close_codes import FUNDS_ENDED
from domain.lease.lease import CloseLease
from tests.scenes.server import Caller, Scene
from tests.scenes.shell import tallystick_at
from tests.scenes.work import accrue_now, reported, send

DAY_US = 86_400_000_000
EXPIRY = "2027-01-01T00:00:00Z"


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
    """Grants with priority, expiry and a breakage account."""
    promotion(scene, "spring")
    grant = {
        "account_id": scene.renter.account_id,
        "amount": credits_(3_000_000),
        "priority": 5,
        "expires_at": "2026-11-21T00:00:00Z",
    }
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


def test_e_l5_a_promotion_spent_at_ones_own_node_brings_what_its_sponsor_paid_and_no_more(
    scene: Scene,
) -> None:
    """The owner of a node spends a grant of its second account there. It earns the provider's
    share of the grant: the sponsor paid it, no other account loses a credit, it buys no weight.
    """
    second, clock = scene.account(), scene.clock
    promotion(scene, "spring")
    grant = {"account_id": second.account_id, "amount": credits_(3_000_000), "priority": 5}
    scene.operator.made("/v1/promotions/spring/grants", {**grant, "expires_at": EXPIRY})
    books = scene.service.ledger.books

    def held(who: Caller, *parts: str) -> int:
        return sum(books.balance(f"party:{who.account_id}:{part}") for part in parts)

    others = (scene.renter, scene.stranger, scene.rival, scene.operator)
    before = [held(who, "cash", "earned", "holdback") for who in others]
    bank, had = books.balance("world:bank"), held(scene.owner, "cash", "holdback")
    lease = scene.running(renter=second)
    clock.advance(HOUR_US)  # type: ignore[attr-defined]
    send(scene, scene.provider, reported(scene.provider, lease))
    second.made(f"/v1/leases/{lease['lease_id']}/close")
    accrue_now(scene, lease["lease_id"])
    spent = 3_000_000 - held(second, "grant.spring")
    gained = held(scene.owner, "cash", "holdback") - had + held(second, "cash", "earned")
    assert 0 < gained < spent
    assert [held(who, "cash", "earned", "holdback") for who in others] == before
    assert books.balance("world:bank") == bank, "the sponsor's deposit is what was paid with"
    assert not any(one.name.startswith("grant") for one in REWARD_TERMS.source_weights)


def test_s_m8_a_party_that_reads_the_audit_log_sees_its_own_grants_of_promotions_alone(
    scene: Scene,
) -> None:
    promotion(scene, "spring")
    for who in (scene.renter, scene.stranger):
        grant = {"account_id": who.account_id, "amount": credits_(1_000_000)}
        scene.operator.made("/v1/promotions/spring/grants", grant)
    grants = "/v1/promotions/spring/grants"
    assert len(scene.auditor.read(grants)["data"]) == 2
    assert [one["program"] for one in scene.auditor.read("/v1/promotions")["data"]] == ["spring"]
    (own,) = scene.renter.read(grants)["data"]
    assert own["account_id"] == scene.renter.account_id
    assert scene.renter.read("/v1/promotions")["data"] == []
    assert seen(scene.renter.get("/v1/promotions/spring")) == (404, "promotion_unknown")
    assert seen(scene.owner.get(grants)) == (404, "promotion_unknown")


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


def test_a_lease_of_a_capped_key_counts_and_the_refusal_names_the_cap(scene: Scene) -> None:
    """Monthly caps per project and key with alerts."""
    mine = f"/v1/accounts/{scene.renter.account_id}"
    made = scene.renter.made(f"{mine}/api-keys", {"scopes": ["renter", "billing:read"]})
    capped = Caller(scene.http, made["key"], scene.renter.account_id)
    body = {"scope": "key", "target": made["key_id"], "monthly": credits_(5_000_000)}
    scene.renter.made(f"{mine}/budgets", body)
    lease = scene.lease(capped, funds=credits_(4_500_000))
    no = capped.post("/v1/leases", {"job": scene.job(), "funds": credits_(2_000_000)})
    assert seen(no) == (409, "budget_exhausted")
    facts = no.json()["facts"]
    assert (facts["limit"], facts["used"], facts["asked"]) == ("5000000", "4500000", "2000000")
    (row,) = capped.read(f"{mine}/budgets")["data"]
    assert (row["used"], row["alerted_percent"]) == (credits_(4_500_000), 80)
    assert scene.lease(funds=credits_(2_000_000)), "another key of the account has no cap"
    capped.made(f"/v1/leases/{lease['lease_id']}/close")
    (row,) = capped.read(f"{mine}/budgets")["data"]
    assert row["used"] == credits_(0)


def ended(scene: Scene, **job: Any) -> dict[str, Any]:
    """A lease whose funds have ended, of an account with nothing left."""
    poor = scene.account()
    scene.deposit(poor, 3_000_000)
    lease = scene.lease(poor, job=scene.job(**job), funds=credits_(2_000_000))
    node = scene.provider if lease["node_id"] == scene.provider.node_id else scene.other
    node.node.made(f"/v1/nodes/{lease['node_id']}/assignments/{lease['lease_id']}/ready")
    scene.clock.advance(3_600_000_000)  # type: ignore[attr-defined]
    close = CloseLease(
        lease_id=lease["lease_id"],
        closed_at_us=scene.clock.now_us(),
        party="job",
        code=FUNDS_ENDED,
        at_us=scene.clock.now_us(),
    )
    scene.service.ledger.handle(close, key=None, now_us=scene.clock.now_us())
    return {**lease, "renter": poor}


def test_a_job_whose_funds_ended_is_restarted_when_money_is_back(scene: Scene) -> None:
    """C-25: out of credits -> job stops, restartable after top-up."""
    lease = ended(scene)
    poor: Caller = lease["renter"]
    path = f"/v1/jobs/{lease['job_id']}/restart"
    assert seen(poor.post(path)) == (402, "credit_too_low"), "an hour costs 2, and 1 is there"
    scene.deposit(poor, 5_000_000)
    restart = ("job", "restart", lease["job_id"], "--json")
    told = tallystick_at(scene.http, poor.key, *restart).document
    assert (told["restart_of"], told["held"]) == (lease["lease_id"], credits_(2_000_000))
    before = poor.read(f"/v1/leases/{lease['lease_id']}")
    assert (before["close_code"], before["restarted_as"]) == (100, told["lease_id"])
    assert poor.read(f"/v1/leases/{told['lease_id']}")["restart_of"] == lease["lease_id"]
    assert seen(poor.post(path)) == (409, "lease_state"), "once"
    assert seen(scene.stranger.post(path)) == (404, "job_unknown")


def test_a_job_that_asks_for_it_is_restarted_by_the_timer_when_an_hour_is_funded(
    scene: Scene,
) -> None:
    lease = ended(scene, auto_restart=True)
    with scene.service.connect() as connection:
        now_us = scene.clock.now_us()
        assert run_restarts(scene.service, connection, now_us) == 0
        scene.deposit(lease["renter"], 5_000_000)
        assert run_restarts(scene.service, connection, now_us) == 1
        assert run_restarts(scene.service, connection, now_us) == 0
    before = lease["renter"].read(f"/v1/leases/{lease['lease_id']}")
    again = lease["renter"].read(f"/v1/leases/{before['restarted_as']}")
    assert (again["state"], again["restart_of"]) == ("reserved", lease["lease_id"])
