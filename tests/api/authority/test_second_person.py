"""Maker and checker: above a limit one person is refused, and two governors' signatures pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from api.door.moments import moment
from domain.authority.acts import SIGNED_FOR_US_MAX, ActLimits, ActTaken
from domain.duration import DAY_US
from domain.epochs.policy import PolicyGovernance, PublishPolicy
from domain.epochs.reward_terms import REWARD_TERMS
from ledger.bundle.shape import MarketNotes
from ledger.bundle.verify import _Verification
from ledger.log import codec
from tests.api.corrections.test_disputes import charge_of, contested
from tests.api.income.test_cash_outs import swept, wait_for_destination
from tests.api.prices.test_tariffs import NEXT
from tests.domain.scenes.epochs import POLICY
from tests.scenes.governors import ANNA, BORIS, CLEO, DIDO, Governor, enrol_all, signatures
from tests.scenes.server import NOW_US, Scene
from tests.scenes.work import hours_of_work
from tests.scenes.work import run_income as run

SMALL = 500
Asked = tuple[str, dict[str, Any]]


def credits_(units: int) -> dict[str, str]:
    return {"asset": "CREDIT", "units": str(units)}


def limited(scene: Scene, units: int = SMALL) -> None:
    """The first policy lets one person move so much of each in a day."""
    policy = {each.name: getattr(POLICY, each.name) for each in fields(POLICY)}
    limits = ActLimits(**{one.name: units for one in fields(ActLimits)})
    rules = PolicyGovernance(approvals=2, notice_epochs=4, alone=limits)
    first = PublishPolicy(**{**policy, "governance": rules, "rewards": REWARD_TERMS})
    scene.service.ledger.handle(first, key=None, now_us=NOW_US)


# What each act asks for, once all that it needs is there.


def deposit(scene: Scene, units: int = SMALL + 1, reference: str = "wire 7") -> Asked:
    body = {"source": "cash", "amount": credits_(units), "reference": reference}
    return f"/v1/accounts/{scene.stranger.account_id}/deposits", body


def transfer(scene: Scene) -> Asked:
    path = f"/v1/accounts/{scene.stranger.account_id}/payments"
    body = {"method": "bank", "amount": credits_(25_000_000)}
    started = scene.operator.made(path, body)
    return f"/v1/payments/{started['payment_id']}/confirm", {"reference": "statement 9"}


def goodwill(scene: Scene) -> Asked:
    (lease,) = hours_of_work(scene)
    line = charge_of(scene, lease)["position"]
    return "/v1/adjustments", {"corrects_position": line, "amount": credits_(1_000)}


def ruling(scene: Scene) -> Asked:
    (lease,) = hours_of_work(scene)
    dispute = contested(scene, lease)
    body = {"outcome": "rejected", "reason": "It ran."}
    return f"/v1/disputes/{dispute['dispute_id']}/rule", body


def cash_out(scene: Scene) -> Asked:
    path = swept(scene)
    scene.owner.made(f"{path}/payment-mode", {"mode": "credits", "destination": "acct_bank"})
    wait_for_destination(scene)
    asked = scene.owner.made(f"{path}/cash-outs")
    run(scene, "cash_out", "payout_match")
    return f"{path}/cash-outs/{asked['cash_out_id']}/paid", {}


def release(scene: Scene) -> Asked:
    path = f"/v1/accounts/{scene.owner.account_id}/cash-outs"
    scene.operator.made(f"{path}/hold", {"reason": "a look"})
    return f"{path}/release", {}


def tariff(_scene: Scene) -> Asked:
    return "/v1/tariffs", NEXT


def window(scene: Scene) -> Asked:
    from_now = moment(scene.clock.now_us())
    body = {"version": 1, "window_seconds": 0, "effective_from": from_now}
    return "/v1/cash-outs/terms/window", body


def breaker(scene: Scene) -> Asked:
    path = "/v1/breakers/cash_out/limit"
    scene.operator.made(path, {"limit": "10", "window_seconds": 86_400, "reason": "small"})
    return path, {"limit": "11", "window_seconds": 86_400, "reason": "larger"}


def sources(scene: Scene) -> Asked:
    told = scene.member(scene.operator, "member", ["oracle:write"])
    return "/v1/oracle/sources", {"sources": [{"source": "venue-x", "member_id": told.member_id}]}


LIBRARY = {"driver": "575.57.08", "sha256": "a" * 64}


def library(_scene: Scene) -> Asked:
    return "/v1/trust/libraries", LIBRARY


def forgotten(scene: Scene) -> Asked:
    scene.operator.made("/v1/trust/libraries", LIBRARY)
    return "/v1/trust/libraries/forget", LIBRARY


ACTS: dict[str, tuple[str, Callable[[Scene], Asked]]] = {
    "deposit": ("deposit", deposit),
    "bank transfer": ("deposit", transfer),
    "goodwill": ("goodwill", goodwill),
    "ruling": ("ruling", ruling),
    "cash-out paid": ("cash_out", cash_out),
    "cash-out released": ("cash_out_release", release),
    "tariff": ("tariff", tariff),
    "dispute window": ("dispute_window", window),
    "breaker": ("breaker", breaker),
    "price sources": ("price_sources", sources),
    "library": ("driver_library", library),
    "library forgotten": ("driver_library", forgotten),
}
every_act = pytest.mark.parametrize("name", ACTS)


def signed(
    scene: Scene, who: tuple[Governor, ...], asked: Asked, key: str, **changes: Any
) -> dict[str, str]:
    told = scene.anybody.read("/v1/governors")
    until = {"not_after_us": scene.clock.now_us() + DAY_US, **changes}
    return signatures(who, told, *asked, key=key, **until)


def sent(scene: Scene, asked: Asked, *who: Governor, key: str = "act-1", **changes: Any) -> Any:
    """What comes of the request that these signed."""
    headers = signed(scene, who, asked, key, **changes) if who else {}
    return scene.operator.post(*asked, key=key, **headers)


def taken(scene: Scene) -> list[ActTaken]:
    facts = [one.fact for one in scene.service.ledger.market.read_facts(0, 10_000)]
    return [fact for fact in facts if isinstance(fact, ActTaken)]


def verified(scene: Scene, *more: ActTaken) -> bool:
    """Whether the offline check finds every signature good."""
    facts = [one.fact for one in scene.service.ledger.market.read_facts(0, 10_000)]
    notes = MarketNotes()
    for fact in (*facts, *more):
        notes.take(1, *codec.encode(fact, "c", "00"))
    work = _Verification(Path(), None, notes=notes)
    work._check_votes()
    return not work.problems


@every_act
def test_one_person_is_refused_and_two_who_signed_pass(scene: Scene, name: str) -> None:
    """Attack H7: one person alone moves the most money."""
    act, prepare = ACTS[name]
    limited(scene)
    asked = prepare(scene)
    enrol_all(scene.operator)
    before = len(taken(scene))
    for who in ((), (ANNA,), (ANNA, ANNA)):
        refused = sent(scene, asked, *who)
        told = refused.json()
        assert (refused.status_code, told["code"]) == (403, "checker_needed"), told
        assert (told["facts"]["act"], told["facts"]["count"]) == (act, str(min(len(who), 1)))
        assert "--to-sign" in told["detail"]
    assert len(taken(scene)) == before
    answer = sent(scene, asked, ANNA, BORIS)
    assert answer.status_code in (200, 201), answer.text
    fact = taken(scene)[-1]
    assert (fact.act, fact.mode, fact.governors, fact.request) == (act, "shared", 3, "act-1")
    assert {one.governor_id for one in fact.signed} == {ANNA.governor_id, BORIS.governor_id}
    assert verified(scene)
    first, second = fact.signed
    flipped = ("0" if first.signature[0] != "0" else "1") + first.signature[1:]
    bad = replace(fact, signed=(replace(first, signature=flipped), second))
    assert not verified(scene, bad)
    assert not verified(scene, replace(fact, content=f"{fact.content} "))
    assert not verified(scene, replace(fact, signed=(first,)))


@every_act
def test_in_a_network_of_one_person_one_passes_and_the_fact_says_so(
    scene: Scene, name: str
) -> None:
    act, prepare = ACTS[name]
    limited(scene)
    asked = prepare(scene)
    answer = sent(scene, asked)
    assert answer.status_code in (200, 201), answer.text
    fact = taken(scene)[-1]
    assert (fact.act, fact.mode, fact.signed) == (act, "single", ())


def test_what_only_lowers_a_risk_takes_one_person(scene: Scene) -> None:
    path, _ = breaker(scene)
    _, body = sources(scene)
    another = sources(scene)[1]["sources"][0]
    two = [*body["sources"], {**another, "source": "venue-y"}]
    scene.operator.made("/v1/oracle/sources", {"sources": two})
    enrol_all(scene.operator)
    before = len(taken(scene))
    lower = {"limit": "9", "window_seconds": 86_400, "reason": "smaller"}
    scene.operator.made(path, lower)
    scene.operator.made("/v1/oracle/sources", body)
    hold = f"/v1/accounts/{scene.owner.account_id}/cash-outs/hold"
    scene.operator.made(hold, {"reason": "a look"})
    assert len(taken(scene)) == before
    for risk in ({"limit": None}, {"window_seconds": 3_600}):
        named = {k: v for k, v in {**lower, **risk}.items() if v is not None}
        assert sent(scene, (path, named)).json()["code"] == "checker_needed"


def test_many_small_deposits_by_many_members_are_one_large_one(scene: Scene) -> None:
    """The limit is of the network and 24 hours; it is not gone round by splitting."""
    limited(scene, 1_000)
    scene.clock.advance(DAY_US)  # type: ignore[attr-defined]
    enrol_all(scene.operator)
    other = scene.member(scene.operator, "member", ["operator"])
    scene.operator.made(*deposit(scene, 600, "a"))
    refused = other.post(*deposit(scene, 401, "b"))
    assert refused.json()["code"] == "checker_needed"
    told = refused.json()["facts"]
    assert (told["alone"], told["units"], told["limit"]) == ("600", "401", "1000")
    other.made(*deposit(scene, 400, "c"))
    assert sent(scene, deposit(scene, 1, "d")).json()["code"] == "checker_needed"
    assert sent(scene, deposit(scene, 9_000, "e"), ANNA, CLEO, key="e").status_code == 201
    scene.clock.advance(DAY_US)  # type: ignore[attr-defined]
    scene.operator.made(*deposit(scene, 1_000, "f"))


def test_signatures_serve_one_request_once(scene: Scene) -> None:
    """Neither a replay nor another amount, account, key or network passes with them."""
    limited(scene)
    enrol_all(scene.operator)
    asked = deposit(scene)
    header = signed(scene, (ANNA, BORIS), asked, "one")
    op = scene.operator
    path, body = asked
    larger = {**body, "amount": credits_(10**9)}
    elsewhere = f"/v1/accounts/{scene.rival.account_id}/deposits"
    for there, what, key in ((path, larger, "one"), (elsewhere, body, "one"), (path, body, "two")):
        assert op.post(there, what, key=key, **header).json()["code"] == "signature_invalid"
    assert op.post(path, body, key="one", **header).status_code == 201
    again = op.post(path, body, key="one", **header)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert len([one for one in taken(scene) if one.signed]) == 1
    second = scene.member(op, "member", ["operator"])
    reused = second.post(path, body, key="one", **header)
    assert reused.json()["code"] == "idempotency_key_reused"


def test_signatures_end_with_their_time_and_with_the_set_of_governors(scene: Scene) -> None:
    limited(scene)
    told = enrol_all(scene.operator, (ANNA, BORIS, CLEO))
    asked, now_us = deposit(scene), scene.clock.now_us()
    void = ("act_signature_void", True)
    for until_us in (now_us - 1, now_us + SIGNED_FOR_US_MAX + 60_000_000):
        late = sent(scene, asked, ANNA, BORIS, not_after_us=until_us).json()
        assert (late["code"], "a time that is over" in late["detail"]) == (
            "act_signature_void",
            True,
        )
    stranger = sent(scene, asked, ANNA, DIDO).json()
    assert (stranger["code"], "not a governor" in stranger["detail"]) == (
        "act_signature_void",
        True,
    )
    before, until_us = {**told, "version": 2}, now_us + DAY_US
    old = signatures((ANNA, BORIS), before, *asked, key="k", not_after_us=until_us)
    moved = scene.operator.post(*asked, key="k", **old).json()
    assert (moved["code"], "have changed" in moved["detail"]) == void
    bad = {"Governor-Signatures": "yes, sure"}
    assert scene.operator.post(*asked, **bad).json()["code"] == "malformed_header"


def test_money_leaves_by_the_word_of_who_may_approve_payouts(scene: Scene) -> None:
    clerk = scene.member(scene.operator, "member", ["operator"])
    path, body = release(scene)
    refused = clerk.post(path, body)
    assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")
    assert clerk.post(f"{path.removesuffix('release')}cashout_x/paid").status_code == 403
    scene.operator.made(path, body)


def test_a_window_counts_only_for_what_is_charged_after_it(scene: Scene) -> None:
    """Attack H7: a window of 0 "from 2020" matured what was held for disputes."""
    hours_of_work(scene)
    holdback = f"party:{scene.owner.account_id}:holdback"
    held = scene.service.ledger.books.balance(holdback)
    assert held
    path, body = window(scene)
    past = scene.operator.post(path, {**body, "effective_from": "2020-01-01T00:00:00Z"})
    assert past.json()["code"] == "maturity_window"
    scene.operator.made(path, body)
    run(scene, "maturity")
    assert scene.service.ledger.books.balance(holdback) == held
