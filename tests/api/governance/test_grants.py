"""Milestone grants over HTTP: governors who sign, a grantee, and anybody who reads."""

from __future__ import annotations

from typing import Any

from domain.money import Asset
from ledger.books.entry import Entry
from tests.scenes.governors import ANNA, BORIS, CLEO, Governor, enrol_all, enrol_once
from tests.scenes.server import Caller, Scene
from tests.scenes.told import do, ledger_on, withdrawn

MILESTONES = [
    {"milestone_id": name, "share_ppm": 200_000 if name == "cluster-orchestration" else 100_000}
    for name in (
        "api-integration",
        "job-submission",
        "client-container",
        "cluster-orchestration",
        "node-discovery",
        "storage-volumes",
        "usage-metering",
        "reputation",
    )
]
BEAM = 56_500 * 10**8


def tokens(whole: int) -> dict[str, str]:
    return {"asset": "TOKEN", "units": str(whole * 10**8)}


def seen(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def treasury(database: str, units: int) -> None:
    """As if so much had matured to the treasury."""

    def matured(_: object) -> tuple[Entry, ...]:
        lines = (("chain:distributor", units), ("party:treasury:matured", -units))
        return (Entry(Asset.TOKEN, lines),)

    with ledger_on(database, entries_for=matured) as ledger:
        ledger.handle(do(withdrawn("treasury")), key=None, now_us=1)


def accepted(carrier: Caller, path: str, who: Governor, what: str, read: Any = None) -> Any:
    """What comes of a governor's vote on what was `read`, or on what there is now."""
    told = carrier.read(path) if read is None else read
    kind = {"opening": "grant", "clawback": "clawback"}.get(what, "milestone")
    ballots = [one for one in told["ballots"] if one["kind"] == kind]
    ballot = next(one for one in ballots if kind != "milestone" or one["subject"].endswith(what))
    body: dict[str, Any] = {"what": what, "vote": who.voting(ballot)}
    if kind == "milestone":
        body |= {"what": "milestone", "milestone_id": what}
    return carrier.post(f"{path}/accept", body)


def test_a_grant_is_opened_unlocked_and_taken_back_by_two_people(scene: Scene) -> None:
    """R-11: 56,500 by eight milestones of 90 %; 5,650 is told and never unlocked."""
    treasury(scene.service.conninfo, BEAM)
    enrol_all(scene.operator)
    op = scene.operator
    asked = {
        "account_id": scene.owner.account_id,
        "total": tokens(56_500),
        "milestones": MILESTONES,
        "stated_micro_usd": 100_000_000_000,
    }
    grant = op.made("/v1/grants", asked)
    assert grant["implied_micro_usd"] == 1_769_911, "100,000 / 56,500 = 1.769911 USD"
    assert grant["stated_micro_usd"] == 100_000_000_000
    assert grant["ballots"][0]["content"]["stated_micro_usd"] == "100000000000", "it is voted on"
    path = f"/v1/grants/{grant['grant_id']}"
    assert (grant["state"], grant["locked"], grant["unassigned"]) == (
        "proposed",
        tokens(0),
        tokens(5_650),
    )
    one = accepted(op, path, ANNA, "opening").json()
    assert (one["state"], one["ballots"][0]["yes"]) == ("proposed", [ANNA.governor_id])
    assert seen(accepted(op, path, ANNA, "opening")) == (409, "voted_already")
    opened = accepted(op, path, BORIS, "opening").json()
    assert (opened["locked"], opened["unassigned"]) == (tokens(50_850), tokens(5_650))
    done = {"milestone_id": "cluster-orchestration", "evidence": "https://example.org/17"}
    work = op.made(f"{path}/milestones", done)
    assert accepted(op, path, BORIS, "cluster-orchestration").json()["unlocked"] == tokens(0)
    told = accepted(op, path, CLEO, "cluster-orchestration").json()
    assert (told["unlocked"], told["locked"]) == (tokens(11_300), tokens(39_550))
    late = accepted(op, path, ANNA, "cluster-orchestration", work)
    assert seen(late) == (409, "milestone_state"), "twice"
    op.made(f"{path}/clawback", {"scope": "unearned", "reason": "It was stopped"})
    accepted(op, path, ANNA, "clawback")
    ended = accepted(op, path, CLEO, "clawback").json()
    assert (ended["state"], ended["clawed_back"]) == ("ended", tokens(45_200))
    for reader in (scene.anybody, scene.auditor):
        read = reader.read(path)
        assert (read["unlocked"], read["unassigned"]) == (tokens(11_300), tokens(0))
    (row,) = scene.anybody.read("/v1/grants")["data"]
    assert row == {name: value for name, value in ended.items() if name != "position"}
    assert scene.service.ledger.books.books_balanced()


def test_one_person_opens_no_grant_to_a_friend(scene: Scene) -> None:
    """Attack C1: the operator makes a member with a key, and accepts in the other's name."""
    treasury(scene.service.conninfo, BEAM)
    enrol_all(scene.operator)
    op, friend = scene.operator, scene.account()
    whole = [{"milestone_id": "all", "share_ppm": 1_000_000}]
    asked = {"account_id": friend.account_id, "total": tokens(56_500), "milestones": whole}
    path = f"/v1/grants/{op.made('/v1/grants', asked)['grant_id']}"
    account = "/v1/accounts/acct_operator"
    carrier = scene.member(op, "member", ["operator"])
    own = Governor("own")
    assert seen(accepted(carrier, path, own, "opening")) == (409, "governor_unknown")
    assert accepted(op, path, ANNA, "opening").json()["state"] == "proposed"
    assert seen(accepted(carrier, path, ANNA, "opening")) == (409, "voted_already")
    assert op.read(path)["locked"] == tokens(0)
    assert seen(op.post(f"{account}/api-keys", {"scopes": ["governance"]})) in {
        (422, "invalid"),
        (422, "scope_unknown"),
    }


def test_what_boris_accepts_is_what_he_has_read(scene: Scene) -> None:
    """Attack M3: he reads a clawback of `unassigned`, and `unearned` is put in its place."""
    treasury(scene.service.conninfo, BEAM)
    enrol_all(scene.operator)
    op = scene.operator
    asked = {
        "account_id": scene.owner.account_id,
        "total": tokens(56_500),
        "milestones": MILESTONES,
    }
    path = f"/v1/grants/{op.made('/v1/grants', asked)['grant_id']}"
    for who in (ANNA, BORIS):
        accepted(op, path, who, "opening")
    read = op.made(f"{path}/clawback", {"scope": "unassigned", "reason": "no ninth milestone"})
    op.made(f"{path}/clawback", {"scope": "unearned", "reason": "no ninth milestone"})
    accepted(op, path, ANNA, "clawback")
    assert seen(accepted(op, path, BORIS, "clawback", read)) == (409, "vote_mismatch")
    assert op.read(path)["clawed_back"] == tokens(0)


def test_only_the_operator_carries_what_moves_a_grant(shared: Scene) -> None:
    enrol_once(shared.operator)
    asked = {"account_id": shared.owner.account_id, "total": tokens(1), "milestones": MILESTONES}
    for caller in (shared.renter, shared.auditor):
        assert seen(caller.post("/v1/grants", asked)) == (403, "scope_missing")
    over = [{"milestone_id": name, "share_ppm": 600_000} for name in ("a", "b")]
    no = shared.operator.post("/v1/grants", {**asked, "milestones": over})
    assert seen(no) == (422, "over_assigned")
    assert seen(shared.anybody.get("/v1/grants/grant_0")) == (404, "grant_unknown")
    grant = shared.operator.made("/v1/grants", asked)
    short = accepted(shared.operator, f"/v1/grants/{grant['grant_id']}", ANNA, "opening")
    assert seen(short) == (409, "treasury_short")
