"""Proposals (R-13, R-15): who says what to a next policy, and from which epoch on it counts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.epochs.epoch import stream_of as epoch_stream
from domain.epochs.policy import NETWORK, PolicyState, policy_for
from domain.epochs.reasons import EpochsReason
from domain.governance.lint import lint
from domain.governance.proposal import REVISIONS_MAX, Proposal, Step, stream_of
from domain.governance.reasons import GovernanceReason
from domain.governance.vote import (
    ApprovePolicyProposal,
    OpenPolicyReview,
    ProposePolicy,
    RejectPolicyProposal,
    RevisePolicyProposal,
    SchedulePolicyProposal,
    WithdrawPolicyProposal,
    lint_of,
)
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.rules import decide
from domain.trust.reasons import TrustReason
from tests.domain.governance.test_lint import CLEAN, document
from tests.domain.scenes.epochs import CAP, READY, opened
from tests.examples import examples
from tests.given import Scene

AT_US = 1_795_176_000_000_000
ANNA, BORIS, CLEO, DIDO = "mem_anna", "mem_boris", "mem_cleo", "mem_dido"
NUMBER = 24


def plain(**terms: Any) -> dict[str, Any]:
    """The clean document for the policy of `tests/domain/scenes/epochs.py`: cap and epochs stay."""
    return {**CLEAN, "terms": {**CLEAN["terms"], "hard_cap": str(CAP), **terms}}


def proposing(made: dict[str, Any], by: str = ANNA) -> ProposePolicy:
    return ProposePolicy(document=json.dumps(made), by=by, at_us=AT_US)


def seen(scene: Scene, number: int = NUMBER) -> dict[str, Any]:
    """What a caller who has just read the proposal names."""
    return {"number": number, "expected": scene.state(stream_of(number)).changes, "at_us": AT_US}


def yes(scene: Scene, by: str, number: int = NUMBER) -> ApprovePolicyProposal:
    return ApprovePolicyProposal(key_id=f"key_{by}", by=by, **seen(scene, number))


def no(scene: Scene, by: str) -> RejectPolicyProposal:
    return RejectPolicyProposal(reason="Too much", key_id=f"key_{by}", by=by, **seen(scene))


def scheduling(scene: Scene, open_epoch: int, start: int | None = None) -> SchedulePolicyProposal:
    return SchedulePolicyProposal(
        open_epoch=open_epoch, effective_from_epoch=start, by=DIDO, **seen(scene)
    )


def proposed(made: dict[str, Any] | None = None) -> Scene:
    """Epoch 1 is open under version 1; the proposal is linted."""
    scene = READY.given((epoch_stream(1), opened(1)))
    return scene.after(proposing(plain() if made is None else made))


def approved(made: dict[str, Any] | None = None) -> Scene:
    scene = proposed(made)
    for by in (BORIS, CLEO):
        scene = scene.after(yes(scene, by))
    return scene


def state(scene: Scene, number: int = NUMBER) -> Proposal:
    found = scene.state(stream_of(number))
    assert isinstance(found, Proposal)
    return found


def test_rnp_005_is_an_object_with_number_authors_and_a_history_of_its_status() -> None:
    """R-13: number 005, Core (technical), two authors, 2023-10-23, In Render Team Review."""
    scene = Scene().after(proposing(document("rnp_005")))
    scene = scene.after(OpenPolicyReview(stage="In Render Team Review", by=BORIS, **seen(scene, 5)))
    found = state(scene, 5)
    heading = found.heading
    assert heading is not None
    assert (f"{heading.number:03}", heading.title) == ("005", "Beam Compute Client")
    assert (heading.category, heading.created) == ("Core (technical)", "2023-10-23")
    assert heading.authors == ("Ryan Shea", "Eli Mernit")
    assert found.history == (
        Step("draft", ANNA, AT_US),
        Step("draft", ANNA, AT_US, "lint fails: 1 errors, 0 warnings"),
        Step("in_review", BORIS, AT_US, "In Render Team Review"),
    )
    scene.when(yes(scene, CLEO, 5)).then_refused(GovernanceReason.PROPOSAL_LINT)


def test_the_hash_of_the_findings_is_that_of_the_lint_of_the_file() -> None:
    made = document("rnp_019")
    scene = Scene().after(proposing(made))
    linted = state(scene, 19).linted
    assert linted is not None
    assert linted.findings_sha256 == lint(made).sha256 == lint_of(state(scene, 19)).sha256


def test_two_others_make_a_proposal_the_next_version_of_the_policy() -> None:
    scene = approved()
    assert state(scene).status == "approved"
    scene = scene.after(scheduling(scene, open_epoch=1))
    published = scene.state(NETWORK)
    assert isinstance(published, PolicyState)
    last = published.published[-1]
    assert (last.version, last.proposal, last.compute_ppm) == (2, NUMBER, 650_000)
    assert last.effective_from_epoch == 9, "what the document asks for is later than the notice"
    assert [step.status for step in state(scene).history] == [
        "draft",
        "linted",
        "linted",
        "approved",
        "scheduled",
    ]
    assert [policy_for(scene, epoch).version for epoch in (1, 8, 9)] == [1, 1, 2]


def test_the_proposer_has_no_vote_and_nobody_has_two() -> None:
    scene = proposed()
    scene.when(yes(scene, ANNA)).then_refused(EpochsReason.SECOND_PERSON_NEEDED)
    scene.when(no(scene, ANNA)).then_refused(EpochsReason.SECOND_PERSON_NEEDED)
    scene = scene.after(yes(scene, BORIS))
    scene.when(yes(scene, BORIS)).then_refused(GovernanceReason.VOTED_ALREADY)
    scene.when(no(scene, BORIS)).then_refused(GovernanceReason.VOTED_ALREADY)
    scene.when(scheduling(scene, 1)).then_refused(GovernanceReason.PROPOSAL_STATE)


def test_a_vote_is_for_what_was_read() -> None:
    scene = proposed()
    vote = yes(scene, BORIS)
    revised = scene.after(
        RevisePolicyProposal(document=json.dumps(plain(holdback_epochs=5)), by=ANNA, **seen(scene))
    )
    revised.when(vote).then_refused(GovernanceReason.PROPOSAL_MOVED)


def test_a_revision_begins_again_without_a_vote_and_is_the_proposers_alone() -> None:
    scene = proposed()
    scene = scene.after(yes(scene, BORIS))
    other = json.dumps(plain(holdback_epochs=5))
    scene.when(RevisePolicyProposal(document=other, by=BORIS, **seen(scene))).then_refused(
        PartiesReason.NOT_PERMITTED
    )
    scene = scene.after(RevisePolicyProposal(document=other, by=ANNA, **seen(scene)))
    assert (state(scene).revision, state(scene).approved_by) == (2, ())
    scene.when(RevisePolicyProposal(document=other, by=ANNA, **seen(scene))).then_nothing()
    wrong = json.dumps({**plain(), "proposal": {**CLEAN["proposal"], "number": 25}})
    scene.when(RevisePolicyProposal(document=wrong, by=ANNA, **seen(scene))).then_refused(
        GovernanceReason.PROPOSAL_INVALID
    )
    for holdback in range(6, 6 + REVISIONS_MAX - 2):
        made = json.dumps(plain(holdback_epochs=holdback))
        scene = scene.after(RevisePolicyProposal(document=made, by=ANNA, **seen(scene)))
    scene.when(RevisePolicyProposal(document=other, by=ANNA, **seen(scene))).then_refused(
        GovernanceReason.PROPOSAL_STATE
    )


def test_as_many_reject_a_proposal_as_approve_one() -> None:
    scene = proposed()
    scene = scene.after(no(scene, BORIS))
    assert state(scene).status == "linted"
    scene = scene.after(no(scene, CLEO))
    assert state(scene).status == "rejected"
    scene.when(yes(scene, DIDO)).then_refused(GovernanceReason.PROPOSAL_STATE)


def test_only_who_proposed_it_withdraws_it_and_not_once_it_is_scheduled() -> None:
    scene = approved()

    def withdrawing(where: Scene, by: str) -> WithdrawPolicyProposal:
        return WithdrawPolicyProposal(reason="Another comes", by=by, **seen(where))

    scene.when(withdrawing(scene, BORIS)).then_refused(PartiesReason.NOT_PERMITTED)
    assert state(scene.after(withdrawing(scene, ANNA))).status == "withdrawn"
    after = scene.after(scheduling(scene, 1))
    after.when(withdrawing(after, ANNA)).then_refused(GovernanceReason.PROPOSAL_STATE)


def test_a_version_starts_no_earlier_than_its_notice_and_never_in_an_epoch_that_was_opened() -> (
    None
):
    """R-15: the notice is 4 epochs, unless the policy in force says otherwise."""
    scene = approved(plain(effective_from_epoch=2))
    scene.when(scheduling(scene, 1, start=4)).then_refused(GovernanceReason.PROPOSAL_NOTICE)
    assert decide(scheduling(scene, 1, start=5), scene)
    scene.when(scheduling(scene, 0)).then_refused(EpochsReason.EPOCH_STATE)
    scene.when(scheduling(scene, 2)).then_refused(EpochsReason.EPOCH_STATE)
    later = scene.given((epoch_stream(2), opened(2)))
    later.when(scheduling(later, 1)).then_refused(EpochsReason.EPOCH_STATE)
    assert state(later.after(scheduling(later, 2))).scheduled.effective_from_epoch == 6  # type: ignore[union-attr]


def test_approvals_and_notice_are_what_the_last_policy_says() -> None:
    scene = approved(plain(governance={"approvals": 3, "notice_epochs": 10}))
    scene = scene.after(scheduling(scene, 1))
    made = {**plain(effective_from_epoch=1), "proposal": {**CLEAN["proposal"], "number": 25}}
    scene = scene.after(proposing(made))
    for by in (BORIS, CLEO):
        scene = scene.after(yes(scene, by, 25))
    assert state(scene, 25).status == "linted"
    scene = scene.after(yes(scene, DIDO, 25))
    assert state(scene, 25).status == "approved"
    command = SchedulePolicyProposal(
        open_epoch=1, effective_from_epoch=10, by=DIDO, **seen(scene, 25)
    )
    scene.when(command).then_refused(GovernanceReason.PROPOSAL_NOTICE)


def test_a_proposal_without_terms_leads_to_no_version() -> None:
    made = {name: value for name, value in CLEAN.items() if name != "terms"}
    scene = approved(made)
    scene.when(scheduling(scene, 1)).then_refused(GovernanceReason.PROPOSAL_WITHOUT_TERMS)


def test_what_the_first_version_fixed_for_ever_no_vote_changes() -> None:
    """It is told before anybody votes in vain."""
    scene = proposed(plain(hard_cap=str(CAP - 1)))
    scene.when(yes(scene, BORIS)).then_refused(TrustReason.POLICY_INVALID)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"format": 1.5}',
        json.dumps({**CLEAN, "more": 1}),
        "[" * 5_000,
        json.dumps({**CLEAN, "proposal": {**CLEAN["proposal"], "title": "\ud800"}}),
        json.dumps({**CLEAN, "\ud800": 1}),
        json.dumps({**CLEAN, "weights": [{"name": "x" * 4_000, "parts": []}] * 9}),
    ],
)
def test_what_is_no_document_is_refused_and_named(text: str) -> None:
    with pytest.raises(Refused) as caught:
        decide(ProposePolicy(document=text, by=ANNA, at_us=AT_US), Scene())
    assert caught.value.reason is GovernanceReason.PROPOSAL_INVALID
    str(caught.value).encode()


def test_a_number_is_given_once_and_an_unknown_one_is_unknown() -> None:
    scene = proposed()
    scene.when(proposing(plain(), by=BORIS)).then_refused(GovernanceReason.PROPOSAL_EXISTS)
    Scene().when(yes(Scene(), BORIS)).then_refused(GovernanceReason.PROPOSAL_UNKNOWN)


voters = st.lists(st.tuples(st.sampled_from((ANNA, BORIS, CLEO, DIDO)), st.booleans()), max_size=8)


@examples(30)
@given(voters)
def test_nothing_is_approved_by_fewer_than_two_others(votes: list[tuple[str, bool]]) -> None:
    scene = proposed()
    for by, is_yes in votes:
        try:
            scene = scene.after(yes(scene, by) if is_yes else no(scene, by))
        except Refused:
            continue
    found = state(scene)
    if found.status == "approved":
        assert len(set(found.approved_by) - {ANNA}) >= 2
    assert set(found.approved_by).isdisjoint(found.rejected_by)
