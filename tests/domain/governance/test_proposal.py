"""Proposals (R-13, R-15): who says what to a next policy, and from which epoch on it counts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.authority.reasons import AuthorityReason
from domain.authority.register import GOVERNORS, GovernorRemoved
from domain.authority.vote import Subject
from domain.epochs.epoch import stream_of as epoch_stream
from domain.epochs.policy import NETWORK, PolicyState, policy_for
from domain.epochs.reasons import EpochsReason
from domain.governance.lint import lint
from domain.governance.proposal import REVISIONS_MAX, Proposal, Step, stream_of
from domain.governance.reasons import GovernanceReason
from domain.governance.vote import (
    ApprovePolicyProposal,
    CancelPolicy,
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
from tests.scenes.governors import ANNA, BORIS, CLEO, DIDO, THREE, Governor, enrolled

AT_US = 1_795_176_000_000_000
AUTHOR, OTHER, CARRIER = "mem_anna", "mem_boris", "mem_op"
EMIL = Governor("emil")
FOUR = (*THREE, DIDO)
NUMBER = 24


def plain(**terms: Any) -> dict[str, Any]:
    """The clean document for the policy of `tests/domain/scenes/epochs.py`: cap and epochs stay."""
    return {**CLEAN, "terms": {**CLEAN["terms"], "hard_cap": str(CAP), **terms}}


def proposing(made: dict[str, Any], by: str = AUTHOR) -> ProposePolicy:
    return ProposePolicy(document=json.dumps(made), by=by, at_us=AT_US)


def seen(scene: Scene, number: int = NUMBER) -> dict[str, Any]:
    """What a caller who has just read the proposal names."""
    return {"number": number, "expected": scene.state(stream_of(number)).changes, "at_us": AT_US}


def voting(scene: Scene, who: Governor, choice: str, number: int = NUMBER) -> dict[str, Any]:
    found = state(scene, number)
    subject = Subject("policy", str(number), 1, "0" * 64, 3) if not found.linted else found.subject
    if choice == "cancel":
        subject = replace(subject, governors=scene.state(GOVERNORS).now.version)
    vote = who.vote(subject, choice)
    return {"vote": vote, "key_id": "key_op", "by": CARRIER, **seen(scene, number)}


def yes(scene: Scene, who: Governor, number: int = NUMBER) -> ApprovePolicyProposal:
    return ApprovePolicyProposal(**voting(scene, who, "yes", number))


def no(scene: Scene, who: Governor) -> RejectPolicyProposal:
    return RejectPolicyProposal(reason="Too much", **voting(scene, who, "no"))


def cancel(scene: Scene, who: Governor) -> CancelPolicy:
    return CancelPolicy(**voting(scene, who, "cancel"))


def scheduling(scene: Scene, open_epoch: int, start: int | None = None) -> SchedulePolicyProposal:
    return SchedulePolicyProposal(
        open_epoch=open_epoch, effective_from_epoch=start, by=CARRIER, **seen(scene)
    )


def proposed(made: dict[str, Any] | None = None) -> Scene:
    """Epoch 1 is open under version 1; the proposal is linted."""
    scene = READY.given((epoch_stream(1), opened(1)), *enrolled(*FOUR))
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
    scene = Scene().given(*enrolled(*THREE)).after(proposing(document("rnp_005")))
    scene = scene.after(OpenPolicyReview(stage="In Render Team Review", by=OTHER, **seen(scene, 5)))
    found = state(scene, 5)
    heading = found.heading
    assert heading is not None
    assert (f"{heading.number:03}", heading.title) == ("005", "Beam Compute Client")
    assert (heading.category, heading.created) == ("Core (technical)", "2023-10-23")
    assert heading.authors == ("Ryan Shea", "Eli Mernit")
    assert found.history == (
        Step("draft", AUTHOR, AT_US),
        Step("draft", AUTHOR, AT_US, "lint fails: 1 errors, 0 warnings"),
        Step("in_review", OTHER, AT_US, "In Render Team Review"),
    )
    scene.when(yes(scene, CLEO, 5)).then_refused(GovernanceReason.PROPOSAL_LINT)


def test_the_hash_of_the_findings_is_that_of_the_lint_of_the_file() -> None:
    made = document("rnp_019")
    scene = Scene().given(*enrolled(ANNA)).after(proposing(made))
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


def test_one_person_approves_nothing_and_nobody_has_two_votes() -> None:
    """Attack C1: the proposer's own vote is one, whoever carries it."""
    scene = proposed()
    scene.when(yes(scene, EMIL)).then_refused(AuthorityReason.GOVERNOR_UNKNOWN)
    scene = scene.after(yes(scene, BORIS))
    scene.when(yes(scene, BORIS)).then_refused(AuthorityReason.VOTED_ALREADY)
    scene.when(no(scene, BORIS)).then_refused(AuthorityReason.VOTED_ALREADY)
    scene.when(scheduling(scene, 1)).then_refused(GovernanceReason.PROPOSAL_STATE)


def test_a_vote_is_for_what_was_read() -> None:
    scene = proposed()
    vote = yes(scene, BORIS)
    revised = scene.after(
        RevisePolicyProposal(
            document=json.dumps(plain(holdback_epochs=5)), by=AUTHOR, **seen(scene)
        )
    )
    revised.when(vote).then_refused(GovernanceReason.PROPOSAL_MOVED)
    moved = replace(vote, expected=state(revised).changes)
    revised.when(moved).then_refused(AuthorityReason.VOTE_MISMATCH, field="content_sha256")


def test_a_revision_begins_again_without_a_vote_and_is_the_proposers_alone() -> None:
    scene = proposed()
    scene = scene.after(yes(scene, BORIS))
    other = json.dumps(plain(holdback_epochs=5))
    scene.when(RevisePolicyProposal(document=other, by=OTHER, **seen(scene))).then_refused(
        PartiesReason.NOT_PERMITTED
    )
    scene = scene.after(RevisePolicyProposal(document=other, by=AUTHOR, **seen(scene)))
    assert (state(scene).revision, state(scene).approved_by) == (2, ())
    scene.when(RevisePolicyProposal(document=other, by=AUTHOR, **seen(scene))).then_nothing()
    wrong = json.dumps({**plain(), "proposal": {**CLEAN["proposal"], "number": 25}})
    scene.when(RevisePolicyProposal(document=wrong, by=AUTHOR, **seen(scene))).then_refused(
        GovernanceReason.PROPOSAL_INVALID
    )
    for holdback in range(6, 6 + REVISIONS_MAX - 2):
        made = json.dumps(plain(holdback_epochs=holdback))
        scene = scene.after(RevisePolicyProposal(document=made, by=AUTHOR, **seen(scene)))
    scene.when(RevisePolicyProposal(document=other, by=AUTHOR, **seen(scene))).then_refused(
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

    scene.when(withdrawing(scene, OTHER)).then_refused(PartiesReason.NOT_PERMITTED)
    assert state(scene.after(withdrawing(scene, AUTHOR))).status == "withdrawn"
    after = scene.after(scheduling(scene, 1))
    after.when(withdrawing(after, AUTHOR)).then_refused(GovernanceReason.PROPOSAL_STATE)


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


def test_approvals_and_notice_are_what_the_policy_in_force_says() -> None:
    """Economics L2: a version that was published decided before its first epoch."""
    scene = approved(plain(governance={"approvals": 3, "notice_epochs": 10}))
    scene = scene.after(scheduling(scene, 1))
    first = state(scene).scheduled.effective_from_epoch  # type: ignore[union-attr]
    made = {**plain(effective_from_epoch=1), "proposal": {**CLEAN["proposal"], "number": 25}}
    waiting = scene = scene.after(proposing(made))
    for by in (BORIS, CLEO):
        waiting = waiting.after(yes(waiting, by, 25))
    assert state(waiting, 25).status == "approved", "the version before is in force"
    scene = scene.given((epoch_stream(first), opened(first)))
    for by in (BORIS, CLEO):
        scene = scene.after(yes(scene, by, 25))
    assert state(scene, 25).status == "linted"
    scene = scene.after(yes(scene, DIDO, 25))
    assert state(scene, 25).status == "approved"
    command = SchedulePolicyProposal(
        open_epoch=1, effective_from_epoch=10, by=CARRIER, **seen(scene, 25)
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
        decide(ProposePolicy(document=text, by=AUTHOR, at_us=AT_US), Scene())
    assert caught.value.reason is GovernanceReason.PROPOSAL_INVALID
    str(caught.value).encode()


def test_a_number_is_given_once_and_an_unknown_one_is_unknown() -> None:
    scene = proposed()
    scene.when(proposing(plain(), by=OTHER)).then_refused(GovernanceReason.PROPOSAL_EXISTS)
    Scene().when(yes(Scene(), BORIS)).then_refused(GovernanceReason.PROPOSAL_UNKNOWN)


def without(scene: Scene, *gone: Governor) -> Scene:
    """These governors were removed."""
    for who in gone:
        now = scene.state(GOVERNORS).now
        fact = GovernorRemoved(
            governor_id=who.governor_id,
            change=0,
            version=now.version + 1,
            threshold=now.threshold,
            mode=now.mode,
            at_us=AT_US,
        )
        scene = scene.given((GOVERNORS, fact))
    return scene


def test_votes_of_governors_removed_before_the_scheduling_do_not_count() -> None:
    """Attack: persons are appointed, vote, and are removed before the version is scheduled."""
    scene = without(approved(), BORIS)
    scene.when(scheduling(scene, 1)).then_refused(
        AuthorityReason.SECOND_PERSON_NEEDED, count=1, needed=2
    )
    scene = scene.after(yes(scene, DIDO))
    assert state(scene.after(scheduling(scene, 1))).status == "scheduled"


def test_persons_appointed_after_the_proposal_have_no_vote_on_it() -> None:
    """Attack: the electorate is the set in force before the proposal."""
    scene = proposed().given(enrolled(*FOUR, EMIL)[-1])
    scene.when(yes(scene, EMIL)).then_refused(
        AuthorityReason.GOVERNOR_UNKNOWN, rule="enrolled later"
    )


def test_as_many_governors_cancel_a_scheduled_version_before_its_first_epoch() -> None:
    """Design governance 6: nobody pays an epoch for a mistake that was seen in time."""
    scene = approved()
    scene = scene.after(scheduling(scene, 1))
    scene = scene.after(cancel(scene, CLEO))
    assert (state(scene).status, policy_for(scene, 9).version) == ("scheduled", 2)
    begun = scene.given((epoch_stream(9), opened(9)))
    begun.when(cancel(begun, DIDO)).then_refused(GovernanceReason.PROPOSAL_STATE, rule="begun")
    scene = scene.after(cancel(scene, DIDO))
    assert (state(scene).status, policy_for(scene, 9).version) == ("cancelled", 1)
    made = {**plain(effective_from_epoch=1), "proposal": {**CLEAN["proposal"], "number": 25}}
    scene = scene.after(proposing(made))
    for who in (ANNA, BORIS):
        scene = scene.after(yes(scene, who, 25))
    command = SchedulePolicyProposal(
        open_epoch=1, effective_from_epoch=None, by=CARRIER, **seen(scene, 25)
    )
    scene = scene.after(command)
    assert [policy_for(scene, epoch).version for epoch in (4, 5, 9)] == [1, 3, 3]


def test_in_a_network_of_one_one_vote_passes_and_says_so() -> None:
    scene = READY.given((epoch_stream(1), opened(1)), *enrolled(ANNA)).after(proposing(plain()))
    scene = scene.after(yes(scene, ANNA))
    vote = state(scene).votes[0]
    assert (state(scene).status, vote.mode, vote.needed) == ("approved", "single", 1)
    scheduled = state(scene.after(scheduling(scene, 1))).scheduled
    assert scheduled is not None
    assert scheduled.mode == "single"


def test_without_a_governor_there_is_nothing_to_vote_on() -> None:
    scene = READY.given((epoch_stream(1), opened(1)))
    scene.when(proposing(plain())).then_refused(AuthorityReason.NO_GOVERNORS)


voters = st.lists(st.tuples(st.sampled_from((*FOUR, EMIL)), st.booleans()), max_size=8)


@examples(30)
@given(voters)
def test_nothing_is_approved_by_fewer_than_two_governors(
    votes: list[tuple[Governor, bool]],
) -> None:
    scene = proposed()
    for by, is_yes in votes:
        try:
            scene = scene.after(yes(scene, by) if is_yes else no(scene, by))
        except Refused:
            continue
    found = state(scene)
    if found.status == "approved":
        assert len(set(found.approved_by)) >= 2
        assert EMIL.governor_id not in found.approved_by
    assert set(found.approved_by).isdisjoint(found.rejected_by)
