"""The policy over HTTP: versions everybody reads, and a proposal that others make the next one."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from domain.epochs.epoch import OpenEpoch
from domain.epochs.policy import PublishPolicy
from domain.epochs.reward_terms import REWARD_TERMS
from tests.api.governance.test_grants import seen
from tests.api.prices.test_tariffs import NEXT
from tests.domain.governance.test_lint import CLEAN, document
from tests.domain.governance.test_proposal import plain
from tests.domain.scenes.epochs import POLICY, START_US
from tests.scenes.governors import ANNA, BORIS, CLEO, Governor, enrol_all, enrol_once
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


def voted(
    carrier: Caller, told: Mapping[str, Any], who: Governor, verb: str = "approve", **more: Any
) -> Any:
    """What comes of a governor's vote on the proposal as it was read."""
    choice = {"approve": "yes", "reject": "no", "cancel": "cancel"}[verb]
    body = {"vote": who.voting(told["ballot"], choice)}
    return said(carrier, told, verb, {**body, **more})


def test_a_proposal_becomes_the_next_version_by_the_word_of_two_governors(scene: Scene) -> None:
    """R-13 and R-15: proposed, linted, approved, scheduled; epoch 1 keeps its version."""
    founded(scene)
    enrol_all(scene.operator)
    anna = boris = cleo = scene.operator
    told = anna.made(PROPOSALS, {"document": plain()})
    yes = {"vote": BORIS.voting(told["ballot"])}
    assert (told["number"], told["status"], told["lint"]["passes"]) == (24, "linted", True)
    unseen = boris.post(f"{PROPOSALS}/24/approve", yes)
    assert seen(unseen) == (428, "if_match_missing")
    odd = boris.post(f"{PROPOSALS}/24/approve", yes, **{"If-Match": "2"})
    assert seen(odd) == (400, "malformed_header")
    moved = said(boris, told, "approve", yes, changes=1)
    assert (seen(moved), moved.headers["ETag"]) == ((412, "proposal_moved"), '"v2"')
    assert seen(said(anna, told, "approve", {})) == (422, "invalid"), "a vote is signed"
    other = {**told["ballot"], "content_sha256": "0" * 64}
    swapped = voted(anna, {**told, "ballot": other}, BORIS)
    assert seen(swapped) == (409, "vote_mismatch")
    early = said(boris, told, "schedule")
    assert seen(early) == (409, "proposal_state")
    first = voted(boris, told, BORIS)
    assert (first.status_code, first.headers["ETag"]) == (200, '"v3"')
    assert seen(voted(boris, first.json(), BORIS)) == (409, "voted_already")
    approved = voted(cleo, first.json(), CLEO).json()
    assert (approved["status"], len(approved["approved_by"])) == ("approved", 2)
    soon = said(cleo, approved, "schedule", {"effective_from_epoch": 4})
    assert seen(soon) == (409, "proposal_notice")
    scheduled = said(cleo, approved, "schedule").json()
    assert (scheduled["policy_version"], scheduled["effective_from_epoch"]) == (2, 9)
    assert seen(said(anna, scheduled, "withdraw", {"reason": "late"})) == (409, "proposal_state")

    versions = scene.anybody.read("/v1/policies")["data"]
    assert [(one["version"], one["in_force"]) for one in versions] == [(1, True), (2, False)]
    assert (versions[1]["proposal"], versions[1]["effective_from_epoch"]) == (24, 9)
    assert (versions[1]["mode"], versions[1]["cancelled"]) == ("shared", False)
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
    enrol_all(scene.operator)
    anna, boris = scene.operator, another(scene)
    told = anna.made(PROPOSALS, {"document": document("rnp_005")})
    told = said(boris, told, "review", {"stage": "In Render Team Review"}).json()
    assert seen(voted(boris, told, BORIS)) == (409, "proposal_lint")
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
    told = voted(boris, told, BORIS, "reject", reason="No ninth milestone").json()
    assert (told["status"], len(told["rejected_by"])) == ("linted", 1)
    ended = said(anna, told, "withdraw", {"reason": "Another comes"}).json()
    (row,) = scene.anybody.read(PROPOSALS)["data"]
    assert row == {name: value for name, value in ended.items() if name != "position"}


def another(scene: Scene) -> Caller:
    """Another member of the operator's account: another carrier, and no governor by that."""
    return scene.member(scene.operator, "member", ["operator"])


def test_members_and_keys_that_one_person_makes_approve_nothing(scene: Scene) -> None:
    """Attack C1 and H1: ghosts with keys, a rotated colleague's key, a key in another's name."""
    founded(scene)
    enrol_all(scene.operator)
    op = scene.operator
    told = op.made(PROPOSALS, {"document": plain()})
    first = voted(op, told, ANNA).json()
    assert (first["status"], first["ballot"]["needed"]) == ("linted", 2)
    for ghost in (another(scene), another(scene)):
        assert seen(voted(ghost, first, ANNA)) == (409, "voted_already")
        assert seen(voted(ghost, first, Governor("ghost"))) == (409, "governor_unknown")
        forged = {"vote": {**ANNA.voting(first["ballot"]), "governor_id": BORIS.governor_id}}
        assert seen(said(ghost, first, "approve", forged)) == (422, "signature_invalid")
    keys = "/v1/accounts/acct_operator/api-keys"
    assert seen(op.post(keys, {"scopes": ["governance"]}))[0] == 422, "no such scope"
    read = op.read(f"{PROPOSALS}/24")
    assert (read["status"], read["approved_by"]) == ("linted", [ANNA.governor_id])
    assert seen(said(op, read, "schedule")) == (409, "proposal_state")


def test_an_approval_is_not_a_rejection_nor_good_for_another_proposal(scene: Scene) -> None:
    """A signature names the choice, the proposal and the revision."""
    founded(scene)
    enrol_all(scene.operator)
    op = scene.operator
    told = op.made(PROPOSALS, {"document": plain()})
    yes = {"vote": BORIS.voting(told["ballot"])}
    turned = said(op, told, "reject", {**yes, "reason": "turned"})
    assert seen(turned) == (422, "signature_invalid")
    other = {**plain(), "proposal": {**CLEAN["proposal"], "number": 25}}
    second = op.made(PROPOSALS, {"document": other})
    assert seen(said(op, second, "approve", yes)) == (422, "signature_invalid")


def test_as_many_governors_cancel_what_is_scheduled(scene: Scene) -> None:
    founded(scene)
    enrol_all(scene.operator)
    op = scene.operator
    told = op.made(PROPOSALS, {"document": plain()})
    for who in (ANNA, BORIS):
        told = voted(op, told, who).json()
    told = said(op, told, "schedule").json()
    told = voted(op, told, CLEO, "cancel").json()
    assert (told["status"], told["ballot"]["cancel"]) == ("scheduled", [CLEO.governor_id])
    told = voted(op, told, BORIS, "cancel").json()
    assert told["status"] == "cancelled"
    assert scene.anybody.read("/v1/policies/2")["cancelled"] is True


def test_a_network_of_one_says_so(scene: Scene) -> None:
    founded(scene)
    enrol_all(scene.operator, (ANNA,))
    op = scene.operator
    told = voted(op, op.made(PROPOSALS, {"document": plain()}), ANNA).json()
    assert (told["status"], told["ballot"]["mode"]) == ("approved", "single")
    said(op, told, "schedule")
    assert scene.anybody.read("/v1/policies/2")["mode"] == "single"
    assert "(single)" in op.read(f"{PROPOSALS}/24")["history"][2]["note"]


def test_only_the_operator_proposes_and_a_document_is_checked(shared: Scene) -> None:
    enrol_once(shared.operator)
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
    unknown = said(shared.operator, missing, "withdraw", {"reason": "none"})
    assert seen(unknown) == (404, "proposal_unknown")


def test_e_h8_a_policy_is_judged_with_the_tariffs_in_force(scene: Scene) -> None:
    """E-H8: lint and tariff knew nothing of each other. A class that refunds 10 % is sound under a
    multiple of a half, and not under the proposal's 1.
    """
    policy = {each.name: getattr(POLICY, each.name) for each in fields(POLICY)}
    half = replace(REWARD_TERMS, cap_multiple_ppm=500_000)
    opening = OpenEpoch(epoch=1, start_us=START_US, at_us=START_US)
    first = PublishPolicy(**{**policy, "rewards": half})
    scene.service.ledger.handle([first, opening], key=None, now_us=START_US)
    shares = [("platform", 50_000), ("provider", 350_000)]
    split = [{"bucket": bucket, "share_ppm": share} for bucket, share in shares]
    tariff = {**NEXT, "split": {"shares": split, "residual": "burn"}}
    scene.operator.made("/v1/tariffs", tariff)
    enrol_all(scene.operator)
    told = scene.operator.made(PROPOSALS, {"document": plain()})
    answer = voted(scene.operator, told, BORIS)
    assert seen(answer) == (409, "profit_bound")
    assert "of tariff 2" in answer.json()["detail"]
