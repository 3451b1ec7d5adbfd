"""The policy over HTTP: versions everybody reads, and a proposal that others make the next one."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from domain.epochs.epoch import OpenEpoch
from domain.epochs.policy import PublishPolicy
from domain.epochs.reward_terms import REWARD_TERMS
from tests.api.governance.test_grants import second, seen
from tests.domain.governance.test_lint import CLEAN, document
from tests.domain.governance.test_proposal import plain
from tests.domain.scenes.epochs import POLICY, START_US
from tests.scenes.server import Caller, Scene

PROPOSALS = "/v1/policies/proposals"


def founded(scene: Scene) -> None:
    """A first policy and its first epoch, as an operator's bootstrap makes them."""
    policy = {each.name: getattr(POLICY, each.name) for each in fields(POLICY)}
    first = PublishPolicy(**{**policy, "rewards": replace(REWARD_TERMS, owner_cap=10**12)})
    opening = OpenEpoch(epoch=1, start_us=START_US, at_us=START_US)
    scene.service.ledger.handle([first, opening], key=None, now_us=START_US)


def said(
    who: Caller, told: Mapping[str, Any], verb: str, body: Any = None, changes: int | None = None
) -> Any:
    """What comes of one call by somebody who has read the proposal like this."""
    tag = f'"v{told["changes"] if changes is None else changes}"'
    return who.post(f"{PROPOSALS}/{told['number']}/{verb}", body, **{"If-Match": tag})


def test_a_proposal_becomes_the_next_version_by_the_word_of_two_others(scene: Scene) -> None:
    """R-13 and R-15: proposed, linted, approved, scheduled; epoch 1 keeps its version."""
    founded(scene)
    anna, boris, cleo = scene.operator, second(scene), second(scene)
    told = anna.made(PROPOSALS, {"document": plain()})
    assert (told["number"], told["status"], told["lint"]["passes"]) == (24, "linted", True)
    unseen = boris.post(f"{PROPOSALS}/24/approve", {})
    assert seen(unseen) == (428, "if_match_missing")
    odd = boris.post(f"{PROPOSALS}/24/approve", {}, **{"If-Match": "2"})
    assert seen(odd) == (400, "malformed_header")
    moved = said(boris, told, "approve", changes=1)
    assert (seen(moved), moved.headers["ETag"]) == ((412, "proposal_moved"), '"v2"')
    assert seen(said(anna, told, "approve")) == (409, "second_person_needed")
    early = said(boris, told, "schedule")
    assert seen(early) == (409, "proposal_state")
    first = said(boris, told, "approve")
    assert (first.status_code, first.headers["ETag"]) == (200, '"v3"')
    assert seen(said(boris, first.json(), "approve")) == (409, "voted_already")
    approved = said(cleo, first.json(), "approve").json()
    assert (approved["status"], len(approved["approved_by"])) == ("approved", 2)
    soon = said(cleo, approved, "schedule", {"effective_from_epoch": 4})
    assert seen(soon) == (409, "proposal_notice")
    scheduled = said(cleo, approved, "schedule").json()
    assert (scheduled["policy_version"], scheduled["effective_from_epoch"]) == (2, 9)
    assert seen(said(anna, scheduled, "withdraw", {"reason": "late"})) == (409, "proposal_state")

    versions = scene.anybody.read("/v1/policies")["data"]
    assert [(one["version"], one["in_force"]) for one in versions] == [(1, True), (2, False)]
    assert (versions[1]["proposal"], versions[1]["effective_from_epoch"]) == (24, 9)
    assert versions[0]["rewards"]["owner_cap"] == {"asset": "TOKEN", "units": str(10**12)}
    assert versions[1]["rewards"]["release_tau"] == 7
    before = versions[1]["published_position"] - 1
    past = scene.auditor.read("/v1/policies", as_of_position=before)
    assert [one["version"] for one in past["data"]] == [1]
    gone = scene.anybody.get("/v1/policies/2", as_of_position=before)
    assert gone.status_code == 404
    assert scene.anybody.read("/v1/policies/2")["compute_ppm"] == 650_000
    page = scene.anybody.read("/v1/policies", limit=1)
    assert (page["has_more"], len(page["data"])) == (True, 1)
    whole = scene.anybody.get(f"{PROPOSALS}/24")
    assert whole.headers["ETag"] == f'"v{scheduled["changes"]}"'
    assert whole.json()["document"] == plain()
    assert [step["status"] for step in whole.json()["history"]] == [
        "draft",
        "linted",
        "linted",
        "approved",
        "scheduled",
    ]


def test_rnp_005_can_be_read_and_talked_about_and_not_be_approved(scene: Scene) -> None:
    """R-13: with its number, authors, date and status; its milestones make 90 %."""
    anna, boris = scene.operator, second(scene)
    told = anna.made(PROPOSALS, {"document": document("rnp_005")})
    told = said(boris, told, "review", {"stage": "In Render Team Review"}).json()
    assert seen(said(boris, told, "approve")) == (409, "proposal_lint")
    read = scene.anybody.read(f"{PROPOSALS}/5")
    assert (read["number"], read["category"], read["created"], read["status"]) == (
        5,
        "Core (technical)",
        "2023-10-23",
        "in_review",
    )
    assert read["authors"] == ["Ryan Shea", "Eli Mernit"]
    assert [one["note"] for one in read["history"][1:]] == [
        "lint fails: 1 errors, 0 warnings",
        "In Render Team Review",
    ]
    assert [one["rule"] for one in read["findings"]] == ["milestones_whole"]
    mended = copy.deepcopy(document("rnp_005"))
    mended["milestones"][0]["remainder_ppm"] = 100_000
    assert seen(said(boris, told, "revise", {"document": mended})) == (403, "not_permitted")
    told = said(anna, told, "revise", {"document": mended}).json()
    assert (told["status"], told["revision"]) == ("linted", 2)
    told = said(boris, told, "reject", {"reason": "No ninth milestone"}).json()
    assert (told["status"], len(told["rejected_by"])) == ("linted", 1)
    ended = said(anna, told, "withdraw", {"reason": "Another comes"}).json()
    (row,) = scene.anybody.read(PROPOSALS)["data"]
    assert row == {name: value for name, value in ended.items() if name != "position"}


def test_only_the_governance_proposes_and_a_document_is_checked(shared: Scene) -> None:
    asked = {"document": {**CLEAN, "proposal": {**CLEAN["proposal"], "number": 77}}}
    for caller in (shared.renter, shared.auditor):
        assert seen(caller.post(PROPOSALS, asked)) == (403, "scope_missing")
    for wrong in ({}, {**asked["document"], "more": 1}, {**asked["document"], "weights": [1.5]}):
        no = shared.operator.post(PROPOSALS, {"document": wrong})
        assert seen(no) == (422, "proposal_invalid")
    shared.operator.made(PROPOSALS, asked)
    assert seen(shared.operator.post(PROPOSALS, asked)) == (409, "proposal_exists")
    assert seen(shared.anybody.get(f"{PROPOSALS}/78")) == (404, "proposal_unknown")
    missing = {"number": 78, "changes": 1}
    assert seen(said(shared.operator, missing, "approve")) == (404, "proposal_unknown")
