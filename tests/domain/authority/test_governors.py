"""The register of governors: who enrols whom, by how many votes, and from when on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.authority.governors import (
    DELAY_EPOCHS,
    ApplyGovernorChange,
    ProposeGovernorChange,
    VoteOnGovernorChange,
)
from domain.authority.reasons import AuthorityReason
from domain.authority.register import GOVERNORS, SHARED_FROM, GovernorChange, GovernorSet, Register
from domain.authority.vote import SignedVote
from domain.epochs.epoch import stream_of as epoch_stream
from domain.refusal import Refused
from tests.domain.scenes.epochs import opened
from tests.examples import examples
from tests.given import Scene
from tests.scenes.governors import ANNA, BORIS, CLEO, DIDO, NETWORK, THREE, Governor, enrolled

AT_US = 1_795_176_000_000_000
EPOCH_1 = Scene().given((epoch_stream(1), opened(1)))


def register(scene: Scene) -> Register:
    found = scene.state(GOVERNORS)
    assert isinstance(found, Register)
    return found


def change(scene: Scene, number: int = 1) -> GovernorChange:
    return register(scene).changes[number - 1]


def enrolling(scene: Scene, who: Governor) -> ProposeGovernorChange:
    body = who.enrolment(NETWORK, register(scene).now.version)
    return ProposeGovernorChange(network=NETWORK, **body, by="mem_op", at_us=AT_US)


def changing(scene: Scene, action: str, **more: Any) -> ProposeGovernorChange:
    return ProposeGovernorChange(
        network=NETWORK,
        action=action,
        governors=register(scene).now.version,
        by="mem_op",
        at_us=AT_US,
        **more,
    )


def removing(scene: Scene, who: Governor) -> ProposeGovernorChange:
    return changing(scene, "remove", governor_id=who.governor_id)


def voting(
    scene: Scene, who: Governor, choice: str = "yes", number: int = 1, open_epoch: int = 1
) -> VoteOnGovernorChange:
    subject = change(scene, number).subject
    if choice == "cancel":
        subject = replace(subject, governors=register(scene).now.version)
    return VoteOnGovernorChange(
        number=number,
        choice=choice,
        vote=who.vote(subject, choice),
        open_epoch=open_epoch,
        key_id="key_op",
        by="mem_op",
        at_us=AT_US,
    )


def applying(number: int = 1) -> ApplyGovernorChange:
    return ApplyGovernorChange(number=number, at_us=AT_US)


def until(scene: Scene, epoch: int) -> Scene:
    for each in range(2, epoch + 1):
        scene = scene.given((epoch_stream(each), opened(each)))
    return scene


def members(scene: Scene) -> tuple[str, ...]:
    return register(scene).now.members


def ids(*governors: Governor) -> tuple[str, ...]:
    return tuple(one.governor_id for one in governors)


SHARED = EPOCH_1.given(*enrolled(*THREE))


def test_the_first_governor_enrols_with_the_operators_word_and_the_keys_own_signature() -> None:
    scene = EPOCH_1.after(enrolling(EPOCH_1, ANNA))
    now = register(scene).now
    assert now == GovernorSet(1, ids(ANNA), 1, "single")
    assert register(scene).network == NETWORK


def test_a_second_governor_needs_the_vote_of_the_first_and_is_in_force_at_once() -> None:
    """One stolen operator's key enrols no ghost beside a governor."""
    scene = EPOCH_1.after(enrolling(EPOCH_1, ANNA))
    scene = scene.after(enrolling(scene, BORIS))
    assert members(scene) == ids(ANNA)
    scene.when(voting(scene, BORIS)).then_refused(
        AuthorityReason.GOVERNOR_UNKNOWN, rule="not a governor"
    )
    scene = scene.after(voting(scene, ANNA))
    assert register(scene).now == GovernorSet(2, ids(ANNA, BORIS), 1, "single")
    assert change(scene).votes[0].mode == "single"


def test_with_the_third_governor_the_mode_is_shared_for_good() -> None:
    scene = EPOCH_1.given(*enrolled(ANNA, BORIS))
    scene = scene.after(enrolling(scene, CLEO))
    scene = scene.after(voting(scene, ANNA))
    assert register(scene).now == GovernorSet(3, ids(*THREE), 2, "shared")
    scene.when(removing(scene, CLEO)).then_refused(
        AuthorityReason.GOVERNOR_CHANGE_INVALID, rule="three governors stay"
    )


def test_in_shared_mode_a_change_takes_two_of_the_present_and_a_whole_epoch() -> None:
    scene = SHARED.after(enrolling(SHARED, DIDO))
    scene = scene.after(voting(scene, ANNA))
    assert change(scene).status == "proposed", "one vote carries nothing"
    scene.when(voting(scene, ANNA)).then_refused(AuthorityReason.VOTED_ALREADY)
    scene.when(voting(scene, DIDO)).then_refused(AuthorityReason.GOVERNOR_UNKNOWN)
    scene = scene.after(voting(scene, BORIS))
    assert (change(scene).status, change(scene).from_epoch) == ("scheduled", 1 + DELAY_EPOCHS)
    for epoch in (1, 2):
        early = until(scene, epoch)
        early.when(applying()).then_refused(AuthorityReason.GOVERNOR_CHANGE_STATE, from_epoch=3)
    after = until(scene, 3).after(applying())
    assert register(after).now == GovernorSet(4, ids(*THREE, DIDO), 2, "shared")
    after.when(applying()).then_refused(AuthorityReason.GOVERNOR_CHANGE_STATE, status="applied")


def test_one_governor_alone_removes_nobody() -> None:
    scene = SHARED.given(*enrolled(*THREE, DIDO)[3:])
    scene = scene.after(removing(scene, BORIS))
    scene = scene.after(voting(scene, ANNA))
    assert change(scene).status == "proposed"
    scene = until(scene, 9)
    scene.when(applying()).then_refused(AuthorityReason.GOVERNOR_CHANGE_STATE, status="proposed")


def test_as_many_cancel_a_scheduled_change_before_it_is_in_force() -> None:
    scene = SHARED.after(enrolling(SHARED, DIDO))
    scene = scene.after(voting(scene, ANNA)).after(voting(scene, BORIS))
    scene = scene.after(voting(scene, CLEO, "cancel"))
    assert change(scene).status == "scheduled", "one cancels nothing"
    scene = scene.after(voting(scene, BORIS, "cancel"))
    assert change(scene).status == "cancelled"
    until(scene, 3).when(applying()).then_refused(AuthorityReason.GOVERNOR_CHANGE_STATE)


def test_the_votes_of_a_removed_governor_drop_out_before_a_change_comes_into_force() -> None:
    scene = SHARED.given(*enrolled(*THREE, DIDO)[3:])
    scene = scene.after(changing(scene, "threshold", threshold=3))
    scene = scene.after(voting(scene, ANNA)).after(voting(scene, BORIS))
    scene = scene.after(removing(scene, BORIS))
    scene = scene.after(voting(scene, ANNA, number=2)).after(voting(scene, CLEO, number=2))
    scene = until(scene, 3).after(applying(2))
    assert members(scene) == ids(ANNA, CLEO, DIDO)
    scene.when(applying(1)).then_refused(AuthorityReason.SECOND_PERSON_NEEDED, count=1, needed=2)
    scene = scene.after(voting(scene, DIDO))
    assert register(scene.after(applying(1))).now.threshold == 3


@pytest.mark.parametrize("threshold", [None, 0, 1, 4])
def test_a_threshold_is_from_two_to_all(threshold: int | None) -> None:
    asked = changing(SHARED, "threshold", threshold=threshold)
    SHARED.when(asked).then_refused(AuthorityReason.GOVERNOR_CHANGE_INVALID)


def test_what_a_vote_names_must_be_what_is_proposed() -> None:
    """A signature for one content, revision, set, network or choice is none for another."""
    scene = SHARED.after(enrolling(SHARED, DIDO))
    good = voting(scene, ANNA)
    names: tuple[tuple[str, Any], ...] = (
        ("content_sha256", "0" * 64),
        ("revision", 2),
        ("governors", 2),
    )
    for field, value in names:
        other: SignedVote = replace(good.vote, **{field: value})
        scene.when(replace(good, vote=other)).then_refused(
            AuthorityReason.VOTE_MISMATCH, field=field
        )


def test_a_signature_to_enrol_is_for_one_version_of_the_set() -> None:
    old = enrolling(EPOCH_1, BORIS)
    scene = EPOCH_1.after(enrolling(EPOCH_1, ANNA))
    scene.when(old).then_refused(AuthorityReason.GOVERNORS_MOVED, expected=1)


def test_a_governor_enrolled_after_a_proposal_has_no_vote_on_it() -> None:
    scene = EPOCH_1.given(*enrolled(ANNA))
    scene = scene.after(enrolling(scene, BORIS)).after(enrolling(scene, CLEO))
    scene = scene.after(voting(scene, ANNA, number=1))
    scene.when(voting(scene, BORIS, number=2)).then_refused(
        AuthorityReason.GOVERNOR_UNKNOWN, rule="enrolled later"
    )


moves = st.lists(
    st.tuples(
        st.sampled_from(("enrol", "remove", "threshold", "yes", "no", "cancel", "apply", "epoch")),
        st.integers(0, 5),
        st.integers(1, 6),
    ),
    max_size=40,
)
PEOPLE = (ANNA, BORIS, CLEO, DIDO, Governor("emil"), Governor("fay"))


@examples(60)
@given(moves)
def test_shared_is_for_ever_and_no_set_of_it_lets_one_decide(
    steps: list[tuple[str, int, int]],
) -> None:
    """shared => governors >= 3 and 2 <= threshold <= governors; every applied change had as many
    votes of different governors as the set before it asked for.
    """
    scene, epoch = EPOCH_1.given(*enrolled(ANNA)), 1
    for what, who, number in steps:
        person = PEOPLE[who]
        try:
            if what == "epoch":
                epoch += 1
                scene = scene.given((epoch_stream(epoch), opened(epoch)))
            elif what == "enrol":
                scene = scene.after(enrolling(scene, person))
            elif what == "remove":
                scene = scene.after(removing(scene, person))
            elif what == "threshold":
                scene = scene.after(changing(scene, "threshold", threshold=number))
            elif number <= len(register(scene).changes):
                command: Any = applying(number)
                if what != "apply":
                    command = voting(scene, person, what, number, epoch)
                scene = scene.after(command)
        except Refused:
            continue
    sets = register(scene).sets
    was_shared = False
    for one in sets[1:]:
        was_shared = was_shared or one.mode == "shared"
        assert (one.mode == "shared") == was_shared
        assert len(set(one.members)) == len(one.members) >= 1
        if was_shared:
            assert len(one.members) >= SHARED_FROM
            assert 2 <= one.threshold <= len(one.members)
    for made in register(scene).changes:
        if made.status == "applied":
            before = sets[made.proposed.governors]
            yes = {vote.governor_id for vote in made.votes if vote.choice == "yes"}
            assert yes <= set(before.members)
            assert len(yes) >= before.threshold
