"""Milestone grants over HTTP: two members of the governance, a grantee, and anybody who reads."""

from __future__ import annotations

from typing import Any

from domain.money import Asset
from ledger.books.entry import Entry
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


def second(scene: Scene) -> Caller:
    """Another member of the operator's account, who may govern."""
    account = "/v1/accounts/acct_operator"
    member = scene.operator.made(f"{account}/members", {"role": "member"})["member_id"]
    asked = {"scopes": ["governance"], "member_id": member}
    told = scene.operator.made(f"{account}/api-keys", asked)
    return Caller(scene.http, told["key"], "acct_operator")


def test_a_grant_is_opened_unlocked_and_taken_back_by_two_people(
    scene: Scene, database: str
) -> None:
    """R-11: 56,500 by eight milestones of 90 %; 5,650 is told and never unlocked."""
    treasury(database, BEAM)
    anna, boris = scene.operator, second(scene)
    asked = {
        "account_id": scene.owner.account_id,
        "total": tokens(56_500),
        "milestones": MILESTONES,
    }
    grant = anna.made("/v1/grants", asked)
    path = f"/v1/grants/{grant['grant_id']}"
    assert (grant["state"], grant["locked"], grant["unassigned"]) == (
        "proposed",
        tokens(0),
        tokens(5_650),
    )
    assert seen(anna.post(f"{path}/accept", {"what": "opening"})) == (409, "second_person_needed")
    opened = boris.made(f"{path}/accept", {"what": "opening"})
    assert (opened["locked"], opened["unassigned"]) == (tokens(50_850), tokens(5_650))
    done = {"milestone_id": "cluster-orchestration", "evidence": "https://example.org/17"}
    yes = {"what": "milestone", "milestone_id": "cluster-orchestration"}
    boris.made(f"{path}/milestones", done)
    assert seen(boris.post(f"{path}/accept", yes)) == (409, "second_person_needed")
    told = anna.made(f"{path}/accept", yes)
    assert (told["unlocked"], told["locked"]) == (tokens(11_300), tokens(39_550))
    assert seen(anna.post(f"{path}/accept", yes)) == (409, "milestone_state"), "twice"
    boris.made(f"{path}/clawback", {"scope": "unearned", "reason": "It was stopped"})
    ended = anna.made(f"{path}/accept", {"what": "clawback"})
    assert (ended["state"], ended["clawed_back"]) == ("ended", tokens(45_200))
    for reader in (scene.anybody, scene.auditor):
        read = reader.read(path)
        assert (read["unlocked"], read["unassigned"]) == (tokens(11_300), tokens(0))
    (row,) = scene.anybody.read("/v1/grants")["data"]
    assert row == {name: value for name, value in ended.items() if name != "position"}
    assert scene.service.ledger.books.books_balanced()


def test_only_the_governance_may_move_a_grant(shared: Scene) -> None:
    asked = {"account_id": shared.owner.account_id, "total": tokens(1), "milestones": MILESTONES}
    for caller in (shared.renter, shared.auditor):
        assert seen(caller.post("/v1/grants", asked)) == (403, "scope_missing")
    over = [{"milestone_id": name, "share_ppm": 600_000} for name in ("a", "b")]
    no = shared.operator.post("/v1/grants", {**asked, "milestones": over})
    assert seen(no) == (422, "over_assigned")
    assert seen(shared.anybody.get("/v1/grants/grant_0")) == (404, "grant_unknown")
    grant = shared.operator.made("/v1/grants", asked)
    short = second(shared).post(f"/v1/grants/{grant['grant_id']}/accept", {"what": "opening"})
    assert seen(short) == (409, "treasury_short")
